import { Effect, TestClock, TestContext } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Ids from "../../src/kernel/Ids.ts"

describe("an id", () => {
  it("says its kind, then 22 characters in which no two look alike", () => {
    expect(Ids.at("acc", Date.UTC(2026, 0, 1))).toMatch(/^acc_[0-9a-hjkmnp-tv-z]{22}$/)
  })

  it("sorts by when it was made", () => {
    const moment = fc.integer({ min: 0, max: 2 ** 50 - 1 })
    fc.assert(
      fc.property(moment, moment, (a, b) => {
        const [one, other] = [Ids.at("call", a), Ids.at("call", b)]
        if (a !== b) expect(one < other).toBe(a < b)
        expect(one.slice(0, 15) === other.slice(0, 15)).toBe(a === b)
      })
    )
  })

  it("is made once, however many are made in a millisecond", () => {
    const count = 50_000
    expect(new Set(Array.from({ length: count }, () => Ids.at("req", 1))).size).toBe(count)
  })

  it("takes its time from the clock", async () => {
    const made = Effect.zipRight(TestClock.setTime(1_234_567_890_123), Ids.make("ten"))
    const id = await Effect.runPromise(Effect.provide(made, TestContext.TestContext))
    expect(id.slice(0, 14)).toBe(Ids.at("ten", 1_234_567_890_123).slice(0, 14))
  })

  it("carries over to what there is exactly one of", () => {
    expect(Ids.usageOf("call_01h2x")).toBe("use_01h2x")
    expect(Ids.billingAccountOf("ten_01h2x")).toBe("bil_01h2x")
  })
})
