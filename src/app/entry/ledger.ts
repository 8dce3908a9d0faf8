/**
 * `tollgate/ledger`: the ledger without metering, with operations on billing accounts, balances and entries. One writer makes the changes durable.
 */
import { Ledger } from "../../books/ledger/Ledger.ts"
import "./contracts.ts"

export { Ledger }
export { entryId } from "../../books/ledger/Ledger.ts"
export type { AskedOf, LedgerContract, Operation } from "../../books/ledger/Ledger.ts"
export {
  AccountExists,
  AccountInactive,
  AccountMissing,
  BalanceTooLarge,
  BooksUnavailable,
  Conflict,
  InsufficientCredits,
  InsufficientGiftable,
  LedgerRefusal,
  LimitReached,
  NotHeld
} from "../../books/ledger/rules/Problems.ts"
export type { RefusalByPosting, RefusalsOf } from "../../books/ledger/rules/Problems.ts"
export { Writer } from "../../books/ledger/write/Writer.ts"
export type { BalanceMoved, WriterContract } from "../../books/ledger/write/Writer.ts"
export { availableOf, balanceOf, giftableSources, statement } from "../../books/ledger/rules/Transaction.ts"
export type {
  Account,
  CallFacts,
  CallOutcome,
  CreditSource,
  Dimensions,
  Entry,
  Limit,
  LimitPeriod,
  Posting,
  Refusal,
  Reservation,
  Result,
  ResultByPosting,
  ResultsOf,
  Source,
  Statement,
  Transaction,
  UsageRecord
} from "../../books/ledger/rules/Transaction.ts"
export { checkNames, verify } from "../Checks.ts"
export { trialBalance } from "../../books/ledger/audit/Invariants.ts"
export type { TrialBalance } from "../../books/ledger/audit/Invariants.ts"
export type { Finding } from "../../books/ledger/rules/Check.ts"
export { billingAccountOf } from "../../kernel/Ids.ts"
export { amountMax, fromDecimal, toDecimal, usd } from "../../kernel/Money.ts"
export type { Nano } from "../../kernel/Money.ts"

/** Operations and balances. Requires a database. */
export const layer = Ledger.layer
