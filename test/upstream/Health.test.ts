/** Health of an upstream: figures of its exchanges, and the cooldown after failures. */
import { describe, expect, it } from "vitest"
import { Health } from "../../src/upstream/routing/Health.ts"

const minute = 60_000
const make = (cooldown?: number) => {
  const time = { now: 1_800_000_500_000 }
  const health = new Health(() => time.now, cooldown)
  const answered = (...statuses: ReadonlyArray<number>) => {
    for (const status of statuses) health.observe({ status, millis: 10 })
  }
  return { answered, health, time }
}

describe("the cooldown", () => {
  it("begins after three failures in a row, and ends with one probe that is answered", () => {
    const { answered, health, time } = make(minute)
    answered(500, 0, 200, 500, 503)
    expect(health.standing()).toBe("ready")
    answered(401)
    expect(health.standing()).toBe("cooling")
    expect(health.figures()).toMatchObject({ state: "failing", cooling_until: time.now + minute })
    time.now += minute
    expect(health.standing()).toBe("due")
    health.probe()
    expect(health.standing()).toBe("cooling")
    answered(200)
    expect(health.standing()).toBe("ready")
    expect(health.figures()).toMatchObject({ state: "ok", cooling_until: null, failures_in_a_row: 0 })
  })

  it("begins again if the probe fails, and lets another probe go if none came", () => {
    const { answered, health, time } = make(minute)
    answered(0, 0, 0)
    time.now += minute
    health.probe()
    answered(0)
    expect(health.standing()).toBe("cooling")
    time.now += minute
    health.probe()
    time.now += minute
    expect(health.standing()).toBe("due")
  })

  it("begins at once after a Retry-After, of at most ten minutes", () => {
    const { health, time } = make(minute)
    health.observe({ status: 429, millis: 10, retry_after_ms: 5_000 })
    expect(health.figures().cooling_until).toBe(time.now + 5_000)
    health.observe({ status: 429, millis: 10, retry_after_ms: 60 * minute })
    expect(health.figures().cooling_until).toBe(time.now + 10 * minute)
  })

  it("never begins unless the upstream says for how long, nor for an error of the request", () => {
    const never = make()
    never.answered(500, 500, 500, 500)
    never.health.observe({ status: 429, millis: 10, retry_after_ms: 5_000 })
    expect([never.health.cools, never.health.standing()]).toEqual([false, "ready"])
    const other = make(minute)
    other.answered(400, 404, 422, 413)
    expect(other.health.standing()).toBe("ready")
  })
})

describe("the figures", () => {
  it("count outcomes and keep the last five failures, newest first", () => {
    const { answered, health, time } = make()
    answered(200, 404, 500, 429, 403, 0, 502, 0)
    const figures = health.figures()
    expect(figures.requests).toEqual({ "2xx": 1, "4xx": 3, "5xx": 2, unreachable: 2 })
    expect(figures.last_failures.map(({ kind }) => kind)).toEqual(["unreachable", "5xx", "unreachable", "key", "busy"])
    expect(figures.minutes.at(-1)).toMatchObject({ requests: 8, failures: 6 })
    expect([figures.last_failure, figures.last_failure_at]).toEqual(["unreachable", time.now])
    time.now += 16 * minute
    expect(health.figures()).toMatchObject({ state: "unused", latency_ms: null })
  })

  it("have a median of the last five minutes", () => {
    const { health, time } = make()
    expect(health.median()).toBeUndefined()
    time.now += 2_000
    for (const millis of [10, 100, 1_000]) health.observe({ status: 200, millis })
    expect(health.median()).toBeGreaterThanOrEqual(100)
    expect(health.median()).toBeLessThanOrEqual(125)
    time.now += 6 * minute
    expect(health.median()).toBeUndefined()
  })
})
