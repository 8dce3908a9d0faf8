/**
 * The writer of a node over PostgreSQL, where other nodes write too. What comes in while a batch commits forms the next one. A few connections
 * each have a batch at a time; what a batch touches is locked (`ConcurrentBatch`), so those of one node and of many come out alike.
 *
 * Where the specification is silent:
 * - A batch that lost against another (deadlock, serialization, an account that both open) is run again, whole; nothing of it was written.
 * - Where the connection ends before PostgreSQL was told to commit, nothing was written. Where it ends behind that, PostgreSQL is asked, over
 *   another connection, what became of the transaction; until it says so, everything is refused. Unless it was rolled back, it may have been
 *   written: settlements are handed in again, which changes nothing where they were, and others are refused so.
 * - A batch that stalls may still reserve calls that were refused meanwhile. Such a call is not settled on another connection before the
 *   batch is over: the settlement would find no reservation, and the reservation would stay.
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
import { Known, LeaseLost, quoted } from "./ConcurrentBatch.ts"
import { isStorageFault } from "./DatabaseFault.ts"
import { RollupLagMax } from "../rows/RollupLag.ts"
import type { Outcome, Transaction } from "../rules/Transaction.ts"
import { batchMax, CommitLimit, resolve } from "./Submitting.ts"
import type { Submitted } from "./Submitting.ts"
import { watched, Writer } from "./Writer.ts"

type Resume = (effect: Submitted) => void

interface Waiting {
  readonly transaction: Transaction
  readonly resume: Resume
}

/** A connection that writes, and what its batches have left behind that stays true. */
interface Lane {
  client: Client | undefined
  /** Of the client. */
  groups: Groups | undefined
  memory: Batch.Memory
  batch: ReadonlyArray<Waiting>
  /** The calls that a batch which has stalled may still reserve. */
  late: ReadonlySet<string>
}

/** The pause before a connection is tried again, in milliseconds. */
const reconnectPause = 200

/** How much longer than the server a silent connection is given, in milliseconds. */
const graceMillis = 1_000

/**
 * How much of the limit a node may be silent in the middle of a batch. Beyond it the server takes the node to be frozen and lets go of what
 * the batch has locked, before others have waited for it as long as they may.
 */
const silentShare = 0.5

/**
 * A statement of a batch is planned once for a connection. By its own estimate the server would plan most of them anew each time, which took it two fifths
 * of its work. A plan that is kept must be good when the tables have grown: rows are found by index, one by one.
 */
const planning = [
  "plan_cache_mode=force_generic_plan",
  "enable_seqscan=off",
  "enable_hashjoin=off",
  "enable_mergejoin=off"
]
  .map((setting) => `-c ${setting}`)
  .join(" ")

/** From how many transactions on a second batch is begun beside one at work: fewer wait for its end, and are one batch then. */
const companyMin = 32

/**
 * Behind a batch of so many the next begins so many milliseconds after it began, or later: under load there are fewer batches, each of
 * more, which is less to do for node and server. With few callers there is no wait.
 */
const gatherMin = 8
const gatherMillis = 3

/** How often a batch is run again that lost against another, and one that found a row there which it had not seen. */
const racesMax = 20
const duplicatesMax = 2

/** The server went away before it answered a commit, and may have done it. */
class MaybeWritten extends Error {
  constructor() {
    super("a commit was not answered")
  }
}

const make = Effect.gen(function* () {
  const { connect, settings } = yield* Postgres
  const limit = Duration.toMillis(yield* CommitLimit)
  const tailMax = yield* RollupLagMax
  const clock = yield* Effect.clock
  const runtime = yield* Effect.runtime<never>()
  const log = (effect: Effect.Effect<void>) => void Runtime.runFork(runtime)(effect)

  let waiting: Array<Waiting> = []
  let closed = false
  let known = new Known()
  let texts: Texts | undefined
  const lanes: ReadonlyArray<Lane> = Array.from({ length: settings.writers }, () => ({
    client: undefined,
    groups: undefined,
    memory: new Batch.Memory(tailMax, known),
    batch: [],
    late: noCalls
  }))
  const idle: Array<Lane> = [...lanes]
  const isBusy = () => waiting.length > 0 || idle.length < lanes.length

  const watch = CommitWatch.make({
    limit,
    isAnyoneWaiting: isBusy,
    onStall: () => {
      // Their places stay: what they asked for may be committed yet.
      for (const lane of lanes) {
        lane.late = reservedBy(lane.batch)
        for (const { resume } of lane.batch) resume(new BooksUnavailable({ maybe_written: true }))
      }
      for (const { resume } of waiting) resume(new BooksUnavailable())
      waiting = []
    },
    log
  })

  /** Whether the last batch could not be written for a reason of the database's. */
  let down = false
  const became = (nowDown: boolean, why?: unknown) => {
    if (nowDown === down) return
    down = nowDown
    log(
      down
        ? Effect.logError("the database cannot be written", why instanceof Error ? why.message : String(why))
        : Effect.logInfo("the database can be written again")
    )
  }

  const clientOf = async (lane: Lane): Promise<Client> => {
    if (lane.client !== undefined) return lane.client
    const client = connect({
      statement_timeout: limit,
      options: planning,
      idle_in_transaction_session_timeout: Math.ceil(limit * silentShare),
      connectionTimeoutMillis: limit,
      // A server that does not even say that it has given up is not waited for: the driver ends the connection.
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
    if (lane.memory.known !== known) lane.memory = new Batch.Memory(tailMax, known)
    texts ??= new Texts(await readTypes(client))
    const pipe = new Pipe(lane.groups!, texts)
    try {
      const body = Batch.run(transactions, clock.unsafeCurrentTimeMillis(), lane.memory)
      let step = body.next([])
      while (step.done !== true) step = body.next(await pipe.run(step.value))
      await pipe.commit(async (id, error) => {
        forget(lane)
        // The server may have done it all the same.
        throw (await mayBeCommitted(id, error)) ? new MaybeWritten() : error
      })
      lane.memory.committed()
      return step.value
    } catch (error) {
      lane.memory.forget()
      if (isConnectionFault(error)) {
        // Behind a lost connection may be another server, which lacks the last commits: nothing is taken to be there.
        known = new Known()
        forget(lane)
      } else if (lane.client === client) {
        await client.query("ROLLBACK").catch(() => forget(lane))
      }
      throw error
    }
  }

  /**
   * Whether a transaction whose commit was not answered may have been committed. Asks until it is answered. A committed transaction with
   * this number is no proof: a server that crashed reuses numbers that were not on disk.
   */
  const mayBeCommitted = async (id: string, why: unknown): Promise<boolean> => {
    log(Effect.logWarning("a commit was not answered, its outcome is asked for", String(why)))
    for (;;) {
      const client = connect({ connectionTimeoutMillis: limit, query_timeout: limit })
      client.on("error", () => {})
      try {
        await client.connect()
        const { rows } = await client.query<{ status: string | null }>("SELECT pg_xact_status(?::xid8) AS status", [id])
        const status = rows[0]?.status
        if (status !== "in progress") return status === "committed"
      } catch {
        // Asked again.
      } finally {
        client.end().catch(() => {})
      }
      if (closed) throw why
      await pause(reconnectPause)
    }
  }

  const answer = async (lane: Lane, batch: ReadonlyArray<Waiting>): Promise<void> => {
    for (let races = 0; ; races++) {
      try {
        const outcomes = await attempt(
          lane,
          batch.map(({ transaction }) => transaction)
        )
        became(false)
        for (const [i, { resume }] of batch.entries()) resume(resolve(outcomes[i]!))
        return
      } catch (error) {
        if (races < (isLostRace(error) ? racesMax : isDuplicate(error) ? duplicatesMax : 0)) continue
        if (isStorageFault(error) || error instanceof LeaseLost || error instanceof MaybeWritten) {
          became(true, error)
          const maybe_written = error instanceof MaybeWritten
          for (const { resume } of batch) resume(new BooksUnavailable({ maybe_written }))
          return
        }
        // One that breaks the database's own rules must not take the others with it: each is then tried by itself.
        if (batch.length > 1) for (const one of batch) await answer(lane, [one])
        else batch[0]!.resume(Effect.die(error))
        return
      }
    }
  }

  const work = async (lane: Lane): Promise<void> => {
    while (waiting.length > 0) {
      const early = gatherUntil - performance.now()
      if (early > 0 && waiting.length < batchMax) {
        await pause(early)
        continue
      }
      // A long line is shared with the idle lanes, so that one batch is made while another commits.
      const share = waiting.length < 2 * companyMin ? waiting.length : Math.ceil(waiting.length / (idle.length + 1))
      const size = Math.min(share, batchMax)
      gatherUntil = size < gatherMin ? 0 : performance.now() + gatherMillis
      lane.batch = waiting.slice(0, size)
      waiting = waiting.slice(size)
      await answer(lane, lane.batch)
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
      if (idle.length < lanes.length && waiting.length < companyMin) return
      void work(idle.pop()!)
    }
  }
  let gatherUntil = 0
  let scheduled = false
  let onIdle: (() => void) | undefined

  // The first connection must come up, or there is no writer.
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

/** Over PostgreSQL, beside the writers of other nodes. */
export const layer = Layer.suspend(() => Layer.scoped(Writer, Effect.map(make, watched)))

const noCalls: ReadonlySet<string> = new Set()

const reservedBy = (batch: ReadonlyArray<Waiting>): ReadonlySet<string> =>
  new Set(
    batch.flatMap(({ transaction }) =>
      transaction.postings.flatMap((posting) => (posting._tag === "Reserve" ? [posting.call] : []))
    )
  )

const pause = (millis: number) => new Promise<void>((done) => setTimeout(done, millis))

/** A connection in use by a batch. What answers nothing is sent with the next that is waited for, or with the commit. */
class Pipe {
  readonly #groups: Groups
  readonly #texts: Texts
  /** The transaction's number, once the server has said it. */
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

  /** Commits, or fails with what has failed. `onLost`: the commit was not answered. */
  async commit(onLost: (id: string, error: unknown) => Promise<void>): Promise<void> {
    // Without the number its outcome could not be looked up.
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

/** Statements that put rows into tables, or change them, each made once. */
class Texts {
  readonly #types: ColumnTypes
  readonly #texts = new Map<string, string>()

  constructor(types: ColumnTypes) {
    this.#types = types
  }

  /** Of a table there are few, which differ in how many columns they have. */
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

/** The types of the tables' columns, as PostgreSQL names them, by table and column. */
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

/** The rows as lists, one for each column: what PostgreSQL unfolds cheapest. */
const lists = (columns: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<unknown>>): ReadonlyArray<string> =>
  columns.map((_, i) => {
    let list = "{"
    for (const row of rows) list += `${list.length > 1 ? "," : ""}${literal(row[i])}`
    return `${list}}`
  })

const literal = (value: unknown): string =>
  typeof value === "string" ? quoted(value) : value === null || value === undefined ? "NULL" : String(value)

const unnest = (table: string, columns: ReadonlyArray<string>, types: ColumnTypes): string =>
  `unnest(${columns.map((column) => `?::${types.get(table)!.get(column)!}[]`).join(", ")}) AS v (${columns.join(", ")})`

const insertAll = ({ columns, conflict, table }: Insert, types: ColumnTypes): string =>
  `INSERT INTO ${table} (${columns.join(", ")}) SELECT * FROM ${unnest(table, columns, types)}` +
  (conflict === undefined ? "" : ` ON CONFLICT ${conflict}`)

const changeAll = ({ columns, key, table }: Change, types: ColumnTypes): string =>
  `UPDATE ${table} t SET ${columns.map((column) => `${column} = v.${column}`).join(", ")}
    FROM ${unnest(table, [...columns, key], types)} WHERE t.${key} = v.${key}`
