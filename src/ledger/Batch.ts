/**
 * A batch of transactions as one database transaction: load what they touch, decide each in order, write what changed.
 * It is a generator that asks for SQL and is handed rows, so that the same lines run synchronously on the writer's thread and
 * over any `SqlClient`.
 */
import { Either } from "effect"
import { day, hour } from "../kernel/Moment.ts"
import * as Books from "./Books.ts"
import type {
  Account,
  AccountStatus,
  Dimensions,
  Entry,
  Outcome,
  Reservation,
  Transaction,
  UsageRecord
} from "./Transaction.ts"

/** Asks for rows. */
export interface Query {
  readonly _tag: "Query"
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

/** Asks for rows to be put into a table; `conflict` is what stands behind `ON CONFLICT`. */
export interface Insert {
  readonly _tag: "Insert"
  readonly table: string
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<unknown>>
  readonly conflict?: string
}

export type Ask = Query | Insert
// oxlint-disable-next-line typescript/no-explicit-any -- rows are typed where they are read, by the select that names them
export type Rows = ReadonlyArray<any>
type Asking<A> = Generator<Ask, A, Rows>

/** Rows of usage and ledger are found by `seq >> bucketShift` first: an insert then touches only the newest pages of an index. */
export const bucketShift = 16
const bucketSize = 2 ** bucketShift

/** The text of an insert of `count` rows. */
export const insertText = ({ columns, conflict, table }: Insert, count: number): string => {
  const tuple = `(${columns.map(() => "?").join(", ")})`
  const tail = conflict === undefined ? "" : ` ON CONFLICT ${conflict}`
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES ${Array(count).fill(tuple).join(", ")}${tail}`
}

/**
 * What earlier batches read and left behind, so that a batch asks only for the rest. It is true as long as nobody else writes to
 * the tables of the books, and every batch that ran with it was committed; else it must `forget`.
 */
export class Memory {
  readonly accounts = new Map<string, Account>()
  readonly reservations = new Map<string, Reservation>()
  readonly records = new Map<string, number>()
  /** The numbers that dimensions are kept under. */
  dimensions = new WeakMap<Dimensions, number>()
  tail: Tail | undefined

  forget(): void {
    this.accounts.clear()
    this.reservations.clear()
    this.records.clear()
    this.dimensions = new WeakMap()
    this.tail = undefined
  }

  /** Takes over what a batch has written, which began behind `tail`. */
  keep(written: Books.Draft, tail: Tail): void {
    if (this.accounts.size > rememberedMax || this.records.size > rememberedMax) this.forget()
    for (const account of written.accounts.values()) this.accounts.set(account.id, account)
    for (const reservation of written.reserved.values()) this.reservations.set(reservation.id, reservation)
    for (const call of written.released) this.reservations.delete(call)
    for (const [tenant, records] of written.records) this.records.set(tenant, records)
    const { at } = written.books
    this.tail = {
      entry: tail.entry + written.entries.length,
      entry_at: written.entries.length > 0 ? at : tail.entry_at,
      usage: tail.usage + written.usage.length,
      usage_at: written.usage.length > 0 ? at : tail.usage_at
    }
  }
}

/** From how many accounts, or tenants, on it begins anew. (Of reservations it knows those that are open, at most.) */
const rememberedMax = 10_000

/** The last rows of ledger and usage, and when they were booked. */
interface Tail {
  readonly entry: number
  readonly entry_at: number
  readonly usage: number
  readonly usage_at: number
}

/**
 * Runs the transactions at the instant `now`, inside a database transaction that the caller has begun, and commits; or else
 * forgets the memory.
 */
export function* run(
  transactions: ReadonlyArray<Transaction>,
  now: number,
  memory: Memory
): Asking<ReadonlyArray<Outcome>> {
  const { books, tail } = yield* load(transactions, now, memory)
  const draft = new Books.Draft(books)
  const outcomes: Array<Outcome> = []
  for (const transaction of transactions) {
    outcomes.push(
      transaction.statements.length === 0
        ? Books.commit(draft, transaction.postings)
        : yield* commitBeside(draft, transaction)
    )
  }
  if (tail !== undefined) {
    yield* write(draft, tail, memory)
    memory.keep(draft, tail)
  }
  return outcomes
}

/** A transaction with statements: they run in a savepoint of their own, so that a refusal leaves no trace of them. */
function* commitBeside(draft: Books.Draft, { postings, statements }: Transaction): Asking<Outcome> {
  const attempted = Books.attempt(draft, postings)
  if (Either.isLeft(attempted)) return Books.refused(attempted.left)

  yield* query("SAVEPOINT beside")
  for (const [place, { params, rows, text }] of statements.entries()) {
    const found = yield* query(text, params)
    if (rows === undefined || found.length === rows) continue
    yield* query("ROLLBACK TO beside")
    yield* query("RELEASE beside")
    return Books.refused({ _tag: "Conflict", statement: place })
  }
  yield* query("RELEASE beside")

  attempted.right.draft.adopt()
  return { _tag: "Committed", results: attempted.right.results }
}

const query = function* (text: string, params: ReadonlyArray<unknown> = []): Asking<Rows> {
  return yield { _tag: "Query", text, params }
}

function* load(
  transactions: ReadonlyArray<Transaction>,
  now: number,
  memory: Memory
): Asking<{ readonly books: Books.Books; readonly tail: Tail | undefined }> {
  const { records, reservations } = memory
  if (transactions.every(({ postings }) => postings.length === 0)) {
    return { books: { accounts: memory.accounts, reservations, records, at: now }, tail: undefined }
  }
  const calls: Array<string> = []
  const accounts = new Set<string>()
  const tenants = new Set<string>()
  const touchAccount = (id: string) => {
    if (!memory.accounts.has(id)) accounts.add(id)
  }
  const touchTenant = (id: string) => {
    if (!records.has(id)) tenants.add(id)
  }
  const touch = ({ dimensions }: Reservation) => {
    touchAccount(dimensions.billing_account_id)
    touchTenant(dimensions.tenant_id)
  }
  for (const { postings } of transactions) {
    for (const posting of postings) {
      for (const account of Books.accountsOf(posting)) touchAccount(account)
      // A call may be reserved and settled within the batch.
      if (posting._tag === "Reserve") touchTenant(posting.facts.tenant_id)
      if (posting._tag !== "Settle") continue
      const reservation = reservations.get(posting.call)
      if (reservation === undefined) calls.push(posting.call)
      else touch(reservation)
    }
  }
  if (calls.length > 0) {
    const known = new Map<number, Dimensions>()
    for (const row of (yield* query(selectReservations, [JSON.stringify(calls)])) as ReadonlyArray<ReservationRow>) {
      let dimensions = known.get(row.number)
      if (dimensions === undefined) {
        known.set(row.number, (dimensions = dimensionsOf(row)))
        memory.dimensions.set(dimensions, row.number)
      }
      const reservation = { id: row.id, dimensions, amount: BigInt(row.amount), at: row.at, run: row.run }
      reservations.set(row.id, reservation)
      touch(reservation)
    }
  }
  if (accounts.size > 0) {
    for (const row of yield* query(selectAccounts, [JSON.stringify([...accounts])])) {
      const account = accountOf(row)
      memory.accounts.set(account.id, account)
    }
  }
  if (tenants.size > 0) {
    for (const tenant of tenants) records.set(tenant, 0)
    for (const row of yield* query(selectCounters, [JSON.stringify([...tenants])])) {
      records.set(row.tenant_id, row.records)
    }
  }
  let { tail } = memory
  if (tail === undefined) {
    const [row] = yield* query(selectTail)
    tail = { entry: row.entry ?? 0, entry_at: row.entry_at ?? 0, usage: row.usage ?? 0, usage_at: row.usage_at ?? 0 }
  }
  // Pages and windows rely on it: in each table time never runs against the order of the rows, whatever a clock does.
  const at = Math.max(now, tail.entry_at, tail.usage_at)
  return { books: { accounts: memory.accounts, reservations, records, at }, tail }
}

/** Puts rows into a table, if there are any. */
function* insert(
  table: string,
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<unknown>>,
  conflict?: string
): Asking<void> {
  if (rows.length > 0) yield { _tag: "Insert", table, columns, rows, ...(conflict !== undefined && { conflict }) }
}

function* write(written: Books.Draft, last: Tail, memory: Memory): Asking<void> {
  const numberOf = yield* numbered(written, memory)
  if (written.released.size > 0) {
    yield* query("DELETE FROM tollgate_ledger_reservations WHERE id IN (SELECT value FROM json_each(?))", [
      JSON.stringify([...written.released])
    ])
  }
  yield* insert(
    "tollgate_ledger_accounts",
    accountColumns,
    [...written.accounts.values()].map(accountRow),
    accountConflict
  )
  yield* insert(
    "tollgate_ledger_reservations",
    reservationColumns,
    [...written.reserved.values()].map((reservation) => reservationRow(reservation, numberOf))
  )

  yield* insert(
    "tollgate_ledger_entries",
    entryColumns,
    written.entries.map((entry, i) => entryRow(last.entry + 1 + i, entry))
  )
  yield* insert(
    "tollgate_ledger_buckets",
    ["billing_account_id", "bucket", "first_number", "last_number"],
    buckets(last.entry, written.entries, (entry) => entry.billing_account_id).map((b) => [
      b.key,
      b.bucket,
      b.first.number,
      b.last.number
    ]),
    "(billing_account_id, bucket) DO UPDATE SET last_number = excluded.last_number"
  )

  if (written.usage.length === 0) return
  yield* insert(
    "tollgate_usage_records",
    usageColumns,
    written.usage.map((record, i) => usageRow(last.usage + 1 + i, record, numberOf))
  )
  yield* insert(
    "tollgate_usage_buckets",
    ["tenant_id", "bucket", "first_number", "last_number", "first_at", "last_at"],
    buckets(last.usage, written.usage, (record) => record.dimensions.tenant_id).map((b) => [
      b.key,
      b.bucket,
      b.first.number,
      b.last.number,
      b.first.at,
      b.last.at
    ]),
    "(tenant_id, bucket) DO UPDATE SET last_number = excluded.last_number, last_at = excluded.last_at"
  )
  yield* insert(
    "tollgate_usage_counters",
    ["tenant_id", "records"],
    [...written.records],
    "(tenant_id) DO UPDATE SET records = excluded.records"
  )
  const groups = [...groupsOf(written.usage)]
  for (const { columns, keysOf, table } of rollups) {
    yield* insert(table, [...columns, ...sumColumns], summed(groups, keysOf), sumConflict(table, columns))
  }
}

type NumberOf = (dimensions: Dimensions) => number

/** Sees to it that all dimensions of what was written are kept, and answers under which numbers. */
function* numbered(written: Books.Draft, memory: Memory): Asking<NumberOf> {
  const numbers = memory.dimensions
  // By what they say, since those that are alike may be several objects.
  const missing = new Map<string, { readonly row: ReadonlyArray<string>; readonly alike: Set<Dimensions> }>()
  const look = ({ dimensions }: { readonly dimensions: Dimensions }) => {
    if (numbers.has(dimensions)) return
    const row = dimensionsRow(dimensions)
    const text = JSON.stringify(row)
    const found = missing.get(text)
    if (found === undefined) missing.set(text, { row, alike: new Set([dimensions]) })
    else found.alike.add(dimensions)
  }
  for (const reservation of written.reserved.values()) look(reservation)
  for (const record of written.usage) look(record)
  const rows = [...missing.values()].map(({ row }) => row)
  yield* insert("tollgate_usage_dimensions", dimensionColumns, rows, "DO NOTHING")
  for (const { alike, row } of missing.values()) {
    const [found] = yield* query(selectNumber, row)
    for (const dimensions of alike) numbers.set(dimensions, found.number)
  }
  return (dimensions) => numbers.get(dimensions)!
}

interface Bucket<Row> {
  readonly key: string
  readonly bucket: number
  readonly first: Row
  last: Row
}

/** The first and last of the rows that fall into each (key, bucket), in the order of the rows. */
const buckets = <Row>(before: number, rows: ReadonlyArray<Row>, keyOf: (row: Row) => string) => {
  const found = new Map<string, Bucket<Row>>()
  let last: Bucket<Row> | undefined
  for (const [i, row] of rows.entries()) {
    const bucket = Math.floor((before + 1 + i) / bucketSize)
    const key = keyOf(row)
    // Mostly a row follows one of its own.
    if (last?.key !== key || last.bucket !== bucket) {
      const name = `${bucket}/${key}`
      last = found.get(name)
      if (last === undefined) found.set(name, (last = { key, bucket, first: row, last: row }))
    }
    last.last = row
  }
  return [...found.values()]
}

// ---- rollups ----------------------------------------------------------------------------------------------------------

/**
 * The sums that the usage views read, kept up in the settling transaction: one table for each question that is asked.
 * `grain` is the width of a period in milliseconds, `start` its first one.
 */
const rollups: ReadonlyArray<{
  readonly table: string
  readonly columns: ReadonlyArray<string>
  readonly keysOf: (dimensions: Dimensions, at: number) => ReadonlyArray<ReadonlyArray<string | number>>
}> = [
  {
    table: "tollgate_usage_by_tenant",
    columns: ["tenant_id", "start", "application_id", "usage_type", "provider"],
    keysOf: (d, at) => [[d.tenant_id, startOf(at, day), d.application_id ?? "", d.usage_type, d.provider]]
  },
  {
    table: "tollgate_usage_by_caller",
    columns: ["tenant_id", "account_id", "grain", "start", "model", "endpoint"],
    keysOf: (d, at) =>
      [day, hour].map((grain) => [d.tenant_id, d.account_id, grain, startOf(at, grain), d.model, d.endpoint])
  },
  {
    table: "tollgate_usage_by_payer",
    columns: ["billing_account_id", "start", "account_id", "billing_source_kind"],
    keysOf: (d, at) => [[d.billing_account_id, startOf(at, day), d.account_id, d.billing_source_kind]]
  }
]

const startOf = (at: number, grain: number): number => at - (at % grain)

const sumColumns = [
  "requests",
  "successes",
  "prompt_tokens",
  "completion_tokens",
  "units",
  "cost",
  "latency_ms"
] as const

const sumConflict = (table: string, key: ReadonlyArray<string>): string =>
  `(${key.join(", ")}) DO UPDATE SET ${sumColumns
    .map((column) => `${column} = ${table}.${column} + excluded.${column}`)
    .join(", ")}`

interface Sums {
  requests: number
  successes: number
  prompt_tokens: number
  completion_tokens: number
  units: number
  cost: bigint
  latency_ms: number
}

/** The records of one batch that count into the same sums. They were all booked at one instant. */
interface Group {
  readonly dimensions: Dimensions
  readonly at: number
  readonly sums: Sums
}

const groupsOf = (records: ReadonlyArray<UsageRecord>): Iterable<Group> => {
  const groups = new Map<Dimensions, Group>()
  let last: Group | undefined
  for (const record of records) {
    const { at, dimensions } = record
    // Where one caller is busy, most records follow one of their own kind.
    if (last?.dimensions !== dimensions) {
      last = groups.get(dimensions)
      if (last === undefined) groups.set(dimensions, (last = { dimensions, at, sums: noSums() }))
    }
    add(last.sums, 1, record.success ? 1 : 0, record)
  }
  return groups.values()
}

const noSums = (): Sums => ({
  requests: 0,
  successes: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 0,
  cost: 0n,
  latency_ms: 0
})

const add = (
  sums: Sums,
  requests: number,
  successes: number,
  of: Omit<Readonly<Sums>, "requests" | "successes">
): void => {
  sums.requests += requests
  sums.successes += successes
  sums.prompt_tokens += of.prompt_tokens
  sums.completion_tokens += of.completion_tokens
  sums.units += of.units
  sums.cost += of.cost
  sums.latency_ms += of.latency_ms
}

/** One row for each key, so that a busy key is written once a batch. */
const summed = (
  groups: ReadonlyArray<Group>,
  keysOf: (typeof rollups)[number]["keysOf"]
): ReadonlyArray<ReadonlyArray<unknown>> => {
  const rows = new Map<string, { readonly key: ReadonlyArray<string | number>; readonly sums: Sums }>()
  for (const { at, dimensions, sums } of groups) {
    for (const key of keysOf(dimensions, at)) {
      const name = key.join("\n")
      let row = rows.get(name)
      if (row === undefined) rows.set(name, (row = { key, sums: noSums() }))
      add(row.sums, sums.requests, sums.successes, sums)
    }
  }
  return [...rows.values()].map(({ key, sums }) => [...key, ...sumColumns.map((column) => sums[column])])
}

// ---- rows -------------------------------------------------------------------------------------------------------------

const accountColumns = [
  "id",
  "tenant_id",
  "status",
  "giftable",
  "granted",
  "held",
  "reserved",
  "funded",
  "entries"
] as const

const accountConflict = `(id) DO UPDATE SET ${["status", "giftable", "granted", "held", "reserved", "funded", "entries"]
  .map((column) => `${column} = excluded.${column}`)
  .join(", ")}`

/** The columns of an account, money as text, for `accountOf`. */
export const accountSelection = `id, tenant_id, status, CAST(giftable AS TEXT) AS giftable, CAST(granted AS TEXT) AS granted,
  CAST(held AS TEXT) AS held, CAST(reserved AS TEXT) AS reserved, funded, entries`

const selectAccounts = `SELECT ${accountSelection} FROM tollgate_ledger_accounts WHERE id IN (SELECT value FROM json_each(?))`

export interface AccountRow {
  readonly id: string
  readonly tenant_id: string
  readonly status: AccountStatus
  readonly giftable: string
  readonly granted: string
  readonly held: string
  readonly reserved: string
  readonly funded: number
  readonly entries: number
}

export const accountOf = (row: AccountRow): Account => ({
  ...row,
  giftable: BigInt(row.giftable),
  granted: BigInt(row.granted),
  held: BigInt(row.held),
  reserved: BigInt(row.reserved),
  funded: row.funded === 1
})

const accountRow = (a: Account): ReadonlyArray<unknown> => [
  a.id,
  a.tenant_id,
  a.status,
  a.giftable,
  a.granted,
  a.held,
  a.reserved,
  a.funded ? 1 : 0,
  a.entries
]

const reservationColumns = ["id", "dimensions", "amount", "at", "run"] as const

const reservationRow = (r: Reservation, numberOf: NumberOf): ReadonlyArray<unknown> => [
  r.id,
  numberOf(r.dimensions),
  r.amount,
  r.at,
  r.run
]

/** Joins its dimensions, `d`, to a reservation or a record, `r`, found first. */
export const withDimensions = "CROSS JOIN tollgate_usage_dimensions d ON d.number = r.dimensions"

const dimensionColumns = [
  "account_id",
  "tenant_id",
  "application_id",
  "usage_type",
  "endpoint",
  "model",
  "provider",
  "price",
  "billing_account_id",
  "billing_source_tenant_id",
  "billing_source_kind",
  "billing_source_why"
] as const

/** What is absent is an empty text, since rows are told apart by all of their columns. */
const dimensionsRow = (d: Dimensions): ReadonlyArray<string> => dimensionColumns.map((column) => d[column] ?? "")

const selectNumber = `SELECT number FROM tollgate_usage_dimensions
  WHERE ${dimensionColumns.map((column) => `${column} = ?`).join(" AND ")}`

const selectReservations = `SELECT r.id, CAST(r.amount AS TEXT) AS amount, r.at, r.run, d.*
  FROM tollgate_ledger_reservations r ${withDimensions}
  WHERE r.id IN (SELECT value FROM json_each(?))`

interface DimensionsRow extends Dimensions {
  readonly number: number
}

interface ReservationRow extends DimensionsRow {
  readonly id: string
  readonly amount: string
  readonly at: number
  readonly run: string
}

const dimensionsOf = (row: DimensionsRow): Dimensions => ({
  account_id: row.account_id,
  tenant_id: row.tenant_id,
  application_id: row.application_id === "" ? null : row.application_id,
  usage_type: row.usage_type,
  endpoint: row.endpoint,
  model: row.model,
  provider: row.provider,
  price: row.price === "" ? undefined : row.price,
  billing_account_id: row.billing_account_id,
  billing_source_tenant_id: row.billing_source_tenant_id,
  billing_source_kind: row.billing_source_kind,
  billing_source_why: row.billing_source_why
})

const selectCounters =
  "SELECT tenant_id, records FROM tollgate_usage_counters WHERE tenant_id IN (SELECT value FROM json_each(?))"

const selectTail = `SELECT e.seq AS entry, e.at AS entry_at, u.seq AS usage, u.at AS usage_at
  FROM (SELECT 1) LEFT JOIN (SELECT seq, at FROM tollgate_ledger_entries ORDER BY seq DESC LIMIT 1) e ON true
  LEFT JOIN (SELECT seq, at FROM tollgate_usage_records ORDER BY seq DESC LIMIT 1) u ON true`

const entryColumns = [
  "seq",
  "billing_account_id",
  "number",
  "type",
  "amount",
  "balance",
  "giftable",
  "source",
  "reference_id",
  "description",
  "at"
] as const

const entryRow = (seq: number, e: Entry): ReadonlyArray<unknown> => [
  seq,
  e.billing_account_id,
  e.number,
  e.type,
  e.amount,
  e.balance,
  e.giftable,
  e.source,
  e.reference_id,
  e.description,
  e.at
]

const usageColumns = [
  "seq",
  "id",
  "tenant_id",
  "number",
  "at",
  "dimensions",
  "prompt_tokens",
  "completion_tokens",
  "units",
  "cost",
  "uncollected",
  "reserved",
  "usage_source",
  "latency_ms",
  "success",
  "error_type"
] as const

const usageRow = (seq: number, r: UsageRecord, numberOf: NumberOf): ReadonlyArray<unknown> => [
  seq,
  r.id,
  r.dimensions.tenant_id,
  r.number,
  r.at,
  numberOf(r.dimensions),
  r.prompt_tokens,
  r.completion_tokens,
  r.units,
  r.cost,
  r.uncollected,
  r.reserved,
  r.usage_source,
  r.latency_ms,
  r.success ? 1 : 0,
  r.error_type
]
