/** Calls that no upstream served are repeated, and then go to another model; each is charged once, at most what was reserved. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { modelOf, Routed } from "../support/Routed.ts"
import { command } from "../support/Service.ts"
import { usage } from "../support/FakeVendors.ts"

const priced = (prompt: string, completion: string) => ({
  price: { prompt_usd_per_million: prompt, completion_usd_per_million: completion }
})
const failed = { status: 500, body: {} }
const unavailable = { status: 503, body: {} }

let routed: Routed
let narrow: string
beforeAll(async () => {
  routed = await Routed.start(
    { a: {}, b: {}, c: {}, d: {}, closed: {} },
    {
      models: [
        modelOf("patient", ["a", "b"], { retries: 2 }),
        modelOf("hasty", ["a"], { retries: 2, retry_seconds: 1 }),
        modelOf("unreachable", ["closed"], { retries: 1 }),
        modelOf("first", ["a", "b"], { fallbacks: ["dear", "second", "third"] }),
        modelOf("second", ["c"], priced("0.5", "1")),
        modelOf("third", ["d"], priced("0.5", "1")),
        modelOf("dear", ["d"], priced("100", "200")),
        modelOf("patient-first", ["a"], { retries: 1, fallbacks: ["second"] })
      ]
    }
  )
  const { service, who } = routed
  const made = await service.call(`/v1/tenants/${who.tenant_id}/applications`, {
    token: who.token,
    json: { name: "narrow", description: "", allowed_models: ["first", "third"] }
  })
  narrow = made.body.result.api_key
})
afterAll(() => routed?.stop())
beforeEach(() => routed.vendors.forget())

const records = () => routed.service.usage(routed.who)
/** What a call books: the records since, the newest first, and the difference of the balance. */
const booked = async <A>(call: () => Promise<A>) => {
  const [before, known] = [await routed.service.balance(routed.who), (await records()).length]
  const answer = await call()
  const all = await records()
  const charged = Number((before - (await routed.service.balance(routed.who))).toFixed(9))
  return { answer, charged, made: all.slice(0, all.length - known) }
}

describe("a retry", () => {
  it("asks those again that did no work, and the call is charged once", async () => {
    routed.vendors.next("a", unavailable, unavailable)
    routed.vendors.next("b", failed)
    const { answer, charged, made } = await booked(() => routed.chat("patient"))
    expect(answer.status).toBe(200)
    // `b` may have worked on it, so it is not asked again.
    expect(routed.vendors.order).toEqual(["a", "b", "a", "a"])
    expect(charged).toBe(0.00002)
    expect(made).toHaveLength(1)
    expect(made[0]).toMatchObject({ provider: "a", model: "patient", cost: 0.00002, success: true })
  })

  it("is made for a stream too, and after a 429", async () => {
    routed.vendors.next("a", { status: 429, headers: { "retry-after": "1" }, body: {} })
    routed.vendors.next("b", { status: 429, body: {} })
    const answer = await routed.chat("patient", { stream: true })
    expect([answer.status, routed.vendors.order[2]]).toEqual([200, "a"])
    expect(answer.body).toContain("by a")
  })

  it("is not made for a failure that may have cost something, nor for a refused request", async () => {
    routed.vendors.next("a", { broken: true })
    routed.vendors.next("b", failed)
    expect((await routed.chat("patient")).status).toBe(500)
    expect(routed.vendors.order).toEqual(["a", "b"])
    routed.vendors.forget()
    routed.vendors.next("a", { status: 400, body: { error: { message: "no" } } })
    expect((await routed.chat("patient")).status).toBe(400)
    expect(routed.vendors.order).toEqual(["a"])
  })

  it("is not made later than its time allows", async () => {
    routed.vendors.next("a", { status: 429, headers: { "retry-after": "30" }, body: {} })
    const { answer, charged, made } = await booked(() => routed.chat("hasty"))
    expect([answer.status, answer.headers.get("retry-after"), routed.vendors.order]).toEqual([429, "30", ["a"]])
    expect(charged).toBe(0)
    expect(made).toMatchObject([{ success: false, cost: 0, error_type: "upstream_rate_limited" }])
  })

  it("ends: an upstream that takes no connection fails the call, which costs nothing", async () => {
    const { answer, charged, made } = await booked(() => routed.chat("unreachable"))
    expect([answer.status, answer.body.code]).toEqual([500, "upstream_error"])
    expect(charged).toBe(0)
    expect(made).toMatchObject([{ success: false, cost: 0 }])
  })
})

describe("a fallback", () => {
  it("answers if every upstream failed: at its own price, named in a header and in the record", async () => {
    for (const stream of [false, true]) {
      routed.vendors.forget()
      routed.vendors.next("a", failed)
      routed.vendors.next("b", failed)
      const { answer, charged, made } = await booked(() => routed.chat("first", { stream }))
      expect([answer.status, answer.headers.get("x-fallback-model")]).toEqual([200, "second"])
      // `dear` is passed over: it could cost more than was reserved.
      expect(routed.vendors.order).toEqual(["a", "b", "c"])
      expect(charged).toBe(0.00001)
      expect(made).toMatchObject([{ model: "second", provider: "c", cost: 0.00001, success: true }])
      const path = `/v1/usage/${answer.headers.get("x-usage-id")}/explain`
      const explained = await routed.service.call(path, { token: routed.who.token })
      expect(explained.body).toMatchObject({ computed_usd: 0.00001, model: "second" })
    }
  })

  it("is not named if the requested model answers", async () => {
    expect((await routed.chat("first")).headers.get("x-fallback-model")).toBeNull()
  })

  it("follows the retries, and another fallback follows it", async () => {
    routed.vendors.next("a", unavailable, unavailable)
    expect((await routed.chat("patient-first")).headers.get("x-fallback-model")).toBe("second")
    expect(routed.vendors.order).toEqual(["a", "a", "c"])
    routed.vendors.forget()
    for (const vendor of ["a", "b", "c"]) routed.vendors.next(vendor, failed)
    expect((await routed.chat("first")).headers.get("x-fallback-model")).toBe("third")
  })

  it("is a model that the key may call", async () => {
    for (const vendor of ["a", "b"]) routed.vendors.next(vendor, failed)
    expect((await routed.chat("first", {}, narrow)).headers.get("x-fallback-model")).toBe("third")
    expect(routed.vendors.order).toEqual(["a", "b", "d"])
  })

  it("is not asked after an answer that is charged, nor for a refused request", async () => {
    routed.vendors.next("a", { body: { error: { message: "no" }, usage } })
    const { answer, charged } = await booked(() => routed.chat("first"))
    expect([answer.status, charged, routed.vendors.order]).toEqual([500, 0.00002, ["a"]])
    routed.vendors.forget()
    routed.vendors.next("a", { status: 422, body: {} })
    expect([(await routed.chat("first")).status, routed.vendors.order]).toEqual([400, ["a"]])
  })

  it("that fails too leaves the failure, one record and no charge", async () => {
    for (const vendor of ["a", "b", "c", "d"]) routed.vendors.next(vendor, failed)
    const { answer, charged, made } = await booked(() => routed.chat("first"))
    expect([answer.status, charged, routed.vendors.order]).toEqual([500, 0, ["a", "b", "c", "d"]])
    expect(made).toMatchObject([{ model: "first", success: false, cost: 0 }])
  })

  it("is replayed to an idempotent retry with its header", async () => {
    for (const vendor of ["a", "b"]) routed.vendors.next(vendor, failed)
    const request = {
      token: routed.key,
      headers: { "idempotency-key": "fallback-0123456789" },
      json: { model: "first", messages: [{ role: "user", content: "hello" }], max_tokens: 20 }
    }
    const first = await routed.service.call("/v1/chat/completions", request)
    const again = await routed.service.call("/v1/chat/completions", request)
    expect(again.headers.get("idempotency-replayed")).toBe("true")
    expect(again.headers.get("x-fallback-model")).toBe(first.headers.get("x-fallback-model"))
    expect(routed.vendors.order).toEqual(["a", "b", "c"])
  })

  it("leaves books that hold", async () => {
    const verified = await command(["verify"], { DATA_DIR: routed.service.folder })
    expect([verified.code, verified.stderr]).toEqual([0, ""])
  })
})
