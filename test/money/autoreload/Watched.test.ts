/** A balance that is watched: which of its movements are told, by a naive reading of the rules. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { unset } from "../../../src/money/autoreload/AutoReload.ts"
import { observe, watched } from "../../../src/money/autoreload/Watched.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"

const tenant = "ten_a" as TenantId

const alerting = (warn: bigint, rearm: bigint | null) => ({
  ...unset,
  alerts_enabled: true,
  warn_threshold: warn,
  rearm_threshold: rearm
})

/** The alerts of a walk from one balance to the next. */
const alertsOf = (warn: bigint, rearm: bigint, walk: ReadonlyArray<bigint>): ReadonlyArray<bigint> => {
  const told: Array<bigint> = []
  let risen = true
  for (let i = 1; i < walk.length; i++) {
    const [before, after] = [walk[i - 1]!, walk[i]!]
    if (before > rearm) risen = true
    if (after > rearm) risen = true
    if (after < before && after < warn && risen) {
      told.push(after)
      risen = false
    }
  }
  return told
}

describe("a watched balance", () => {
  it("is told of once below the first threshold, and again after it has been above the second", () => {
    const amount = fc.bigInt(0n, 20n)
    fc.assert(
      fc.property(amount, amount, fc.array(amount, { minLength: 2, maxLength: 40 }), (one, other, walk) => {
        const [warn, rearm] = one < other ? [one, other] : [other, one]
        const balance = watched(tenant, alerting(warn, rearm), walk[0]!)
        if (balance === undefined) return warn === 0n
        for (let i = 1; i < walk.length; i++) observe(balance, walk[i - 1]!, walk[i]!)
        const told = balance.crossings.flatMap((one) => (one._tag === "low" ? [one.balance] : []))
        expect(told).toEqual(alertsOf(warn, rearm, walk))
        return true
      })
    )
  })

  it("takes up where an earlier run of the process left off", () => {
    const told = watched(tenant, { ...alerting(5n, 8n), warned: true, looked: 4n }, 4n)!
    expect(observe(told, 4n, 3n)).toBe(false)
    expect(observe(told, 3n, 9n)).toBe(true)
    expect(told.crossings).toEqual([{ _tag: "rearmed" }])
  })

  it("that rose by a movement of another process is seen to have risen by the next that is shown", () => {
    const told = watched(tenant, { ...alerting(5n, 8n), warned: true }, 4n)!
    observe(told, 9n, 3n)
    expect(told.crossings.map(({ _tag }) => _tag)).toEqual(["rearmed", "low"])
  })

  it("is due for a reload once, by a fall below the threshold and nothing else", () => {
    const one = watched(tenant, { ...unset, enabled: true, threshold: 5n }, 4n)!
    expect(observe(one, 3n, 4n)).toBe(false)
    expect(observe(one, 6n, 5n)).toBe(false)
    expect([observe(one, 5n, 4n), one.due]).toEqual([true, true])
    expect(observe(one, 4n, 3n)).toBe(false)
  })

  it("is not watched where nobody is to be told", () => {
    expect(watched(tenant, unset, 4n)).toBeUndefined()
    expect(watched(tenant, alerting(0n, null), 4n)).toBeUndefined()
  })
})
