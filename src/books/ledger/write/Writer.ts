/**
 * The one writer. Everything that changes the database is a transaction handed in here; those that wait are committed
 * together, and each caller is answered only after the commit. There is no second connection that writes.
 */
import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import type { Nano } from "../../../kernel/Money.ts"
import { BooksUnavailable } from "../rules/Problems.ts"
import type { Conflict, RefusalsOf } from "../rules/Problems.ts"
import type { Posting, Result, ResultsOf, Transaction } from "../rules/Transaction.ts"
import * as ClientWriter from "./ClientWriter.ts"
import type { Submitted } from "./Submitting.ts"
import * as ThreadWriter from "./ThreadWriter.ts"

export interface WriterContract {
  /**
   * Commits the transaction, durably, or refuses it whole. It answers the results of its postings in their order, and is refused for what
   * those may be refused for (`RefusalsOf`), or with `Conflict` where a statement did not find its rows. (For one posting, `Ledger` has an
   * operation of its name.) A caller that is interrupted while it waits may find it committed all the same: code that acquires a resource
   * this way must wait uninterruptibly.
   *
   * `BooksUnavailable` says that the database cannot be written (it is locked, full or failing). It comes within ten seconds; its
   * `maybe_written` says whether the transaction may have been, or may yet be, committed; before whatever is handed in later.
   *
   * Inside a `withTransaction` of the same client (`Writer.layer` only) the transaction becomes a part of the caller's: it is answered when
   * its statements have run, is durable when the caller's transaction commits, and is rolled back with it. So nothing that others see may
   * follow from the answer before that commit.
   */
  readonly submit: <const P extends ReadonlyArray<Posting>>(
    transaction: Transaction<P>
  ) => Effect.Effect<ResultsOf<P>, RefusalsOf<P> | Conflict | BooksUnavailable>
  /**
   * Tells the listener, until the scope closes, of every balance that a committed posting moved. It is called in the middle of calls, so
   * it must return at once.
   */
  readonly watch: (listener: BalanceMoved) => Effect.Effect<void, never, Scope.Scope>
}

/** Called with a balance before and after a posting. */
export type BalanceMoved = (billing_account: string, before: Nano, after: Nano) => void

export class Writer extends Context.Tag("tollgate/ledger/Writer")<Writer, WriterContract>() {
  /** Over any `SqlClient`, in this thread: for embedding, tests, and databases that are not SQLite files. */
  static readonly layer = Layer.suspend(() => Layer.scoped(Writer, Effect.map(ClientWriter.make, watched)))

  /** On a thread of its own over a SQLite file: an fsync then never holds up the thread that serves. */
  static readonly layerThread = (file: string) => Layer.scoped(Writer, Effect.map(ThreadWriter.make(file), watched))
}

/** A writer that calls listeners with the balances that its postings moved. */
export const watched = (commit: (transaction: Transaction) => Submitted): WriterContract => {
  const listeners = new Set<BalanceMoved>()
  const submit = (transaction: Transaction): Submitted =>
    listeners.size === 0 || transaction.postings.every(movesNothing)
      ? commit(transaction)
      : Effect.uninterruptible(
          Effect.map(commit(transaction), (results) => {
            for (const [i, posting] of transaction.postings.entries()) tell(listeners, posting, results[i])
            return results
          })
        )
  return {
    // The books answer each posting in its kind.
    submit: submit as WriterContract["submit"],
    watch: (listener) =>
      Effect.acquireRelease(
        Effect.sync(() => void listeners.add(listener)),
        () => Effect.sync(() => listeners.delete(listener))
      )
  }
}

/** Most postings are reservations: their answers are not looked at. */
const movesNothing = ({ _tag }: Posting): boolean => _tag === "Reserve"

const tell = (listeners: Iterable<BalanceMoved>, posting: Posting, result: Result | undefined): void => {
  if (result === undefined) return
  switch (posting._tag) {
    case "Credit":
      return result._tag === "Credited" ? move(listeners, posting.account, posting.amount, result) : undefined
    case "EndEscrow":
      return result._tag === "EscrowEnded" ? move(listeners, posting.to, posting.amount, result) : undefined
    case "Escrow":
      return result._tag === "Escrowed" ? move(listeners, posting.account, -posting.amount, result) : undefined
    case "TakeBack":
      return result._tag === "TakenBack" ? move(listeners, posting.account, -result.taken, result) : undefined
    case "Renew":
      return result._tag === "Renewed" ? move(listeners, posting.account, 0n, result) : undefined
    case "Settle":
      return result._tag === "Settled" && posting.payer !== undefined
        ? move(listeners, posting.payer, -result.collected, result)
        : undefined
    case "Open":
    case "SetStatus":
    case "SetLimit":
    case "Reserve":
      return
  }
}

const move = (
  listeners: Iterable<BalanceMoved>,
  account: string,
  by: Nano,
  { balance, before = balance - by }: { readonly balance: Nano; readonly before?: Nano | undefined }
): void => {
  if (before === balance) return
  for (const listener of listeners) listener(account, before, balance)
}

/** The pause between two tries of what must be written in the end, in milliseconds: it doubles from the first to the last. */
const pauseFirst = 100
const pauseLast = 2_000

/** Tries again for as long as the books are unavailable. What it does must come out the same when it was done already. */
export const untilWritten = <A, E, R>(effect: Effect.Effect<A, E | BooksUnavailable, R>): Effect.Effect<A, E, R> => {
  const attempt = (pause: number): Effect.Effect<A, E, R> =>
    Effect.catchAll(effect, (error) =>
      error instanceof BooksUnavailable
        ? Effect.zipRight(Effect.sleep(pause), attempt(Math.min(2 * pause, pauseLast)))
        : Effect.fail(error)
    )
  return attempt(pauseFirst)
}

/**
 * Runs `after` as soon as the transaction is committed, also where who waits for it is interrupted meanwhile: for what this process
 * remembers of the database, and loops that have something to do now.
 */
export const afterCommit = <A, E, R>(
  commit: Effect.Effect<A, E, R>,
  after: Effect.Effect<void>
): Effect.Effect<A, E, R> => Effect.uninterruptible(Effect.zipLeft(commit, after))
