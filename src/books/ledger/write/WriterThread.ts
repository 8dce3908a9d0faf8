/**
 * The writer's thread. It runs the received transactions in batches on its connection and replies after each commit. The code is synchronous, so
 * nothing else can run on this thread between BEGIN and COMMIT.
 */
import Sqlite from "better-sqlite3"
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import { changeText, insertText } from "../rows/SqlEffect.ts"
import type { SqlEffect, Insert, Rows } from "../rows/SqlEffect.ts"
import * as Batch from "./Batch.ts"
import { outcomeSender, transactionReceiver } from "./Codec.ts"
import type { WriterOutcome } from "./Codec.ts"
import { isStorageFault } from "./DatabaseFault.ts"
import * as Entrance from "./Entrance.ts"
import type { Submitted } from "./Entrance.ts"
import type { Start, Task } from "./Thread.ts"
import type { Outcome, Transaction } from "../rules/Transaction.ts"
import type { Answer, Submission } from "./QueuedWriter.ts"

// The thread waits for its task, because it can start before its file is known.
Atomics.wait((workerData as Start).signal, 0, 0)
const { batchMax, door, file, patience, port, tailMax } = receiveMessageOnPort(parentPort!)!.message as Task

const db = new Sqlite(file, { timeout: patience })
db.pragma("journal_mode = WAL")
// In WAL mode, the default of NORMAL can lose the last commits in a power failure.
db.pragma("synchronous = FULL")
if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("SQLite did not take synchronous = FULL")
// The WAL is checkpointed at 16 MB. Checkpoints at this size keep the WAL small and cost little.
db.pragma("wal_autocheckpoint = 4000")

const { decode } = transactionReceiver()
const { encode } = outcomeSender()

const prepared = new Map<string, Sqlite.Statement>()
/** The number of rows per insert statement. Inserting this many rows at once takes a third less time than one by one. */
const rowsAtOnce = 8
/** The insert statements by table. All inserts into a table have the same columns. */
const inserts = new Map<string, { readonly one: Sqlite.Statement; readonly several: Sqlite.Statement }>()

const prepare = (text: string): Sqlite.Statement => {
  let statement = prepared.get(text)
  if (statement === undefined) prepared.set(text, (statement = db.prepare(text)))
  return statement
}

const runEffect = (asked: SqlEffect): Rows => {
  if (asked._tag === "Query" || asked._tag === "Run") {
    const statement = prepare(asked.text)
    if (statement.reader) return statement.all(asked.params)
    statement.run(asked.params)
    return []
  }
  if (asked._tag === "All") return asked.queries.map(runEffect)
  if (asked._tag === "Change") {
    const statement = prepare(changeText(asked))
    for (const row of asked.rows) statement.run(row)
    return []
  }
  insertRows(asked)
  return []
}

/** Inserts rows with prepared statements, at half the cost of unpacking a JSON parameter in SQL. */
const insertRows = (insert: Insert): void => {
  const { rows, table } = insert
  let statements = inserts.get(table)
  if (statements === undefined) {
    statements = { one: db.prepare(insertText(insert, 1)), several: db.prepare(insertText(insert, rowsAtOnce)) }
    inserts.set(table, statements)
  }
  let i = 0
  for (; i + rowsAtOnce <= rows.length; i += rowsAtOnce) {
    const params: Array<unknown> = []
    for (let j = i; j < i + rowsAtOnce; j++) for (const value of rows[j]!) params.push(value)
    statements.several.run(params)
  }
  for (; i < rows.length; i++) statements.one.run(rows[i]!)
}

const memory = new Batch.BatchCache(tailMax)
/** Reads a version that changes with every commit by another connection, such as an operator's command in another process. */
const version = db.prepare("PRAGMA data_version").pluck()
let versionSeen: unknown

const commit = (transactions: ReadonlyArray<Transaction>, now: number): ReadonlyArray<Outcome> => {
  // IMMEDIATE acquires the write lock first, so cached rows cannot change before they are written.
  prepare("BEGIN IMMEDIATE").run()
  try {
    const versionNow = version.get()
    if (versionNow !== versionSeen) memory.forget()
    versionSeen = versionNow
    const body = Batch.run(transactions, now, memory)
    let step = body.next([])
    while (step.done !== true) step = body.next(runEffect(step.value))
    end()
    return step.value
  } catch (error) {
    memory.forget()
    if (db.inTransaction) prepare("ROLLBACK").run()
    throw error
  }
}

/** The disk failed during the commit. The batch might be in the WAL and reappear after a restart. */
class CommitFailed extends Error {}

const end = (): void => {
  try {
    prepare("COMMIT").run()
  } catch (error) {
    throw isStorageFault(error, "commit") ? new CommitFailed("the commit failed", { cause: error }) : error
  }
}

/** Whether the last batch failed because of the database. */
let down = false

/**
 * Records whether the database is down. Batches normally wait for another process's lock. After a failure, they do not wait until one has been
 * committed.
 */
const setDown = (nowDown: boolean): void => {
  if (nowDown === down) return
  down = nowDown
  db.pragma(`busy_timeout = ${down ? 0 : patience}`)
}

const answer = (transactions: ReadonlyArray<Transaction>, now: number): ReadonlyArray<WriterOutcome> => {
  try {
    const outcomes = commit(transactions, now)
    setDown(false)
    return outcomes
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (isStorageFault(error)) {
      setDown(true)
      const maybe_written = error instanceof CommitFailed
      return transactions.map(() => ({ _tag: "Unavailable", reason, maybe_written }))
    }
    // A transaction that violates a database constraint must not fail the others, so run each one alone.
    return transactions.length > 1
      ? transactions.flatMap((transaction) => answer([transaction], now))
      : [{ _tag: "Broken", reason }]
  }
}

/** The queued transactions, in order of arrival. */
let queue: Array<Submitted> = []
let length = 0
let last = false
let isScheduled = false

const reply: Submitted["reply"] = (outcomes) => port.postMessage(encode(outcomes) satisfies Answer)

const enqueue = (one: Submitted): void => {
  queue.push(one)
  length += one.transactions.length
}

/** Queues a message from this process. After `null`, the thread ends once the queue is empty. */
const take = (submission: Submission | null): void => {
  if (submission === null) last = true
  else enqueue({ now: submission.now, transactions: decode(submission.transactions), reply })
}

/** Queues messages that have arrived from this process until the next batch is full. */
const takeMore = (): void => {
  for (;;) {
    if (length >= batchMax || last) return
    const more = receiveMessageOnPort(port) as { readonly message: Submission | null } | undefined
    if (more === undefined) return
    take(more.message)
  }
}

const nextBatch = (): ReadonlyArray<Submitted> => {
  let [count, end] = [0, 0]
  while (end < queue.length && count < batchMax) count += queue[end++]!.transactions.length
  const taken = queue.slice(0, end)
  queue = queue.slice(end)
  length -= count
  return taken
}

const commitNext = (): void => {
  takeMore()
  const taken = nextBatch()
  if (taken.length > 0) {
    const transactions = taken.length === 1 ? taken[0]!.transactions : taken.flatMap((one) => one.transactions)
    const outcomes = answer(transactions, Math.max(...taken.map(({ now }) => now)))
    const bySender = new Map<Submitted["reply"], Array<WriterOutcome>>()
    let from = 0
    for (const one of taken) {
      const own = outcomes.slice(from, (from += one.transactions.length))
      const others = bySender.get(one.reply)
      if (others === undefined) bySender.set(one.reply, own)
      else others.push(...own)
    }
    for (const [reply, own] of bySender) reply(own)
  }
  if (queue.length > 0) schedule()
  else if (last) close()
}

/** Commits after this iteration of the event loop has read from all sockets, so that one batch contains transactions from all processes. */
const schedule = (): void => {
  if (isScheduled) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    commitNext()
  })
}

const entrance =
  door === undefined
    ? undefined
    : Entrance.open(door, (one) => {
        enqueue(one)
        schedule()
      })

const close = (): void => {
  entrance?.close()
  db.close()
  port.close()
}

port.on("message", (submission: Submission | null) => {
  take(submission)
  if (entrance === undefined) commitNext()
  else schedule()
})
const ready = (): void => reply([])
if (entrance === undefined) ready()
else entrance.opened(ready)
