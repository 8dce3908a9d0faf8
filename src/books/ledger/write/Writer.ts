/**
 * The one writer. Everything that changes the database is a transaction handed in here; those that wait are committed
 * together, and each caller is answered only after the commit. There is no second connection that writes.
 */
import { SqlClient, TransactionConnection } from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import { Cause, Clock, Context, Deferred, Duration, Effect, Exit, FiberId, Layer, Option, Runtime } from "effect"
import type { Scope } from "effect"
import { MessageChannel } from "node:worker_threads"
import type { MessagePort, Worker } from "node:worker_threads"
import type { Nano } from "../../../kernel/Money.ts"
import { changeText, insertText } from "../rows/SqlEffect.ts"
import type { SqlEffect, Rows } from "../rows/SqlEffect.ts"
import * as Batch from "./Batch.ts"
import * as CommitWatch from "./CommitWatch.ts"
import { outcomeReceiver, transactionSender } from "./Codec.ts"
import type { Answered, Receiver, Sender, Tape } from "./Codec.ts"
import { BooksUnavailable, errorOf } from "../rules/Problems.ts"
import type { Conflict, LedgerRefusal, RefusalsOf } from "../rules/Problems.ts"
import { isStorageFault } from "./DatabaseFault.ts"
import { RollupLagMax } from "../rows/RollupLag.ts"
import * as Thread from "./Thread.ts"
import type { Outcome, Posting, Result, ResultsOf, Transaction } from "../rules/Transaction.ts"

/** The outcome of a transaction: its results, a refusal of the books, or `BooksUnavailable`. */
export type Submitted = Effect.Effect<ReadonlyArray<Result>, LedgerRefusal | BooksUnavailable>

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

/** The most transactions in one commit: enough to pay for an fsync many times over, little enough to keep it short. */
export const batchMax = 512

/** How long another process's lock on the database is waited for, in milliseconds, while all is well. */
const patience = 1_000

/** How long a commit may take before those who wait for it get `BooksUnavailable`. */
export class CommitLimit extends Context.Reference<CommitLimit>()("tollgate/ledger/CommitLimit", {
  defaultValue: (): Duration.Duration => Duration.seconds(10)
}) {}

export class Writer extends Context.Tag("tollgate/ledger/Writer")<Writer, WriterContract>() {
  /** Over any `SqlClient`, in this thread: for embedding, tests, and databases that are not SQLite files. */
  static readonly layer = Layer.suspend(() => Layer.scoped(Writer, Effect.map(make, watched)))

  /** On a thread of its own over a SQLite file: an fsync then never holds up the thread that serves. */
  static readonly layerThread = (file: string) => Layer.scoped(Writer, Effect.map(makeThread(file), watched))
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

export const resolve = (outcome: Answered): Submitted => {
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

// ---- over a SqlClient ---------------------------------------------------------------------------------------------------

interface Waiting {
  readonly transaction: Transaction
  readonly answer: Deferred.Deferred<Outcome, BooksUnavailable>
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const reserved = Effect.scoped(sql.reserve)
  /** A client of SQLite has one connection, which tells a transaction of the same client from one of another. */
  const own = yield* Effect.flatMap(
    Effect.serviceOption(TransactionConnection),
    Option.match({ onNone: () => Effect.orDie(reserved), onSome: ([connection]) => Effect.succeed(connection) })
  )
  const begin = sql.onDialectOrElse({ sqlite: () => beginImmediate, orElse: () => beginPlain })
  const runtime = yield* Effect.runtime<never>()
  const tailMax = yield* RollupLagMax
  /** Those whose turn comes, and those whose transactions are being committed. */
  let waiting: Array<Waiting> = []
  let committing: ReadonlyArray<Waiting> = []
  const work = yield* Effect.makeLatch()
  const watch = CommitWatch.make({
    limit: Duration.toMillis(yield* CommitLimit),
    isAnyoneWaiting: () => waiting.length > 0 || committing.length > 0,
    // Their places in the line stay: what they asked for may be committed yet.
    onStall: () => {
      for (const { answer } of [...committing, ...waiting])
        Deferred.unsafeDone(answer, new BooksUnavailable({ maybe_written: true }))
    },
    log: (message) => void Runtime.runFork(runtime)(message)
  })

  const ask = (asked: SqlEffect): Effect.Effect<Rows, SqlError> => {
    switch (asked._tag) {
      case "Query":
      case "Run":
        return sql.unsafe(asked.text, asked.params as Array<string>)
      case "All":
        return Effect.forEach(asked.queries, ask)
      case "Insert":
        // In pieces: a statement takes only so many parameters.
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
    // Others may write between two batches, so nothing is remembered.
    const body = Batch.run(transactions, yield* Clock.currentTimeMillis, new Batch.Memory(tailMax))
    let step = body.next([])
    while (step.done !== true) step = body.next(yield* ask(step.value))
    return step.value
  })

  /** Whether the last batch failed because of the database: then no lock is waited for. */
  let down = false

  /** A batch as a transaction of its own. Whatever fails, the connection is not left inside a transaction. */
  const committed = Effect.fnUntraced(function* (transactions: ReadonlyArray<Transaction>) {
    const connection = yield* sql.reserve
    yield* begin(connection)
    const exit = yield* run(transactions).pipe(
      Effect.provideService(TransactionConnection, [connection, 0]),
      Effect.zipLeft(Effect.mapError(connection.executeUnprepared("COMMIT", [], undefined), failedCommit)),
      Effect.exit
    )
    if (Exit.isFailure(exit)) {
      // After some failures SQLite has done so itself.
      yield* Effect.ignore(Effect.sandbox(connection.executeUnprepared("ROLLBACK", [], undefined)))
    }
    return yield* exit
  }, Effect.scoped)

  /** Lets the connection go between two tries, so that others can read meanwhile. */
  const patiently = (transactions: ReadonlyArray<Transaction>) => {
    const began = performance.now()
    const attempt: ReturnType<typeof committed> = Effect.catchAll(committed(transactions), (error) =>
      isLocked(error) && !down && performance.now() - began < patience
        ? Effect.zipRight(realSleep(25), attempt)
        : Effect.fail(error)
    )
    return attempt
  }

  const answer = (waiting: ReadonlyArray<Waiting>): Effect.Effect<void> =>
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
        // One that breaks the database's own rules must not take the others with it: each is tried by itself.
        return waiting.length > 1
          ? Effect.forEach(waiting, (one) => answer([one]), { discard: true })
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
    batch.length === 0 ? Effect.void : answer(batch).pipe(Effect.zipRight(answered), Effect.zipRight(answerAll))
  )
  // Transactions submitted before the end are committed and answered; later ones are refused.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return Effect.ensuring(answerAll, Effect.sync(watch.stop))
    })
  )
  // Only the wait for work can be interrupted, not the work.
  yield* Effect.uninterruptibleMask((restore) => Effect.zipRight(restore(work.await), answerAll)).pipe(
    Effect.forever,
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )

  /** In one step, so that no transaction joins the line after the end. */
  const outside = (transaction: Transaction): Submitted =>
    Effect.suspend(() => {
      if (closed || watch.isStalled()) return new BooksUnavailable()
      const answer = Deferred.unsafeMake<Outcome, BooksUnavailable>(FiberId.none)
      watch.begin()
      waiting.push({ transaction, answer })
      return Effect.zipRight(work.open, Effect.flatMap(Deferred.await(answer), resolve))
    })

  // Two at once would read each other's half of a balance, and undo each other's savepoints.
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
 * IMMEDIATE: the write lock comes first, so what is read cannot change before it is written. SQLite's own wait for it would hold up
 * this thread, so it is switched off for as long as this takes.
 */
const beginImmediate = (connection: Connection): Effect.Effect<unknown, SqlError> => {
  // SQLite obeys a pragma like this one when it is prepared, which must not be earlier than it is meant.
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

/** A commit that failed so that it may be done all the same. */
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

/** A wait of this process, however its clock may be steered: what it waits for happens outside. */
const realSleep = (millis: number): Effect.Effect<void> =>
  Effect.async((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

const hasStorageFault = (cause: Cause.Cause<unknown>): boolean =>
  [...Cause.failures(cause), ...Cause.defects(cause)].some((error) => isStorageFault(error))

/** The database's error about a transaction that broke its rules is a defect of the code that made it. */
const dying = (cause: Cause.Cause<unknown>): Cause.Cause<never> => {
  if (Cause.isInterruptedOnly(cause)) return cause as Cause.Cause<never>
  const error = Cause.squash(cause)
  return Cause.die(error instanceof SqlError ? error.cause : error)
}

// ---- on a thread --------------------------------------------------------------------------------------------------------

/** A message to the thread: transactions that arrived shortly after each other, and the time of sending. */
export interface Submission {
  readonly now: number
  /** By `Codec.transactionSender`. */
  readonly transactions: Tape
}

/** A message back: the outcomes of the next transactions in line, by `Codec.outcomeSender`. */
export type Answer = Tape

type Resume = (effect: Submitted) => void

/** A thread at work, and how to speak to it. What crosses is numbered anew for each thread. */
interface Connected {
  readonly worker: Worker
  readonly port: MessagePort
  readonly sender: Sender<Transaction>
  readonly receiver: Receiver<Answered>
}

/** The pause before a thread that ended is started again, in milliseconds: it doubles from the first to the last. */
const restartFirst = 100
const restartLast = 5_000

const makeThread = Effect.fnUntraced(function* (file: string) {
  // The provider of the client has migrated the file; the thread opens it only then.
  yield* SqlClient
  const commitLimit = Duration.toMillis(yield* CommitLimit)
  const tailMax = yield* RollupLagMax
  const clock = yield* Effect.clock
  const runtime = yield* Effect.runtime<never>()
  const log = (effect: Effect.Effect<void>) => void Runtime.runFork(runtime)(effect)

  /** The thread that takes transactions; none while one is started again. */
  let thread: Connected | undefined
  let closing = false
  /** Set while the end is waited for. */
  let onClosed: (() => void) | undefined
  let restartPause = restartFirst
  let restart: NodeJS.Timeout | undefined

  let outbox: Array<Transaction> = []
  let outboxWaiting: Array<Resume> = []
  // Answers come in the order of the questions, so those who wait stand in a line. (A `Map` would do, but what a busy one
  // leaves behind keeps whole calls alive until the next full collection.)
  let waiting: Array<Resume | undefined> = []
  let answered = 0

  const tellAll = (effect: Submitted) => {
    for (let i = answered; i < waiting.length; i++) {
      const resume = waiting[i]
      waiting[i] = undefined
      resume?.(effect)
    }
  }

  const watch = CommitWatch.make({
    limit: commitLimit,
    isAnyoneWaiting: () => onClosed !== undefined || answered < waiting.length,
    onStall: () => {
      // Their places in the line stay: the answers may come yet.
      tellAll(new BooksUnavailable({ maybe_written: true }))
      if (onClosed === undefined) return
      void thread?.worker.terminate()
      onClosed()
    },
    log
  })

  const post = (
    { port, sender }: Connected,
    transactions: ReadonlyArray<Transaction>,
    resumes: ReadonlyArray<Resume>
  ) => {
    const submission: Submission = {
      now: clock.unsafeCurrentTimeMillis(),
      transactions: sender.encode(transactions)
    }
    port.postMessage(submission)
    watch.begin()
    for (const resume of resumes) waiting.push(resume)
  }

  const flush = () => {
    if (outbox.length === 0) return
    const [transactions, resumes] = [outbox, outboxWaiting]
    outbox = []
    outboxWaiting = []
    if (thread === undefined) {
      for (const resume of resumes) resume(new BooksUnavailable())
      return
    }
    try {
      post(thread, transactions, resumes)
    } catch {
      // One of them cannot be written down; the others are no worse for it.
      for (const [i, transaction] of transactions.entries()) {
        try {
          post(thread, [transaction], [resumes[i]!])
        } catch (error) {
          resumes[i]!(Effect.dieMessage(`a transaction cannot be written down: ${String(error)}`))
        }
      }
    }
  }

  const heard = (outcomes: ReadonlyArray<Answered>) => {
    watch.progress()
    for (const outcome of outcomes) {
      const resume = waiting[answered]
      waiting[answered++] = undefined
      resume?.(resolve(outcome))
    }
    if (answered === waiting.length || answered > 10_000) {
      waiting = waiting.slice(answered)
      answered = 0
    }
  }

  /** Starts a thread. Calls back when it is ready, and when it has ended with the reason. */
  const start = (onReady: () => void, onEnd: (reason: string) => void): Connected => {
    const { port1: port, port2 } = new MessageChannel()
    const worker = Thread.open({ file, port: port2, batchMax, patience, tailMax })
    const connected = { worker, port, sender: transactionSender(), receiver: outcomeReceiver() }
    let reason = "its thread ended"
    let opened = false
    port.on("message", (answer: Answer) => {
      const outcomes = connected.receiver.decode(answer)
      // The first message only says that the file is open. After the thread's end, those who waited have been told.
      if (opened && thread === connected) heard(outcomes)
      if (!opened) onReady()
      opened = true
    })
    worker.on("error", (error: Error) => {
      reason = error.message
    })
    // It has ended when all that it said has been heard too: under load its exit is told before its last answers.
    let open = 2
    const over = () => {
      if (--open === 0) onEnd(reason)
    }
    worker.once("exit", over)
    port.once("close", over)
    return connected
  }

  const begin = () => {
    const connected = start(() => {
      if (closing) return void connected.worker.terminate()
      thread = connected
      restartPause = restartFirst
    }, ended)
  }

  /** Whatever it had in hand may be written or not. Another thread takes its place. */
  const ended = (reason: string) => {
    thread = undefined
    tellAll(new BooksUnavailable({ maybe_written: true }))
    waiting = []
    answered = 0
    watch.stop()
    onClosed?.()
    if (closing) return
    log(Effect.logFatal(`the writer's thread ended, another is started in ${restartPause} ms`, reason))
    restart = setTimeout(begin, restartPause)
    restartPause = Math.min(2 * restartPause, restartLast)
  }

  const submit = (transaction: Transaction): Submitted =>
    Effect.async((resume) => {
      if (thread === undefined || watch.isStalled() || closing) return resume(new BooksUnavailable())
      outboxWaiting.push(resume)
      // The transactions of this turn of the event loop and of the next one go over in one message. A turn is short when there is little
      // load; under high load, a larger commit saves a sixth of every call.
      if (outbox.push(transaction) === 1) setImmediate(() => setImmediate(flush))
    })

  // The first thread must come up, or there is no writer.
  yield* Effect.async<void>((resume) => {
    let ready = false
    const connected = start(
      () => {
        ready = true
        thread = connected
        resume(Effect.void)
      },
      (reason) => (ready ? ended(reason) : resume(Effect.dieMessage(`the writer could not open ${file}: ${reason}`)))
    )
  })
  // Transactions submitted earlier are committed and answered before the thread ends, unless it answers nothing for as long as a commit may
  // take.
  yield* Effect.addFinalizer(() =>
    Effect.async<void>((resume) => {
      flush()
      closing = true
      clearTimeout(restart)
      if (thread === undefined) return resume(Effect.void)
      const { port } = thread
      watch.begin()
      onClosed = () => resume(Effect.void)
      port.postMessage(null)
    })
  )
  return submit
})
