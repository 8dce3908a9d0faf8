/**
 * A batch of transactions as one database transaction: load what they touch, decide each in order, write what changed. The rules are in
 * `Books`; what a row is, in `Rows`.
 */
import { Either } from "effect"
import { insert, query } from "./Ask.ts"
import type { Asking } from "./Ask.ts"
import * as Books from "./Books.ts"
import { buckets } from "./Buckets.ts"
import { dimensionsOf, numberDimensions } from "./Dimensions.ts"
import { rollUp } from "./Rollups.ts"
import * as Rows from "./Rows.ts"
import type { Account, Dimensions, Outcome, Reservation, Transaction } from "./Transaction.ts"

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
    for (const tenant of tenants) records.set(tenant, 0)
    for (const row of yield* query(Rows.selectCounters, [JSON.stringify([...tenants])])) {
      records.set(row.tenant_id, row.records)
    }
  }
  let { tail } = memory
  if (tail === undefined) {
    const [row] = yield* query(Rows.selectTail)
    tail = { entry: row.entry ?? 0, entry_at: row.entry_at ?? 0, usage: row.usage ?? 0, usage_at: row.usage_at ?? 0 }
  }
  // Pages and windows rely on it: in each table time never runs against the order of the rows, whatever a clock does.
  const at = Math.max(now, tail.entry_at, tail.usage_at)
  return { books: { accounts: memory.accounts, reservations, records, at }, tail }
}

function* write(written: Books.Draft, last: Tail, memory: Memory): Asking<void> {
  const numberOf = yield* numberDimensions(written, memory.dimensions)
  if (written.released.size > 0) {
    yield* query("DELETE FROM tollgate_ledger_reservations WHERE id IN (SELECT value FROM json_each(?))", [
      JSON.stringify([...written.released])
    ])
  }
  yield* insert(
    "tollgate_ledger_accounts",
    Rows.accountColumns,
    [...written.accounts.values()].map(Rows.accountRow),
    Rows.accountConflict
  )
  yield* insert(
    "tollgate_ledger_reservations",
    Rows.reservationColumns,
    [...written.reserved.values()].map((reservation) => Rows.reservationRow(reservation, numberOf))
  )

  yield* insert(
    "tollgate_ledger_entries",
    Rows.entryColumns,
    written.entries.map((entry, i) => Rows.entryRow(last.entry + 1 + i, entry))
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
    Rows.usageColumns,
    written.usage.map((record, i) => Rows.usageRow(last.usage + 1 + i, record, numberOf))
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
  yield* rollUp(written.usage)
}
