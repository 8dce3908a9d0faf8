/** Which of a model's upstreams is asked: by order, weight, cost, latency and conversation, and while one cools down. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { modelOf, Routed } from "../support/Routed.ts"

const cost = (prompt: string) => ({ prompt_usd_per_million: prompt, completion_usd_per_million: "1" })
const refused = { status: 500, body: {} }

let routed: Routed
beforeAll(async () => {
  routed = await Routed.start(
    { a: {}, b: {}, c: { cooldown_seconds: 3_600 }, d: {}, e: { cooldown_seconds: 1 }, f: {}, g: {}, h: {} },
    {
      models: [
        modelOf("ordered", ["a", "b"]),
        modelOf(
          "weighted",
          [
            { upstream: "a", weight: 0 },
            { upstream: "b", weight: 3 }
          ],
          { routing: "weights" }
        ),
        modelOf("sticky", ["a", "b", "d"], { routing: "weights", sticky: true }),
        modelOf("held", ["f", "d"], { sticky: true }),
        modelOf(
          "cheap",
          [
            { upstream: "a", cost: cost("3") },
            { upstream: "b", cost: cost("1") }
          ],
          { routing: "cost" }
        ),
        modelOf("fast", ["g", "h"], { routing: "latency" }),
        modelOf("quick", ["g"]),
        modelOf("cooling", ["c", "d"]),
        modelOf("probed", ["e", "d"])
      ]
    }
  )
})
afterAll(() => routed?.stop())
beforeEach(() => routed.vendors.forget())

const asked = (model: string, more: object = {}) => routed.askedBy(() => routed.chat(model, more))

/** A median is computed again after a second. */
const nextMedian = () => new Promise<void>((resolve) => setTimeout(resolve, 1_100))

describe("routing", () => {
  it("keeps the configured order unless the model has a rule", async () => {
    expect([await asked("ordered"), await asked("ordered")]).toEqual([["a"], ["a"]])
    routed.vendors.next("a", refused)
    expect(await asked("ordered")).toEqual(["a", "b"])
    expect((await routed.service.usage(routed.who))[0]).toMatchObject({ provider: "b", success: true })
  })

  it("by weights asks an upstream of weight 0 only after the others", async () => {
    expect([await asked("weighted"), await asked("weighted")]).toEqual([["b"], ["b"]])
    routed.vendors.next("b", refused)
    expect(await asked("weighted")).toEqual(["b", "a"])
  })

  it("keeps a conversation at one upstream as it grows, and spreads conversations", async () => {
    const turns = (name: string, count: number) => [
      { role: "system", content: "be brief" },
      { role: "user", content: name },
      ...Array.from({ length: count }, (_, i) => ({ role: i % 2 === 0 ? "assistant" : "user", content: `turn ${i}` }))
    ]
    const first = new Set<string>()
    for (let i = 0; i < 12; i++) {
      const [upstream, ...others] = await asked("sticky", { messages: turns(`talk ${i}`, 0) })
      expect(others).toEqual([])
      expect(await asked("sticky", { messages: turns(`talk ${i}`, 3) })).toEqual([upstream])
      first.add(upstream!)
    }
    expect(first.size).toBeGreaterThan(1)
  })

  it("follows a conversation to the upstream that answered it last", async () => {
    routed.vendors.next("f", refused)
    expect(await asked("held", { prompt_cache_key: "one" })).toEqual(["f", "d"])
    expect(await asked("held", { prompt_cache_key: "one" })).toEqual(["d"])
    expect(await asked("held", { prompt_cache_key: "two" })).toEqual(["f"])
  })

  it("by cost asks the upstream whose vendor charges least", async () => {
    expect(await asked("cheap")).toEqual(["b"])
    routed.vendors.next("b", refused)
    expect(await asked("cheap")).toEqual(["b", "a"])
  })

  it("by latency asks an upstream without a latency first, and then the faster one", async () => {
    expect(await asked("fast")).toEqual(["g"])
    await nextMedian()
    let release = () => {}
    routed.vendors.next("h", { held: new Promise<void>((resolve) => (release = resolve)) })
    const slow = routed.chat("fast")
    await expect.poll(() => routed.vendors.order, { timeout: 60_000 }).toEqual(["g", "h"])
    // It takes longer than ten answers of the other.
    for (let i = 0; i < 10; i++) expect(await asked("quick")).toEqual(["g"])
    release()
    await slow
    await nextMedian()
    expect(await asked("fast")).toEqual(["g"])
  })
})

describe("an upstream that cools down", () => {
  it("is asked last after three failures in a row, and still if the others fail", async () => {
    for (let i = 0; i < 3; i++) {
      routed.vendors.next("c", refused)
      expect(await asked("cooling")).toEqual(["c", "d"])
    }
    expect(await asked("cooling")).toEqual(["d"])
    routed.vendors.next("d", refused)
    expect(await asked("cooling")).toEqual(["d", "c"])
    // It has answered, so its cooldown is over.
    expect(await asked("cooling")).toEqual(["c"])
  })

  it("is asked last at once after a Retry-After", async () => {
    routed.vendors.next("c", { status: 429, headers: { "retry-after": "60" }, body: {} })
    expect(await asked("cooling")).toEqual(["c", "d"])
    expect(await asked("cooling")).toEqual(["d"])
  })

  it("gets one probe when its cooldown is over, while other calls go elsewhere", async () => {
    routed.vendors.next("e", { status: 429, headers: { "retry-after": "1" }, body: {} })
    expect(await asked("probed")).toEqual(["e", "d"])
    let release = () => {}
    routed.vendors.next("e", { held: new Promise<void>((resolve) => (release = resolve)) })
    const probe: Array<Promise<unknown>> = []
    await expect
      .poll(
        async () => {
          probe.push(routed.chat("probed"))
          await expect.poll(() => routed.vendors.asked.length).toBeGreaterThan(probe.length + 1)
          return routed.vendors.order.at(-1)
        },
        { timeout: 10_000 }
      )
      .toBe("e")
    expect(await asked("probed")).toEqual(["d"])
    release()
    await Promise.all(probe)
    expect(await asked("probed")).toEqual(["e"])
  })
})
