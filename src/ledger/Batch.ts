/**
 * A batch of transactions as one database transaction: load what they touch, decide each in order, write what changed. The rules are in
 * `Books`; what a row is, in `Rows`.
 */
import { Either } from "effect"
import { change, insert, query } from "./Ask.ts"
import type { Asking } from "./Ask.ts"
import * as Books from "./Books.ts"
import { bucketsBegun } from "./Buckets.ts"
import { dimensionsOf, numberDimensions } from "./Dimensions.ts"
import { fold } from "./Rollups.ts"
import * as Rows from "./Rows.ts"
import { pooledMax, selectTenants } from "./Tails.ts"
import type { Tail, TenantRow } from "./Tails.ts"
import type { Account, Dimensions, Outcome, Reservation, Transaction } from "./Transaction.ts"

/**
 * What earlier batches read and left behind, so that a batch asks only for the rest. It is true as long as nobody else writes to
 * the tables of the books, and every batch that ran with it was committed; else it must `forget`.
 */
export class Memory {
  readonly accounts = new Map<string, Account>()
  readonly reservations = new Map<string, Reservation>()
  readonly records = new Map<string, number>()
  /** By tenant. */
  readonly tails = new Map<string, Tail>()
  /** The newest bucket that entries of each account, and records of each tenant, lie in. */
  readonly entryBuckets = new Map<string, number>()
  readonly recordBuckets = new Map<string, number>()
  /** The numbers that dimensions are kept under. */
  dimensions = new WeakMap<Dimensions, number>()
  end: End | undefined
  readonly tailMax: number

  /** `tailMax`: from how many records on a tail is folded (`Tails`). */
  constructor(tailMax: number) {
    this.tailMax = tailMax
  }

  forget(): void {
    this.accounts.clear()
    this.reservations.clear()
    this.records.clear()
    this.tails.clear()
    this.entryBuckets.clear()
    this.recordBuckets.clear()
    this.dimensions = new WeakMap()
    this.end = undefined
  }

  /** Takes over what a batch has written, which began behind `end`. */
  keep(written: Books.Draft, end: End): void {
    if (this.accounts.size > rememberedMax || this.records.size > rememberedMax) this.forget()
    for (const account of written.accounts.values()) this.accounts.set(account.id, account)
    for (const reservation of written.reserved.values()) this.reservations.set(reservation.id, reservation)
    for (const call of written.released) this.reservations.delete(call)
    // What is known of a tenant is known as a whole.
    for (const [tenant, records] of written.records) if (this.tails.has(tenant)) this.records.set(tenant, records)
    const { at } = written.books
    this.end = {
      entry: end.entry + written.entries.length,
      entry_at: written.entries.length > 0 ? at : end.entry_at,
      usage: end.usage + written.usage.length,
      usage_at: written.usage.length > 0 ? at : end.usage_at
    }
  }
}

/** From how many accounts, or tenants, on it begins anew. (Of reservations it knows those that are open, at most.) */
const rememberedMax = 10_000

/** The last rows of ledger and usage, and when they were booked. */
interface End {
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
  const { books, end } = yield* load(transactions, now, memory)
  const draft = new Books.Draft(books)
  const outcomes: Array<Outcome> = []
  for (const transaction of transactions) {
    outcomes.push(
      transaction.statements.length === 0
        ? Books.commit(draft, transaction.postings)
        : yield* commitBeside(draft, transaction)
    )
  }
  if (end !== undefined) {
    yield* write(draft, end, memory)
    memory.keep(draft, end)
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

function* load(
  transactions: ReadonlyArray<Transaction>,
  now: number,
  memory: Memory
): Asking<{ readonly books: Books.Books; readonly end: End | undefined }> {
  const { records, reservations } = memory
  if (transactions.every(({ postings }) => postings.length === 0)) {
    return { books: { accounts: memory.accounts, reservations, records, at: now }, end: undefined }
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
    for (const row of (yield* query(Rows.selectReservations, [
      JSON.stringify(calls)
    ])) as ReadonlyArray<Rows.ReservationRow>) {
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
    for (const row of yield* query(Rows.selectAccounts, [JSON.stringify([...accounts])])) {
      const account = Rows.accountOf(row)
      memory.accounts.set(account.id, account)
    }
  }
  if (tenants.size > 0) {
    for (const row of (yield* query(selectTenants, [JSON.stringify([...tenants])])) as ReadonlyArray<TenantRow>) {
      records.set(row.tenant_id, row.records)
      memory.tails.set(row.tenant_id, { watermark: row.watermark, pooled: row.pooled === 1 })
    }
  }
  let { end } = memory
  if (end === undefined) {
    const [row] = yield* query(Rows.selectEnd)
    end = { entry: row.entry ?? 0, entry_at: row.entry_at ?? 0, usage: row.usage ?? 0, usage_at: row.usage_at ?? 0 }
  }
  // Pages and windows rely on it: in each table time never runs against the order of the rows, whatever a clock does.
  const at = Math.max(now, end.entry_at, end.usage_at)
  return { books: { accounts: memory.accounts, reservations, records, at }, end }
}

function* write(written: Books.Draft, end: End, memory: Memory): Asking<void> {
  const numberOf = yield* numberDimensions(written, memory.dimensions)
  if (written.released.size > 0) {
    yield* query("DELETE FROM tollgate_ledger_reservations WHERE id IN (SELECT value FROM json_each(?))", [
      JSON.stringify([...written.released])
    ])
  }
  yield* writeAccounts(written.accounts, memory.accounts)
  yield* insert(
    "tollgate_ledger_reservations",
    Rows.reservationColumns,
    [...written.reserved.values()].map((reservation) => Rows.reservationRow(reservation, numberOf))
  )

  yield* insert(
    "tollgate_ledger_entries",
    Rows.entryColumns,
    written.entries.map((entry, i) => Rows.entryRow(end.entry + 1 + i, entry))
  )
  yield* insert(
    "tollgate_ledger_buckets",
    ["billing_account_id", "bucket", "first_number"],
    bucketsBegun(memory.entryBuckets, end.entry, written.entries, (entry) => entry.billing_account_id).map(
      ({ bucket, first, key }) => [key, bucket, first.number]
    ),
    "DO NOTHING"
  )

  if (written.usage.length === 0) return
  yield* insert(
    "tollgate_usage_records",
    Rows.usageColumns,
    written.usage.map((record, i) => Rows.usageRow(end.usage + 1 + i, record, numberOf))
  )
  yield* insert(
    "tollgate_usage_buckets",
    ["tenant_id", "bucket", "first_number", "first_at"],
    bucketsBegun(memory.recordBuckets, end.usage, written.usage, (record) => record.dimensions.tenant_id).map(
      ({ bucket, first, key }) => [key, bucket, first.number, first.at]
    ),
    "DO NOTHING"
  )
  yield* foldLong(written, memory)
}

/** Mostly only an account's amounts have changed: then the indexes of its other columns are left alone. */
function* writeAccounts(written: ReadonlyMap<string, Account>, known: ReadonlyMap<string, Account>): Asking<void> {
  const opened: Array<ReadonlyArray<unknown>> = []
  const changed: Array<ReadonlyArray<unknown>> = []
  const moved: Array<ReadonlyArray<unknown>> = []
  for (const account of written.values()) {
    const before = known.get(account.id)
    if (before === undefined) opened.push(Rows.accountRow(account))
    else if (before.held === account.held && before.status === account.status && before.funded === account.funded)
      moved.push([account.giftable, account.granted, account.reserved, account.entries, account.id])
    else changed.push([...Rows.accountRow(account).slice(2), account.id])
  }
  yield* insert("tollgate_ledger_accounts", Rows.accountColumns, opened)
  yield* change(Rows.changeAccount, changed)
  yield* change(Rows.moveAccount, moved)
}

/** Folds the tails that have become long enough. */
function* foldLong({ records, usage }: Books.Draft, { tailMax, tails }: Memory): Asking<void> {
  for (const { dimensions } of usage) {
    if (dimensions.billing_source_tenant_id === dimensions.tenant_id) continue
    const tail = tails.get(dimensions.tenant_id)!
    if (!tail.pooled) tails.set(dimensions.tenant_id, { watermark: tail.watermark, pooled: true })
  }
  for (const [tenant, last] of records) {
    const { pooled, watermark } = tails.get(tenant)!
    if (last - watermark < (pooled ? Math.min(pooledMax, tailMax) : tailMax)) continue
    yield* fold(tenant, last)
    tails.set(tenant, { watermark: last, pooled })
  }
}
