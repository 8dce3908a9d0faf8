/**
 * The operations on the books: postings that move or reserve credit, and other modules' statements that commit or fail with them. A transaction is
 * plain data, so it can be sent to a thread. It commits as a whole or has no effect.
 */
import type { Statement as SqlStatement } from "@effect/sql/Statement"
import type { Nano } from "../../../kernel/Money.ts"
import type { TokenDetails } from "../../../kernel/TokenDetails.ts"
import type { BudgetKind, BudgetTerms, BudgetUnit, Rates } from "./Budget.ts"
import { storable } from "../../../storage/database/Text.ts"

/** The origin or destination of credit: the `source` of a ledger entry. Charges have no source. */
export type CreditSource =
  | "purchase"
  | "registration_bonus"
  | "signup_grant"
  | "admin"
  | "allowance"
  | "voucher"
  | "transfer_escrow"
  | "transfer_release"
  | "transfer_return"

/** Credit from these sources is giftable, so it may be sent in a transfer. All other credit is granted and may only be spent. */
export const giftableSources: ReadonlySet<CreditSource> = new Set(["purchase", "transfer_release", "transfer_return"])

/** The part of a refunded or disputed payment that the account's credit could not cover. */
export interface Debt {
  readonly payment: string
  readonly amount: Nano
}

export type AccountStatus = "active" | "suspended" | "closed"

/** A billing account. Its balance is giftable + granted. Calls can reserve up to `availableOf`. */
export interface Account {
  readonly id: string
  readonly tenant_id: string
  readonly status: AccountStatus
  /** Credit that was purchased or received. */
  readonly giftable: Nano
  /** Promotional and admin credit. It is spent first. */
  readonly granted: Nano
  /** Credit in escrow for transfers that the account sent. It is not part of the balance. */
  readonly held: Nano
  /** Credit that open calls have reserved. It is part of the balance. */
  readonly reserved: Nano
  /** Whether credit was ever purchased or received. */
  readonly funded: boolean
  /** The entry count. Entries are numbered from 1 without gaps. */
  readonly entries: number
  /** The account's debts, least recently increased first; absent if there are none. They are paid as soon as credit is freed or added. */
  readonly debts?: ReadonlyArray<Debt> | undefined
}

export const balanceOf = (account: Account): Nano => account.giftable + account.granted

/** Returns the credit that no open call has reserved, including credit that is owed. */
export const freeOf = (account: Account): Nano => balanceOf(account) - account.reserved

/** Returns the sum of the account's debts. */
export const owedOf = ({ debts }: Account): Nano => debts?.reduce((sum, { amount }) => sum + amount, 0n) ?? 0n

/** Returns the credit that calls can still reserve: free credit minus debts, at least 0 if there are debts. */
export const availableOf = (account: Account): Nano => {
  const free = freeOf(account)
  if (account.debts === undefined) return free
  const left = free - owedOf(account)
  return left > 0n ? left : 0n
}

/** The facts about a call that are known at its admission and copied to its usage record. */
export interface CallFacts {
  readonly account_id: string
  /** The tenant of the caller's credential. */
  readonly tenant_id: string
  readonly application_id: string | null
  readonly usage_type: "inference" | "tool"
  readonly endpoint: string
  readonly model: string
  readonly provider: string
  /** The charge's price version (`books/prices/PriceVersions`). */
  readonly price?: string | undefined
  /** The run, if the call was made with a run's key. `application_id` is then the API key that the run descends from. */
  readonly run_id?: string | undefined
  /** One `name=value` per line, in ascending order. */
  readonly tags?: string | undefined
  /** The caller's end user, as identified in the request. */
  readonly end_user?: string | undefined
}

/** A model and a provider that can serve a call. */
export interface ServingRoute {
  readonly model: string
  readonly provider: string
}

/** A call's facts at its admission, including those that only budgets need. */
export interface ClaimedFacts extends CallFacts {
  readonly capability?: string | undefined
  /** The call's run and that run's ancestors. */
  readonly runs?: ReadonlyArray<string> | undefined
  /** The models and providers that can serve the call, beginning with `model` and `provider`. Absent if no others can serve it. */
  readonly ways?: ReadonlyArray<ServingRoute> | undefined
}

/** Why a source may pay: it is the caller's own, the caller pinned it, the token charges the team first, or the earlier sources could not pay. */
export type Why = "own" | "pinned" | "team_first" | "fall_through"

/** A billing account that may pay for a call. */
export interface Source {
  readonly billing_account_id: string
  readonly tenant_id: string
  readonly kind: "own" | "team"
  readonly why: Why
  /** Present if the source must not pay because its tenant does not let members spend. A barred source of kind `own` must still be active. */
  readonly barred?: true
}

/**
 * Facts that many calls share, and their payer. The database stores equal dimensions once. Equal dimensions usually share one object, so the object
 * can serve as a cache key.
 */
export interface Dimensions extends CallFacts {
  readonly billing_account_id: string
  readonly billing_source_tenant_id: string
  readonly billing_source_kind: "own" | "team"
  readonly billing_source_why: Why
}

/** The credit reserved for one call. `id` is the call's id. */
export interface Reservation {
  readonly id: string
  readonly dimensions: Dimensions
  readonly amount: Nano
  /** The Unix time of the admission, in milliseconds. */
  readonly at: number
  /** The run that admitted the call. Other runs release the reservations of ended runs. */
  readonly run: string
  /** The budgets that count the call, by id; absent if there are none. */
  readonly budgets?: ReadonlyArray<string> | undefined
  /** The tokens reserved for the call in its budgets. */
  readonly tokens?: number | undefined
  /** Present if the call was released because its run had ended (`interrupted`). The amount is then 0, and the usage record has cost 0. */
  readonly released?: true
}

/** The `error_type` of a call that was released because its run had ended. */
export const interrupted = "interrupted"

/** The period of a limit: a calendar month (UTC) or all time. */
export type LimitPeriod = "month" | "total"

/** The spending limit of an API key. `spent` + `reserved` is never above `ceiling`. */
export interface Limit {
  readonly application_id: string
  readonly tenant_id: string
  readonly amount: Nano
  readonly period: LimitPeriod
  /** Charges count from this time: the start of the month, or 0 for all time. */
  readonly start: number
  /** The charges since `start`. */
  readonly spent: Nano
  /** The reservations of all open calls, including those admitted before `start`. */
  readonly reserved: Nano
  /** `amount`, or `spent` + `reserved` if that was higher when the limit was set or the period began. */
  readonly ceiling: Nano
}

/** The source of a charge's figures: the provider, this service's count of the received data, an estimate, or none. */
export type UsageSource = "provider" | "counted" | "estimated" | "none"

export interface CallOutcome {
  readonly cost: Nano
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  /** The provider that served the call, if known. The default is the provider expected at admission. */
  readonly provider?: string | null | undefined
  /** The model that served the call in place of the claimed one, with its price version. */
  readonly served?: { readonly model: string; readonly price: string } | undefined
  readonly success: boolean
  readonly error_type: string | null
  readonly usage_source: UsageSource
  readonly latency_ms: number
  readonly token_details?: TokenDetails | undefined
  /** The response's `X-Request-Id`. Absent for calls by an embedder. */
  readonly request_id?: string | undefined
  /** The vendors' ids of the call's requests (`kernel/VendorRequests`). Absent if the vendors sent none. */
  readonly vendor_request?: string | undefined
  /** The cost that the vendor reported for the call. */
  readonly vendor_cost?: Nano | undefined
  /** The hash of the request body (`upstream/wire/BodyHash`). Absent if the route does not hash it. */
  readonly request_hash?: string | undefined
  /** The hash of the response body. Absent if the route does not hash it, if no response was delivered, or if the client left a stream early. */
  readonly answer_hash?: string | undefined
}

/** The last grant of an allowance, read before the transaction (`Renewing`). */
export interface LastAllowance {
  readonly amount: Nano
  /** The balance without the charges since the grant: the balance after the grant plus all movements since then except charges. */
  readonly chargeless: Nano
  /** Other credit that was granted since the grant and not taken back (`othersAfter`). */
  readonly others: Nano
  /** The newest included movement's entry number. */
  readonly entries: number
}

export type Posting =
  | { readonly _tag: "Open"; readonly account: string; readonly tenant: string }
  | { readonly _tag: "SetStatus"; readonly account: string; readonly status: AccountStatus }
  /** Adds credit. With `payment`, the amount first cancels the debt for that payment, and only the remainder is credited. */
  | {
      readonly _tag: "Credit"
      readonly account: string
      readonly amount: Nano
      readonly source: CreditSource
      readonly reference: string
      readonly description: string
      readonly payment?: string | undefined
    }
  /** Moves unreserved giftable credit into escrow for a transfer. Accounts that are inactive or in debt cannot send. */
  | {
      readonly _tag: "Escrow"
      readonly account: string
      readonly amount: Nano
      readonly transfer: string
      readonly description: string
    }
  /**
   * Ends a transfer's escrow. The credit goes to the recipient (`transfer_release`) or returns to the sender (`transfer_return`). The recipient can
   * be the sender's own account. The statement submitted with this posting must ensure that a transfer ends only once.
   */
  | {
      readonly _tag: "EndEscrow"
      readonly source: "transfer_release" | "transfer_return"
      readonly from: string
      readonly to: string
      readonly amount: Nano
      readonly transfer: string
      readonly description: string
    }
  /**
   * Takes back unreserved credit, giftable credit first, because the payment of a purchase was reversed. With the source `admin`, it takes back a
   * mistaken grant, only from granted credit. The balance never falls below zero. With `payment`, the account owes the remainder for that payment.
   * Later postings that free or add credit pay the debt, with a debit that refers to the payment.
   */
  | {
      readonly _tag: "TakeBack"
      readonly account: string
      readonly amount: Nano
      readonly reference: string
      readonly description: string
      /** The default is `purchase`. */
      readonly source?: "purchase" | "admin" | undefined
      readonly payment?: string | undefined
    }
  /**
   * Begins an allowance's next period. It takes back the unused part of the last period (`last`), but only from unreserved granted credit. Then it
   * grants `amount` plus the part to carry over. An amount of 0 ends the allowance.
   */
  | {
      readonly _tag: "Renew"
      readonly account: string
      readonly amount: Nano
      readonly last?: LastAllowance | undefined
      /** The maximum amount of unused credit that is granted again. */
      readonly keep: Nano
      readonly reference: string
      readonly description: string
    }
  /**
   * Sets the spending limit of an API key (`application`), or removes the limit (`null`). The key's earlier charges in the period and its open
   * reservations count against the limit. `tenant` is the key's tenant, and `account` is that tenant's billing account.
   */
  | {
      readonly _tag: "SetLimit"
      readonly application: string
      readonly tenant: string
      readonly account: string
      readonly limit: Pick<Limit, "amount" | "period"> | null
    }
  /**
   * Creates a budget, changes its terms, or removes it (`null`). `tenant` is the budget's tenant, and `account` is that tenant's billing account.
   * Both are absent if the budget counts all tenants.
   */
  | {
      readonly _tag: "SetBudget"
      readonly id: string
      readonly kind: BudgetKind
      readonly anchor: string
      readonly tenant?: string | undefined
      readonly account?: string | undefined
      readonly terms: BudgetTerms | null
    }
  /**
   * Reserves between `least` and `most` on the first source with `enough` available, otherwise on the first with `least`. `enough` is `least` by
   * default. A missing or inactive source of kind `own`, at any position, causes a refusal. Sources of kind `team` are skipped instead. The
   * reservation never exceeds the credit left in the call's budgets.
   */
  | {
      readonly _tag: "Reserve"
      readonly call: string
      readonly sources: ReadonlyArray<Source>
      readonly least: Nano
      readonly enough?: Nano | undefined
      readonly most: Nano
      readonly run: string
      readonly facts: ClaimedFacts
      /** The tokens that the call needs from its token budgets. Absent if it uses none. */
      readonly tokens?: { readonly least: number; readonly most: number } | undefined
    }
  /**
   * Ends a call: releases its reservation, charges its cost within the payer's credit and the call's budgets, and writes its usage record. If the
   * call is already settled, nothing changes. A call that was released because its run had ended (`interrupted`) is still settled if it succeeded or
   * has a cost. It is charged from available credit and gets a second usage record. `payer` is the charged billing account. Only the listeners of
   * `Writer.watch` need it, because the books take the payer from the reservation.
   */
  | {
      readonly _tag: "Settle"
      readonly call: string
      readonly outcome: CallOutcome
      readonly payer?: string | undefined
    }

/**
 * A statement from another module. It must not write to the tables of the books, because the writer caches their rows. If `rows` is set, the
 * statement must return that number of rows, or the entire transaction is refused.
 */
export interface Statement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
  readonly rows?: number
}

/** A transaction. Its type lists the postings and so determines the results (`ResultsOf`) and the refusals (`Problems.RefusalsOf`). */
export interface Transaction<P extends ReadonlyArray<Posting> = ReadonlyArray<Posting>> {
  readonly postings: P
  readonly statements: ReadonlyArray<Statement>
}

const textAsStored = (value: unknown): unknown => (typeof value === "string" ? storable(value) : value)

/** Creates a statement from a `sql` template. Strings are converted to a form that both engines can store (`storage/database/Text`). */
export const statement = <A>(template: SqlStatement<A>, rows?: number): Statement => {
  const [text, values] = template.compile()
  const params = values.map(textAsStored)
  return rows === undefined ? { text, params } : { text, params, rows }
}

interface Balances {
  readonly balance: Nano
  /** The balance before the posting. Present for `Renew` and if the account has debts, because the amount alone does not determine it then. */
  readonly before?: Nano | undefined
}

/** The result of each posting. A balance is the account's balance after the posting. */
export interface ResultByPosting {
  readonly Open: { readonly _tag: "Opened" }
  readonly SetStatus: { readonly _tag: "Changed" }
  readonly Credit: { readonly _tag: "Credited" } & Balances
  readonly TakeBack: { readonly _tag: "TakenBack"; readonly taken: Nano } & Balances
  /** The last period's unused part that was taken back, and how much of it was granted again. */
  readonly Renew: { readonly _tag: "Renewed"; readonly unused: Nano; readonly kept: Nano } & Balances
  readonly Escrow: { readonly _tag: "Escrowed"; readonly balance: Nano }
  /** The amounts that count against the limit; 0 if the limit was removed. */
  readonly SetLimit: { readonly _tag: "LimitSet"; readonly spent: Nano; readonly reserved: Nano }
  readonly SetBudget: { readonly _tag: "BudgetSet" }
  /** The balance is the recipient's. */
  readonly EndEscrow: { readonly _tag: "EscrowEnded" } & Balances
  readonly Reserve: {
    readonly _tag: "Reserved"
    readonly source: Source
    readonly amount: Nano
    /** Absent if no budget concerns the call. */
    readonly within?: BudgetAllowance | undefined
  }
  readonly Settle:
    | ({ readonly _tag: "Settled"; readonly usage_id: string; readonly collected: Nano } & Balances)
    | { readonly _tag: "AlreadySettled" }
}

/** The limits that budgets set for a reserved call. */
export interface BudgetAllowance {
  /** The tokens that the call may use within its budgets; `undefined` if no budget limits tokens. */
  readonly tokens: number | undefined
  readonly rates: Rates
  /** The indexes of the excluded `ways`. */
  readonly barred: ReadonlyArray<number>
  /** The refusal by the first budget that excludes one of the `ways`; absent if none is excluded. */
  readonly refusal?: Shortage | undefined
}

/** A budget has too little left. */
export interface Shortage {
  readonly _tag: "BudgetReached"
  readonly budget: string
  readonly name: string
  readonly unit: BudgetUnit
  readonly period: BudgetTerms["period"]
  /** The limit and its remainder, in `unit`, with USD as nano-USD. */
  readonly limit: Nano
  readonly left: Nano
  /** Unix time in milliseconds; absent if the budget never resets. */
  readonly renews_at?: number | undefined
  /** Present if the budget counts all tenants. A tenant must not learn how much the others have left. */
  readonly of_everyone?: true | undefined
}

export type Result = ResultByPosting[Posting["_tag"]]

export type ResultsOf<P extends ReadonlyArray<Posting>> = { readonly [I in keyof P]: ResultByPosting[P[I]["_tag"]] }

/** The reason why a transaction was refused, as data. The writer fails with the matching error (`Problems`). */
export type Refusal =
  | { readonly _tag: "InsufficientCredits"; readonly available: Nano }
  /** The API key's limit has too little left. */
  | { readonly _tag: "LimitReached"; readonly application: string; readonly available: Nano }
  | Shortage
  /** The balance is sufficient, but not enough of it is giftable. */
  | { readonly _tag: "InsufficientGiftable"; readonly giftable: Nano }
  | { readonly _tag: "NotHeld"; readonly account: string }
  | { readonly _tag: "AccountMissing"; readonly account: string }
  | { readonly _tag: "AccountInactive"; readonly account: string }
  | { readonly _tag: "AccountExists"; readonly account: string }
  | { readonly _tag: "BalanceTooLarge"; readonly account: string }
  /** A statement did not match the number of rows that it requires. `statement` is its index in the transaction. */
  | { readonly _tag: "Conflict"; readonly statement: number }

export type Outcome =
  | { readonly _tag: "Committed"; readonly results: ReadonlyArray<Result> }
  | { readonly _tag: "Refused"; readonly refusal: Refusal }

export interface Entry {
  readonly billing_account_id: string
  /** The position in the account's ledger, starting at 1. */
  readonly number: number
  readonly type: "credit" | "debit"
  /** Always positive; `type` is the direction. */
  readonly amount: Nano
  /** The account's balance after the entry, and the giftable part of it. */
  readonly balance: Nano
  readonly giftable: Nano
  readonly source: CreditSource | null
  readonly reference_id: string
  readonly description: string
  readonly at: number
}

export interface UsageRecord extends Omit<CallOutcome, "provider" | "served"> {
  readonly id: string
  /** The position among the caller's tenant's records, starting at 1. */
  readonly number: number
  readonly at: number
  /** The dimensions, with the `provider` and `model` that served the call. */
  readonly dimensions: Dimensions
  /** The unpaid part of the cost. `cost` is the paid part. */
  readonly uncollected: Nano
  readonly reserved: Nano
  /** The budgets that counted the call, by id; absent if there are none. */
  readonly budgets?: ReadonlyArray<string> | undefined
}
