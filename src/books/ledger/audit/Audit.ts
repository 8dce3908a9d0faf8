/**
 * Reads entries and records once, in order and in slices. Each slice is a read transaction of its own, so that no transaction is long and
 * the WAL can be folded back. What must hold from one row to the next is compared on the way, and so are the offsets, and the rollups day
 * by day (`AuditSums`); what accounts and transfers must be by then, in the last slice, which reads them in the same transaction as the
 * last rows. So whatever is written meanwhile is either read too or not there yet: it causes no finding and hides none.
 *
 * An audit may begin behind rows that were found right before (`Checkpoint`). Then it looks at what came since: the rows, and the accounts that
 * they touch. What was changed in older rows, only an audit of everything finds; it alone looks at the rollups.
 *
 * Of several writers one may commit rows that lie before those that another has committed. So there the slices go up to a place that no
 * batch writes before any more (`SafeHorizon`), which is the checkpoint too. What comes behind it is read at one moment with what all must have come
 * to. A moment that lasted for the whole audit would keep the server from taking away old versions of rows that every charge changes.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { beginningOf, comparisonOf, DailySums, measureColumns } from "./AuditSums.ts"
import type { Day, MeasuredRow, Place as RollupPlace } from "./AuditSums.ts"
import { lastUpTo, offsetEvery, tables } from "../rows/RowLinks.ts"
import type { DimensionsRow } from "../rows/Dimensions.ts"
import { usd } from "../rules/Check.ts"
import type { CheckRow } from "../rules/Check.ts"
import { quick } from "./Checkpoint.ts"
import type { Checkpoint, Pace, Progress } from "./Checkpoint.ts"
import { minus, plus } from "../totals/RecordOrder.ts"
import { escrowEndSet, outsideSet } from "../rows/Relations.ts"
import { rollups } from "../rows/Rollups.ts"
import { accountsTable } from "../rows/Rows.ts"
import { exact, valueRead } from "../totals/SortedIndex.ts"
import { valueOf } from "../totals/Varints.ts"
import type { Value } from "../totals/Varints.ts"

function sumsSentence(table: string) {
  return ({ expected, found, id }: CheckRow) => `${table} says ${found} for ${id}, but the records sum to ${expected}`
}

/** The rules that an audit looks at, and how a finding of each reads. */
export const sentences = {
  "balance is the sum of its entries": ({ expected, found, id }) =>
    `${id} has a balance of ${usd(found)}, but its entries sum to ${usd(expected)}`,
  "balance is that of the last entry": ({ expected, found, id }) =>
    `${id} has a balance of ${usd(found)}, but its last entry says ${usd(expected)}`,
  "giftable credit is that of the last entry": ({ expected, found, id }) =>
    `${id} may give away ${usd(found)}, but its last entry says ${usd(expected)}`,
  "funded is whether credit was bought or received": ({ expected, id }) =>
    expected === "1"
      ? `${id} bought or received credit, but is not marked as funded`
      : `${id} is marked as funded, but never bought or received credit`,
  "held is what waits in escrow": ({ expected, found, id }) =>
    `${id} holds ${usd(found)} in escrow, but its open transfers come to ${usd(expected)}`,
  "credit is neither made nor lost": ({ expected, found }) =>
    `purchases and grants less charges come to ${usd(expected)}, but balances and escrow to ${usd(found)}`,
  "entries are numbered without a gap": ({ expected, found, id }) =>
    `entry ${id} has number ${found} where ${expected} should come`,
  "entries are counted": ({ expected, found, id }) => `${id} counts ${found} entries, but has ${expected}`,
  "each balance follows from the one before": ({ expected, found, id }) =>
    `entry ${id} leaves a balance of ${usd(found)}, but the one before it and its amount make ${usd(expected)}`,
  "each giftable part follows from the one before": ({ expected, found, id }) =>
    `entry ${id} leaves ${usd(found)} to give away, but the one before it and its source make ${usd(expected)}`,
  "giftable credit is part of the balance": ({ expected, found, id }) =>
    `entry ${id} says that ${usd(found)} of ${usd(expected)} may be given away`,
  "a source fits its direction": ({ expected, found, id }) =>
    `entry ${id} has the source ${found}, where ${expected} is due`,
  "a transfer pays out once": ({ expected, found, id }) =>
    `transfer ${id} shows ${found} nano-USD, but ${expected} is right`,
  "entries are in the order of time": ({ expected, found, id }) =>
    `entry ${id} was made at ${found}, before the one that precedes it (${expected})`,
  "a call says what it was": ({ expected, found, id }) =>
    `${id} should have dimensions of ${expected}, but has ${found}`,
  "a cost has one debit": ({ expected, found, id }) =>
    `usage record ${id} calls for ${expected} (nano-USD), but there is ${found}`,
  "a debit has one cost": ({ expected, id }) => `entry ${id} charges for ${expected}, which does not exist`,
  "the payer is an account of its tenant": ({ expected, found, id }) =>
    `usage record ${id} was paid by tenant ${found}, but its account says ${expected}`,
  "records are numbered without a gap": ({ expected, found, id }) =>
    `usage record ${id} has number ${found} where ${expected} should come`,
  "records are in the order of time": ({ expected, found, id }) =>
    `usage record ${id} was made at ${found}, before the one that precedes it (${expected})`,
  "each entry points to the one before": ({ expected, found, id }) =>
    `entry ${id} points to row ${found}, but the one before it is ${expected}`,
  "each record points to the one before": ({ expected, found, id }) =>
    `usage record ${id} points to row ${found}, but the one before it is ${expected}`,
  "tollgate_ledger_amounts names the newest entry": ({ expected, found, id }) =>
    `tollgate_ledger_amounts says that the newest entry of ${id} is row ${found}, but it is ${expected}`,
  "tollgate_usage_heads names the newest record": ({ expected, found, id }) =>
    `tollgate_usage_heads says ${found} for ${id}, but it has ${expected}`,
  "tollgate_ledger_offsets says where entries are": ({ expected, found, id }) =>
    `tollgate_ledger_offsets says ${found} for ${id}, but the entries make that ${expected}`,
  "tollgate_usage_offsets says where records are": ({ expected, found, id }) =>
    `tollgate_usage_offsets says ${found} for ${id}, but the records make that ${expected}`,
  "a watermark is the number of a record": ({ expected, found, id }) =>
    `tollgate_usage_watermarks says that the sums of ${id} go up to record ${found}, but its records are ${expected}`,
  "tollgate_usage_by_tenant sums the records": sumsSentence("tollgate_usage_by_tenant"),
  "tollgate_usage_by_caller sums the records": sumsSentence("tollgate_usage_by_caller"),
  "tollgate_usage_by_payer sums the records": sumsSentence("tollgate_usage_by_payer")
} as const satisfies Readonly<Record<string, (row: CheckRow) => string>>
export type AuditCheck = keyof typeof sentences

export type Report = (check: AuditCheck, row: CheckRow) => void

interface EntryRow {
  readonly seq: number
  readonly account: string
  readonly number: number
  readonly type: string
  readonly amount: number | string
  readonly balance: number | string
  readonly giftable: number | string
  readonly source: string | null
  readonly reference: string
  readonly at: number
  readonly previous: number | null
}

interface RecordRow extends MeasuredRow {
  readonly seq: number
  readonly id: string
  readonly dimensions: number
  readonly cost: number | string
  readonly previous: number | null
}

interface AccountRow {
  readonly id: string
  readonly giftable: number | string
  readonly granted: number | string
  readonly held: number | string
  readonly funded: number
  readonly entries: number
  readonly newest: number | null
}

/** The newest row of an owner, when it was made, and how many rows behind the checkpoint have an offset. */
interface Chain {
  newest: number | null
  at: number
  offsets: number
}

/** A row that has an offset. */
interface Offset {
  readonly owner: string
  readonly number: number
  readonly seq: number
  readonly at: number
}

/** Sums of a tenant's records. */
interface Tenant extends Chain {
  number: number
}

/** Sums of an account's entries. */
interface Account extends Chain {
  number: number
  balance: Value
  giftable: Value
  sum: Value
  count: number
  funded: boolean
}

/** Sums of a transfer's entries. */
interface Transfer {
  readonly escrows: Array<{ readonly account: string; readonly amount: Value }>
  payments: number
  paid: Value
}

/** A call whose cost and debits do not match yet. */
interface Call {
  cost: { readonly amount: Value; readonly payer: string } | undefined
  count: number
  amount: Value
  account: string
  readonly entries: Array<string>
}

interface Dimensions extends DimensionsRow {
  /** Whose the account is that pays; null where there is none. */
  readonly account_tenant: string | null
}

// Rows are read as lists in the order of these columns, which costs the driver less than half of what objects do.
const entryColumns = `e.seq, e.billing_account_id AS account, e.number, e.type, ${exact("e.amount")} AS amount,
  ${exact("e.balance")} AS balance, ${exact("e.giftable")} AS giftable, e.source, e.reference_id AS reference, e.at,
  e.previous`

const entryOf = (row: ReadonlyArray<unknown>) =>
  ({
    seq: row[0],
    account: row[1],
    number: row[2],
    type: row[3],
    amount: row[4],
    balance: row[5],
    giftable: row[6],
    source: row[7],
    reference: row[8],
    at: row[9],
    previous: row[10]
  }) as EntryRow

const recordColumns = `r.seq, r.id, r.tenant_id AS tenant, r.number, r.at, r.dimensions, ${exact("r.cost")} AS cost,
  r.previous, ${measureColumns}`

const recordOf = (row: ReadonlyArray<unknown>) =>
  ({
    seq: row[0],
    id: row[1],
    tenant: row[2],
    number: row[3],
    at: row[4],
    dimensions: row[5],
    cost: row[6],
    previous: row[7],
    success: row[8],
    prompt_tokens: row[9],
    completion_tokens: row[10],
    units: row[11],
    latency_ms: row[12]
  }) as RecordRow

const selectDimensions = `SELECT d.*, a.tenant_id AS account_tenant
  FROM tollgate_usage_dimensions d LEFT JOIN tollgate_ledger_accounts a ON a.id = d.billing_account_id`

const nobody = "nobody knows"

/** Sums of the rows that were read so far. It knows no SQL. */
class RunningTotals {
  readonly accounts = new Map<string, Account>()
  readonly tenants = new Map<string, Tenant>()
  readonly dimensions = new Map<number, Dimensions | undefined>()
  readonly calls = new Map<string, Call>()
  readonly sums = new DailySums()
  /** Those that were met since they were last taken. */
  entryOffsets: Array<Offset> = []
  recordOffsets: Array<Offset> = []
  private readonly transfers = new Map<string, Transfer>()
  entryAt = -1
  recordAt = -1
  world: Value
  revenue: Value
  readonly report: Report
  readonly whole: boolean

  constructor(since: Checkpoint, report: Report) {
    this.world = valueOf(since.world)
    this.revenue = valueOf(since.revenue)
    this.whole = since.entry === 0
    this.report = report
  }

  /** The checkpoint behind what was read. */
  checkpointAt({ entry, record }: Place): Checkpoint {
    return { entry, record, world: BigInt(this.world), revenue: BigInt(this.revenue) }
  }

  /** The account begins behind this entry, or with its first. */
  begin(id: string, last: EntryRow | undefined): void {
    const balance = last === undefined ? 0 : valueRead(last.balance)
    this.accounts.set(id, {
      number: last?.number ?? 0,
      balance,
      giftable: last === undefined ? 0 : valueRead(last.giftable),
      sum: balance,
      count: last?.number ?? 0,
      funded: false,
      newest: last?.seq ?? null,
      at: last?.at ?? -1,
      offsets: 0
    })
  }

  readEntry(row: EntryRow): void {
    const { at, number, source } = row
    const account = this.accounts.get(row.account)!
    const amount = valueRead(row.amount)
    const balance = valueRead(row.balance)
    const giftable = valueRead(row.giftable)
    const isCredit = row.type === "credit"
    const due = isCredit ? plus(account.balance, amount) : minus(account.balance, amount)
    const giftableDue = giftableBehind(account, isCredit, source, amount)
    if (number !== account.number + 1)
      this.offEntry(row, "entries are numbered without a gap", account.number + 1, number)
    if (balance !== due) this.offEntry(row, "each balance follows from the one before", due, balance)
    if (giftable !== giftableDue)
      this.offEntry(row, "each giftable part follows from the one before", giftableDue, giftable)
    if (giftable < 0 || giftable > balance)
      this.offEntry(row, "giftable credit is part of the balance", balance, giftable)
    if (isCredit ? !creditSources.has(source) : !debitSources.has(source))
      this.offEntry(
        row,
        "a source fits its direction",
        isCredit ? "a source of credit" : "escrow, a purchase or allowance taken back, or none",
        source ?? "none"
      )
    // With several writers the order of an owner's rows is that of time, not the order of all.
    if (at < account.at) this.offEntry(row, "entries are in the order of time", account.at, at)
    account.number = number
    account.balance = balance
    account.giftable = giftable
    account.sum = isCredit ? plus(account.sum, amount) : minus(account.sum, amount)
    account.count++
    if (row.previous !== account.newest)
      this.offEntry(row, "each entry points to the one before", account.newest ?? "none", row.previous ?? "none")
    goOn(account, row.account, row, this.entryOffsets)
    if (isCredit && (source === "purchase" || source === "transfer_release")) account.funded = true
    this.entryAt = at
    this.move(row, isCredit, amount)
  }

  /** The other side of an entry. */
  private move(row: EntryRow, isCredit: boolean, amount: Value): void {
    const { account, reference, source } = row
    if (source === null) {
      if (isCredit) return
      this.revenue = plus(this.revenue, amount)
      this.readDebit(reference, account, amount, entryName(row))
    } else if (outsideSet.has(source)) {
      this.world = isCredit ? minus(this.world, amount) : plus(this.world, amount)
    } else {
      let transfer = this.transfers.get(reference)
      if (transfer === undefined) this.transfers.set(reference, (transfer = { escrows: [], payments: 0, paid: 0 }))
      if (source === "transfer_escrow") transfer.escrows.push({ account, amount })
      else if (escrowEndSet.has(source)) {
        transfer.payments++
        transfer.paid = plus(transfer.paid, amount)
      }
    }
  }

  private readDebit(id: string, account: string, amount: Value, name: string): void {
    const call = this.callOf(id)
    call.count++
    call.amount = plus(call.amount, amount)
    if (call.account === "" || account < call.account) call.account = account
    if (call.entries.length < 2) call.entries.push(name)
    this.settle(id, call)
  }

  readRecord(row: RecordRow): void {
    const { at, id, number, tenant } = row
    const all = this.tenants.get(tenant)!
    const known = this.dimensions.get(row.dimensions)
    const off = (check: AuditCheck, expected: string, found: string) => this.report(check, { id, expected, found })
    if (known?.tenant_id !== tenant)
      off("a call says what it was", tenant, known === undefined ? "none" : `those of ${known.tenant_id}`)
    if (known === undefined || known.account_tenant !== known.billing_source_tenant_id)
      off(
        "the payer is an account of its tenant",
        known?.account_tenant ?? "an account",
        known?.billing_source_tenant_id ?? nobody
      )
    if (number !== all.number + 1) off("records are numbered without a gap", `${all.number + 1}`, `${number}`)
    if (at < all.at) off("records are in the order of time", `${all.at}`, `${at}`)
    const cost = valueRead(row.cost)
    if (cost !== 0) {
      const call = this.callOf(id)
      call.cost = { amount: cost, payer: known?.billing_account_id ?? nobody }
      this.settle(id, call)
    }
    if (this.whole && known !== undefined) this.sums.read(row, cost, known)
    all.number = number
    if (row.previous !== all.newest)
      off("each record points to the one before", `${all.newest ?? "none"}`, `${row.previous ?? "none"}`)
    goOn(all, tenant, row, this.recordOffsets)
    this.recordAt = at
  }

  private callOf(id: string): Call {
    let call = this.calls.get(id)
    if (call === undefined)
      this.calls.set(id, (call = { cost: undefined, count: 0, amount: 0, account: "", entries: [] }))
    return call
  }

  /** Forgets a call that is in order: of millions only those remain that are not. */
  private settle(id: string, { account, amount, cost, count }: Call): void {
    if (cost !== undefined && count === 1 && amount === cost.amount && account === cost.payer) this.calls.delete(id)
  }

  /** The stored accounts: all of them or, after a checkpoint, those with new entries. */
  compareAccounts(rows: ReadonlyArray<AccountRow>): void {
    const held = this.whole ? this.escrows() : undefined
    for (const row of rows) {
      const balance = plus(valueRead(row.giftable), valueRead(row.granted))
      const made = this.accounts.get(row.id) ?? noEntries
      const same = (check: AuditCheck, expected: Value, found: Value) => {
        if (expected !== found) this.report(check, { id: row.id, expected: `${expected}`, found: `${found}` })
      }
      same("balance is the sum of its entries", made.sum, balance)
      same("balance is that of the last entry", made.balance, balance)
      same("giftable credit is that of the last entry", made.giftable, valueRead(row.giftable))
      same("entries are counted", made.count, row.entries)
      if (made.newest !== row.newest)
        this.report("tollgate_ledger_amounts names the newest entry", {
          id: row.id,
          expected: `${made.newest ?? "none"}`,
          found: `${row.newest ?? "none"}`
        })
      // Whether an account was funded before the checkpoint is not known here.
      if (this.whole || made.funded)
        same("funded is whether credit was bought or received", made.funded ? 1 : 0, row.funded)
      if (held !== undefined) same("held is what waits in escrow", held.get(row.id) ?? 0, valueRead(row.held))
    }
    const ids = new Set(rows.map(({ id }) => id))
    for (const [id, { sum }] of this.accounts) {
      if (!ids.has(id))
        this.report("balance is the sum of its entries", { id, expected: `${sum}`, found: "no account" })
    }
  }

  compareTotals(customers: bigint, escrow: bigint): void {
    const made = -(BigInt(this.world) + BigInt(this.revenue))
    if (made !== customers + escrow)
      this.report("credit is neither made nor lost", {
        id: "all accounts",
        expected: `${made}`,
        found: `${customers + escrow}`
      })
  }

  /** The escrow of each account, computed from its entries. */
  private escrows(): ReadonlyMap<string, Value> {
    const held = new Map<string, Value>()
    for (const { escrows, paid } of this.transfers.values()) {
      for (const { account, amount } of escrows) held.set(account, plus(held.get(account) ?? 0, minus(amount, paid)))
    }
    return held
  }

  compareTransfers(): void {
    for (const [id, { escrows, paid, payments }] of this.transfers) {
      // Behind a checkpoint only its end may have been read.
      if (!this.whole && escrows.length === 0 && payments === 1) continue
      const escrow = escrows.reduce<Value>((sum, { amount }) => plus(sum, amount), 0)
      if (escrows.length === 1 && payments <= 1 && (payments === 0 || paid === escrow)) continue
      this.report("a transfer pays out once", {
        id,
        expected: `${escrow} in escrow once, paid out at most once`,
        found: `${escrows.length} escrows, ${payments} payments of ${paid}`
      })
    }
  }

  /** The remainder: costs without a matching debit, and debits whose record, if there is one, has no cost or another debit. */
  compareCalls(
    ids: ReadonlyArray<string>,
    records: ReadonlyMap<string, { readonly cost: Value; readonly payer: string }>
  ): void {
    for (const id of ids) {
      const call = this.calls.get(id)!
      const record = call.cost === undefined ? records.get(id) : undefined
      if (call.cost === undefined && record === undefined) {
        for (const entry of call.entries)
          this.report("a debit has one cost", { id: entry, expected: `usage record ${id}`, found: "none" })
        continue
      }
      const cost = call.cost?.amount ?? record!.cost
      const payer = call.cost?.payer ?? record!.payer
      // One that had its debit was forgotten, and now there is another.
      const before = record === undefined ? 0 : record.cost
      const count = call.count + (before === 0 ? 0 : 1)
      this.report("a cost has one debit", {
        id,
        expected: cost === 0 ? "no debit" : `1 debit of ${cost} on ${payer}`,
        found: count === 0 ? "no debit" : `${count} debits of ${plus(call.amount, before)} on ${call.account}`
      })
    }
  }

  private offEntry(row: EntryRow, check: AuditCheck, expected: Value | string, found: Value | string): void {
    this.report(check, { id: entryName(row), expected: `${expected}`, found: `${found}` })
  }
}

const noEntries: Account = {
  number: 0,
  balance: 0,
  giftable: 0,
  sum: 0,
  count: 0,
  funded: false,
  newest: null,
  at: -1,
  offsets: 0
}

/** The owner has this row too; where it has an offset, that is put there. */
const goOn = (
  chain: Chain,
  owner: string,
  { at, number, seq }: { readonly seq: number; readonly number: number; readonly at: number },
  offsets: Array<Offset>
): void => {
  chain.newest = seq
  chain.at = at
  if (number % offsetEvery !== 0) return
  chain.offsets++
  offsets.push({ owner, number, seq, at })
}

const entryName = ({ account, number }: EntryRow): string => `${account} #${number}`

const creditSources: ReadonlySet<string | null> = new Set([...outsideSet, ...escrowEndSet])
const debitSources: ReadonlySet<string | null> = new Set([null, "transfer_escrow", "purchase", "allowance"])

/**
 * A charge spends granted credit first; a transfer takes giftable credit only; a payment that is taken back takes that first; an allowance
 * that is taken back takes none.
 */
const giftableBehind = (
  { balance, giftable }: Account,
  isCredit: boolean,
  source: string | null,
  amount: Value
): Value => {
  if (isCredit) return source === "purchase" || escrowEndSet.has(source!) ? plus(giftable, amount) : giftable
  if (source === "transfer_escrow") return minus(giftable, amount)
  if (source === "allowance") return giftable
  const left = minus(source === "purchase" ? giftable : balance, amount)
  if (source === "purchase") return left > 0 ? left : 0
  return left < giftable ? left : giftable
}

// ---- slices -------------------------------------------------------------------------------------------------------------

/** The places of an entry and of a record. */
interface Place {
  entry: number
  record: number
}

export interface ConcurrentWriters {
  /** A place before which nothing is written any more. */
  readonly first: Readonly<Place>
  /** The same later on; `undefined` where it cannot be known at the moment. */
  readonly end: Effect.Effect<Readonly<Place> | undefined>
  /** Reads all that an effect asks for as it was at one moment. */
  readonly atOneMoment: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
}

/** Reads what there is behind the checkpoint, and reports what is off; answers the checkpoint that the next one goes on from. */
export const audit = Effect.fnUntraced(function* (
  since: Checkpoint,
  report: Report,
  progress: (progress: Progress) => Effect.Effect<void>,
  pace: Pace = quick,
  several?: ConcurrentWriters
) {
  const sql = yield* SqlClient
  const totals = new RunningTotals(since, report)
  const reader = readerOf(sql, since, totals)
  const { lastRows, place } = reader
  const comparer = comparerOf(sql, totals, reader.rest, pace, several?.atOneMoment ?? sql.withTransaction)
  const newest = Effect.map(
    sql<Place>`SELECT COALESCE((SELECT MAX(seq) FROM tollgate_ledger_entries), 0) AS entry,
      COALESCE((SELECT MAX(seq) FROM tollgate_usage_records), 0) AS record`,
    ([row]) => row!
  )
  const behind = ({ entry, record }: Readonly<Place>) => entry - place.entry + record - place.record
  let last: Readonly<Place> = several?.first ?? (yield* newest)
  for (let rows = 0; behind(last) > 0;) {
    // The one whose time is behind comes first, so that a cost and its debit are met close to each other.
    const isEntry = place.record >= last.record || (place.entry < last.entry && totals.entryAt <= totals.recordAt)
    rows += yield* isEntry ? reader.entries(pace.slice, last.entry) : reader.records(pace.slice, last.record)
    yield* comparer.offsets
    yield* progress({ rows, of: last.entry - since.entry + last.record - since.record })
    yield* pace.pause
    yield* comparer.daysOver
    if (behind(last) > 0) continue
    // Rows written meanwhile are read in slices too: the last transaction reads only the rest, less than a slice.
    const now = several === undefined ? yield* newest : yield* several.end
    if (now !== undefined && behind(now) > pace.slice) last = now
  }
  const checkpoint = totals.checkpointAt(lastRows)
  const lastMoment = Effect.gen(function* () {
    if (totals.whole) yield* comparer.rest
    yield* sql.withTransaction(reader.last)
  })
  yield* several === undefined ? lastMoment : several.atOneMoment(lastMoment)
  yield* comparer.offsets
  return several === undefined ? totals.checkpointAt(lastRows) : checkpoint
}, Effect.orDie)

const readerOf = (sql: SqlClient, since: Checkpoint, totals: RunningTotals) => {
  const whole = since.entry === 0
  const place: Place = { entry: since.entry, record: since.record }
  /**
   * The last rows that were read. A checkpoint is a row's place, not a number that no row got: where books are copied to the other engine, the next
   * row has the number behind the last one.
   */
  const lastRows: Place = { ...place }

  /** Where an account stood at the checkpoint. */
  const begin = Effect.fnUntraced(function* (id: string) {
    const [last] = whole ? [] : yield* sql<EntryRow>`${lastUpTo(sql, "e", id, since.entry, entryColumns)}`
    totals.begin(id, last)
  })

  /** Reads on, so many at most and up to this one; answers how many there were. */
  const entries = Effect.fnUntraced(function* (limit: number, end: number) {
    const rows = yield* sql.unsafe(
      `SELECT ${entryColumns} FROM tollgate_ledger_entries e WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?`,
      [place.entry, end, limit]
    ).values
    for (const values of rows) {
      const row = entryOf(values)
      if (!totals.accounts.has(row.account)) yield* begin(row.account)
      totals.readEntry(row)
      place.entry = lastRows.entry = row.seq
    }
    // Numbers that no row got are behind it too.
    if (rows.length < limit && end < everything) place.entry = end
    return rows.length
  })

  /** Where a tenant stood at the checkpoint. */
  const beginTenant = Effect.fnUntraced(function* (tenant: string) {
    const [last] = whole
      ? []
      : yield* sql<{ readonly seq: number; readonly number: number; readonly at: number }>`${lastUpTo(
          sql,
          "r",
          tenant,
          since.record,
          "r.seq, r.number, r.at"
        )}`
    totals.tenants.set(tenant, { number: last?.number ?? 0, newest: last?.seq ?? null, at: last?.at ?? -1, offsets: 0 })
  })

  const know = Effect.fnUntraced(function* (rows: ReadonlyArray<RecordRow>) {
    const missing = new Set<number>()
    for (const { dimensions } of rows) if (!totals.dimensions.has(dimensions)) missing.add(dimensions)
    if (missing.size === 0) return
    for (const number of missing) totals.dimensions.set(number, undefined)
    const found = yield* sql.unsafe<Dimensions>(
      `${selectDimensions} WHERE d.number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`,
      [JSON.stringify([...missing])]
    )
    for (const one of found) totals.dimensions.set(one.number, one)
  })

  const records = Effect.fnUntraced(function* (limit: number, end: number) {
    const values = yield* sql.unsafe(
      `SELECT ${recordColumns} FROM tollgate_usage_records r WHERE r.seq > ? AND r.seq <= ? ORDER BY r.seq LIMIT ?`,
      [place.record, end, limit]
    ).values
    const rows = values.map(recordOf)
    yield* know(rows)
    for (const row of rows) {
      if (!totals.tenants.has(row.tenant)) yield* beginTenant(row.tenant)
      totals.readRecord(row)
      place.record = lastRows.record = row.seq
    }
    if (rows.length < limit && end < everything) place.record = end
    return rows.length
  })

  const accountsNow = Effect.gen(function* () {
    const touched = whole
      ? sql.literal("")
      : sql`WHERE id IN (SELECT value FROM json_each(${JSON.stringify([...totals.accounts.keys()])}))`
    const rows =
      yield* sql<AccountRow>`SELECT ${sql.literal(accountColumns)} FROM ${sql.literal(accountsTable)} ${touched}`
    totals.compareAccounts(rows)
    const [sums] = yield* sql<{ readonly customers: string; readonly escrow: string }>`
      SELECT CAST(COALESCE(SUM(giftable + granted), 0) AS TEXT) AS customers, CAST(COALESCE(SUM(held), 0) AS TEXT) AS escrow
      FROM ${sql.literal(accountsTable)}`
    totals.compareTotals(BigInt(sums!.customers), BigInt(sums!.escrow))
  })

  const callsNow = Effect.gen(function* () {
    const ids = [...totals.calls.keys()].slice(0, callsMax)
    const rows = yield* sql<{ readonly id: string; readonly cost: number | string; readonly payer: string | null }>`
      SELECT r.id, ${sql.literal(exact("r.cost"))} AS cost, d.billing_account_id AS payer
      FROM tollgate_usage_records r LEFT JOIN tollgate_usage_dimensions d ON d.number = r.dimensions
      WHERE r.id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
    totals.compareCalls(
      ids,
      new Map(rows.map(({ cost, id, payer }) => [id, { cost: valueRead(cost), payer: payer ?? nobody }]))
    )
  })

  const reservationsNow = Effect.map(
    sql<{ readonly id: string }>`SELECT r.id FROM tollgate_ledger_reservations r
      LEFT JOIN tollgate_usage_dimensions d ON d.number = r.dimensions WHERE d.number IS NULL`,
    (rows) => {
      for (const { id } of rows) totals.report("a call says what it was", { id, expected: "any", found: "none" })
    }
  )

  const headsNow = Effect.suspend(() => {
    const touched = whole
      ? sql.literal("")
      : sql`WHERE h.id IN (SELECT value FROM json_each(${JSON.stringify([...totals.tenants.keys()])}))`
    return Effect.map(
      sql<{ readonly id: string; readonly total: number; readonly newest: number | null }>`
        SELECT h.id, h.total, h.newest FROM ${sql.literal(tables.r.heads)} h ${touched}`,
      (rows) => {
        const heads = new Map(rows.map((row) => [row.id, row]))
        for (const id of new Set([...heads.keys(), ...totals.tenants.keys()])) {
          const [head, tenant] = [heads.get(id), totals.tenants.get(id)]
          // Where several write, a head is locked, and so made, before its tenant has a record.
          const isSame =
            (head?.total ?? 0) === (tenant?.number ?? 0) && (head?.newest ?? null) === (tenant?.newest ?? null)
          if (isSame) continue
          const words = (records: number | undefined, newest: number | null | undefined) =>
            records === undefined ? "nothing" : `${records} records up to row ${newest ?? "none"}`
          totals.report("tollgate_usage_heads names the newest record", {
            id,
            expected: words(tenant?.number, tenant?.newest),
            found: words(head?.total, head?.newest)
          })
        }
      }
    )
  })

  const watermarksNow = Effect.map(
    sql<{
      readonly id: string
      readonly number: number
    }>`SELECT tenant_id AS id, number FROM tollgate_usage_watermarks`,
    (rows) => {
      for (const { id, number } of rows) {
        const records = totals.tenants.get(id)?.number ?? 0
        if (number >= 0 && number <= records) continue
        totals.report("a watermark is the number of a record", {
          id,
          expected: `0 to ${records}`,
          found: `${number}`
        })
      }
    }
  )

  /** The rows that were written since. They are read in portions, since their number is unknown. */
  const rest = Effect.gen(function* () {
    for (const read of [entries, records]) while ((yield* read(restSlice, everything)) === restSlice);
  })

  /** The rows that were written meanwhile, and what all of them must have come to, at one moment. */
  const last = Effect.gen(function* () {
    yield* rest
    yield* accountsNow
    yield* callsNow
    yield* reservationsNow
    yield* headsNow
    if (whole) yield* watermarksNow
    totals.compareTransfers()
  })

  return { place, lastRows, entries, records, rest, last }
}

// ---- offsets and rollups ------------------------------------------------------------------------------------------------

const entryOffsets = {
  check: "tollgate_ledger_offsets says where entries are",
  ...tables.e,
  at: "NULL"
} as const

const recordOffsets = {
  check: "tollgate_usage_offsets says where records are",
  ...tables.r,
  at: "o.at"
} as const

type OffsetTable = typeof entryOffsets | typeof recordOffsets

/** How many owners' offsets are counted at a time. */
const ownersInSlice = 64

/** Compares what stands beside the rows with what they have come to. `readRest` reads the rows that were written since. */
const comparerOf = (
  sql: SqlClient,
  totals: RunningTotals,
  readRest: Effect.Effect<unknown, SqlError>,
  { pause, slice }: Pace,
  atOneMoment: ConcurrentWriters["atOneMoment"]
) => {
  const sums = comparisonOf(sql, totals.sums, (table, row) => totals.report(`${table} sums the records`, row))
  /** So many groups of a day make as many rows of rollups as take the time of a slice. */
  const portionSize = Math.ceil(slice / 8)

  /** An offset is written with its row, and never changes. */
  const compareOffsets = Effect.fnUntraced(function* (
    { at: atColumn, check, heads, offsets }: OffsetTable,
    met: ReadonlyArray<Offset>
  ) {
    if (met.length === 0) return
    const rows = yield* sql.unsafe<{ readonly seq: number | null; readonly at: number | null }>(
      `SELECT o.seq, ${atColumn} AS at FROM json_each(?) m LEFT JOIN ${heads} h ON h.id = json_extract(m.value, '$[0]')
        LEFT JOIN ${offsets} o ON o.owner = h.owner AND o.number = CAST(json_extract(m.value, '$[1]') AS BIGINT)
        ORDER BY CAST(m.key AS BIGINT)`,
      [JSON.stringify(met.map(({ number, owner }) => [owner, number]))]
    )
    for (let i = 0; i < met.length; i++) {
      const { at, number, owner, seq } = met[i]!
      const row = rows[i]!
      if (row.seq === seq && (row.at === at || atColumn === "NULL")) continue
      const words = (seq: number | null, at: number | null) =>
        seq === null ? "nothing" : atColumn === "NULL" ? `row ${seq}` : `row ${seq} at ${at}`
      totals.report(check, { id: `${owner} #${number}`, expected: words(seq, at), found: words(row.seq, row.at) })
    }
  })

  const offsetsCounted = Effect.fnUntraced(function* (
    { check, heads, offsets }: OffsetTable,
    all: ReadonlyMap<string, Chain>
  ) {
    interface CountRow {
      readonly owner: number
      readonly id: string | null
      readonly count: number
    }
    for (let last: number | undefined = 0; last !== undefined;) {
      const counts: ReadonlyArray<CountRow> = yield* sql.withTransaction(
        Effect.zipRight(
          readRest,
          sql.unsafe<CountRow>(
            `SELECT c.owner, c.count, h.id FROM (
              SELECT owner, COUNT(*) AS count FROM ${offsets} WHERE owner > ? GROUP BY 1 ORDER BY 1 LIMIT ${ownersInSlice}
            ) c LEFT JOIN ${heads} h ON h.owner = c.owner ORDER BY 1`,
            [last]
          )
        )
      )
      for (const { count, id, owner } of counts) {
        const due = id === null ? 0 : (all.get(id)?.offsets ?? 0)
        if (count !== due)
          totals.report(check, { id: id ?? `owner ${owner}`, expected: `${due} offsets`, found: `${count} offsets` })
      }
      last = counts.at(-1)?.owner
      yield* pause
    }
  })

  /** Those that were met since it was last asked for. */
  const offsets = Effect.suspend(() => {
    const { entryOffsets: entries, recordOffsets: records } = totals
    totals.entryOffsets = []
    totals.recordOffsets = []
    return Effect.zipRight(compareOffsets(entryOffsets, entries), compareOffsets(recordOffsets, records))
  })

  const compareDay = Effect.fnUntraced(function* (
    day: Day,
    within: <A>(effect: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>
  ) {
    for (let i = 0; i < rollups.length; i++) {
      for (const owners of day.portions(i, portionSize)) {
        yield* within(sums.compare(day, i, owners))
        yield* pause
      }
    }
  })

  const daysOver = Effect.suspend(() =>
    Effect.forEach(totals.sums.takeOver(), (day) => compareDay(day, atOneMoment), { discard: true })
  )

  /** The last day, and what is there without any row. Records may come at any time, so each transaction first reads what came. */
  const rest = Effect.gen(function* () {
    const withRest = <A>(effect: Effect.Effect<A, SqlError>) => sql.withTransaction(Effect.zipRight(readRest, effect))
    for (const day of totals.sums.takeAll()) yield* compareDay(day, withRest)
    for (let i = 0; i < rollups.length; i++) {
      for (let from: RollupPlace | undefined = beginningOf(rollups[i]!); from !== undefined;) {
        const strays: Effect.Effect<RollupPlace | undefined, SqlError> = sums.strays(i, from, slice)
        from = yield* sql.withTransaction(Effect.zipRight(readRest, strays))
        yield* pause
      }
    }
    yield* offsetsCounted(entryOffsets, totals.accounts)
    yield* offsetsCounted(recordOffsets, totals.tenants)
  })

  return { offsets, daysOver, rest }
}

const everything = Number.MAX_SAFE_INTEGER

/** How many of the rows that were written meanwhile are read at a time. */
const restSlice = 4096

/** How many calls that are off are looked at: more than are ever reported. */
const callsMax = 10_000

const accountColumns = `id, ${exact("giftable")} AS giftable, ${exact("granted")} AS granted, ${exact("held")} AS held, funded, entries,
  newest`
