/** The writer that works with any `SqlClient`, on the main thread. */
import { SqlClient, TransactionConnection } from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import { Cause, Clock, Deferred, Duration, Effect, Exit, FiberId, Option, Runtime } from "effect"
import { RollupLagMax } from "../rows/RollupLag.ts"
import { changeText, insertText } from "../rows/SqlEffect.ts"
import type { Rows, SqlEffect } from "../rows/SqlEffect.ts"
import { BooksUnavailable } from "../rules/Problems.ts"
import type { Outcome, Transaction } from "../rules/Transaction.ts"
import * as Batch from "./Batch.ts"
import * as CommitWatch from "./CommitWatch.ts"
import { isStorageFault } from "./DatabaseFault.ts"
import { batchMax, CommitLimit, lockTimeout, resolve } from "./Submitting.ts"
import type { Submitted } from "./Submitting.ts"

interface QueuedTransaction {
  readonly transaction: Transaction
  readonly answer: Deferred.Deferred<Outcome, BooksUnavailable>
}

export const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const reserved = Effect.scoped(sql.reserve)
  /** The only connection of SQLite's client. A transaction on it belongs to this client. */
  const own = yield* Effect.flatMap(
    Effect.serviceOption(TransactionConnection),
    Option.match({ onNone: () => Effect.orDie(reserved), onSome: ([connection]) => Effect.succeed(connection) })
  )
  const begin = sql.onDialectOrElse({ sqlite: () => beginImmediate, orElse: () => beginPlain })
  const runtime = yield* Effect.runtime<never>()
  const tailMax = yield* RollupLagMax
  /** The callers in the queue. `committing` contains the callers of the current batch. */
  let waiting: Array<QueuedTransaction> = []
  let committing: ReadonlyArray<QueuedTransaction> = []
  const work = yield* Effect.makeLatch()
  const watch = CommitWatch.make({
    limit: Duration.toMillis(yield* CommitLimit),
    isAnyoneWaiting: () => waiting.length > 0 || committing.length > 0,
    // Leave the callers in the queue, because their transactions might still be committed.
    onStall: () => {
      for (const { answer } of [...committing, ...waiting])
        Deferred.unsafeDone(answer, new BooksUnavailable({ maybe_written: true }))
    },
    log: (message) => void Runtime.runFork(runtime)(message)
  })

  const runEffect = (asked: SqlEffect): Effect.Effect<Rows, SqlError> => {
    switch (asked._tag) {
      case "Query":
      case "Run":
        return sql.unsafe(asked.text, asked.params as Array<string>)
      case "All":
        return Effect.forEach(asked.queries, runEffect)
      case "Insert":
        // Insert in chunks, because a statement has a limited number of parameters.
        return Effect.forEach(
          chunksOf(asked.rows, Math.floor(10_000 / asked.columns.length)),
          (rows) => sql.unsafe(insertText(asked, rows.length), rows.flat() as Array<string>),
          { discard: true }
        ).pipe(Effect.as([]))
      case "Change":
        return Effect.forEach(asked.rows, (row) => sql.unsafe(changeText(asked), row as Array<string>), {
          discard: true
        }).pipe(Effect.as([]))
    }
  }

  const run = Effect.fnUntraced(function* (transactions: ReadonlyArray<Transaction>) {
    // Use an empty cache, because other connections can write between batches.
    const body = Batch.run(transactions, yield* Clock.currentTimeMillis, new Batch.BatchCache(tailMax))
    let step = body.next([])
    while (step.done !== true) step = body.next(yield* runEffect(step.value))
    return step.value
  })

  /** Whether the last batch failed because of the database. If so, the writer does not wait for locks. */
  let down = false

  /** Runs a batch as a database transaction. A failure never leaves the connection inside a transaction. */
  const committed = Effect.fnUntraced(function* (transactions: ReadonlyArray<Transaction>) {
    const connection = yield* sql.reserve
    yield* begin(connection)
    const exit = yield* run(transactions).pipe(
      Effect.provideService(TransactionConnection, [connection, 0]),
      Effect.zipLeft(Effect.mapError(connection.executeUnprepared("COMMIT", [], undefined), failedCommit)),
      Effect.exit
    )
    if (Exit.isFailure(exit)) {
      // The rollback can fail, because SQLite rolls back by itself after some errors.
      yield* Effect.ignore(Effect.sandbox(connection.executeUnprepared("ROLLBACK", [], undefined)))
    }
    return yield* exit
  }, Effect.scoped)

  /** Retries for a limited time while the database is locked. The connection is released between attempts, so that other fibers can read. */
  const patiently = (transactions: ReadonlyArray<Transaction>) => {
    const began = performance.now()
    const attempt: ReturnType<typeof committed> = Effect.catchAll(committed(transactions), (error) =>
      isLocked(error) && !down && performance.now() - began < lockTimeout
        ? Effect.zipRight(realSleep(25), attempt)
        : Effect.fail(error)
    )
    return attempt
  }

  const commitBatch = (waiting: ReadonlyArray<QueuedTransaction>): Effect.Effect<void> =>
    Effect.exit(patiently(waiting.map(({ transaction }) => transaction))).pipe(
      Effect.flatMap((exit) => {
        if (Exit.isSuccess(exit)) {
          down = false
          return Effect.forEach(waiting, (one, i) => Deferred.succeed(one.answer, exit.value[i]!), { discard: true })
        }
        down = hasStorageFault(exit.cause)
        if (down) {
          const refusal = new BooksUnavailable({ maybe_written: isFailedCommit(exit.cause) })
          return Effect.forEach(waiting, (one) => Deferred.fail(one.answer, refusal), { discard: true })
        }
        // A transaction that violates a database constraint must not fail the others, so run each one alone.
        return waiting.length > 1
          ? Effect.forEach(waiting, (one) => commitBatch([one]), { discard: true })
          : Effect.forEach(waiting, (one) => Deferred.failCause(one.answer, dying(exit.cause)), { discard: true })
      })
    )

  let closed = false
  const take = Effect.suspend(() => {
    committing = waiting.slice(0, batchMax)
    waiting = waiting.slice(batchMax)
    return waiting.length > 0 ? Effect.succeed(committing) : Effect.as(work.close, committing)
  })
  const answered = Effect.sync(() => {
    committing = []
    watch.progress()
  })
  const answerAll: Effect.Effect<void> = Effect.flatMap(take, (batch) =>
    batch.length === 0 ? Effect.void : commitBatch(batch).pipe(Effect.zipRight(answered), Effect.zipRight(answerAll))
  )
  // Transactions submitted before closing are committed, and later transactions are refused.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return Effect.ensuring(answerAll, Effect.sync(watch.stop))
    })
  )
  // Only the wait for work is interruptible.
  yield* Effect.uninterruptibleMask((restore) => Effect.zipRight(restore(work.await), answerAll)).pipe(
    Effect.forever,
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )

  /** Queues a transaction in a single synchronous step, so that none enters the queue after closing. */
  const outside = (transaction: Transaction): Submitted =>
    Effect.suspend(() => {
      if (closed || watch.isStalled()) return new BooksUnavailable()
      const answer = Deferred.unsafeMake<Outcome, BooksUnavailable>(FiberId.none)
      watch.begin()
      waiting.push({ transaction, answer })
      return Effect.zipRight(work.open, Effect.flatMap(Deferred.await(answer), resolve))
    })

  // Concurrent transactions would read each other's unfinished changes and roll back each other's savepoints.
  const turn = yield* Effect.makeSemaphore(1)
  const inside = (transaction: Transaction): Submitted =>
    sql.withTransaction(run([transaction])).pipe(
      turn.withPermits(1),
      Effect.catchAllCause((cause) =>
        hasStorageFault(cause) ? new BooksUnavailable() : Effect.failCause(dying(cause))
      ),
      Effect.flatMap(([outcome]) => resolve(outcome!))
    )

  const submit = (transaction: Transaction): Submitted =>
    Effect.flatMap(Effect.serviceOption(TransactionConnection), (held) =>
      Option.isSome(held) && held.value[0] === own ? inside(transaction) : outside(transaction)
    )

  return submit
})

const chunksOf = <A>(items: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))

const beginPlain = (connection: Connection): Effect.Effect<unknown, SqlError> =>
  connection.executeUnprepared("BEGIN", [], undefined)

/**
 * Begins with IMMEDIATE to acquire the write lock first, so that rows cannot change between reading and writing. SQLite's own wait for the lock is
 * disabled meanwhile, because it would block this thread.
 */
const beginImmediate = (connection: Connection): Effect.Effect<unknown, SqlError> => {
  // SQLite applies this pragma when it is prepared, so do not prepare it early.
  const run = (pragma: string) => Effect.suspend(() => connection.executeUnprepared(pragma, [], undefined))
  return Effect.flatMap(run("PRAGMA busy_timeout"), ([row]) => {
    const { timeout } = row as { readonly timeout: number }
    return run("PRAGMA busy_timeout = 0").pipe(
      Effect.zipRight(Effect.suspend(() => connection.executeUnprepared("BEGIN IMMEDIATE", [], undefined))),
      Effect.ensuring(Effect.ignore(run(`PRAGMA busy_timeout = ${timeout}`)))
    )
  })
}

const isLocked = (error: unknown): boolean => isStorageFault(error, "lock")

/** A failed commit with an unknown outcome. */
class FailedCommit {
  readonly cause: SqlError

  constructor(cause: SqlError) {
    this.cause = cause
  }
}

const failedCommit = (error: SqlError): SqlError | FailedCommit =>
  isStorageFault(error, "commit") ? new FailedCommit(error) : error

const isFailedCommit = (cause: Cause.Cause<unknown>): boolean =>
  [...Cause.failures(cause)].some((error) => error instanceof FailedCommit)

/** Waits in real time, independently of the test clock, because another process has to act. */
const realSleep = (millis: number): Effect.Effect<void> =>
  Effect.async((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

const hasStorageFault = (cause: Cause.Cause<unknown>): boolean =>
  [...Cause.failures(cause), ...Cause.defects(cause)].some((error) => isStorageFault(error))

/** Converts failures to defects, because a transaction that violates a database constraint is a bug in its caller. */
const dying = (cause: Cause.Cause<unknown>): Cause.Cause<never> => {
  if (Cause.isInterruptedOnly(cause)) return cause as Cause.Cause<never>
  const error = Cause.squash(cause)
  return Cause.die(error instanceof SqlError ? error.cause : error)
}
