/** `tollgate/ledger`: the books by themselves. Postings in, entries and balances out; exact, in one writer, durable. */
import "./contracts.ts"
export { Ledger, entryId } from "../ledger/Ledger.ts"
export { Writer } from "../ledger/Writer.ts"
export type { BalanceMoved } from "../ledger/Writer.ts"
export { availableOf, balanceOf, giftableSources, statement } from "../ledger/Transaction.ts"
export type {
  Account,
  CallFacts,
  CallOutcome,
  CreditSource,
  Dimensions,
  Entry,
  Posting,
  Refusal,
  Reservation,
  Result,
  Source,
  Statement,
  Transaction,
  UsageRecord
} from "../ledger/Transaction.ts"
export { checkNames, verify } from "../ledger/Invariants.ts"
export type { Finding } from "../ledger/Invariants.ts"
export { billingAccountOf } from "../kernel/Ids.ts"
export { amountMax, fromDecimal, toDecimal, usd } from "../kernel/Money.ts"
export type { Nano } from "../kernel/Money.ts"
