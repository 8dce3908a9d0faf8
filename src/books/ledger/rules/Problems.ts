/** Refusals of the ledger. Money is in nano-USD. */
import { Schema } from "effect"
import { toDecimal } from "../../../kernel/Money.ts"
import { Problem } from "../../../kernel/Problem.ts"
import { units } from "./Budget.ts"
import type { Posting, Refusal } from "./Transaction.ts"

/**
 * The database cannot be written at the moment: it is locked by another process, its disk is full, or the disk fails. Trying again
 * later makes sense.
 */
export class BooksUnavailable extends Problem<BooksUnavailable>()("BooksUnavailable", {
  status: 503,
  error: "the books cannot be written at the moment, try again shortly",
  code: "books_unavailable",
  fields: {
    /**
     * `false`: nothing was written. `true`: no answer came in time, the writer ended before it answered, or the disk failed in the commit
     * itself, so that it may have been written, or may be yet. Known to a program only: a client over HTTP always reads `false`.
     */
    maybe_written: Schema.propertySignature(Schema.Boolean).pipe(Schema.withConstructorDefault(() => false))
  },
  details: {}
}) {}

const Nano = Schema.BigIntFromSelf
const account = { account: Schema.String } as const

/** There is no billing account of this id. */
export class AccountMissing extends Schema.TaggedError<AccountMissing>()("AccountMissing", account) {
  override get message() {
    return `there is no billing account ${this.account}`
  }
}

/** The billing account is suspended or closed. */
export class AccountInactive extends Schema.TaggedError<AccountInactive>()("AccountInactive", account) {
  override get message() {
    return `the billing account ${this.account} is not active`
  }
}

/** There is a billing account of this id already. */
export class AccountExists extends Schema.TaggedError<AccountExists>()("AccountExists", account) {
  override get message() {
    return `there is a billing account ${this.account} already`
  }
}

/** The balance would be more than the books can hold (`amountMax`), or the amount is not above zero. */
export class BalanceTooLarge extends Schema.TaggedError<BalanceTooLarge>()("BalanceTooLarge", account) {
  override get message() {
    return `the billing account ${this.account} cannot hold so much`
  }
}

/** `available` is what the account has that is not set aside: of the sources of a call, the most that one of them has. */
export class InsufficientCredits extends Schema.TaggedError<InsufficientCredits>()("InsufficientCredits", {
  available: Nano
}) {
  override get message() {
    return `insufficient credits: ${toDecimal(this.available)} USD are available`
  }
}

/** The balance would do, but the limit of the API key (`application`) leaves less: `available`. */
export class LimitReached extends Schema.TaggedError<LimitReached>()("LimitReached", {
  application: Schema.String,
  available: Nano
}) {
  override get message() {
    return `the spending limit of the API key ${this.application} leaves ${toDecimal(this.available)} USD`
  }
}

/** The balance would do, but a budget leaves less. `limit` and `left` are nano-USD, tokens, requests or open calls, as `unit` says. */
export class BudgetReached extends Schema.TaggedError<BudgetReached>()("BudgetReached", {
  budget: Schema.String,
  name: Schema.String,
  unit: Schema.Literal(...units),
  period: Schema.Literal("minute", "hour", "day", "week", "month", "total"),
  limit: Nano,
  left: Nano,
  renews_at: Schema.optional(Schema.Number)
}) {
  override get message() {
    const left = this.unit === "usd" ? `${toDecimal(this.left)} USD` : `${this.left} of ${this.unit}`
    return `the budget "${this.name}" leaves ${left}`
  }
}

/** The balance would do, but only `giftable` of it may be sent on. */
export class InsufficientGiftable extends Schema.TaggedError<InsufficientGiftable>()("InsufficientGiftable", {
  giftable: Nano
}) {
  override get message() {
    return `insufficient giftable credits: ${toDecimal(this.giftable)} USD may be sent on`
  }
}

/** The account has less in escrow than is to come out of it. */
export class NotHeld extends Schema.TaggedError<NotHeld>()("NotHeld", account) {
  override get message() {
    return `the billing account ${this.account} has less in escrow`
  }
}

/** A statement beside the postings did not find the rows that it wanted. `statement` is its place in the transaction. */
export class Conflict extends Schema.TaggedError<Conflict>()("Conflict", { statement: Schema.Number }) {
  override get message() {
    return `the statement ${this.statement} of the transaction did not find its rows`
  }
}

const refusals = {
  AccountMissing,
  AccountInactive,
  AccountExists,
  BalanceTooLarge,
  InsufficientCredits,
  LimitReached,
  BudgetReached,
  InsufficientGiftable,
  NotHeld,
  Conflict
}

/** Every reason why a transaction may be refused. Its encoded side is the `Refusal`. */
export const LedgerRefusal = Schema.Union(
  AccountMissing,
  AccountInactive,
  AccountExists,
  BalanceTooLarge,
  InsufficientCredits,
  LimitReached,
  BudgetReached,
  InsufficientGiftable,
  NotHeld,
  Conflict
)
export type LedgerRefusal = typeof LedgerRefusal.Type

/** The error of a refusal. */
export const errorOf = (refusal: Refusal): LedgerRefusal =>
  new (refusals[refusal._tag] as new (fields: object, noValidation: boolean) => LedgerRefusal)(refusal, true)

/** The refusals of each posting. */
export interface RefusalByPosting {
  readonly Open: AccountExists
  readonly SetStatus: AccountMissing
  readonly Credit: AccountMissing | BalanceTooLarge
  readonly TakeBack: AccountMissing
  readonly Renew: AccountMissing | BalanceTooLarge
  readonly Escrow: AccountMissing | AccountInactive | InsufficientCredits | InsufficientGiftable
  readonly EndEscrow: AccountMissing | NotHeld | BalanceTooLarge | InsufficientCredits
  readonly SetLimit: AccountMissing
  readonly SetBudget: AccountMissing
  readonly Reserve: AccountMissing | AccountInactive | InsufficientCredits | LimitReached | BudgetReached
  readonly Settle: never
}

/** The refusals of a transaction's postings. */
export type RefusalsOf<P extends ReadonlyArray<Posting>> = RefusalByPosting[P[number]["_tag"]]
