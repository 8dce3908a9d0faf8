/** The ledger's refusals. Amounts are in nano-USD. */
import { Schema } from "effect"
import { toDecimal } from "../../../kernel/Money.ts"
import { Problem } from "../../../kernel/Problem.ts"
import { units } from "./Budget.ts"
import type { Posting, Refusal } from "./Transaction.ts"

/** The database is not writable, for example because another process holds its lock or the disk is full. The caller can retry later. */
export class BooksUnavailable extends Problem<BooksUnavailable>()("BooksUnavailable", {
  status: 503,
  error: "the books are not writable; try again shortly",
  code: "books_unavailable",
  fields: {
    /**
     * `false` means that nothing was written. `true` means that the transaction might have been written or might still be written: no reply arrived
     * in time, the writer ended before it replied, or a commit was not confirmed. The HTTP body omits this field, so a client always reads `false`.
     */
    maybe_written: Schema.propertySignature(Schema.Boolean).pipe(Schema.withConstructorDefault(() => false))
  },
  details: {}
}) {}

const Nano = Schema.BigIntFromSelf
const account = { account: Schema.String } as const

export class AccountMissing extends Schema.TaggedError<AccountMissing>()("AccountMissing", account) {
  override get message() {
    return `the billing account ${this.account} does not exist`
  }
}

/** The billing account is suspended or closed. */
export class AccountInactive extends Schema.TaggedError<AccountInactive>()("AccountInactive", account) {
  override get message() {
    return `the billing account ${this.account} is not active`
  }
}

export class AccountExists extends Schema.TaggedError<AccountExists>()("AccountExists", account) {
  override get message() {
    return `the billing account ${this.account} already exists`
  }
}

/** The balance would exceed the maximum (`amountMax`), or the amount is not positive. */
export class BalanceTooLarge extends Schema.TaggedError<BalanceTooLarge>()("BalanceTooLarge", account) {
  override get message() {
    return `the balance of the billing account ${this.account} would exceed the maximum`
  }
}

/** `available` is the account's available credit or, for a call, the maximum among the sources that lack credit. */
export class InsufficientCredits extends Schema.TaggedError<InsufficientCredits>()("InsufficientCredits", {
  available: Nano
}) {
  override get message() {
    return `insufficient credits: ${toDecimal(this.available)} USD are available`
  }
}

/** The API key's limit (`application`) has only `available` left. */
export class LimitReached extends Schema.TaggedError<LimitReached>()("LimitReached", {
  application: Schema.String,
  available: Nano
}) {
  override get message() {
    return `the spending limit of the API key ${this.application} has ${toDecimal(this.available)} USD left`
  }
}

/** A budget has too little left. `limit` and `left` are in `unit`, with USD as nano-USD. */
export class BudgetReached extends Schema.TaggedError<BudgetReached>()("BudgetReached", {
  budget: Schema.String,
  name: Schema.String,
  unit: Schema.Literal(...units),
  period: Schema.Literal("minute", "hour", "day", "week", "month", "total"),
  limit: Nano,
  left: Nano,
  renews_at: Schema.optional(Schema.Number),
  of_everyone: Schema.optional(Schema.Literal(true))
}) {
  override get message() {
    const unit = this.unit === "concurrent" ? "concurrent calls" : this.unit
    const left = this.unit === "usd" ? `${toDecimal(this.left)} USD` : `${this.left} ${unit}`
    return `the budget "${this.name}" has ${left} left`
  }
}

/** The available credit is sufficient, but only `giftable` of it may be sent. */
export class InsufficientGiftable extends Schema.TaggedError<InsufficientGiftable>()("InsufficientGiftable", {
  giftable: Nano
}) {
  override get message() {
    return `insufficient giftable credits: ${toDecimal(this.giftable)} USD may be sent`
  }
}

/** The account has less in escrow than the amount, or the amount is not positive. */
export class NotHeld extends Schema.TaggedError<NotHeld>()("NotHeld", account) {
  override get message() {
    return `the billing account ${this.account} has less than this amount in escrow`
  }
}

/** A statement did not match the number of rows that it requires. `statement` is its index in the transaction. */
export class Conflict extends Schema.TaggedError<Conflict>()("Conflict", { statement: Schema.Number }) {
  override get message() {
    return `statement ${this.statement} of the transaction did not match its rows`
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

/** All refusals of a transaction. The encoded side is `Refusal`. */
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

export const errorOf = (refusal: Refusal): LedgerRefusal =>
  new (refusals[refusal._tag] as new (fields: object, noValidation: boolean) => LedgerRefusal)(refusal, true)

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

export type RefusalsOf<P extends ReadonlyArray<Posting>> = RefusalByPosting[P[number]["_tag"]]
