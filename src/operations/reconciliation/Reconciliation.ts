/** The two sides of a reconciliation, and its result. */
import { Schema } from "effect"
import type { Nano } from "../../kernel/Money.ts"
import { divideHalfUp, Usd } from "../../kernel/Money.ts"
import { billedKinds } from "../../upstream/billing/Bill.ts"
import type { BilledKind } from "../../upstream/billing/Bill.ts"

/** The causes of a difference, each with an explanation. */
export const causes = {
  coverage: "The vendor billed calls that this service has no record of.",
  not_billed: "The service has calls that the vendor did not bill.",
  failed_here: "The vendor billed calls that failed here.",
  cut_stream: "The vendor billed the remainder of a stream that ended early here.",
  retry: "The vendor billed an attempt before the one that served the call.",
  quantity: "The vendor counted more or fewer tokens.",
  price: "The vendor's price differs from the configured price.",
  kind: "The vendor billed tokens as another kind, such as cache, tier or batch.",
  time_zone: "The vendor's day is not a UTC day.",
  rounding: "The vendor rounded.",
  not_usage: "A tax, credit, fee or other charge that no call caused.",
  unexplained: "No cause was found."
} as const
export type Cause = keyof typeof causes
export const causeNames = Object.keys(causes) as ReadonlyArray<Cause>

/** The number of atto-USD (10^-18 USD, the unit of exact prices) in a nano-USD. */
export const attoInNano = 1_000_000_000n

/** Rounds half away from zero. */
export const nanoOf = (atto: bigint): Nano =>
  atto < 0n ? -divideHalfUp(-atto, attoInNano) : divideHalfUp(atto, attoInNano)

export const sumOf = <A>(list: ReadonlyArray<A>, amountOf: (one: A) => bigint): bigint =>
  list.reduce((sum, one) => sum + amountOf(one), 0n)

export const magnitude = (amount: Nano): Nano => (amount < 0n ? -amount : amount)

/** The tokens of a kind and their expected cost in 10^-18 USD. */
export interface Expected {
  readonly quantity: number
  readonly atto: bigint
}

/** The service's records for a vendor's model in an hour. */
export interface Metered {
  /** The start of the UTC hour. */
  readonly hour: number
  /** The vendor's name for the model. */
  readonly model: string
  readonly kinds: { readonly [Kind in BilledKind]?: Expected }
  /** Calls that succeeded or were charged. */
  readonly requests: number
  /** Calls that failed and cost nothing. */
  readonly failed: number
  /** Calls with a stream that ended early. */
  readonly cut: number
  /** Attempts before the attempt that served the call. */
  readonly retries: number
  /** The charges to tenants. */
  readonly charged: Nano
}

/** A single call, if the vendor lists calls. */
export interface MeteredCall extends Metered {
  readonly usage_id: string
  /** The vendor's id for the request. */
  readonly call: string | undefined
  /** The vendors' ids for its failed attempts. */
  readonly retried: ReadonlyArray<string>
}

/** A part of the difference between the bill and the expected cost. */
export interface Difference {
  readonly day: string
  readonly model: string
  readonly kind: BilledKind
  readonly cause: Cause
  /** The billed amount minus the expected amount. */
  readonly amount: Nano
  /** Billed minus expected tokens; null if the vendor states no quantity. */
  readonly quantity: number | null
  readonly note: string | null
  readonly call: string | null
  readonly usage_id: string | null
}

/** A model's sums for a day. The differences for the day and model add up to `billed - expected`. */
export interface Compared {
  readonly day: string
  readonly model: string
  readonly billed: Nano
  readonly expected: Nano
  readonly charged: Nano
  readonly requests: number
}

export interface Joined {
  readonly compared: ReadonlyArray<Compared>
  readonly differences: ReadonlyArray<Difference>
}

export interface CauseSum {
  readonly cause: Cause
  readonly amount: Nano
  readonly lines: number
}

/** Returns the part of a bill that known calls account for, from 0 to 1. If nothing was billed, returns 1 unless unknown calls have an amount. */
export const coverageOf = (billed: Nano, causes: ReadonlyArray<CauseSum>): number => {
  const unknown = causes.find(({ cause }) => cause === "coverage")?.amount ?? 0n
  return billed <= 0n ? (unknown > 0n ? 0 : 1) : Math.max(0, 1 - Number(unknown) / Number(billed))
}

// ---- over HTTP ----------------------------------------------------------------------------------------------------------

const CauseSums = Schema.Struct({ cause: Schema.Literal(...causeNames), amount: Usd, lines: Schema.Int })

const sums = {
  vendor: Schema.String,
  day: Schema.String,
  reconciled_at: Schema.String,
  billed: Usd,
  /** The cost of the metered calls at the configured prices. */
  expected: Usd,
  /** The charges to tenants for these calls. */
  charged: Usd,
  /** The billed amount minus the expected amount. */
  drift: Usd,
  coverage: Schema.Number,
  causes: Schema.Array(CauseSums)
} as const

export interface ReconciliationLine extends Schema.Schema.Type<typeof ReconciliationLine> {}
export const ReconciliationLine = Schema.Struct(sums).annotations({ identifier: "Reconciliation" })

/** A vendor that is configured or has results. */
export const ReconciledVendor = Schema.Struct({
  vendor: Schema.String,
  /** The billing API that the loop reads. Null if bills are given as files, or if the vendor is no longer configured. */
  api: Schema.NullOr(Schema.String),
  /** The first and the last compared day. Null if no day was compared. */
  first_day: Schema.NullOr(Schema.String),
  last_day: Schema.NullOr(Schema.String)
}).annotations({ identifier: "ReconciledVendor" })
export interface ReconciledVendor extends Schema.Schema.Type<typeof ReconciledVendor> {}

export const Reconciliations = Schema.Struct({
  vendors: Schema.Array(ReconciledVendor),
  reconciliations: Schema.Array(ReconciliationLine),
  truncated: Schema.Boolean
}).annotations({ identifier: "Reconciliations" })

const comparedFields = {
  model: Schema.String,
  billed: Usd,
  expected: Usd,
  charged: Usd,
  requests: Schema.Int
} as const

const differenceFields = {
  model: Schema.String,
  kind: Schema.Literal(...billedKinds),
  cause: Schema.Literal(...causeNames),
  amount: Usd,
  quantity: Schema.NullOr(Schema.Int),
  note: Schema.NullOr(Schema.String),
  vendor_request: Schema.NullOr(Schema.String),
  usage_id: Schema.NullOr(Schema.String)
} as const

export const ReconciliationDetail = Schema.Struct({
  ...sums,
  models: Schema.Array(Schema.Struct(comparedFields)),
  differences: Schema.Array(Schema.Struct(differenceFields))
}).annotations({ identifier: "ReconciliationDetail" })
export interface ReconciliationDetail extends Schema.Schema.Type<typeof ReconciliationDetail> {}

/** A vendor's days and models in a period, newest day first. */
export const ReconciliationPeriod = Schema.Struct({
  days: Schema.Array(ReconciliationLine),
  rows: Schema.Array(Schema.Struct({ day: Schema.String, ...comparedFields })),
  /** Whether the period has more days or rows. */
  truncated: Schema.Boolean
}).annotations({ identifier: "ReconciliationPeriod" })
export interface ReconciliationPeriod extends Schema.Schema.Type<typeof ReconciliationPeriod> {}

/** A stored difference with its day. `amount` is the billed minus the expected amount. */
export const ReconciledDifference = Schema.Struct({ day: Schema.String, ...differenceFields }).annotations({
  identifier: "ReconciledDifference"
})
export interface ReconciledDifference extends Schema.Schema.Type<typeof ReconciledDifference> {}
