/**
 * Looks up tenants' price factors in the configuration or in their plans. If any plan sets a factor, a job rereads the tenants' plans every 30
 * seconds.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Duration, Effect, Layer } from "effect"
import { PriceFactors } from "../../books/prices/PriceFactors.ts"
import type { PriceFactor } from "../../books/prices/PriceFactors.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { Plans, TenantFactors } from "./Settings.ts"

/**
 * How often tenants' plans are reread. The database does not report the rows that another process changed, so a command's change to a tenant's plan
 * takes effect within this time.
 */
export const plansReadEvery = Duration.seconds(30)

export interface TenantPlansContract {
  /** Returns the tenant's price factor. `undefined` means list prices. */
  readonly factorOf: (tenant: string) => PriceFactor | undefined
  readonly tenantsOf: (plan: string) => Effect.Effect<ReadonlyArray<TenantId>>
  /** Rereads tenants' plans if any plan sets a price factor. */
  readonly refresh: Effect.Effect<void>
  readonly jobs: ReadonlyArray<Loop.Job>
}

export class TenantPlans extends Context.Tag("tollgate/allowances/TenantPlans")<TenantPlans, TenantPlansContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(TenantPlans, make))
  static readonly layerJobs = Loop.layer(TenantPlans, ({ jobs }) => jobs)
  /** Provides the lookup of a tenant's price factor, and the list of all configured factors. */
  static readonly layerFactors = Layer.suspend(() => Layer.effect(PriceFactors, factors))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const own = new Map(Object.entries(yield* TenantFactors))
  const byPlan = new Map(
    Object.entries(yield* Plans).flatMap(([name, { price_factor }]) =>
      price_factor === undefined ? [] : [[name, price_factor] as const]
    )
  )
  let byTenant: ReadonlyMap<string, PriceFactor> = own
  const read = Effect.gen(function* () {
    const rows = yield* sql<{
      tenant_id: string
      plan: string
    }>`SELECT tenant_id, plan FROM tollgate_allowances_allowances
      WHERE ended_at IS NULL AND plan IN (SELECT value FROM json_each(${JSON.stringify([...byPlan.keys()])}))`
    byTenant = new Map([...rows.map(({ plan, tenant_id }) => [tenant_id, byPlan.get(plan)!] as const), ...own])
  }).pipe(Effect.orDie)
  const refresh = byPlan.size === 0 ? Effect.void : read
  yield* refresh
  const job: Loop.Job = { name: "plans", turn: Effect.as(refresh, plansReadEvery), everywhere: true }
  return {
    factorOf: (tenant) => byTenant.get(tenant),
    tenantsOf: (plan) =>
      Effect.map(
        Effect.orDie(sql<{ tenant_id: TenantId }>`SELECT tenant_id FROM tollgate_allowances_allowances
          WHERE ended_at IS NULL AND plan = ${plan} ORDER BY tenant_id`),
        (rows) => rows.map(({ tenant_id }) => tenant_id)
      ),
    refresh,
    jobs: byPlan.size === 0 ? [] : [job]
  } satisfies TenantPlansContract
})

const factors = Effect.gen(function* () {
  const { factorOf } = yield* TenantPlans
  const ofPlans = Object.values(yield* Plans).flatMap(({ price_factor }) => price_factor ?? [])
  const all = [...Object.values(yield* TenantFactors), ...ofPlans]
  return { of: all.length === 0 ? () => undefined : factorOf, all }
})
