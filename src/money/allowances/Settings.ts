/** Reads plans and price factors from the configuration file: `plans` by name, `tenant_price_factors` by tenant. */
import { Context, Layer, Schema } from "effect"
import { PriceFactor } from "../../books/prices/PriceFactors.ts"
import { Terms } from "./Allowance.ts"

export const Plan = Schema.Struct({
  allowance: Schema.optional(Terms),
  price_factor: Schema.optional(PriceFactor)
})
export interface Plan extends Schema.Schema.Type<typeof Plan> {}

const PlansByName = Schema.Record({ key: Schema.NonEmptyString, value: Plan })
export type PlansByName = typeof PlansByName.Type

/** Configured terms that any number of tenants can share. */
export class Plans extends Context.Tag("tollgate/allowances/Plans")<Plans, PlansByName>() {
  static readonly layerNone = Layer.sync(Plans, () => ({}))
}

const FactorsByTenant = Schema.Record({ key: Schema.NonEmptyString, value: PriceFactor })
export type FactorsByTenant = typeof FactorsByTenant.Type

/** Price factors for individual tenants. They take precedence over a plan's factor. */
export class TenantFactors extends Context.Tag("tollgate/allowances/TenantFactors")<TenantFactors, FactorsByTenant>() {}

export const fields = {
  tenant_price_factors: Schema.optionalWith(FactorsByTenant, { default: () => ({}) }),
  plans: Schema.optionalWith(PlansByName, { default: () => ({}) })
}

export const layer = (file: { readonly plans: PlansByName; readonly tenant_price_factors: FactorsByTenant }) =>
  Layer.merge(Layer.succeed(Plans, file.plans), Layer.succeed(TenantFactors, file.tenant_price_factors))
