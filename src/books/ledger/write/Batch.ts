/**
 * Runs a batch of transactions within one database transaction. It loads the rows that the transactions touch, applies the transactions in order,
 * and writes the changes. `Books` contains the rules, and `Rows` the row formats.
 */
import { Either } from "effect"
import { change, insert, query, run as runStatement } from "../rows/SqlEffect.ts"
import type { SqlSteps } from "../rows/SqlEffect.ts"
import * as Books from "../rules/Books.ts"
import { link, offsetsOf } from "../rows/RowLinks.ts"
import type { Head } from "../rows/RowLinks.ts"
import { dimensionsOf, numberDimensions } from "../rows/Dimensions.ts"
import * as Budgets from "../rows/Budgets.ts"
import { fold } from "../rows/Rollups.ts"
import * as Released from "../rows/Released.ts"
import * as Rows from "../rows/Rows.ts"
import * as ConcurrentBatch from "./ConcurrentBatch.ts"
import { pooledMax, selectTenants } from "../rows/RollupLag.ts"
import type { Tail, TenantRow } from "../rows/RollupLag.ts"
import type { Budget } from "../rules/Budget.ts"
import { everyone } from "../rules/Budget.ts"
import type { Account, Dimensions, Outcome, Posting, Reservation, Transaction } from "../rules/Transaction.ts"

/**
 * The writer's cache of rows that earlier batches read or wrote. It is valid as long as no other writer changes the books' tables and every batch
 * that used it was committed. Otherwise, the writer must call `forget`. With concurrent writers, only dimensions numbers outlive a batch.
 */
export class BatchCache {
  readonly accounts = new Map<string, Account>()
  readonly reservations = new Map<string, Reservation>()
  readonly records = new Map<string, number>()
  /** Budgets by id; `undefined` if the budget does not exist. */
  readonly budgets = new Map<string, Budget | undefined>()
  readonly anchors = new Map<string, ReadonlyArray<string>>()
  readonly tails = new Map<string, Tail>()
  /** The owner number and newest row of each cached account, and of each cached tenant that has a head. */
  readonly accountHeads = new Map<string, Head>()
  readonly tenantHeads = new Map<string, Head>()
  /** The latest period start among the cached budgets. No row is booked before it. */
  begun = 0
  dimensions = new WeakMap<Dimensions, number>()
  end: LastRows | undefined
  readonly tailMax: number
  /** If there are concurrent writers, the cache of rows that never change. */
  readonly known: ConcurrentBatch.RowCache | undefined
  #written: Books.Draft | undefined

  /** Creates an empty cache. A rollup lag of `tailMax` records or more is folded (`RollupLag`). */
  constructor(tailMax: number, known?: ConcurrentBatch.RowCache) {
    this.tailMax = tailMax
    this.known = known
  }

  forget(): void {
    this.forgetRows()
    this.dimensions = new WeakMap()
    this.#written = undefined
  }

  /** Clears the rows that other writers can change. The numbers of committed dimensions never change. */
  forgetRows(): void {
    this.accounts.clear()
    this.reservations.clear()
    this.records.clear()
    this.budgets.clear()
    this.anchors.clear()
    this.begun = 0
    this.tails.clear()
    this.accountHeads.clear()
    this.tenantHeads.clear()
    this.end = undefined
  }

  /** Caches a batch's changes. `end` is the last row before the batch. */
  keep(written: Books.Draft, end: LastRows): void {
    this.#written = written
    if (this.known !== undefined) return
    const { accounts, anchors, budgets, records } = this
    const most = Math.max(accounts.size, records.size, budgets.size, anchors.size)
    if (most > cachedMax) return this.forget()
    for (const account of written.accounts.values()) accounts.set(account.id, account)
    for (const reservation of written.reserved.values()) this.reservations.set(reservation.id, reservation)
    for (const call of written.released) this.reservations.delete(call)
    for (const [tenant, count] of written.records) records.set(tenant, count)
    for (const [id, budget] of written.budgets) this.keepBudget(id, budget)
    for (const [anchor, ids] of written.anchors) anchors.set(anchor, ids)
    const { at } = written.books
    this.end = {
      entry: end.entry + written.entries.length,
      entry_at: written.entries.length > 0 ? at : end.entry_at,
      usage: end.usage + written.usage.length,
      usage_at: written.usage.length > 0 ? at : end.usage_at
    }
  }

  keepBudget(id: string, budget: Budget | undefined): void {
    this.budgets.set(id, budget)
    if (budget !== undefined && budget.start > this.begun) this.begun = budget.start
  }

  /** With concurrent writers, caches the last batch's reservations. Call this after the commit. */
  committed(): void {
    if (this.known === undefined || this.#written === undefined) return
    this.known.keep(this.#written, this.dimensions)
    this.#written = undefined
  }
}

/**
 * The maximum number of cached accounts, tenants, budgets or anchors. Beyond it, the cache is cleared. Reservations need no limit, because only open
 * ones are cached.
 */
const cachedMax = 10_000

export interface RowNumbers {
  readonly entries: ReadonlyArray<number>
  readonly records: ReadonlyArray<number>
}

interface LastRows {
  readonly entry: number
  readonly entry_at: number
  readonly usage: number
  readonly usage_at: number
}

/**
 * Runs the transactions at the time `now`. The caller must begin a database transaction before, and afterwards commit, or roll back and call
 * `memory.forget`.
 */
export function* run(
  transactions: ReadonlyArray<Transaction>,
  now: number,
  memory: BatchCache
): SqlSteps<ReadonlyArray<Outcome>> {
  const { books, end, seqs } =
    memory.known === undefined
      ? yield* load(transactions, now, memory)
      : yield* loadLocked(transactions, now, memory, memory.known)
  const draft = new Books.Draft(books)
  const outcomes: Array<Outcome> = []
  for (const transaction of transactions) {
    outcomes.push(
      transaction.statements.length === 0
        ? Books.commit(draft, transaction.postings)
        : yield* commitWithStatements(draft, transaction)
    )
  }
  if (end !== undefined) {
    yield* write(draft, end, memory, seqs)
    memory.keep(draft, end)
  }
  return outcomes
}

/** Runs a transaction with statements. The statements run inside a savepoint. A conflict rolls back to it. */
function* commitWithStatements(draft: Books.Draft, { postings, statements }: Transaction): SqlSteps<Outcome> {
  const attempted = Books.attempt(draft, postings)
  if (Either.isLeft(attempted)) return Books.refused(attempted.left)

  yield* runStatement("SAVEPOINT beside")
  for (const [place, { params, rows, text }] of statements.entries()) {
    const found = yield* query(text, params)
    if (rows === undefined || found.length === rows) continue
    yield* runStatement("ROLLBACK TO beside")
    yield* runStatement("RELEASE beside")
    return Books.refused({ _tag: "Conflict", statement: place })
  }
  yield* runStatement("RELEASE beside")

  attempted.right.draft.adopt()
  return { _tag: "Committed", results: attempted.right.results }
}

interface Loaded {
  readonly books: Books.Books
  /** `undefined` if the batch contains no postings. */
  readonly end: LastRows | undefined
  /** The `seq` numbers for new rows. The default is the numbers after `end`. */
  readonly seqs?: RowNumbers
}

/** Locks and loads the rows that the batch touches, for concurrent writers. */
function* loadLocked(
  transactions: ReadonlyArray<Transaction>,
  now: number,
  memory: BatchCache,
  known: ConcurrentBatch.RowCache
): SqlSteps<Loaded> {
  memory.forgetRows()
  const { bookedAt, seqs } = yield* ConcurrentBatch.load(transactions, memory, known)
  const { accounts, anchors, budgets, records, reservations } = memory
  const at = Math.max(now, bookedAt)
  const spending = yield* loadSpending(transactions, at)
  const books = { accounts, reservations, records, budgets, anchors, spending, at }
  if (transactions.every(({ postings }) => postings.length === 0)) return { books, end: undefined }
  return { books, end: { entry: 0, entry_at: bookedAt, usage: 0, usage_at: bookedAt }, seqs }
}

const noSpending: Books.Books["spending"] = new Map()

/** Loads the spending of the applications that get a limit in this batch. */
function* loadSpending(transactions: ReadonlyArray<Transaction>, at: number): SqlSteps<Books.Books["spending"]> {
  let spending: Map<string, Books.Spending> | undefined
  for (const { postings } of transactions) {
    for (const posting of postings) {
      if (posting._tag !== "SetLimit" || posting.limit === null) continue
      const { application, tenant } = posting
      spending ??= new Map()
      spending.set(application, yield* Budgets.spendingOf(tenant, application, at))
    }
  }
  return spending ?? noSpending
}

function* load(transactions: ReadonlyArray<Transaction>, now: number, memory: BatchCache): SqlSteps<Loaded> {
  const { accounts, anchors, budgets, records, reservations } = memory
  if (transactions.every(({ postings }) => postings.length === 0)) {
    const books = { accounts, reservations, records, budgets, anchors, spending: noSpending, at: now }
    return { books, end: undefined }
  }
  const unknown = new MissingRows(memory)
  for (const { postings } of transactions) for (const posting of postings) unknown.addPosting(posting)
  if (unknown.calls.length > 0) yield* loadReservations(unknown, memory)
  if (unknown.accounts.size > 0) yield* loadAccounts(unknown.accounts, memory)
  if (unknown.tenants.size > 0) yield* loadTenants(unknown.tenants, memory)
  if (unknown.anchors.size + unknown.budgets.size > 0) yield* loadBudgets(unknown, memory)
  let { end } = memory
  if (end === undefined) {
    const [row] = yield* query(Rows.selectEnd)
    end = { entry: row.entry ?? 0, entry_at: row.entry_at ?? 0, usage: row.usage ?? 0, usage_at: row.usage_at ?? 0 }
  }
  // Pages and windows require that times never decrease with the row number, even if the clock is set back.
  const at = Math.max(now, end.entry_at, end.usage_at, memory.begun)
  const spending = yield* loadSpending(transactions, at)
  return { books: { accounts, reservations, records, budgets, anchors, spending, at }, end }
}

/** The rows that the batch touches and the cache does not contain. */
class MissingRows {
  readonly calls: Array<string> = []
  readonly accounts = new Set<string>()
  readonly tenants = new Set<string>()
  readonly anchors = new Set<string>()
  readonly budgets = new Set<string>()
  readonly #memory: BatchCache

  constructor(memory: BatchCache) {
    this.#memory = memory
  }

  addPosting(posting: Posting): void {
    for (const account of Books.accountsOf(posting)) this.#addAccount(account)
    // A call can be reserved and settled within the batch.
    if (posting._tag === "Reserve") this.#addCall(posting)
    if (posting._tag === "SetLimit") this.#addAnchor(posting.application)
    if (posting._tag === "SetBudget") {
      this.#addAnchor(posting.anchor)
      this.#addBudget(posting.id)
    }
    if (posting._tag !== "Settle") return
    const reservation = this.#memory.reservations.get(posting.call)
    if (reservation === undefined) this.calls.push(posting.call)
    else this.addReservation(reservation)
  }

  #addCall({ facts, sources }: Extract<Posting, { readonly _tag: "Reserve" }>): void {
    this.#addTenant(facts.tenant_id)
    this.#addAnchor(everyone)
    this.#addAnchor(facts.tenant_id)
    for (const { tenant_id } of sources) this.#addAnchor(tenant_id)
    if (facts.application_id !== null) this.#addAnchor(facts.application_id)
    if (facts.runs !== undefined) for (const run of facts.runs) this.#addAnchor(run)
  }

  addReservation({ budgets, dimensions }: Reservation): void {
    this.#addAccount(dimensions.billing_account_id)
    this.#addTenant(dimensions.tenant_id)
    if (dimensions.application_id !== null) this.#addAnchor(dimensions.application_id)
    if (budgets !== undefined) for (const id of budgets) this.#addBudget(id)
  }

  #addAccount(id: string): void {
    if (!this.#memory.accounts.has(id)) this.accounts.add(id)
  }

  #addTenant(id: string): void {
    if (!this.#memory.records.has(id)) this.tenants.add(id)
  }

  #addAnchor(anchor: string): void {
    if (!this.#memory.anchors.has(anchor)) this.anchors.add(anchor)
  }

  #addBudget(id: string): void {
    if (!this.#memory.budgets.has(id)) this.budgets.add(id)
  }
}

/** Loads the reservations of unknown calls and adds the rows that they touch to `unknown`. */
function* loadReservations(unknown: MissingRows, memory: BatchCache): SqlSteps<void> {
  const { reservations } = memory
  const known = new Map<number, Dimensions>()
  for (const row of (yield* query(Rows.selectReservations, [
    JSON.stringify(unknown.calls)
  ])) as ReadonlyArray<Rows.ReservationRow>) {
    let dimensions = known.get(row.number)
    if (dimensions === undefined) {
      known.set(row.number, (dimensions = dimensionsOf(row)))
      memory.dimensions.set(dimensions, row.number)
    }
    const reservation = Rows.reservationOf(row, dimensions)
    reservations.set(row.id, reservation)
    unknown.addReservation(reservation)
  }
  for (const { number, reservation } of yield* Released.load(unknown.calls.filter((call) => !reservations.has(call)))) {
    memory.dimensions.set(reservation.dimensions, number)
    reservations.set(reservation.id, reservation)
    unknown.addReservation(reservation)
  }
}

function* loadBudgets(unknown: MissingRows, memory: BatchCache): SqlSteps<void> {
  for (const id of unknown.budgets) memory.budgets.set(id, undefined)
  const found = yield* Budgets.load(unknown.anchors, unknown.budgets, false)
  for (const budget of found) memory.keepBudget(budget.id, budget)
  Budgets.groupInto(memory.anchors, unknown.anchors, found)
}

function* loadAccounts(ids: ReadonlySet<string>, memory: BatchCache): SqlSteps<void> {
  const rows = yield* query(Rows.selectAccounts, [JSON.stringify([...ids])])
  for (const row of rows as ReadonlyArray<Rows.KnownAccountRow>) {
    memory.accounts.set(row.id, Rows.accountOf(row))
    memory.accountHeads.set(row.id, { owner: row.number, newest: row.newest })
  }
}

function* loadTenants(ids: ReadonlySet<string>, memory: BatchCache): SqlSteps<void> {
  const rows = yield* query(selectTenants, [JSON.stringify([...ids])])
  for (const row of rows as ReadonlyArray<TenantRow>) {
    memory.records.set(row.tenant_id, row.records)
    memory.tails.set(row.tenant_id, { watermark: row.watermark, pooled: row.pooled === 1 })
    if (row.owner !== null) memory.tenantHeads.set(row.tenant_id, { owner: row.owner, newest: row.newest })
  }
}

const seqsAfter = (end: LastRows, { entries, usage }: Books.Draft): RowNumbers => ({
  entries: entries.map((_, i) => end.entry + 1 + i),
  records: usage.map((_, i) => end.usage + 1 + i)
})

function* write(
  written: Books.Draft,
  end: LastRows,
  memory: BatchCache,
  seqs = seqsAfter(end, written)
): SqlSteps<void> {
  const numberOf = yield* numberDimensions(written, memory.dimensions, memory.known)
  if (written.released.size > 0) {
    yield* runStatement("DELETE FROM tollgate_ledger_reservations WHERE id IN (SELECT value FROM json_each(?))", [
      JSON.stringify([...written.released])
    ])
  }
  yield* Released.rename(written.late)
  yield* openAccounts(written.accounts, memory)
  const { accountHeads, tenantHeads } = memory
  const entries = link(seqs.entries, written.entries, (entry) => accountHeads.get(entry.billing_account_id)!)
  yield* writeAccounts(written, memory)
  yield* insert(
    "tollgate_ledger_reservations",
    Rows.reservationColumns,
    [...written.reserved.values()].map((reservation) => Rows.reservationRow(reservation, numberOf))
  )
  yield* insert("tollgate_ledger_entries", Rows.entryColumns, entries.map(Rows.entryRow))
  yield* insert(
    "tollgate_ledger_offsets",
    ["owner", "number", "seq"],
    offsetsOf(entries).map(({ owner, row, seq }) => [owner, row.number, seq])
  )

  yield* Budgets.write(written.budgets, (id) => memory.budgets.get(id))
  if (memory.known !== undefined) yield* ConcurrentBatch.countBudgets(written, memory)

  if (written.usage.length === 0) return
  yield* numberTenants(written.records, memory)
  const records = link(seqs.records, written.usage, (record) => tenantHeads.get(record.dimensions.tenant_id)!)
  yield* insert(
    "tollgate_usage_records",
    Rows.usageColumns,
    records.map((record) => Rows.usageRow(record, numberOf))
  )
  yield* insert(
    "tollgate_usage_offsets",
    ["owner", "number", "seq", "at"],
    offsetsOf(records).map(({ owner, row, seq }) => [owner, row.number, seq, row.at])
  )
  const booked = memory.known !== undefined
  yield* change(
    "tollgate_usage_heads",
    booked ? bookedHeadColumns : headColumns,
    "tenant",
    Array.from(written.records, ([tenant, count]) => {
      const { newest, owner } = tenantHeads.get(tenant)!
      return booked ? [count, newest, written.books.at, owner] : [count, newest, owner]
    })
  )
  yield* foldLong(written, memory)
}

const headColumns = ["records", "newest"]
const bookedHeadColumns = [...headColumns, "booked_at"]
const amountColumns = ["giftable", "granted", "reserved", "entries", "newest"]
const bookedAmountColumns = [...amountColumns, "booked_at"]

function* nextNumbers(count: number, { known }: BatchCache): SqlSteps<ReadonlyArray<number>> {
  if (known !== undefined)
    return (yield* query(ConcurrentBatch.nextAccounts, [count])).map(({ number }) => number as number)
  const [last] = yield* query(Rows.selectLastAccount)
  return Array.from({ length: count }, (_, i) => (last.number ?? 0) + 1 + i)
}

function* openAccounts(written: ReadonlyMap<string, Account>, memory: BatchCache): SqlSteps<void> {
  const { accountHeads } = memory
  const opened = [...written.values()].filter(({ id }) => !accountHeads.has(id))
  if (opened.length === 0) return
  const numbers = yield* nextNumbers(opened.length, memory)
  const rows: Array<ReadonlyArray<unknown>> = []
  const amounts: Array<ReadonlyArray<unknown>> = []
  for (const [i, account] of opened.entries()) {
    const head = { owner: numbers[i]!, newest: null }
    accountHeads.set(account.id, head)
    rows.push(Rows.accountRow(account, head.owner))
    amounts.push(Rows.amountRow(account, head))
  }
  yield* insert("tollgate_ledger_accounts", Rows.accountColumns, rows)
  yield* insert("tollgate_ledger_amounts", Rows.amountColumns, amounts)
}

function* writeAccounts({ accounts, books }: Books.Draft, memory: BatchCache): SqlSteps<void> {
  const changed: Array<ReadonlyArray<unknown>> = []
  const moved: Array<ReadonlyArray<unknown>> = []
  const booked = memory.known !== undefined
  for (const account of accounts.values()) {
    const { booked_at = 0, newest, owner } = memory.accountHeads.get(account.id)!
    const { entries, giftable, granted, reserved } = account
    const before = memory.accounts.get(account.id)
    // A reservation is not an entry, so it does not change the time of the newest entry.
    const bookedAt = entries === (before?.entries ?? 0) ? booked_at : books.at
    moved.push(
      booked
        ? [giftable, granted, reserved, entries, newest, bookedAt, owner]
        : [giftable, granted, reserved, entries, newest, owner]
    )
    if (before === undefined) continue
    if (before.held === account.held && before.status === account.status && before.funded === account.funded) {
      if (before.debts === account.debts) continue
    }
    const { funded, held, status } = account
    changed.push([status, held, funded ? 1 : 0, Rows.formatDebts(account.debts), account.id])
  }
  yield* change("tollgate_ledger_accounts", ["status", "held", "funded", "debts"], "id", changed)
  yield* change("tollgate_ledger_amounts", booked ? bookedAmountColumns : amountColumns, "account", moved)
}

/** Inserts the tenants without a head, which assigns their numbers. */
function* numberTenants(written: ReadonlyMap<string, number>, { tenantHeads }: BatchCache): SqlSteps<void> {
  const fresh = [...written.keys()].filter((tenant) => !tenantHeads.has(tenant))
  if (fresh.length === 0) return
  yield* insert(
    "tollgate_usage_tenants",
    ["id"],
    fresh.map((tenant) => [tenant])
  )
  const found = (yield* query(Rows.selectTenantNumbers, [JSON.stringify(fresh)])) as ReadonlyArray<{
    readonly id: string
    readonly number: number
  }>
  for (const { id, number } of found) tenantHeads.set(id, { owner: number, newest: null })
  yield* insert(
    "tollgate_usage_heads",
    Rows.tenantHeadColumns,
    found.map(({ number }) => [number, 0, null])
  )
}

/** Folds long rollup lags. With concurrent writers, the batch has read the lags of only some tenants (`ConcurrentBatch`). */
function* foldLong({ records, usage }: Books.Draft, { tailMax, tails }: BatchCache): SqlSteps<void> {
  for (const { dimensions } of usage) {
    if (dimensions.billing_source_tenant_id === dimensions.tenant_id) continue
    const tail = tails.get(dimensions.tenant_id)
    if (tail?.pooled === false) tails.set(dimensions.tenant_id, { watermark: tail.watermark, pooled: true })
  }
  const long = new Map<string, number>()
  for (const [tenant, last] of records) {
    const tail = tails.get(tenant)
    if (tail === undefined) continue
    const { pooled, watermark } = tail
    if (last - watermark < (pooled ? Math.min(pooledMax, tailMax) : tailMax)) continue
    long.set(tenant, last)
    tails.set(tenant, { watermark: last, pooled })
  }
  yield* fold(long)
}
