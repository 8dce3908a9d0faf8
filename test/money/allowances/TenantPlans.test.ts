/** The factor of a tenant: its own, or that of the plan that it has at the moment. */
import { Effect, Layer, Schema } from "effect"
import { expect, it } from "vitest"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { PriceFactor, PriceFactors } from "../../../src/books/prices/PriceFactors.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { Allowances } from "../../../src/money/allowances/Allowances.ts"
import { Plans, TenantFactors } from "../../../src/money/allowances/Settings.ts"
import { TenantPlans } from "../../../src/money/allowances/TenantPlans.ts"
import * as TestDatabase from "../../support/database.ts"

const factorOf = Schema.decodeSync(PriceFactor)
const terms = { amount_usd: 1n, period: "week", rollover: "none" } as const

const settings = Layer.merge(
  Layer.succeed(Plans, { student: { allowance: terms, price_factor: factorOf("0.8") } }),
  Layer.succeed(TenantFactors, { ten_bob: factorOf("1.15") })
)
const rooms = Layer.merge(Allowances.layer, TenantPlans.layerFactors.pipe(Layer.provideMerge(TenantPlans.layer))).pipe(
  Layer.provideMerge(Ledger.layer),
  Layer.provideMerge(TestDatabase.layer),
  Layer.provide(settings)
)

it("is read again as plans come and go", () =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const allowances = yield* Allowances
    const plans = yield* TenantPlans
    const { all, of } = yield* PriceFactors
    const tenants = ["ten_ada", "ten_bob", "ten_cyd"] as ReadonlyArray<string> as ReadonlyArray<TenantId>
    for (const tenant of tenants) yield* ledger.open({ account: billingAccountOf(tenant), tenant })
    const factors = () => tenants.map((tenant) => of(tenant)?.text)
    expect(all.map(({ text }) => text)).toEqual(["1.15", "0.8"])
    expect(factors()).toEqual([undefined, "1.15", undefined])
    for (const tenant of tenants.slice(0, 2)) yield* allowances.set(tenant, { plan: "student" })
    yield* plans.refresh
    expect(factors()).toEqual(["0.8", "1.15", undefined])
    yield* allowances.end(tenants[0]!, false)
    yield* plans.refresh
    expect(factors()).toEqual([undefined, "1.15", undefined])
  }).pipe(Effect.provide(rooms), Effect.runPromise))
