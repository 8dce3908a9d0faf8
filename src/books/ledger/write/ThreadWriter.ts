/** The writer for a SQLite file, on a separate thread. The thread is restarted if it stops. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Duration, Effect, Runtime } from "effect"
import { MessageChannel } from "node:worker_threads"
import type { MessagePort, Worker } from "node:worker_threads"
import { RollupLagMax } from "../rows/RollupLag.ts"
import { BooksUnavailable } from "../rules/Problems.ts"
import type { Transaction } from "../rules/Transaction.ts"
import { outcomeReceiver, transactionSender } from "./Codec.ts"
import type { Answered, Receiver, Sender, Tape } from "./Codec.ts"
import * as CommitWatch from "./CommitWatch.ts"
import { batchMax, CommitLimit, patience, resolve } from "./Submitting.ts"
import type { Submitted } from "./Submitting.ts"
import * as Thread from "./Thread.ts"

/** A message to the thread: transactions that arrived close together, and the time of sending. */
export interface Submission {
  readonly now: number
  /** Encoded by `Codec.transactionSender`. */
  readonly transactions: Tape
}

/** A reply with the outcomes of the next transactions in the queue, encoded by `Codec.outcomeSender`. */
export type Answer = Tape

type Resume = (effect: Submitted) => void

/** A running thread and its connection. Each thread numbers the shared terms from 0. */
interface Connected {
  readonly worker: Worker
  readonly port: MessagePort
  readonly sender: Sender<Transaction>
  readonly receiver: Receiver<Answered>
}

/** The pause before a stopped thread is restarted, in milliseconds. It doubles from the first value to the last. */
const restartFirst = 100
const restartLast = 5_000

export const make = Effect.fnUntraced(function* (file: string) {
  // The client's layer migrates the file before the thread opens it.
  yield* SqlClient
  const commitLimit = Duration.toMillis(yield* CommitLimit)
  const tailMax = yield* RollupLagMax
  const clock = yield* Effect.clock
  const runtime = yield* Effect.runtime<never>()
  const log = (effect: Effect.Effect<void>) => void Runtime.runFork(runtime)(effect)

  /** The running thread; `undefined` during a restart. */
  let thread: Connected | undefined
  let closing = false
  /** Set while the writer is closing and waits for the thread. */
  let onClosed: (() => void) | undefined
  let restartPause = restartFirst
  let restart: NodeJS.Timeout | undefined

  let outbox: Array<Transaction> = []
  let outboxWaiting: Array<Resume> = []
  // Replies arrive in the order of the requests, so the waiting callers form a queue. (A busy `Map` would leave garbage that keeps entire calls alive
  // until the next full collection.)
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
      // The callers remain in the queue, because the replies may still arrive.
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
      // One of the transactions cannot be encoded, so they are sent one by one.
      for (const [i, transaction] of transactions.entries()) {
        try {
          post(thread, [transaction], [resumes[i]!])
        } catch (error) {
          resumes[i]!(Effect.dieMessage(`a transaction cannot be encoded: ${String(error)}`))
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

  /** Starts a thread. `onReady` is called when the thread is ready. `onEnd` is called with the reason when the thread has stopped. */
  const start = (onReady: () => void, onEnd: (reason: string) => void): Connected => {
    const { port1: port, port2 } = new MessageChannel()
    const worker = Thread.open({ file, port: port2, batchMax, patience, tailMax })
    const connected = { worker, port, sender: transactionSender(), receiver: outcomeReceiver() }
    let reason = "its thread ended"
    let opened = false
    port.on("message", (answer: Answer) => {
      const outcomes = connected.receiver.decode(answer)
      // The first message only means that the file is open. Replies from a stopped thread are ignored, because its callers have already failed.
      if (opened && thread === connected) heard(outcomes)
      if (!opened) onReady()
      opened = true
    })
    worker.on("error", (error: Error) => {
      reason = error.message
    })
    // Under load, `exit` arrives before the last replies, so the thread counts as stopped only after both `exit` and the port's `close`.
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

  /** Handles the end of a thread and starts another. The open transactions may have been written. */
  const ended = (reason: string) => {
    thread = undefined
    tellAll(new BooksUnavailable({ maybe_written: true }))
    waiting = []
    answered = 0
    watch.stop()
    onClosed?.()
    if (closing) return
    log(Effect.logFatal(`the writer's thread stopped and will be restarted in ${restartPause} ms`, reason))
    restart = setTimeout(begin, restartPause)
    restartPause = Math.min(2 * restartPause, restartLast)
  }

  const submit = (transaction: Transaction): Submitted =>
    Effect.async((resume) => {
      if (thread === undefined || watch.isStalled() || closing) return resume(new BooksUnavailable())
      outboxWaiting.push(resume)
      // One message contains the transactions of this iteration of the event loop and the next. Iterations are short while there is little load.
      // Under high load, larger commits save a sixth of the time of every call.
      if (outbox.push(transaction) === 1) setImmediate(() => setImmediate(flush))
    })

  // If the first thread does not start, the writer fails.
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
  // Earlier transactions are committed before the thread stops, unless the thread is silent for longer than a commit may take.
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
