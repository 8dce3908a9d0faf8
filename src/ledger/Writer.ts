/**
 * The one writer. Everything that changes the database is a transaction handed in here; those that wait are committed
 * together, and each caller is answered only after the commit. There is no second connection that writes.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Clock, Context, Deferred, Effect, Exit, Layer, Runtime } from "effect"
import { MessageChannel } from "node:worker_threads"
import * as Batch from "./Batch.ts"
import { outcomeReceiver, transactionSender } from "./Codec.ts"
import type { Tape } from "./Codec.ts"
import * as Thread from "./Thread.ts"
import type { Outcome, Refusal, Result, Transaction } from "./Transaction.ts"

interface Contract {
  /**
   * Commits the transaction, durably, or refuses it whole. A caller that is interrupted while it waits may find it committed
   * all the same: whoever acquires something by it must wait uninterruptibly.
   */
  readonly submit: (transaction: Transaction) => Effect.Effect<ReadonlyArray<Result>, Refusal>
}

/** The most transactions in one commit: enough to pay for an fsync many times over, little enough to keep it short. */
export const batchMax = 512

export class Writer extends Context.Tag("tollgate/ledger/Writer")<Writer, Contract>() {
  /** Over any `SqlClient`, in this thread: for embedding, tests, and databases that are not SQLite files. */
  static readonly layer = Layer.suspend(() => Layer.scoped(Writer, make))

  /** On a thread of its own over a SQLite file: an fsync then never holds up the thread that serves. */
  static readonly layerThread = (file: string) => Layer.scoped(Writer, makeThread(file))
}

// ---- over a SqlClient ---------------------------------------------------------------------------------------------------

interface Waiting {
  readonly transaction: Transaction
  readonly answer: Deferred.Deferred<Outcome>
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  let waiting: Array<Waiting> = []
  const work = yield* Effect.makeLatch()

  const ask = (asked: Batch.Ask): Effect.Effect<Batch.Rows, SqlError> =>
    asked._tag === "Query"
      ? sql.unsafe(asked.text, asked.params as Array<string>)
      : // In pieces: a statement takes only so many parameters.
        Effect.forEach(
          chunksOf(asked.rows, Math.floor(10_000 / asked.columns.length)),
          (rows) => sql.unsafe(Batch.insertText(asked, rows.length), rows.flat() as Array<string>),
          { discard: true }
        ).pipe(Effect.as([]))

  const run = Effect.fnUntraced(
    function* (transactions: ReadonlyArray<Transaction>) {
      // Others may write between two batches, so nothing is remembered.
      const body = Batch.run(transactions, yield* Clock.currentTimeMillis, new Batch.Memory())
      let step = body.next([])
      while (step.done !== true) step = body.next(yield* ask(step.value))
      return step.value
    },
    (effect) => sql.withTransaction(effect),
    Effect.orDie
  )

  const answer = (waiting: ReadonlyArray<Waiting>): Effect.Effect<void> =>
    Effect.exit(run(waiting.map(({ transaction }) => transaction))).pipe(
      Effect.flatMap((exit) => {
        if (Exit.isSuccess(exit)) {
          return Effect.forEach(waiting, (one, i) => Deferred.succeed(one.answer, exit.value[i]!), { discard: true })
        }
        // One that breaks the database's own rules must not take the others with it: each is tried by itself.
        return waiting.length > 1
          ? Effect.forEach(waiting, (one) => answer([one]), { discard: true })
          : Effect.forEach(waiting, (one) => Deferred.failCause(one.answer, exit.cause), { discard: true })
      })
    )

  let closed = false
  const take = Effect.suspend(() => {
    const batch = waiting.slice(0, batchMax)
    waiting = waiting.slice(batchMax)
    return waiting.length > 0 ? Effect.succeed(batch) : Effect.as(work.close, batch)
  })
  const answerAll: Effect.Effect<void> = Effect.flatMap(take, (batch) =>
    batch.length === 0 ? Effect.void : Effect.zipRight(answer(batch), answerAll)
  )
  // What was handed in before the end is committed and answered; whoever comes later is told.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return answerAll
    })
  )
  // Only the wait for work can be interrupted, not the work.
  yield* Effect.uninterruptibleMask((restore) => Effect.zipRight(restore(work.await), answerAll)).pipe(
    Effect.forever,
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )

  const submit = Effect.fnUntraced(function* (transaction: Transaction) {
    if (closed) return yield* Effect.dieMessage("the writer stopped: it is closed")
    const answer = yield* Deferred.make<Outcome>()
    waiting.push({ transaction, answer })
    yield* work.open
    return yield* resolve(yield* Deferred.await(answer))
  })

  return { submit } satisfies Contract
})

const chunksOf = <A>(items: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))

const resolve = (outcome: Outcome): Effect.Effect<ReadonlyArray<Result>, Refusal> =>
  outcome._tag === "Committed" ? Effect.succeed(outcome.results) : Effect.fail(outcome.refusal)

// ---- on a thread --------------------------------------------------------------------------------------------------------

/** What goes over to the thread: transactions that came in one shortly after the other, and the time it was then. */
export interface Submission {
  readonly now: number
  /** By `Codec.transactionSender`. */
  readonly transactions: Tape
}

/** What comes back: the outcomes of the next transactions in line, by `Codec.outcomeSender`. */
export type Answer = Tape

const makeThread = Effect.fnUntraced(function* (file: string) {
  // Who provides the client has migrated the file; the thread opens it only then.
  yield* SqlClient
  const clock = yield* Effect.clock
  const runtime = yield* Effect.runtime<never>()
  const { port1: port, port2 } = new MessageChannel()
  const worker = yield* Effect.sync(() =>
    Thread.open({
      workerData: { file, port: port2, batchMax },
      transferList: [port2],
      // Nothing of a batch outlives it: what serves well as room for young objects of the process would be taken here for nothing.
      resourceLimits: { maxYoungGenerationSizeMb: 12 }
    })
  )

  const { encode } = transactionSender()
  const { decode } = outcomeReceiver()
  type Resume = (effect: Effect.Effect<ReadonlyArray<Result>, Refusal>) => void
  // Answers come in the order of the questions, so those who wait stand in a line. (A `Map` would do, but what a busy one
  // leaves behind keeps whole calls alive until the next full collection.)
  let waiting: Array<Resume | undefined> = []
  let answered = 0
  let outbox: Array<Transaction> = []
  let lost: string | undefined

  const flush = () => {
    if (outbox.length === 0) return
    const transactions = outbox
    outbox = []
    try {
      const submission: Submission = {
        now: clock.unsafeCurrentTimeMillis(),
        transactions: encode(transactions)
      }
      port.postMessage(submission)
    } catch (error) {
      // Answers come in the order of the questions: with one that cannot be asked, nothing after it could be told apart.
      lose(`a transaction cannot be written down: ${String(error)}`)
      void worker.terminate()
    }
  }

  const lose = (reason: string) => {
    lost ??= reason
    for (const resume of waiting.splice(0)) resume?.(Effect.dieMessage(`the writer stopped: ${reason}`))
    answered = 0
  }

  port.on("message", (outcomes: Answer) => {
    for (const outcome of decode(outcomes)) {
      const resume = waiting[answered]
      waiting[answered++] = undefined
      resume?.(outcome._tag === "Broken" ? Effect.dieMessage(outcome.reason) : resolve(outcome))
    }
    if (answered === waiting.length || answered > 10_000) {
      waiting = waiting.slice(answered)
      answered = 0
    }
  })
  worker.on("error", (error: Error) => {
    Runtime.runFork(runtime)(Effect.logFatal("the writer's thread failed", error.message))
    lose(error.message)
  })
  // Waited for from the beginning: one that fails may be over before anybody closes it.
  const ended = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      lose("its thread ended")
      resolve()
    })
  })

  const submit = (transaction: Transaction): Effect.Effect<ReadonlyArray<Result>, Refusal> =>
    Effect.async((resume) => {
      if (lost !== undefined) return resume(Effect.dieMessage(`the writer stopped: ${lost}`))
      waiting.push(resume)
      // What this turn of the loop and the next one bring goes over in one message: a turn is short where little is going on, and
      // where much is, a commit for more of them saves a sixth of every call.
      if (outbox.push(transaction) === 1) setImmediate(() => setImmediate(flush))
    })

  yield* Effect.async<void>((resume) => {
    const settle = () => resume(Effect.void)
    port.once("message", settle)
    worker.once("error", settle)
  })
  if (lost !== undefined) return yield* Effect.dieMessage(`the writer could not open ${file}: ${lost}`)
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      // What was handed in before is committed and answered before the thread ends.
      flush()
      port.postMessage(null)
      await ended
    })
  )
  return { submit } satisfies Contract
})
