/** The schema for an API key as shown to its holder. */
import { Schema } from "effect"
import { Moment, nextMonthOf } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { Period } from "../../kernel/Period.ts"
import type { Allowance } from "../allowances/Allowance.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { Run } from "../../people/runs/Run.ts"
import { Application } from "../../people/tenants/Application.ts"

const { account_id, allowed_models, created_at, expires_at, key_prefix, name } = Application.fields
const { reserved_usd, spending_limit_period, spending_limit_usd, spent_usd } = Application.fields

const HeldAllowance = Schema.Struct({
  amount_usd: Usd,
  period: Period,
  renews_at: Moment
}).annotations({ identifier: "HeldAllowance" })

/** A key as shown to its holder. The fields for a limit are absent if the key has no such limit. */
export interface HeldKey extends Schema.Schema.Type<typeof HeldKey> {}
export const HeldKey = Schema.Struct({
  /** The id of the application or run that owns the key. */
  id: Schema.String,
  name,
  key_prefix,
  tenant_id: Schema.String,
  account_id,
  created_at,
  spending_limit_usd,
  spending_limit_period,
  spent_usd,
  reserved_usd,
  /** The part of the limit that is neither spent nor reserved. The balance can be lower. */
  remaining_usd: Schema.optional(Usd),
  /** The start of the next month, if the limit is monthly. */
  renews_at: Schema.optional(Moment),
  allowed_models,
  expires_at,
  /** The allowance of the key's tenant. Absent if the tenant has none. */
  allowance: Schema.optional(HeldAllowance),
  /** Totals for all calls made with the key. */
  usage: Schema.Struct({
    total_requests: Schema.Int,
    total_tokens: Schema.Int,
    total_cost: Usd
  })
}).annotations({ identifier: "HeldKey" })

/** Converts `key` to its public form, with its limits as of `now`. */
export const heldKey = (
  key: Application,
  tenant_id: string,
  { allowance, usage }: { readonly usage: HeldKey["usage"]; readonly allowance: Allowance | undefined },
  now: number
): HeldKey => ({
  id: key.id,
  name: key.name,
  key_prefix: key.key_prefix,
  tenant_id,
  account_id: key.account_id,
  created_at: key.created_at,
  ...limitsOf(key, now),
  ...(key.allowed_models !== undefined && { allowed_models: key.allowed_models }),
  ...(key.expires_at !== undefined && { expires_at: key.expires_at }),
  ...(allowance !== undefined && { allowance: termsOf(allowance) }),
  usage
})

const termsOf = ({ amount_usd, period, renews_at }: Allowance) => ({ amount_usd, period, renews_at })

export const heldRun = (
  { created_at, expires_at, id, key_prefix, limit, name, reserved, spent }: Run,
  { account_id, allowed_models, tenant_id }: Caller
): HeldKey => ({
  id,
  name,
  key_prefix,
  tenant_id,
  account_id,
  created_at,
  ...(limit.usd !== undefined && {
    spending_limit_usd: limit.usd,
    spending_limit_period: "total" as const,
    spent_usd: spent.usd,
    reserved_usd: reserved.usd,
    remaining_usd: notBelowZero(limit.usd - spent.usd - reserved.usd)
  }),
  ...(allowed_models !== undefined && { allowed_models }),
  expires_at,
  usage: { total_requests: spent.requests, total_tokens: spent.tokens, total_cost: spent.usd }
})

const notBelowZero = (amount: Nano): Nano => (amount > 0n ? amount : 0n)

const limitsOf = (
  { reserved_usd: reserved = 0n, spending_limit_period, spending_limit_usd, spent_usd: spent = 0n }: Application,
  now: number
) => {
  if (spending_limit_usd === undefined) return {}
  return {
    spending_limit_usd,
    spending_limit_period,
    spent_usd: spent,
    reserved_usd: reserved,
    // A lowered limit can be below the amount already spent.
    remaining_usd: notBelowZero(spending_limit_usd - spent - reserved),
    ...(spending_limit_period === "month" && { renews_at: nextMonthOf(now) })
  }
}
