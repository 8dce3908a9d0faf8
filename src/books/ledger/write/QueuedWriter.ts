/**
 * The queue in front of a writer that runs elsewhere, on a thread or in another process. Transactions are encoded and sent over a link, and their
 * callers wait for the outcomes. If the link ends, another one is opened.
 */
import { Duration, Effect, Runtime } from "effect"
import { BooksUnavailable } from "../rules/Problems.ts"
import type { Transaction } from "../rules/Transaction.ts"
import { outcomeReceiver, transactionSender } from "./Codec.ts"
import type { WriterOutcome, Receiver, Sender, Tape } from "./Codec.ts"
import * as CommitWatch from "./CommitWatch.ts"
import { CommitLimit, resolve } from "./Submitting.ts"
import type { Submitted } from "./Submitting.ts"

/** A message to the writer: transactions that arrived close together, and the time of sending. */
export interface Submission {
  readonly now: number
  readonly transactions: Tape
}

/** A reply with the outcomes of the next transactions in the queue, encoded by `Codec.outcomeSender`. */
export type Answer = Tape

/** A connection to the writer. */
export interface Link {
  readonly send: (submission: Submission) => void
  /** Asks the writer to reply to all submissions and then to end the link. */
  readonly close: () => void
  /** Ends the link immediately. */
  readonly abort: () => void
}

export interface LinkEvents {
  /** Called for each reply. The first reply contains no outcomes and means that the writer is ready. */
  readonly onAnswer: (answer: Answer) => void
  /** Called once, after the last reply. The reason is for the log. */
  readonly onEnd: (reason: string) => void
}

export interface LinkOptions {
  readonly open: (events: LinkEvents) => Link
  /** The writer's file or socket, for the error if the first link does not open. */
  readonly target: string
  /** Returns the log message for a link that ended and will be reopened in `pause` milliseconds. */
  readonly ended: (pause: number) => string
}

type Resume = (effect: Submitted) => void

/** A link with its codec. Each link numbers the shared terms from 0. */
interface OpenLink extends Link {
  readonly sender: Sender<Transaction>
  readonly receiver: Receiver<WriterOutcome>
}

/** The pause before a link is reopened, in milliseconds. It doubles from the first value to the last. */
const restartFirst = 100
const restartLast = 5_000

/** Opens a link and returns `submit`. Dies if the first link cannot be opened. */
export const make = Effect.fnUntraced(function* ({ ended: endedText, open, target }: LinkOptions) {
  const commitLimit = Duration.toMillis(yield* CommitLimit)
  const clock = yield* Effect.clock
  const runtime = yield* Effect.runtime<never>()
  const log = (effect: Effect.Effect<void>) => void Runtime.runFork(runtime)(effect)

  /** The open link; `undefined` while a link is being reopened. */
  let link: OpenLink | undefined
  let closing = false
  /** Set while the writer is closing and waits for the link's end. */
  let onClosed: (() => void) | undefined
  let restartPause = restartFirst
  let restart: NodeJS.Timeout | undefined

  let outbox: Array<Transaction> = []
  let outboxWaiting: Array<Resume> = []
  // Replies arrive in the order of the requests, so the waiting callers form a queue. A busy `Map` would leave garbage that keeps entire calls alive
  // until the next full collection.
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
      // The callers keep their places in the queue, because their replies might still arrive.
      tellAll(new BooksUnavailable({ maybe_written: true }))
      if (onClosed === undefined) return
      link?.abort()
      onClosed()
    },
    log
  })

  const post = (
    { send, sender }: OpenLink,
    transactions: ReadonlyArray<Transaction>,
    resumes: ReadonlyArray<Resume>
  ) => {
    send({ now: clock.unsafeCurrentTimeMillis(), transactions: sender.encode(transactions) })
    watch.begin()
    for (const resume of resumes) waiting.push(resume)
  }

  const flush = () => {
    if (outbox.length === 0) return
    const [transactions, resumes] = [outbox, outboxWaiting]
    outbox = []
    outboxWaiting = []
    if (link === undefined) {
      for (const resume of resumes) resume(new BooksUnavailable())
      return
    }
    try {
      post(link, transactions, resumes)
    } catch {
      // One of the transactions cannot be encoded, so send them one by one.
      for (const [i, transaction] of transactions.entries()) {
        try {
          post(link, [transaction], [resumes[i]!])
        } catch (error) {
          resumes[i]!(Effect.dieMessage(`a transaction cannot be encoded: ${String(error)}`))
        }
      }
    }
  }

  const handleOutcomes = (outcomes: ReadonlyArray<WriterOutcome>) => {
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

  /** Opens a link. `onReady` is called when the writer is ready, and `onEnd` with the reason when the link has ended. */
  const start = (onReady: () => void, onEnd: (reason: string) => void): OpenLink => {
    const receiver = outcomeReceiver()
    let opened = false
    const opening = open({
      onAnswer: (answer) => {
        const outcomes = receiver.decode(answer)
        // Ignore replies over a link that has ended, because its callers have already failed.
        if (opened && link === connected) handleOutcomes(outcomes)
        if (!opened) onReady()
        opened = true
      },
      onEnd
    })
    const connected: OpenLink = { ...opening, sender: transactionSender(), receiver }
    return connected
  }

  const begin = () => {
    const connected = start(() => {
      if (closing) return connected.abort()
      link = connected
      restartPause = restartFirst
    }, ended)
  }

  /** Handles the end of a link. Its pending transactions might have been written. Unless closing, opens another link after a pause. */
  const ended = (reason: string) => {
    link = undefined
    tellAll(new BooksUnavailable({ maybe_written: true }))
    waiting = []
    answered = 0
    watch.stop()
    onClosed?.()
    if (closing) return
    log(Effect.logFatal(endedText(restartPause), reason))
    restart = setTimeout(begin, restartPause)
    restartPause = Math.min(2 * restartPause, restartLast)
  }

  const submit = (transaction: Transaction): Submitted =>
    Effect.async((resume) => {
      if (link === undefined || watch.isStalled() || closing) return resume(new BooksUnavailable())
      outboxWaiting.push(resume)
      // One message contains the transactions of two event loop iterations. Iterations are short under low load.
      // Under high load, larger commits save a sixth of the time of every call.
      if (outbox.push(transaction) === 1) setImmediate(() => setImmediate(flush))
    })

  yield* Effect.async<void>((resume) => {
    let ready = false
    const connected = start(
      () => {
        ready = true
        link = connected
        resume(Effect.void)
      },
      (reason) => (ready ? ended(reason) : resume(Effect.dieMessage(`the writer could not open ${target}: ${reason}`)))
    )
  })
  // Earlier transactions are committed before the link ends, unless the writer is silent for longer than the commit limit.
  yield* Effect.addFinalizer(() =>
    Effect.async<void>((resume) => {
      flush()
      closing = true
      clearTimeout(restart)
      if (link === undefined) return resume(Effect.void)
      const { close } = link
      watch.begin()
      onClosed = () => resume(Effect.void)
      close()
    })
  )
  return submit
})
