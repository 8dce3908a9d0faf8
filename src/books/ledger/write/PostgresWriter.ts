/**
 * Writes a node's transactions to a PostgreSQL database that other nodes also write to. Transactions that arrive while a batch commits form the next
 * batch. Each node opens a few writing connections and runs one batch at a time on each. A batch locks the rows that it touches
 * (`ConcurrentBatch`), so batches can run concurrently on one node or on several.
 *
 * Where the specification is silent:
 * - If a batch conflicts with another (a deadlock, a serialization failure, or both opening the same account), it is rolled back and retried as a
 *   whole.
 * - If the connection closes before COMMIT is sent, nothing was written. If it closes later, the node opens another connection and asks PostgreSQL
 *   for the transaction's outcome. A transaction that PostgreSQL reports as committed counts as possibly written, so its callers get
 *   `maybe_written`. The gate retries settlements, because they are idempotent.
 * - A stalled batch might still commit reservations for calls that have already been refused. Until the batch ends, settlements of these calls fail.
 *   Otherwise, a settlement would not find the reservation, and the reservation would never be released.
 */
import { Duration, Effect, Layer, Runtime } from "effect"
import type { Client } from "pg"
import { Postgres } from "../../../storage/postgres/Client.ts"
import { Groups } from "../../../storage/postgres/Group.ts"
import { isConnectionFault, isDuplicate, isLostRace } from "../../../storage/postgres/Faults.ts"
import type { SqlEffect, Insert, Change, Rows } from "../rows/SqlEffect.ts"
import * as Batch from "./Batch.ts"
import * as CommitWatch from "./CommitWatch.ts"
import { BooksUnavailable } from "../rules/Problems.ts"
import { RowCache, LeaseLost, quoted } from "./ConcurrentBatch.ts"
import { isStorageFault } from "./DatabaseFault.ts"
import { RollupLagMax } from "../rows/RollupLag.ts"
import type { Outcome, Transaction } from "../rules/Transaction.ts"
import { batchMax, CommitLimit, resolve } from "./Submitting.ts"
import type { Submitted } from "./Submitting.ts"
import { watched, Writer } from "./Writer.ts"

type Resume = (effect: Submitted) => void

interface QueuedTransaction {
  readonly transaction: Transaction
  readonly resume: Resume
}

/** A writing connection and the cache for its batches. */
interface Lane {
  client: Client | undefined
  groups: Groups | undefined
  memory: Batch.BatchCache
  batch: ReadonlyArray<QueuedTransaction>
  /** The calls that a stalled batch might still reserve. */
  late: ReadonlySet<string>
}

/** The pause between connection attempts, in milliseconds. */
const reconnectPause = 200

/** The time that the driver waits beyond the server's own timeout, in milliseconds. */
const graceMillis = 1_000

/**
 * The maximum time that a node may leave a transaction idle, as a fraction of the commit limit. After that, the server aborts the transaction of the
 * frozen node and so releases its locks before other batches reach their limit.
 */
const idleRatioMax = 0.5

/**
 * Makes the server plan each batch statement only once per connection. By default, it plans most of them at every execution, which took two fifths of
 * the server's work. A cached plan must remain efficient as the tables grow, so these settings make it look up single rows in an index.
 */
const planning = [
  "plan_cache_mode=force_generic_plan",
  "enable_seqscan=off",
  "enable_hashjoin=off",
  "enable_mergejoin=off"
]
  .map((setting) => `-c ${setting}`)
  .join(" ")

/** While a batch runs, an idle connection starts another only if at least this many transactions are queued. */
const concurrentMin = 32

/**
 * After a batch of at least `gatherMin` transactions starts, the next one starts at least `gatherMillis` later, unless it is full before then. Under
 * load, the pause makes batches fewer and larger, and therefore cheaper. With few callers, there is no pause.
 */
const gatherMin = 8
const gatherMillis = 3

/** The maximum number of retries after a conflict with another batch, and after inserting a row that another batch has just inserted. */
const racesMax = 20
const duplicatesMax = 2

/** The connection closed before the server confirmed a commit, so the commit might have succeeded. */
class MaybeWritten extends Error {
  constructor() {
    super("a commit was not confirmed")
  }
}

const make = Effect.gen(function* () {
  const { connect, settings } = yield* Postgres
  const limit = Duration.toMillis(yield* CommitLimit)
  const tailMax = yield* RollupLagMax
  const clock = yield* Effect.clock
  const runtime = yield* Effect.runtime<never>()
  const log = (effect: Effect.Effect<void>) => void Runtime.runFork(runtime)(effect)

  let waiting: Array<QueuedTransaction> = []
  let closed = false
  let known = new RowCache()
  let texts: Texts | undefined
  const lanes: ReadonlyArray<Lane> = Array.from({ length: settings.writers }, () => ({
    client: undefined,
    groups: undefined,
    memory: new Batch.BatchCache(tailMax, known),
    batch: [],
    late: noCalls
  }))
  const idle: Array<Lane> = [...lanes]
  const isBusy = () => waiting.length > 0 || idle.length < lanes.length

  const watch = CommitWatch.make({
    limit,
    isAnyoneWaiting: isBusy,
    onStall: () => {
      // Running batches continue and might still be committed.
      for (const lane of lanes) {
        lane.late = reservedBy(lane.batch)
        for (const { resume } of lane.batch) resume(new BooksUnavailable({ maybe_written: true }))
      }
      for (const { resume } of waiting) resume(new BooksUnavailable())
      waiting = []
    },
    log
  })

  /** Whether the last batch failed because of the database or a lost lease. */
  let down = false
  const setDown = (nowDown: boolean, why?: unknown) => {
    if (nowDown === down) return
    down = nowDown
    log(
      down
        ? Effect.logError("cannot write to the database", why instanceof Error ? why.message : String(why))
        : Effect.logInfo("database writes have recovered")
    )
  }

  const clientOf = async (lane: Lane): Promise<Client> => {
    if (lane.client !== undefined) return lane.client
    const client = connect({
      statement_timeout: limit,
      options: planning,
      idle_in_transaction_session_timeout: Math.ceil(limit * idleRatioMax),
      connectionTimeoutMillis: limit,
      // If the server fails to report its own timeout, the driver closes the connection.
      query_timeout: limit + graceMillis
    })
    client.on("error", () => {
      if (lane.client === client) lane.client = undefined
    })
    await client.connect()
    lane.client = client
    lane.groups = new Groups(client)
    return client
  }

  const forget = (lane: Lane) => {
    const { client } = lane
    lane.client = undefined
    client?.end().catch(() => {})
  }

  const attempt = async (lane: Lane, transactions: ReadonlyArray<Transaction>): Promise<ReadonlyArray<Outcome>> => {
    const client = await clientOf(lane)
    if (lane.memory.known !== known) lane.memory = new Batch.BatchCache(tailMax, known)
    texts ??= new Texts(await readTypes(client))
    const pipe = new Pipe(lane.groups!, texts)
    try {
      const body = Batch.run(transactions, clock.unsafeCurrentTimeMillis(), lane.memory)
      let step = body.next([])
      while (step.done !== true) step = body.next(await pipe.run(step.value))
      await pipe.commit(async (id, error) => {
        forget(lane)
        // The server might have committed in spite of the error.
        throw (await mayBeCommitted(id, error)) ? new MaybeWritten() : error
      })
      lane.memory.committed()
      return step.value
    } catch (error) {
      lane.memory.forget()
      if (isConnectionFault(error)) {
        // Drop the cache, because the next connection can reach another server that lacks the last commits.
        known = new RowCache()
        forget(lane)
      } else if (lane.client === client) {
        await client.query("ROLLBACK").catch(() => forget(lane))
      }
      throw error
    }
  }

  /**
   * Returns whether an unconfirmed transaction might have been committed. Polls until the server reports an outcome, and throws `why` if the writer
   * closes first. The status "committed" is no proof, because a crashed server can reuse transaction ids that it had not flushed.
   */
  const mayBeCommitted = async (id: string, why: unknown): Promise<boolean> => {
    log(Effect.logWarning("a commit was not confirmed; looking up its outcome", String(why)))
    for (;;) {
      const client = connect({ connectionTimeoutMillis: limit, query_timeout: limit })
      client.on("error", () => {})
      try {
        await client.connect()
        const { rows } = await client.query<{ status: string | null }>("SELECT pg_xact_status(?::xid8) AS status", [id])
        const status = rows[0]?.status
        if (status !== "in progress") return status === "committed"
      } catch {
        // The loop polls again.
      } finally {
        client.end().catch(() => {})
      }
      if (closed) throw why
      await pause(reconnectPause)
    }
  }

  const commitBatch = async (lane: Lane, batch: ReadonlyArray<QueuedTransaction>): Promise<void> => {
    for (let races = 0; ; races++) {
      try {
        const outcomes = await attempt(
          lane,
          batch.map(({ transaction }) => transaction)
        )
        setDown(false)
        for (const [i, { resume }] of batch.entries()) resume(resolve(outcomes[i]!))
        return
      } catch (error) {
        if (races < (isLostRace(error) ? racesMax : isDuplicate(error) ? duplicatesMax : 0)) continue
        if (isStorageFault(error) || error instanceof LeaseLost || error instanceof MaybeWritten) {
          setDown(true, error)
          const maybe_written = error instanceof MaybeWritten
          for (const { resume } of batch) resume(new BooksUnavailable({ maybe_written }))
          return
        }
        // A transaction that violates a database constraint must not fail the others, so run each one alone.
        if (batch.length > 1) for (const one of batch) await commitBatch(lane, [one])
        else batch[0]!.resume(Effect.die(error))
        return
      }
    }
  }

  const processQueue = async (lane: Lane): Promise<void> => {
    while (waiting.length > 0) {
      const early = gatherUntil - performance.now()
      if (early > 0 && waiting.length < batchMax) {
        await pause(early)
        continue
      }
      // A long queue is divided among the idle lanes, so that one batch can be built while another commits.
      const share = waiting.length < 2 * concurrentMin ? waiting.length : Math.ceil(waiting.length / (idle.length + 1))
      const size = Math.min(share, batchMax)
      gatherUntil = size < gatherMin ? 0 : performance.now() + gatherMillis
      lane.batch = waiting.slice(0, size)
      waiting = waiting.slice(size)
      await commitBatch(lane, lane.batch)
      lane.batch = []
      lane.late = noCalls
      watch.progress()
    }
    idle.push(lane)
    onIdle?.()
  }

  const start = () => {
    scheduled = false
    while (waiting.length > 0 && idle.length > 0) {
      if (idle.length < lanes.length && waiting.length < concurrentMin) return
      void processQueue(idle.pop()!)
    }
  }
  let gatherUntil = 0
  let scheduled = false
  let onIdle: (() => void) | undefined

  // The writer fails to start if it cannot connect.
  yield* Effect.orDie(Effect.tryPromise(() => clientOf(lanes[0]!)))
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      closed = true
      start()
      await new Promise<void>((done) => {
        onIdle = () => isBusy() || done()
        onIdle()
      })
      watch.stop()
      await Promise.all(lanes.map(({ client }) => client?.end().catch(() => {})))
    })
  )

  const isEarly = ({ postings }: Transaction): boolean =>
    lanes.some(
      ({ late }) => late.size > 0 && postings.some((posting) => posting._tag === "Settle" && late.has(posting.call))
    )

  return (transaction: Transaction): Submitted =>
    Effect.async((resume) => {
      if (closed || watch.isStalled() || isEarly(transaction)) return resume(new BooksUnavailable())
      watch.begin()
      waiting.push({ transaction, resume })
      if (scheduled) return
      scheduled = true
      setImmediate(start)
    })
})

export const layer = Layer.suspend(() => Layer.scoped(Writer, Effect.map(make, watched)))

const noCalls: ReadonlySet<string> = new Set()

const reservedBy = (batch: ReadonlyArray<QueuedTransaction>): ReadonlySet<string> =>
  new Set(
    batch.flatMap(({ transaction }) =>
      transaction.postings.flatMap((posting) => (posting._tag === "Reserve" ? [posting.call] : []))
    )
  )

const pause = (millis: number) => new Promise<void>((done) => setTimeout(done, millis))

/** Sends a batch's statements over a connection. Statements without a result are sent together with the next query or the commit. */
class Pipe {
  readonly #groups: Groups
  readonly #texts: Texts
  /** The transaction id, once the server has sent it. */
  #id: string | undefined

  constructor(groups: Groups, texts: Texts) {
    this.#groups = groups
    this.#texts = texts
    groups.clear()
    groups.add("BEGIN", [])
    groups.add("SELECT pg_current_xact_id()::text AS id", [])
  }

  async #send(): Promise<ReadonlyArray<Rows>> {
    const found = await this.#groups.send()
    this.#id ??= (found[1] as ReadonlyArray<{ readonly id: string }>)[0]!.id
    return found
  }

  /** Commits, or fails with a statement's error. `onLost` runs if the connection fails during COMMIT. */
  async commit(onLost: (id: string, error: unknown) => Promise<void>): Promise<void> {
    // The id is required to look up the outcome.
    if (this.#id === undefined) await this.#send()
    this.#groups.add("COMMIT", [])
    try {
      await this.#send()
    } catch (error) {
      if (!isConnectionFault(error)) throw error
      await onLost(this.#id!, error)
    }
  }

  async run(asked: SqlEffect): Promise<Rows> {
    switch (asked._tag) {
      case "Query":
        this.#groups.add(asked.text, asked.params)
        return (await this.#send()).at(-1)!
      case "All":
        for (const { params, text } of asked.queries) this.#groups.add(text, params)
        return (await this.#send()).slice(-asked.queries.length)
      case "Run":
        this.#groups.add(asked.text, asked.params)
        return []
      case "Insert":
        this.#groups.add(this.#texts.of(asked), lists(asked.columns, asked.rows))
        return []
      case "Change":
        this.#groups.add(this.#texts.of(asked), lists([...asked.columns, asked.key], asked.rows))
        return []
    }
  }
}

/** Caches the SQL of inserts and updates. */
class Texts {
  readonly #types: ColumnTypes
  readonly #texts = new Map<string, string>()

  constructor(types: ColumnTypes) {
    this.#types = types
  }

  /** Returns the SQL. The statements of a table and operation differ only in their columns, and their number of columns identifies them. */
  of(asked: Insert | Change): string {
    const name = `${asked._tag} ${asked.table} ${asked.columns.length}`
    let text = this.#texts.get(name)
    if (text === undefined) {
      text = asked._tag === "Insert" ? insertAll(asked, this.#types) : changeAll(asked, this.#types)
      this.#texts.set(name, text)
    }
    return text
  }
}

type ColumnTypes = ReadonlyMap<string, ReadonlyMap<string, string>>

const selectTypes = `SELECT c.relname AS table, a.attname AS column, format_type(a.atttypid, NULL) AS type
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relname LIKE 'tollgate%' AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND pg_table_is_visible(c.oid)`

const readTypes = async (client: Client): Promise<ColumnTypes> => {
  const tables = new Map<string, Map<string, string>>()
  const { rows } = await client.query<{ table: string; column: string; type: string }>(selectTypes)
  for (const { column, table, type } of rows) {
    let columns = tables.get(table)
    if (columns === undefined) tables.set(table, (columns = new Map()))
    columns.set(column, type)
  }
  return tables
}

/** Converts the rows to one array literal per column. PostgreSQL can unnest this form fastest. */
const lists = (columns: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<unknown>>): ReadonlyArray<string> =>
  columns.map((_, i) => {
    let list = "{"
    for (const row of rows) list += `${list.length > 1 ? "," : ""}${literal(row[i])}`
    return `${list}}`
  })

const literal = (value: unknown): string => {
  if (typeof value === "string") return quoted(value)
  if (value === null || value === undefined) return "NULL"
  // A backslash is escaped within an array.
  return value instanceof Uint8Array ? `"\\\\x${Buffer.from(value).toString("hex")}"` : String(value)
}

const unnest = (table: string, columns: ReadonlyArray<string>, types: ColumnTypes): string =>
  `unnest(${columns.map((column) => `?::${types.get(table)!.get(column)!}[]`).join(", ")}) AS v (${columns.join(", ")})`

const insertAll = ({ columns, conflict, table }: Insert, types: ColumnTypes): string =>
  `INSERT INTO ${table} (${columns.join(", ")}) SELECT * FROM ${unnest(table, columns, types)}` +
  (conflict === undefined ? "" : ` ON CONFLICT ${conflict}`)

const changeAll = ({ columns, key, table }: Change, types: ColumnTypes): string =>
  `UPDATE ${table} t SET ${columns.map((column) => `${column} = v.${column}`).join(", ")}
    FROM ${unnest(table, [...columns, key], types)} WHERE t.${key} = v.${key}`
