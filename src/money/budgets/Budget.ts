/** Schemas for a tenant's budgets. */
import { Schema } from "effect"
import { budgetAt, renewsAt } from "../../books/ledger/rules/Budget.ts"
import type * as Ledger from "../../books/ledger/rules/Budget.ts"
import { Amount } from "../../kernel/Amount.ts"
import { AccountId, ApplicationId } from "../../kernel/Ids.ts"
import { endUserRule, isTag, isText, nameRule, valueRule } from "../../kernel/Labels.ts"
import { Moment } from "../../kernel/Moment.ts"
import { amountMax, toDecimal, Usd } from "../../kernel/Money.ts"
import { StoredText } from "../../kernel/StoredText.ts"

export const BudgetId = Schema.String.pipe(Schema.brand("BudgetId"))
export type BudgetId = typeof BudgetId.Type

export const BudgetPeriod = Schema.Literal("minute", "hour", "day", "week", "month", "total").annotations({
  message: () => ({ message: "must be one of minute, hour, day, week, month, total", override: true })
})
const Mode = Schema.Literal("refuse", "notify").annotations({
  message: () => ({ message: "must be one of refuse, notify", override: true })
})

/** The maximum limit for tokens, requests or open calls. */
const countMax = 1_000_000_000_000

const Count = Schema.Int.pipe(Schema.between(0, countMax)).annotations({
  message: () => ({ message: `must be a whole number from 0 to ${countMax}`, override: true }),
  jsonSchema: { type: "integer", minimum: 0, maximum: countMax }
})
const LimitUsd = Usd.pipe(
  Schema.filter((amount) => amount >= 0n && amount <= amountMax, {
    message: () => `must be an amount from 0 to ${toDecimal(amountMax)} USD`
  })
)

const strict = { parseOptions: { onExcessProperty: "error" } } as const

const atLeastOne = "must contain at least one of usd, tokens, requests, concurrent"
const NewLimit = Schema.Struct({
  usd: Schema.optional(LimitUsd),
  tokens: Schema.optional(Count),
  requests: Schema.optional(Count),
  concurrent: Schema.optional(Count)
}).pipe(
  Schema.filter((limit) => Object.values(limit).some((one) => one !== undefined), { message: () => atLeastOne }),
  Schema.annotations({ identifier: "NewBudgetLimit" })
)

/** `null` removes the limit on that unit. */
const LimitChange = Schema.Struct({
  usd: Schema.optional(Schema.NullOr(LimitUsd)),
  tokens: Schema.optional(Schema.NullOr(Count)),
  requests: Schema.optional(Schema.NullOr(Count)),
  concurrent: Schema.optional(Schema.NullOr(Count))
}).annotations({ identifier: "BudgetLimitChange" })

const text = (max: number) =>
  StoredText.pipe(
    Schema.filter((one) => one.trim() !== "" && one.length <= max, {
      message: () => `must be a string of 1 to ${max} characters`
    })
  )

// Calls have no other tags or end users, so a budget for any other would never count a call.
const Tag = Schema.String.pipe(
  Schema.filter((tag) => isTag(tag), {
    message: () => `must be name=value, or only the name of a tag: ${nameRule}, and ${valueRule}`
  })
)
const EndUser = Schema.String.pipe(Schema.filter((user) => isText(user), { message: () => endUserRule }))

const conditions = {
  model: Schema.optional(text(200)),
  provider: Schema.optional(text(200)),
  capability: Schema.optional(text(200)),
  tag: Schema.optional(Tag),
  end_user: Schema.optional(EndUser)
} as const

/** The conditions of a budget. The budget counts only the calls that meet all conditions. */
export const BudgetAppliesTo = Schema.Struct({
  member: Schema.optional(AccountId),
  key: Schema.optional(ApplicationId),
  ...conditions
}).annotations({ identifier: "BudgetAppliesTo" })
export interface BudgetAppliesTo extends Schema.Schema.Type<typeof BudgetAppliesTo> {}

const thresholdsMax = 10
const NotifyAt = Schema.Array(
  Schema.Number.pipe(Schema.filter((part) => part > 0 && part <= 1)).annotations({
    message: () => ({ message: "must be a fraction of the limit, above 0 and up to 1", override: true }),
    jsonSchema: { type: "number", exclusiveMinimum: 0, maximum: 1 }
  })
).pipe(
  Schema.maxItems(thresholdsMax, { message: () => `must be an array of up to ${thresholdsMax} fractions of the limit` })
)

export const newBudgetFields = {
  name: text(100),
  limit: NewLimit,
  period: BudgetPeriod,
  applies_to: Schema.optionalWith(BudgetAppliesTo, { default: () => ({}) }),
  notify_at: Schema.optionalWith(NotifyAt, { default: () => [0.8, 1] }),
  mode: Schema.optionalWith(Mode, { default: () => "refuse" as const })
} as const

/** Rejects unknown fields. */
export const NewBudget = Schema.Struct(newBudgetFields).annotations({ identifier: "NewBudget", ...strict })
export interface NewBudget extends Schema.Schema.Type<typeof NewBudget> {}

/** `period` and `applies_to` cannot change. Both are declared, so a request with either field gets a clear error. */
export const BudgetChange = Schema.Struct({
  name: Schema.optional(text(100)),
  limit: Schema.optional(LimitChange),
  notify_at: Schema.optional(NotifyAt),
  mode: Schema.optional(Mode),
  period: Schema.optional(Schema.Unknown.annotations({ description: "Rejected, because it cannot change" })),
  applies_to: Schema.optional(Schema.Unknown.annotations({ description: "Rejected, because it cannot change" }))
}).annotations({ identifier: "BudgetChange", ...strict })
export interface BudgetChange extends Schema.Schema.Type<typeof BudgetChange> {}

export const BudgetRaise = Schema.Struct({ usd: Amount, until: Moment }).annotations({
  identifier: "BudgetRaise",
  ...strict
})
export interface BudgetRaise extends Schema.Schema.Type<typeof BudgetRaise> {}

export const budgetFields = {
  id: BudgetId,
  name: Schema.String,
  /** The limit without raises. */
  limit: Schema.Struct({
    usd: Schema.optional(Usd),
    tokens: Schema.optional(Schema.Int),
    requests: Schema.optional(Schema.Int),
    concurrent: Schema.optional(Schema.Int)
  }),
  period: BudgetPeriod,
  applies_to: BudgetAppliesTo,
  notify_at: Schema.Array(Schema.Number),
  mode: Mode,
  /** Usage in the current period. */
  spent: Schema.Struct({ usd: Usd, tokens: Schema.Int, requests: Schema.Int }),
  reserved: Schema.Struct({ usd: Usd, tokens: Schema.Int }),
  open_calls: Schema.Int,
  /** The start of the next period. Null for the period `total`. */
  renews_at: Schema.NullOr(Moment),
  /** The raises that have not expired. */
  raises: Schema.Array(
    Schema.Struct({ usd: Usd, until: Moment, created_by: Schema.String, created_at: Moment }).annotations({
      identifier: "OpenBudgetRaise"
    })
  ),
  /** Whether the operator created the budget. If so, the tenant cannot change it. */
  by_operator: Schema.Boolean,
  /** The account that created the budget, or `operator`. */
  created_by: Schema.String,
  created_at: Moment
} as const

export const Budget = Schema.Struct(budgetFields).annotations({ identifier: "Budget" })
export interface Budget extends Schema.Schema.Type<typeof Budget> {}

export const BudgetList = Schema.Struct({ budgets: Schema.Array(Budget) }).annotations({ identifier: "BudgetList" })

export type OpenRaise = Budget["raises"][number]

export const shown = (stored: Ledger.Budget, raises: ReadonlyArray<OpenRaise>, now: number): Budget => {
  const budget = budgetAt(stored, now)
  const { applies_to, by_operator, created_at, created_by, limit, mode, name, notify_at, period } = budget.terms
  return {
    id: budget.id as BudgetId,
    name,
    limit: defined(limit),
    period,
    applies_to: {
      ...defined(applies_to),
      ...(keyOf(budget) !== undefined && { key: keyOf(budget) })
    } as BudgetAppliesTo,
    notify_at,
    mode,
    spent: { usd: budget.spent, tokens: budget.tokens, requests: budget.requests },
    reserved: { usd: budget.reserved, tokens: budget.tokens_reserved },
    open_calls: budget.open,
    renews_at: renewsAt(period, now) ?? null,
    raises,
    by_operator,
    created_by,
    created_at
  }
}

/** Returns the API key that the budget limits, if any. */
export const keyOf = ({ anchor, tenant_id }: Pick<Ledger.Budget, "anchor" | "tenant_id">): ApplicationId | undefined =>
  tenant_id === undefined || anchor === tenant_id ? undefined : (anchor as ApplicationId)

const defined = <A extends object>(fields: A): A =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as A
