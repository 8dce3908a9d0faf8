/** Plans in the configuration file: `plans`, by name. */
import { Context, Layer, Schema } from "effect"
import { Terms } from "./Allowance.ts"

export const Plan = Schema.Struct({ allowance: Schema.optional(Terms) })
export interface Plan extends Schema.Schema.Type<typeof Plan> {}

const PlansByName = Schema.Record({ key: Schema.NonEmptyString, value: Plan })
export type PlansByName = typeof PlansByName.Type

/** The terms that several tenants share. */
export class Plans extends Context.Tag("tollgate/allowances/Plans")<Plans, PlansByName>() {
  static readonly layerNone = Layer.sync(Plans, () => ({}))
}

export const fields = {
  plans: Schema.optionalWith(PlansByName, { default: () => ({}) })
}

export const layer = ({ plans }: { readonly plans: PlansByName }) => Layer.succeed(Plans, plans)
