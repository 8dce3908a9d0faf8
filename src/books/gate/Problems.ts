/** Refusals of the gate. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { Problem } from "../../kernel/Problem.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"
import { BooksUnavailable } from "../ledger/rules/Problems.ts"
import { rateHeaders } from "./RateHeaders.ts"
import type { RatesAt } from "./RateHeaders.ts"

/**
 * The reason why no account can pay: the balance is too low, the billing account is inactive or missing, the tenant does not let its members spend,
 * or the API key's limit has too little left.
 */
const Reason = Schema.Literal("balance", "account_not_active", "members_may_not_spend", "key_limit")

const fields = {
  /** The maximum credit among the payers that lack credit, or the unused part of the API key's limit, in nano-USD; 0 if no account may pay. */
  available: Schema.BigIntFromSelf,
  /** The minimum credit that the call needs, in nano-USD; 0 if the request has not been read yet. */
  required: Schema.BigIntFromSelf,
  /** The billing account that would have paid first. */
  payer: Schema.String,
  reason: Reason
} as const

const reasonTexts: Readonly<Record<typeof Reason.Type, string | undefined>> = {
  balance: undefined,
  account_not_active: "the billing account is not active",
  members_may_not_spend: "this tenant does not let its members spend",
  key_limit: "the spending limit of this API key is reached"
}

const reasonOf = (text: string | undefined): typeof Reason.Type =>
  Reason.literals.find((reason) => reason !== "balance" && reasonTexts[reason] === text) ?? "balance"

/** The details in the body. The amounts are omitted for an inactive account, because a cheaper call would not be admitted either. */
const Details = Schema.Struct({
  available_usd: Schema.optional(Usd),
  required_usd: Schema.optional(Usd),
  reason: Schema.optional(Schema.String),
  /** Present if the API key's limit has too little left. */
  limit_source: Schema.optional(Schema.Literal("key"))
})

export class InsufficientCredits extends Problem<InsufficientCredits>()("InsufficientCredits", {
  status: 402,
  error: "insufficient credits",
  code: "insufficient_credits",
  fields,
  details: Schema.transform(Details, Schema.typeSchema(Schema.Struct(fields)), {
    strict: true,
    decode: ({ available_usd = 0n, reason, required_usd = 0n }) => ({
      available: available_usd,
      required: required_usd,
      payer: "",
      reason: reasonOf(reason)
    }),
    encode: ({ available, reason, required }) => ({
      ...(reason !== "account_not_active" && { available_usd: available }),
      ...(reason !== "account_not_active" && required > 0n && { required_usd: required }),
      ...(reasonTexts[reason] !== undefined && { reason: reasonTexts[reason] }),
      ...(reason === "key_limit" && { limit_source: "key" as const })
    })
  })
}) {}

const shortage = {
  budget_id: Schema.String,
  unit: Schema.Literal("usd", "tokens", "requests", "concurrent"),
  /** The name, the limit and the unused part (in `unit`) are absent for a budget that counts all tenants. */
  budget_name: Schema.optional(Schema.String),
  limit: Schema.optional(Schema.String),
  left: Schema.optional(Schema.String),
  /** The start of the next period; absent if the budget never resets or limits open calls. */
  renews_at: Schema.optional(Moment)
} as const

/** A budget in USD, or a budget for tokens or requests that does not reset every minute or hour, has too little left for the call. */
export class BudgetExceeded extends Problem<BudgetExceeded>()("BudgetExceeded", {
  status: 402,
  error: "a budget has too little left for this call",
  code: "budget_exceeded",
  fields: shortage
}) {}

/** The fields of `shortage` with the Unix time of the refusal, in milliseconds. The body omits the time. */
const shortageAt = { ...shortage, at: Schema.Number } as const

/** A limit on open calls is reached, or a budget per minute or hour has too few tokens or requests left. */
export class RateLimitReached extends Problem<RateLimitReached>()("RateLimitReached", {
  status: 429,
  error: "a budget currently admits no more calls",
  code: "rate_limited",
  fields: shortageAt,
  details: Schema.transform(Schema.Struct(shortage), Schema.typeSchema(Schema.Struct(shortageAt)), {
    strict: true,
    decode: (details) => ({ ...details, at: 0 }),
    encode: ({ at: _at, ...details }) => details
  }),
  headers: (refusal) => rateHeaders(ratesIn(refusal))
}) {}

/** Returns the exhausted rate limit, or only the time if the budget limits open calls or counts all tenants. */
const ratesIn = ({ at, left, limit, renews_at, unit }: Schema.Struct.Type<typeof shortageAt>): RatesAt =>
  limit !== undefined && (unit === "requests" || unit === "tokens")
    ? { at, [unit]: { limit: Number(limit), remaining: Number(left), resets_at: renews_at ?? 0 } }
    : { at }

/** The rate limits of calls that failed after their admission, by failure. */
const ratesOfFailures = new WeakMap<object, RatesAt>()

/** Associates an admitted call's rate limits with its failure. Calls must not share the failure's instance. */
export const noteRates = (problem: ProblemInstance<string>, rates: RatesAt | undefined): void => {
  if (rates !== undefined) ratesOfFailures.set(problem, rates)
}

/** Returns the rate limits of a refused or failed call; `undefined` if none are known. */
export const ratesOfProblem = (problem: ProblemInstance<string>): RatesAt | undefined => {
  const noted = ratesOfFailures.get(problem)
  return problem._tag === "RateLimitReached" ? { ...noted, ...ratesIn(problem as RateLimitReached) } : noted
}

export class ModelNotAllowed extends Problem<ModelNotAllowed>()("ModelNotAllowed", {
  status: 403,
  error: "this API key may not call this model",
  code: "model_not_allowed",
  fields: { model: Schema.String, allowed_models: Schema.Array(Schema.String) }
}) {}

export const GateRefusal = Schema.Union(
  InsufficientCredits,
  BudgetExceeded,
  RateLimitReached,
  ModelNotAllowed,
  BooksUnavailable
)
export type GateRefusal = typeof GateRefusal.Type
