/**
 * The writer. Every change to the database is a transaction submitted here. Queued transactions are committed together, and each caller gets its
 * result only after the commit.
 */
import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import type { Nano } from "../../../kernel/Money.ts"
import { BooksUnavailable } from "../rules/Problems.ts"
import type { Conflict, RefusalsOf } from "../rules/Problems.ts"
import type { Posting, Result, ResultsOf, Transaction } from "../rules/Transaction.ts"
import * as ClientWriter from "./ClientWriter.ts"
import * as SocketWriter from "./SocketWriter.ts"
import type { Submitted } from "./Submitting.ts"
import type { Door } from "./Thread.ts"
import * as ThreadWriter from "./ThreadWriter.ts"

export interface WriterContract {
  /**
   * Commits the transaction durably, or refuses it as a whole. Returns the results of the postings in order. Fails with a posting's refusal
   * (`RefusalsOf`), or with `Conflict` if a statement did not match its rows. For a single posting, use the operation on `Ledger`. If the caller is
   * interrupted while it waits, the transaction might still commit, so code that acquires a resource this way must wait uninterruptibly.
   *
   * `BooksUnavailable` means that the database is not writable, for example because it is locked or its disk is full. The failure is reported within
   * the commit limit. With `maybe_written`, the transaction might have been committed, or might still be committed.
   *
   * Inside a `withTransaction` of the same client (only with `Writer.layer`), the transaction becomes part of the caller's transaction. Its result is
   * returned once its statements have run. It commits and rolls back with the caller's transaction, so its results must not be published before that
   * commit.
   */
  readonly submit: <const P extends ReadonlyArray<Posting>>(
    transaction: Transaction<P>
  ) => Effect.Effect<ResultsOf<P>, RefusalsOf<P> | Conflict | BooksUnavailable>
  /**
   * Calls the listener for every balance change by a posting submitted here, until the scope closes. The listener runs synchronously during calls, so
   * it must be fast.
   */
  readonly watch: (listener: BalanceMoved) => Effect.Effect<void, never, Scope.Scope>
}

/** A listener. It receives an account's balance before and after a posting. */
export type BalanceMoved = (billing_account: string, before: Nano, after: Nano) => void

export class Writer extends Context.Tag("tollgate/ledger/Writer")<Writer, WriterContract>() {
  /** Works with any `SqlClient`, on this thread. It is intended for embedding and tests. */
  static readonly layer = Layer.suspend(() => Layer.scoped(Writer, Effect.map(ClientWriter.make, watched)))

  /** Writes a SQLite file on a separate thread, so that an fsync never blocks the main thread. */
  static readonly layerThread = (file: string, door?: Door) =>
    Layer.scoped(Writer, Effect.map(ThreadWriter.make(file, door), watched))

  /** Submits to the writer's thread of another process, over the local socket `door`. */
  static readonly layerSocket = (door: Door) => Layer.scoped(Writer, Effect.map(SocketWriter.make(door), watched))
}

/** Adds `watch` to a function that commits transactions. */
export const watched = (commit: (transaction: Transaction) => Submitted): WriterContract => {
  const listeners = new Set<BalanceMoved>()
  const submit = (transaction: Transaction): Submitted =>
    listeners.size === 0 || transaction.postings.every(movesNothing)
      ? commit(transaction)
      : Effect.uninterruptible(
          Effect.map(commit(transaction), (results) => {
            for (const [i, posting] of transaction.postings.entries()) notifyListeners(listeners, posting, results[i])
            return results
          })
        )
  return {
    // The books return a result of the right kind for each posting.
    submit: submit as WriterContract["submit"],
    watch: (listener) =>
      Effect.acquireRelease(
        Effect.sync(() => void listeners.add(listener)),
        () => Effect.sync(() => listeners.delete(listener))
      )
  }
}

/** Returns whether a posting is of the most frequent kind that changes no balance. */
const movesNothing = ({ _tag }: Posting): boolean => _tag === "Reserve"

const notifyListeners = (listeners: Iterable<BalanceMoved>, posting: Posting, result: Result | undefined): void => {
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

/** The pause between retries in `untilWritten`, in milliseconds. It doubles from the first value to the last. */
const pauseFirst = 100
const pauseLast = 2_000

/** Retries while the books are unavailable. The effect must be idempotent, because a failed attempt might have been written. */
export const untilWritten = <A, E, R>(effect: Effect.Effect<A, E | BooksUnavailable, R>): Effect.Effect<A, E, R> => {
  const attempt = (pause: number): Effect.Effect<A, E, R> =>
    Effect.catchAll(effect, (error) =>
      error instanceof BooksUnavailable
        ? Effect.zipRight(Effect.sleep(pause), attempt(Math.min(2 * pause, pauseLast)))
        : Effect.fail(error)
    )
  return attempt(pauseFirst)
}

/** Runs `after` once `commit` succeeds, both uninterruptibly. Use it to update caches and wake loops. */
export const afterCommit = <A, E, R>(
  commit: Effect.Effect<A, E, R>,
  after: Effect.Effect<void>
): Effect.Effect<A, E, R> => Effect.uninterruptible(Effect.zipLeft(commit, after))
