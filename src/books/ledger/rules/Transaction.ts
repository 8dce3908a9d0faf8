/**
 * The operations on the books: postings that move or reserve credit, and statements of other rooms that commit or fail with them. A
 * transaction is plain data, so that it can cross a thread, and is committed whole or not at all.
 */
import type { Statement as SqlStatement } from "@effect/sql/Statement"
import type { Nano } from "../../../kernel/Money.ts"
import type { TokenDetails } from "../../../kernel/TokenDetails.ts"
import type { BudgetKind, BudgetTerms, BudgetUnit, Rates } from "./Budget.ts"
import { storable } from "../../../storage/database/Text.ts"

/** Where credit came from or went; the `source` of a ledger entry. A charge has none. */
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

/** Credit of these sources may be sent on in a transfer; credit of any other was granted and may only be spent. */
export const giftableSources: ReadonlySet<CreditSource> = new Set(["purchase", "transfer_release", "transfer_return"])

/** The part of a refunded or disputed payment that an account could not give back. */
export interface Debt {
  readonly payment: string
  readonly amount: Nano
}

export type AccountStatus = "active" | "suspended" | "closed"

/** A billing account as the books hold it. `balance` is giftable + granted; what calls may still take is `availableOf`. */
export interface Account {
  readonly id: string
  readonly tenant_id: string
  readonly status: AccountStatus
  /** Purchased or received credit. */
  readonly giftable: Nano
  /** Promotional and admin credit; spent first. */
  readonly granted: Nano
  /** In escrow of the transfers it sent: no part of the balance any more. */
  readonly held: Nano
  /** Set aside by calls in flight: still part of the balance. */
  readonly reserved: Nano
  /** Whether credit was ever purchased or received. */
  readonly funded: boolean
  /** How many ledger entries it has; they are numbered from 1 without a gap. */
  readonly entries: number
  /** Its debts, the oldest first; absent if it has none. It is taken as soon as credit becomes free or arrives. */
  readonly debts?: ReadonlyArray<Debt> | undefined
}

export const balanceOf = (account: Account): Nano => account.giftable + account.granted

/** Credit that no open call has reserved. */
export const freeOf = (account: Account): Nano => balanceOf(account) - account.reserved

/** The account's debts for refunds and disputes. */
export const owedOf = ({ debts }: Account): Nano => debts?.reduce((sum, { amount }) => sum + amount, 0n) ?? 0n

/** Credit that calls may still reserve: free and not owed. */
export const availableOf = (account: Account): Nano => {
  const free = freeOf(account)
  if (account.debts === undefined) return free
  const left = free - owedOf(account)
  return left > 0n ? left : 0n
}

/** Facts of a call at its admission that its usage record will contain. */
export interface CallFacts {
  readonly account_id: string
  /** The tenant of the credential that called. */
  readonly tenant_id: string
  readonly application_id: string | null
  readonly usage_type: "inference" | "tool"
  readonly endpoint: string
  readonly model: string
  readonly provider: string
  /** The version of the price that the charge is made by (`books/prices/PriceVersions`). */
  readonly price?: string | undefined
  /** The run whose key called. `application_id` is then the API key that the run descends from. */
  readonly run_id?: string | undefined
  /** Pairs `name=value`, one a line, ascending. */
  readonly tags?: string | undefined
  /** The caller's own user, as the request names them. */
  readonly end_user?: string | undefined
}

/** A model and a provider that may serve a call. */
export interface Way {
  readonly model: string
  readonly provider: string
}

/** Facts of a call at its admission: those of its record, and those that only budgets need. */
export interface ClaimedFacts extends CallFacts {
  /** The capability that it uses: `chat`. */
  readonly capability?: string | undefined
  /** Its run, and the runs that this descends from. */
  readonly runs?: ReadonlyArray<string> | undefined
  /** All that may serve it, `model` and `provider` first. Absent if nothing else may. */
  readonly ways?: ReadonlyArray<Way> | undefined
}

/**
 * Why a source is where it is in the order of charging: it is the caller's own, they pinned it, their token charges the team
 * first, or those before it could not pay.
 */
export type Why = "own" | "pinned" | "team_first" | "fall_through"

/** A billing account that may pay a call, in the order of charging. */
export interface Source {
  readonly billing_account_id: string
  readonly tenant_id: string
  readonly kind: "own" | "team"
  readonly why: Why
  /** It pays nothing, since the tenant does not let its members spend. As the caller's own it must be active all the same. */
  readonly barred?: true
}

/**
 * Facts that many calls share, and their payer. The database stores it once. Calls that are alike mostly share one object, which is the key
 * for looking it up.
 */
export interface Dimensions extends CallFacts {
  readonly billing_account_id: string
  readonly billing_source_tenant_id: string
  readonly billing_source_kind: "own" | "team"
  /** Why the payer stood where it did in the order of charging. */
  readonly billing_source_why: Why
}

/** Credit set aside for one call: the most that it may cost. `id` is the call's. */
export interface Reservation {
  readonly id: string
  readonly dimensions: Dimensions
  readonly amount: Nano
  /** When the call was admitted. */
  readonly at: number
  /** The run of the process that admitted it; a later run releases what an earlier one left. */
  readonly run: string
  /** The ids of the budgets that count it. Absent if none does. */
  readonly budgets?: ReadonlyArray<string> | undefined
  /** The tokens that budgets have reserved for it. */
  readonly tokens?: number | undefined
  /** It was released because its run had ended (`interrupted`). Nothing is set aside any more, and its record has cost 0. */
  readonly released?: true
}

/** The `error_type` of a call that was released because its run had ended. */
export const interrupted = "interrupted"

/** Over which time a limit counts: a calendar month (UTC), or all time. */
export type LimitPeriod = "month" | "total"

/** The spending limit of an API key. `spent` + `reserved` is never above `ceiling`. */
export interface Limit {
  readonly application_id: string
  readonly tenant_id: string
  readonly amount: Nano
  readonly period: LimitPeriod
  /** Charges from this instant on count: the beginning of the month, 0 for all time. */
  readonly start: number
  /** The charges of the key's calls since then. */
  readonly spent: Nano
  /** The reservations of its open calls, whenever they were admitted. */
  readonly reserved: Nano
  /** The amount; or what was spent and set aside already when it was set lower. */
  readonly ceiling: Nano
}

/** Where the numbers of a charge come from: the provider's own count, ours of what came, a guess of it, or nowhere. */
export type UsageSource = "provider" | "counted" | "estimated" | "none"

/** How a call ended. */
export interface CallOutcome {
  readonly cost: Nano
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  /** The upstream that served it, where that is known better than at admission. */
  readonly provider?: string | null | undefined
  /** The model that served it in place of the one at admission, with the version of its price. */
  readonly served?: { readonly model: string; readonly price: string } | undefined
  readonly success: boolean
  readonly error_type: string | null
  readonly usage_source: UsageSource
  readonly latency_ms: number
  /** Of its tokens those that are billed apart. */
  readonly token_details?: TokenDetails | undefined
  /** The value of `X-Request-Id` in the answer to the request that made the call. Absent for calls of an embedder. */
  readonly request_id?: string | undefined
}

/** The last grant of an allowance, as it was read before the transaction (`Renewing`). */
export interface LastAllowance {
  readonly amount: Nano
  /** The balance without the charges since that grant: the balance after it, and every other movement since. */
  readonly chargeless: Nano
  /** Other credit that was granted since, as far as it was not taken back: no part of the allowance (`othersAfter`). */
  readonly others: Nano
  /** The number of the newest entry that was read for this. */
  readonly entries: number
}

export type Posting =
  /** A new billing account with nothing on it. */
  | { readonly _tag: "Open"; readonly account: string; readonly tenant: string }
  | { readonly _tag: "SetStatus"; readonly account: string; readonly status: AccountStatus }
  /**
   * Adds credit. With `payment` it gives back what was due of that payment: a debt of it is forgiven first, and only the rest is credited.
   */
  | {
      readonly _tag: "Credit"
      readonly account: string
      readonly amount: Nano
      readonly source: CreditSource
      readonly reference: string
      readonly description: string
      readonly payment?: string | undefined
    }
  /**
   * Puts giftable credit into escrow for a transfer. What calls have set aside stays theirs. An account that is not active, or that owes
   * something, sends nothing.
   */
  | {
      readonly _tag: "Escrow"
      readonly account: string
      readonly amount: Nano
      readonly transfer: string
      readonly description: string
    }
  /**
   * Ends a transfer's escrow: it reaches its recipient (`transfer_release`), whose account may be the sender's too, or goes back
   * (`transfer_return`). That a transfer ends once is for the statement beside it to guard.
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
   * Takes credit back: what is there and not set aside, giftable credit first. It is a purchase whose payment was taken back, or with the
   * source `admin` a mistaken grant, which takes granted credit only. A balance never goes below zero. With `payment` the account owes the rest for that payment. The books take it, with a debit that refers to the payment, in
   * each later transaction that frees or adds credit of the account.
   */
  | {
      readonly _tag: "TakeBack"
      readonly account: string
      readonly amount: Nano
      readonly reference: string
      readonly description: string
      /** `purchase` by default. */
      readonly source?: "purchase" | "admin" | undefined
      readonly payment?: string | undefined
    }
  /**
   * Begins a period of an allowance: takes back what is unused of the last one (`last`), and grants `amount` together with the part of it
   * that may be kept. What it takes back is granted credit that no call has reserved. With an amount of 0 the allowance ends.
   */
  | {
      readonly _tag: "Renew"
      readonly account: string
      readonly amount: Nano
      readonly last?: LastAllowance | undefined
      /** The most of the unused part that is granted again. */
      readonly keep: Nano
      readonly reference: string
      readonly description: string
    }
  /**
   * Limits what an API key (`application`) may spend, or no more (`null`). What it was charged in the period before, and what its open calls
   * have set aside, counts. `tenant` is the key's, `account` that tenant's billing account.
   */
  | {
      readonly _tag: "SetLimit"
      readonly application: string
      readonly tenant: string
      readonly account: string
      readonly limit: Pick<Limit, "amount" | "period"> | null
    }
  /**
   * Makes a budget, changes its terms, or ends it (`null`). `tenant` and `account` are its tenant and that tenant's billing account; absent for
   * a budget of the operator that counts all tenants.
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
   * Sets aside between `least` and `most` on the first source that has `enough` available; where none has, or `enough` is not
   * given, on the first that has `least`. A source of kind `own` that is missing or not active refuses outright, wherever it
   * stands; a team's is passed over. Where the key that calls has a limit, no more than that leaves is set aside.
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
      /** The tokens that it may use, for budgets of tokens. Absent if it uses none. */
      readonly tokens?: { readonly least: number; readonly most: number } | undefined
    }
  /**
   * Ends a call: gives the reservation back, charges the cost as far as the payer has it and the key's limit allows, and leaves the usage
   * record. A call that is already settled does not change. One that was released because its run had ended (`interrupted`) is settled all
   * the same if it succeeded or has a cost: it pays with what is available, and leaves a second usage record. `payer` is the billing
   * account that it charges, for the listeners of `Writer.watch`; the books know it by the reservation.
   */
  | {
      readonly _tag: "Settle"
      readonly call: string
      readonly outcome: CallOutcome
      readonly payer?: string | undefined
    }

/**
 * A statement of another room. It never writes to the tables of the books, since the writer caches its own writes. `rows`: how many rows
 * its `RETURNING` must give, else the whole transaction is refused.
 */
export interface Statement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
  readonly rows?: number
}

/** Its type knows which postings it has, and so what it answers (`ResultsOf`) and what it may be refused for (`Problems.RefusalsOf`). */
export interface Transaction<P extends ReadonlyArray<Posting> = ReadonlyArray<Posting>> {
  readonly postings: P
  readonly statements: ReadonlyArray<Statement>
}

const textAsStored = (value: unknown): unknown => (typeof value === "string" ? storable(value) : value)

/** The statement that a `sql` template stands for. Its texts are those that both engines take (`storage/database/Text`). */
export const statement = <A>(template: SqlStatement<A>, rows?: number): Statement => {
  const [text, values] = template.compile()
  const params = values.map(textAsStored)
  return rows === undefined ? { text, params } : { text, params, rows }
}

/** The balance of an account after a posting. */
interface Balances {
  readonly balance: Nano
  /** The balance before it, where the amount of the posting does not tell: a debt was taken too, or forgiven. */
  readonly before?: Nano | undefined
}

/** The result of each posting. Balances are those of its account, after it. */
export interface ResultByPosting {
  readonly Open: { readonly _tag: "Opened" }
  readonly SetStatus: { readonly _tag: "Changed" }
  readonly Credit: { readonly _tag: "Credited" } & Balances
  readonly TakeBack: { readonly _tag: "TakenBack"; readonly taken: Nano } & Balances
  /** The unused part of the last period that was taken back, and the part of it that was granted again. */
  readonly Renew: { readonly _tag: "Renewed"; readonly unused: Nano; readonly kept: Nano } & Balances
  readonly Escrow: { readonly _tag: "Escrowed"; readonly balance: Nano }
  /** The amount that counts against the limit; 0 if the limit was removed. */
  readonly SetLimit: { readonly _tag: "LimitSet"; readonly spent: Nano; readonly reserved: Nano }
  readonly SetBudget: { readonly _tag: "BudgetSet" }
  /** The balance is the recipient's. */
  readonly EndEscrow: { readonly _tag: "EscrowEnded" } & Balances
  readonly Reserve: {
    readonly _tag: "Reserved"
    readonly source: Source
    readonly amount: Nano
    /** Absent if no budget counts the call. */
    readonly within?: Within | undefined
  }
  readonly Settle:
    | ({ readonly _tag: "Settled"; readonly usage_id: string; readonly collected: Nano } & Balances)
    | { readonly _tag: "AlreadySettled" }
}

/** A reservation within budgets. */
export interface Within {
  /** The tokens that budgets leave to the call; `undefined` if none limits them. */
  readonly tokens: number | undefined
  readonly rates: Rates
  /** The places in `ways` that budgets have taken away. */
  readonly barred: ReadonlyArray<number>
}

export type Result = ResultByPosting[Posting["_tag"]]

/** The results of a transaction's postings, in order. */
export type ResultsOf<P extends ReadonlyArray<Posting>> = { readonly [I in keyof P]: ResultByPosting[P[I]["_tag"]] }

/** Why a transaction was refused, as data; nothing of it was done. The writer fails with the error of it (`Problems`). */
export type Refusal =
  | { readonly _tag: "InsufficientCredits"; readonly available: Nano }
  /** The balance would do, but the limit of the API key leaves less. */
  | { readonly _tag: "LimitReached"; readonly application: string; readonly available: Nano }
  /** The balance would do, but a budget leaves less. */
  | {
      readonly _tag: "BudgetReached"
      readonly budget: string
      readonly name: string
      readonly unit: BudgetUnit
      readonly period: BudgetTerms["period"]
      /** What the budget limits, and what is left: nano-USD, tokens, requests or open calls. */
      readonly limit: Nano
      readonly left: Nano
      /** In milliseconds since 1970; absent if it never renews. */
      readonly renews_at?: number | undefined
    }
  /** The balance would do, but too much of it was granted. */
  | { readonly _tag: "InsufficientGiftable"; readonly giftable: Nano }
  /** The account has less in escrow than is to come out of it. */
  | { readonly _tag: "NotHeld"; readonly account: string }
  | { readonly _tag: "AccountMissing"; readonly account: string }
  | { readonly _tag: "AccountInactive"; readonly account: string }
  | { readonly _tag: "AccountExists"; readonly account: string }
  | { readonly _tag: "BalanceTooLarge"; readonly account: string }
  /** A statement did not find the rows that it wanted. `statement` is its place in the transaction. */
  | { readonly _tag: "Conflict"; readonly statement: number }

export type Outcome =
  | { readonly _tag: "Committed"; readonly results: ReadonlyArray<Result> }
  | { readonly _tag: "Refused"; readonly refusal: Refusal }

/** A line of a billing account's ledger. */
export interface Entry {
  readonly billing_account_id: string
  /** Its place in the account's ledger, from 1. */
  readonly number: number
  readonly type: "credit" | "debit"
  /** Positive; `type` gives the direction. */
  readonly amount: Nano
  /** The account's balance after the entry, and the giftable part of it. */
  readonly balance: Nano
  readonly giftable: Nano
  readonly source: CreditSource | null
  readonly reference_id: string
  readonly description: string
  readonly at: number
}

/** The record that every admitted call leaves once. */
export interface UsageRecord extends Omit<CallOutcome, "provider" | "served"> {
  readonly id: string
  /** Its place among the records of the tenant that called, from 1. */
  readonly number: number
  readonly at: number
  /** Their `provider` and `model` are those that served the call. */
  readonly dimensions: Dimensions
  /** The part of the cost that the balance could not pay; `cost` is the part that it paid. */
  readonly uncollected: Nano
  readonly reserved: Nano
  /** The ids of the budgets that counted the call. Absent if none did. */
  readonly budgets?: ReadonlyArray<string> | undefined
}
