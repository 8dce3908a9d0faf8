/**
 * A year of allowances: two nodes that look every few hours, are killed at their commits and started again, under a clock that is set forward
 * and back by up to three weeks. Each period of each tenant is granted once, and the sums are those of a bystander.
 */
import { Effect } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { day, hour } from "../../../src/kernel/Moment.ts"
import { nameOf, numberOf, startOf } from "../../../src/kernel/Period.ts"
import type { Period } from "../../../src/kernel/Period.ts"
import { Allowances } from "../../../src/money/allowances/Allowances.ts"
import type { Terms } from "../../../src/money/allowances/Allowance.ts"
import * as Scene from "../Nodes.ts"

const first = Date.UTC(2027, 0, 1, 3)
const last = Date.UTC(2028, 0, 1, 3)

const termsOf = (i: number): Terms => ({
  amount_usd: BigInt(1_000 * (i + 1)),
  period: i % 2 === 0 ? "month" : "week",
  rollover: i % 3 === 0 ? "all" : i % 3 === 1 ? "none" : { up_to_usd: 500n }
})
const class_ = Array.from({ length: 12 }, (_, i) => ({ tenant: `ten_pupil${i}` as TenantId, terms: termsOf(i) }))

/** The names of all periods of the year. */
const periodsOf = (period: Period): ReadonlyArray<string> => {
  const names: Array<string> = []
  for (let n = numberOf(period, first); startOf(period, n) < last; n++) names.push(nameOf(period, n))
  return names
}

const lifeOf = (seed: number) => {
  const random = fc.sample(fc.nat({ max: 1_000_000 }), { numRuns: 40_000, seed })
  let drawn = 0
  return (below: number): number => random[drawn++ % random.length]! % below
}

it.each([1, 2, 3])("grants each period once, whatever happens to nodes and clocks (seed %s)", async (seed) => {
  const draw = lifeOf(seed)
  const scene = await Scene.make(first)
  const on = <A, E>(effect: Effect.Effect<A, E, Scene.Rooms>, node = 0) => scene.nodes[node]!(effect)
  for (const { tenant, terms } of class_) {
    await on(Scene.open(tenant))
    await on(
      Effect.flatMap(Ledger, (ledger) =>
        ledger.credit({ account: billingAccountOf(tenant), amount: 700n, source: "purchase", reference: "pay_1" })
      )
    )
    await on(Effect.flatMap(Allowances, ({ set }) => set(tenant, terms)))
  }
  let charged = 0n
  let calls = 0
  let killed = 0
  for (let time = first; time < last; time += (1 + draw(30)) * hour) {
    const jump = draw(4) === 0 ? (draw(43) - 21) * day : 0
    scene.now = Math.min(last - 1, Math.max(first, time + jump))
    const kill = ([undefined, undefined, "before", "after"] as const)[draw(4)]
    scene.kill = kill
    const lived = await Promise.all([on(Scene.renewDue, 0), on(Scene.renewDue, 1)])
    scene.kill = undefined
    if (lived.includes(false)) killed++
    const { tenant } = class_[draw(class_.length)]!
    const made = await on(Effect.option(Scene.reserve(tenant, `call_${++calls}`, BigInt(1 + draw(400)))))
    if (made._tag === "Some") charged += await on(Scene.settle(`call_${calls}`, BigInt(draw(600))), draw(2))
  }
  scene.now = last - 1
  scene.kill = undefined
  await on(Scene.renewDue)

  let [granted, taken, left] = [0n, 0n, 0n]
  for (const { tenant, terms } of class_) {
    const entries = (await on(Scene.entries(tenant))).filter(({ source }) => source === "allowance")
    const grants = entries.filter(({ type }) => type === "credit")
    const names = grants.map(({ reference_id }) => reference_id.slice(`alw_${tenant.slice(4)}_`.length))
    expect(names.toSorted()).toEqual(periodsOf(terms.period))
    const account = await on(Scene.account(tenant))
    granted += grants.reduce((sum, { amount }) => sum + amount, 0n)
    taken += entries.reduce((sum, { amount, type }) => (type === "debit" ? sum + amount : sum), 0n)
    left += account.giftable + account.granted
  }
  expect(left).toBe(700n * BigInt(class_.length) + granted - taken - charged)
  expect(await on(Scene.findings)).toEqual({ found: [], sum: 0n })
  expect(killed).toBeGreaterThan(5)
  await scene.close()
})
