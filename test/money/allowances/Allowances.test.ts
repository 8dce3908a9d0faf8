/** Allowances by example: the rules at the head of the service, one by one. */
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Allowances } from "../../../src/money/allowances/Allowances.ts"
import type { NewAllowance } from "../../../src/money/allowances/Allowance.ts"
import * as Scene from "../Nodes.ts"

const ada = "ten_ada" as TenantId
const bil = billingAccountOf(ada)

let scene: Scene.Scene
afterEach(() => scene.close())

const begin = async (day: string, plans = {}) => {
  scene = await Scene.make(Date.parse(day), plans)
  await run(Scene.open(ada))
}
const run = <A, E>(effect: Effect.Effect<A, E, Scene.Rooms>) => scene.nodes[0](effect)
const at = (text: string) => {
  scene.now = Date.parse(text)
  return run(Scene.renewDue)
}
const set = (terms: NewAllowance) => run(Effect.flatMap(Allowances, (allowances) => allowances.set(ada, terms)))
const shown = () => run(Effect.flatMap(Allowances, (allowances) => allowances.find(ada)))
let calls = 0
const spend = async (amount: bigint) => {
  const call = `call_spent_${++calls}`
  await run(Scene.reserve(ada, call, amount))
  return run(Scene.settle(call, amount))
}
const credit = (amount: bigint, source: "purchase" | "admin") =>
  run(Effect.flatMap(Ledger, (ledger) => ledger.credit({ account: bil, amount, source, reference: "pay_1" })))
const parts = async () => {
  const { giftable, granted } = await run(Scene.account(ada))
  return { giftable: Number(giftable / usd), granted: Number(granted / usd) }
}
const ledger = async () =>
  (await run(Scene.entries(ada)))
    .filter(({ source }) => source === "allowance")
    .map(({ amount, type }) => `${type} ${Number(amount / usd)}`)
const isRight = async () => expect(await run(Scene.findings)).toEqual({ found: [], sum: 0n })

const monthly = { amount_usd: 20n * usd, period: "month" } as const

it("grants the whole amount when it begins, and again when the month does", async () => {
  await begin("2026-11-26T12:00:00Z")
  const made = await set(monthly)
  expect(made).toMatchObject({ granted_usd: 20n * usd, unused_usd: 20n * usd, renews_at: Date.UTC(2026, 11, 1) })
  await spend(5n * usd)
  expect((await shown()).unused_usd).toBe(15n * usd)
  await at("2026-11-30T23:59:59Z")
  expect(await ledger()).toEqual(["credit 20"])
  await at("2026-12-01T00:00:00Z")
  expect(await ledger()).toEqual(["credit 20", "debit 15", "credit 20"])
  expect(await parts()).toEqual({ giftable: 0, granted: 20 })
  await isRight()
})

it.each([
  ["all", ["credit 20", "debit 15", "credit 35", "debit 35", "credit 55"]],
  [{ up_to_usd: 10n * usd }, ["credit 20", "debit 15", "credit 30", "debit 30", "credit 30"]],
  ["none", ["credit 20", "debit 15", "credit 20", "debit 20", "credit 20"]]
] as const)("keeps what the rollover says: %o", async (rollover, entries) => {
  await begin("2026-11-02T00:00:00Z")
  await set({ ...monthly, rollover })
  await spend(5n * usd)
  await at("2026-12-15T00:00:00Z")
  await at("2027-01-15T00:00:00Z")
  expect(await ledger()).toEqual(entries)
  await isRight()
})

it("takes back neither purchased credit nor other grants", async () => {
  await begin("2026-11-02T00:00:00Z")
  await credit(7n * usd, "purchase")
  await credit(3n * usd, "admin")
  await set(monthly)
  await credit(4n * usd, "admin")
  await spend(22n * usd)
  expect((await shown()).unused_usd).toBe(0n)
  await at("2026-12-01T00:00:00Z")
  expect(await ledger()).toEqual(["credit 20", "credit 20"])
  expect(await parts()).toEqual({ giftable: 7, granted: 25 })
  await isRight()
})

it.each(["admin", "purchase"] as const)("takes nothing back a second time that was taken back (%s)", async (source) => {
  const takeBack = (amount: bigint) =>
    run(
      Effect.flatMap(Ledger, (ledger) =>
        ledger.takeBack({ account: bil, amount, source, reference: "mistake", description: "a mistake" })
      )
    )
  await begin("2026-11-02T00:00:00Z")
  await credit(3n * usd, "admin")
  await set(monthly)
  await credit(2n * usd, "admin")
  // Five of other grants, and six of the allowance.
  await takeBack(11n * usd)
  expect((await shown()).unused_usd).toBe(14n * usd)
  await credit(10n * usd, "admin")
  await takeBack(4n * usd)
  expect((await shown()).unused_usd).toBe(14n * usd)
  await spend(1n * usd)
  await at("2026-12-01T00:00:00Z")
  expect(await ledger()).toEqual(["credit 20", "debit 13", "credit 20"])
  // Six of the later grant are left.
  expect(await parts()).toEqual({ giftable: 0, granted: 26 })
  await isRight()
})

it("leaves what open calls have reserved", async () => {
  await begin("2026-11-02T00:00:00Z")
  await set(monthly)
  await run(Scene.reserve(ada, "call_1", 12n * usd))
  await at("2026-12-01T00:00:00Z")
  expect(await ledger()).toEqual(["credit 20", "debit 8", "credit 20"])
  expect(await run(Scene.settle("call_1", 12n * usd))).toBe(12n * usd)
  expect(await parts()).toEqual({ giftable: 0, granted: 20 })
  await isRight()
})

it("grants the present period alone after a year without a turn, and nothing twice where the clock goes back", async () => {
  await begin("2026-11-26T12:00:00Z")
  await set({ amount_usd: 2n * usd, period: "week" })
  await at("2027-11-26T12:00:00Z")
  expect(await ledger()).toEqual(["credit 2", "debit 2", "credit 2"])
  // The first period, one from before the allowance, and the present one again.
  await at("2026-11-26T12:00:00Z")
  await at("2026-11-01T12:00:00Z")
  await at("2027-11-26T12:00:00Z")
  expect(await ledger()).toEqual(["credit 2", "debit 2", "credit 2"])
  await isRight()
})

it("changes its amount from the next period on, and its period at once", async () => {
  await begin("2026-11-10T12:00:00Z")
  await set(monthly)
  await set({ ...monthly, amount_usd: 30n * usd })
  expect(await ledger()).toEqual(["credit 20"])
  await set({ amount_usd: 3n * usd, period: "week" })
  expect(await ledger()).toEqual(["credit 20", "debit 20", "credit 3"])
  await isRight()
})

it.each([
  [true, ["credit 20", "debit 15"], 0],
  [false, ["credit 20"], 15]
])("ends (taken back: %s), and grants that period no second time", async (take_back, entries, granted) => {
  await begin("2026-11-10T12:00:00Z")
  await set(monthly)
  await spend(5n * usd)
  const ended = await run(Effect.flatMap(Allowances, (allowances) => allowances.end(ada, take_back)))
  expect(ended.taken_usd).toBe(take_back ? 15n * usd : 0n)
  await at("2026-12-10T12:00:00Z")
  expect(await ledger()).toEqual(entries)
  scene.now = Date.parse("2026-11-11T12:00:00Z")
  await set(monthly)
  expect(await ledger()).toEqual(entries)
  // What was left is not taken back by the allowance that began later.
  await at("2026-12-11T12:00:00Z")
  expect(await ledger()).toEqual([...entries, "credit 20"])
  expect(await parts()).toEqual({ giftable: 0, granted: granted + 20 })
  await isRight()
})

it("follows the plan of the configuration, and says which are unknown", async () => {
  const plans = {
    student: { allowance: { amount_usd: 4n * usd, period: "week", rollover: "none" } as const },
    bare: {}
  }
  await begin("2026-11-10T12:00:00Z", plans)
  expect(await set({ plan: "student" })).toMatchObject({ plan: "student", granted_usd: 4n * usd, period: "week" })
  const refusedFor = (plan: string) =>
    run(Effect.flip(Effect.flatMap(Allowances, (allowances) => allowances.set(ada, { plan }))))
  expect(await refusedFor("teacher")).toMatchObject({ code: "plan_unknown", plan: "teacher" })
  expect(await refusedFor("bare")).toMatchObject({ code: "plan_unknown" })
  expect(await refusedFor("constructor")).toMatchObject({ code: "plan_unknown" })
})

it("grants a suspended tenant nothing until it is active", async () => {
  await begin("2026-11-10T12:00:00Z")
  await set(monthly)
  const status = (status: "active" | "suspended") =>
    run(Effect.flatMap(Ledger, (ledger) => ledger.setStatus({ account: bil, status })))
  await status("suspended")
  await at("2026-12-10T12:00:00Z")
  expect(await ledger()).toEqual(["credit 20"])
  await status("active")
  await at("2026-12-11T12:00:00Z")
  expect(await ledger()).toEqual(["credit 20", "debit 20", "credit 20"])
})

it("is found out by verify where a grant is booked twice, or more is taken than is unused", async () => {
  await begin("2026-11-10T12:00:00Z")
  await set(monthly)
  await spend(15n * usd)
  await credit(50n * usd, "admin")
  const renew = (reference: string, amount: bigint) =>
    run(
      Effect.flatMap(Ledger, (ledger) =>
        ledger.renew({
          account: bil,
          amount,
          // As if nothing were spent.
          last: { amount: 20n * usd, chargeless: 55n * usd, others: 0n, entries: 3 },
          keep: 0n,
          reference
        })
      )
    )
  await renew("alw_ada_2026-11", 20n * usd)
  await renew("alw_ada_2026-12", 20n * usd)
  const { found } = await run(Scene.findings)
  expect(found).toEqual([
    "the ledger must grant the allowance alw_ada_2026-11 once, but grants it 2 times",
    // What was taken back, and what was granted.
    "the ledger grants 20 USD for the allowance alw_ada_2026-12, but there is no such allowance",
    "the ledger grants 20 USD for the allowance alw_ada_2026-12, but there is no such allowance",
    "the allowance of bil_ada took back 20 USD, but only 5 USD was unused"
  ])
})
