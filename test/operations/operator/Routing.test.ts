/** The operator's view of upstreams: state, last failures, and why the last calls went where they went. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { modelOf, Routed } from "../../support/Routed.ts"
import { command } from "../../support/Service.ts"

const failed = { status: 500, body: {} }

let routed: Routed
let token: string
beforeAll(async () => {
  routed = await Routed.start(
    { a: { cooldown_seconds: 3_600 }, b: {}, c: {} },
    {
      models: [modelOf("pair", ["a", "b"]), modelOf("alone", ["c"]), modelOf("backed", ["b"], { fallbacks: ["alone"] })]
    }
  )
  token = (await command(["operator", "--token"], { DATA_DIR: routed.service.folder })).stdout.trim()
})
afterAll(() => routed?.stop())

const view = async () => (await routed.service.call("/v1/operator/upstreams", { token })).body.result
const attempt = (upstream: string, outcome: string, model: string) => ({ model, upstream, outcome })

describe("GET /v1/operator/upstreams", () => {
  it("says of each upstream until when it cools down, and its last failures", async () => {
    routed.vendors.next("a", failed, { status: 401, body: {} }, { status: 429, body: {} })
    for (let i = 0; i < 3; i++) await routed.chat("pair")
    const { upstreams } = await view()
    const [a, b] = upstreams
    expect(a).toMatchObject({ name: "a", state: "failing", failures_in_a_row: 3, last_failure: "busy" })
    expect(a.last_failures.map(({ kind }: { kind: string }) => kind)).toEqual(["busy", "key", "5xx"])
    expect(Date.parse(a.cooling_until)).toBeGreaterThan(Date.parse(a.last_failure_at))
    expect(b).toMatchObject({ name: "b", state: "ok", cooling_until: null, last_failures: [] })
    expect(b.latency_ms).toMatchObject({ p50: expect.any(Number) })
  })

  it("says where the last calls went and why, newest first, without their content", async () => {
    const secret = "a word of the conversation"
    const { headers } = await routed.chat("pair", { messages: [{ role: "user", content: secret }] })
    routed.vendors.next("b", failed)
    await routed.chat("backed")
    const body = await view()
    expect(JSON.stringify(body)).not.toContain(secret)
    expect(body.decisions.slice(0, 3)).toMatchObject([
      {
        model: "backed",
        reason: "only",
        attempts: [attempt("b", "failed", "backed"), attempt("c", "answered", "alone")]
      },
      {
        model: "pair",
        reason: "others_cooling",
        request_id: headers.get("x-request-id"),
        attempts: [attempt("b", "answered", "pair")]
      },
      { model: "pair", reason: "order", attempts: [attempt("a", "busy", "pair"), attempt("b", "answered", "pair")] }
    ])
  })

  it("notes a call with one upstream only if it failed, and keeps the last hundred", async () => {
    const before = (await view()).decisions.length
    await routed.chat("alone")
    expect((await view()).decisions).toHaveLength(before)
    routed.vendors.next("c", failed)
    await routed.chat("alone")
    expect((await view()).decisions[0]).toMatchObject({ model: "alone", attempts: [attempt("c", "failed", "alone")] })
    for (let i = 0; i < 100; i++) await routed.chat("pair")
    const { decisions } = await view()
    expect(decisions).toHaveLength(100)
    expect(decisions.every(({ model }: { model: string }) => model === "pair")).toBe(true)
  })
})
