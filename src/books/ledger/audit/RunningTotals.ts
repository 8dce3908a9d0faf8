/**
 * Sums the rows that an audit has read so far, and compares each row with the owner's previous row. At the end, it compares the sums with the stored
 * accounts and their total, and checks the transfers and calls. This file contains no SQL.
 */
import { offsetEvery } from "../rows/RowLinks.ts"
import type { DimensionsRow } from "../rows/Dimensions.ts"
import { escrowEndSet, outsideSet } from "../rows/Relations.ts"
import { minus, plus } from "../totals/RecordOrder.ts"
import { valueRead } from "../totals/SortedIndex.ts"
import { valueOf } from "../totals/Varints.ts"
import type { Value } from "../totals/Varints.ts"
import type { AuditCheck, Report } from "./AuditRules.ts"
import { DailySums } from "./AuditSums.ts"
import type { MeasuredRow } from "./AuditSums.ts"
import type { Checkpoint } from "./Checkpoint.ts"

export interface EntryRow {
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

export interface RecordRow extends MeasuredRow {
  readonly seq: number
  readonly id: string
  readonly dimensions: number
  readonly cost: number | string
  readonly previous: number | null
}

export interface AccountRow {
  readonly id: string
  readonly giftable: number | string
  readonly granted: number | string
  readonly held: number | string
  readonly funded: number
  readonly entries: number
  readonly newest: number | null
}

/** An owner's newest row, its time, and the number of offsets after the checkpoint. */
export interface Chain {
  newest: number | null
  at: number
  offsets: number
}

export interface Offset {
  readonly owner: string
  readonly number: number
  readonly seq: number
  readonly at: number
}

interface Tenant extends Chain {
  number: number
}

interface Account extends Chain {
  number: number
  balance: Value
  giftable: Value
  sum: Value
  count: number
  funded: boolean
}

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

export interface Dimensions extends DimensionsRow {
  /** The tenant of the paying account; `null` if the account does not exist. */
  readonly account_tenant: string | null
}

/** The row numbers of an entry and a record. */
export interface Place {
  entry: number
  record: number
}

export const unknownPayer = "unknown"

export class RunningTotals {
  readonly accounts = new Map<string, Account>()
  readonly tenants = new Map<string, Tenant>()
  readonly dimensions = new Map<number, Dimensions | undefined>()
  readonly calls = new Map<string, Call>()
  readonly sums = new DailySums()
  /** The offsets read since the last comparison. */
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

  checkpointAt({ entry, record }: Place): Checkpoint {
    return { entry, record, world: BigInt(this.world), revenue: BigInt(this.revenue) }
  }

  /** Starts an account's sums after the entry `last`, or at zero without one. */
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
    const giftableDue = giftableAfter(account, isCredit, source, amount)
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
        isCredit ? "a source of credit" : "escrow, a purchase, grant or allowance taken back, or none",
        source ?? "none"
      )
    // With several writers, only the rows of one owner are in chronological order.
    if (at < account.at) this.offEntry(row, "entries are in the order of time", account.at, at)
    account.number = number
    account.balance = balance
    account.giftable = giftable
    account.sum = isCredit ? plus(account.sum, amount) : minus(account.sum, amount)
    account.count++
    if (row.previous !== account.newest)
      this.offEntry(row, "each entry points to the one before", account.newest ?? "none", row.previous ?? "none")
    advance(account, row.account, row, this.entryOffsets)
    if (isCredit && (source === "purchase" || source === "transfer_release")) account.funded = true
    this.entryAt = at
    this.move(row, isCredit, amount)
  }

  /** Adds the other side of an entry to the sums. */
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
      off("a call has dimensions of its tenant", tenant, known === undefined ? "none" : `those of ${known.tenant_id}`)
    if (known === undefined || known.account_tenant !== known.billing_source_tenant_id)
      off(
        "the payer is an account of its tenant",
        known?.account_tenant ?? "an account",
        known?.billing_source_tenant_id ?? unknownPayer
      )
    if (number !== all.number + 1) off("records are numbered without a gap", `${all.number + 1}`, `${number}`)
    if (at < all.at) off("records are in the order of time", `${all.at}`, `${at}`)
    const cost = valueRead(row.cost)
    if (cost !== 0) {
      const call = this.callOf(id)
      call.cost = { amount: cost, payer: known?.billing_account_id ?? unknownPayer }
      this.settle(id, call)
    }
    if (this.whole && known !== undefined) this.sums.read(row, cost, known)
    all.number = number
    if (row.previous !== all.newest)
      off("each record points to the one before", `${all.newest ?? "none"}`, `${row.previous ?? "none"}`)
    advance(all, tenant, row, this.recordOffsets)
    this.recordAt = at
  }

  private callOf(id: string): Call {
    let call = this.calls.get(id)
    if (call === undefined)
      this.calls.set(id, (call = { cost: undefined, count: 0, amount: 0, account: "", entries: [] }))
    return call
  }

  /** Drops a call if its cost matches its debit. Only mismatches remain in memory. */
  private settle(id: string, { account, amount, cost, count }: Call): void {
    if (cost !== undefined && count === 1 && amount === cost.amount && account === cost.payer) this.calls.delete(id)
  }

  /** Compares stored accounts: all accounts or, after a checkpoint, those with new entries. */
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
      // After a checkpoint, earlier funding is unknown.
      if (this.whole || made.funded)
        same("funded means that credit was bought or received", made.funded ? 1 : 0, row.funded)
      if (held !== undefined) same("held is the credit in escrow", held.get(row.id) ?? 0, valueRead(row.held))
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

  private escrows(): ReadonlyMap<string, Value> {
    const held = new Map<string, Value>()
    for (const { escrows, paid } of this.transfers.values()) {
      for (const { account, amount } of escrows) held.set(account, plus(held.get(account) ?? 0, minus(amount, paid)))
    }
    return held
  }

  compareTransfers(): void {
    for (const [id, { escrows, paid, payments }] of this.transfers) {
      // After a checkpoint, the audit might have read only a transfer's end.
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

  /** Reports costs without exactly one matching debit, and debits without a record or for a free one. */
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
      // Without a cost here, the call was dropped after its first debit, and now has another.
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

/** Updates the owner's newest row and adds the row's offset, if it has one. */
const advance = (
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
const debitSources: ReadonlySet<string | null> = new Set([null, "transfer_escrow", "purchase", "admin", "allowance"])

/**
 * Computes the giftable credit after an entry. A charge spends granted credit first, a transfer takes only giftable credit, a refunded payment takes
 * giftable credit first, and taking back an allowance or grant takes none.
 */
const giftableAfter = (
  { balance, giftable }: Account,
  isCredit: boolean,
  source: string | null,
  amount: Value
): Value => {
  if (isCredit) return source === "purchase" || escrowEndSet.has(source!) ? plus(giftable, amount) : giftable
  if (source === "transfer_escrow") return minus(giftable, amount)
  if (source === "allowance" || source === "admin") return giftable
  const left = minus(source === "purchase" ? giftable : balance, amount)
  if (source === "purchase") return left > 0 ? left : 0
  return left < giftable ? left : giftable
}
