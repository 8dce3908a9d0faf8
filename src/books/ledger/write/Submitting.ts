/** The limits and outcomes of commits, shared by all writers. */
import { Context, Duration, Effect } from "effect"
import { BooksUnavailable, errorOf } from "../rules/Problems.ts"
import type { LedgerRefusal } from "../rules/Problems.ts"
import type { Result } from "../rules/Transaction.ts"
import type { WriterOutcome } from "./Codec.ts"

/** The outcome of a transaction: its results, a refusal by the books, or `BooksUnavailable`. */
export type Submitted = Effect.Effect<ReadonlyArray<Result>, LedgerRefusal | BooksUnavailable>

/** The maximum number of transactions in one commit: large enough to amortize the fsync, small enough to keep the commit short. */
export const batchMax = 512

/** How long a healthy SQLite writer waits for another process's lock on the database, in milliseconds. */
export const lockTimeout = 1_000

/** How long callers wait for a pending commit before they get `BooksUnavailable`. */
export class CommitLimit extends Context.Reference<CommitLimit>()("tollgate/ledger/CommitLimit", {
  defaultValue: (): Duration.Duration => Duration.seconds(10)
}) {}

export const resolve = (outcome: WriterOutcome): Submitted => {
  switch (outcome._tag) {
    case "Committed":
      return Effect.succeed(outcome.results)
    case "Refused":
      return errorOf(outcome.refusal)
    case "Unavailable":
      return new BooksUnavailable({ maybe_written: outcome.maybe_written })
    case "Broken":
      return Effect.dieMessage(outcome.reason)
  }
}
