/** What a vendor says about a call: its id of the request and the reported cost. The operator sees both, a tenant neither. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { answerOf, usage } from "../../support/FakeVendors.ts"
import { modelOf, Routed } from "../../support/Routed.ts"
import { command } from "../../support/Service.ts"

let routed: Routed
let token: string
beforeAll(async () => {
  routed = await Routed.start({ a: {}, b: {} }, { models: [modelOf("one", ["a"]), modelOf("two", ["a", "b"])] })
  const env = { DATA_DIR: routed.service.folder }
  token = (await command(["operator", "--token", "--name", "grace"], env)).stdout.trim()
})
afterAll(() => routed?.stop())

/** The operator's view of the newest call, and the tenant's. */
const newest = async () => {
  const [shown] = await routed.service.usage(routed.who)
  const { body } = await routed.service.call(`/v1/operator/search?q=${shown.id}`, { token })
  return { shown, found: body.result.calls[0] }
}

const priced = { ...answerOf("a"), id: "gen-17", usage: { ...usage, cost: 0.000_001_5 } }
const streamed = [
  { id: "gen-18", choices: [{ index: 0, delta: { content: "by a" }, finish_reason: "stop" }] },
  { id: "gen-18", choices: [], usage: { ...usage, cost: 2.5e-7 } }
]
  .map((event) => `data: ${JSON.stringify(event)}\n\n`)
  .join("")

describe("a call's record", () => {
  it.each(["x-request-id", "request-id", "x-amzn-requestid", "cf-ray"])("has the vendor's %s", async (name) => {
    routed.vendors.next("a", { headers: { [name]: `id-in-${name}` } })
    expect((await routed.chat("one")).status).toBe(200)
    const { found, shown } = await newest()
    expect([found.vendor_request, found.vendor_cost]).toEqual([`id-in-${name}`, undefined])
    expect(Object.keys(shown).filter((field) => field.startsWith("vendor_"))).toEqual([])
  })

  it("prefers the more telling header, and ignores an endless one", async () => {
    routed.vendors.next("a", { headers: { "cf-ray": "ray", "x-request-id": "x".repeat(201), "request-id": "req_1" } })
    await routed.chat("one")
    expect((await newest()).found.vendor_request).toBe("req_1")
  })

  it("has the cost that the vendor reports, with its id of the call, and the charge stays ours", async () => {
    routed.vendors.next("a", { headers: { "x-request-id": "edge" }, body: priced })
    await routed.chat("one")
    expect((await newest()).found).toMatchObject({ vendor_request: "gen-17", vendor_cost: 0.0000015, cost: 0.00002 })
  })

  it("has the cost that ends a stream", async () => {
    routed.vendors.next("a", {
      headers: { "content-type": "text/event-stream" },
      body: `${streamed}data: [DONE]\n\n`
    })
    expect((await routed.chat("one", { stream: true })).status).toBe(200)
    await expect
      .poll(async () => (await newest()).found)
      .toMatchObject({ vendor_request: "gen-18", vendor_cost: 2.5e-7, success: true })
  })

  it("has the id of the request that failed, and of the one that served the call after it", async () => {
    routed.vendors.next("a", { status: 500, headers: { "x-request-id": "failed-1" }, body: {} })
    await routed.chat("one")
    expect((await newest()).found).toMatchObject({ success: false, vendor_request: "failed-1" })
    routed.vendors.next("a", { status: 500, headers: { "x-request-id": "failed-2" }, body: {} })
    routed.vendors.next("b", { headers: { "x-request-id": "served" } })
    await routed.chat("two")
    expect((await newest()).found).toMatchObject({
      success: true,
      provider: "b",
      vendor_request: "served",
      vendor_retries: ["failed-2"]
    })
  })

  it("has neither if the vendor said nothing", async () => {
    await routed.chat("one")
    const { found } = await newest()
    expect([found.vendor_request, found.vendor_cost]).toEqual([undefined, undefined])
  })
})
