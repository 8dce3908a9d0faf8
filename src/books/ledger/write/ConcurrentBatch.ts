/**
 * A batch with concurrent writers of the same books (PostgreSQL, several nodes). It locks the rows that it touches, always in one order:
 * reservations, tenants, accounts, limits of API keys, each by number or id. Rows read under the lock stay valid until the commit.
 * A batch with statements of other rooms first takes one more lock: across all nodes only one such batch runs at a time, as on SQLite.
 * Charges do not take that lock.
 *
 * Locking and reading take one round trip. That needs the numbers of the rows, which never change, so a node caches them (`Known`). Only
 * limits and debts need a second round trip. Rows that are locked anyway show whether there are any: each tenant's head and account count
 * the limits of its keys, and setting a limit locks both.
 */
import { selectEnded } from "../../../storage/postgres/Ended.ts"
import * as Locks from "../../../storage/postgres/Locks.ts"
import { all, asked, query, run } from "../rows/SqlEffect.ts"
import type { SqlSteps, Query, Rows as Found } from "../rows/SqlEffect.ts"
import type { Memory, Seqs } from "./Batch.ts"
import * as Books from "../rules/Books.ts"
import { tables } from "../rows/RowLinks.ts"
import { dimensionColumns, dimensionsOf, selectDimensions } from "../rows/Dimensions.ts"
import * as KeyLimits from "../rows/KeyLimits.ts"
import * as Released from "../rows/Released.ts"
import * as Rows from "../rows/Rows.ts"
import { pooledMax, tailColumns } from "../rows/RollupLag.ts"
import type { Dimensions, Posting, Reservation, Transaction } from "../rules/Transaction.ts"

/** This node's lease lapsed and another node has ended its run, so the run can admit no more calls. */
export class LeaseLost extends Error {
  constructor() {
    super("this node's lease has lapsed")
  }
}

/** An open call's reservation, and the number of its dimensions. */
interface OpenCall {
  readonly reservation: Reservation
  readonly number: number
}

interface KnownAccount {
  readonly number: number
  readonly tenant_id: string
}

/** A node's cache of rows that never change once committed, shared by its connections. Only committed rows enter it. */
export class Known {
  readonly accounts = new Map<string, KnownAccount>()
  readonly tenants = new Map<string, number>()
  readonly dimensions = new Map<number, Dimensions>()
  readonly numbers = new WeakMap<Dimensions, number>()
  /** Calls that this node has reserved. A call settled by another node stays until the cache is cleared. */
  readonly calls = new Map<string, OpenCall>()
  readonly select = selectNumbers

  /** Makes room for the rows of a batch. Concurrent batches hold references to the entries that they have read. */
  trim(): void {
    for (const map of [this.accounts, this.tenants, this.dimensions, this.calls]) if (map.size > knownMax) map.clear()
  }

  /** Caches the committed writes of a batch. */
  keep({ released, reserved }: Books.Draft, numbers: WeakMap<Dimensions, number>): void {
    for (const reservation of reserved.values()) {
      const number = numbers.get(reservation.dimensions)!
      this.numbers.set(reservation.dimensions, number)
      this.calls.set(reservation.id, { reservation, number })
    }
    for (const call of released) this.calls.delete(call)
  }
}

const knownMax = 100_000

/** The rows that a batch touches. */
interface Touched {
  readonly accounts: Set<string>
  readonly tenants: Set<string>
  readonly runs: Set<string>
  /** The calls that the batch settles. */
  readonly calls: Set<string>
  /** The maximum number of entries and usage records that the batch may write. */
  entries: number
  records: number
  readonly hasStatements: boolean
  setsLimits: boolean
  takesBack: boolean
}

const touchedBy = (transactions: ReadonlyArray<Transaction>): Touched => {
  const touched: Touched = {
    accounts: new Set(),
    tenants: new Set(),
    runs: new Set(),
    calls: new Set(),
    entries: 0,
    records: 0,
    hasStatements: transactions.some(({ statements }) => statements.length > 0),
    setsLimits: false,
    takesBack: false
  }
  const tenants = new Map<string, string>()
  for (const { postings } of transactions) {
    for (const posting of postings) {
      for (const account of Books.accountsOf(posting)) touched.accounts.add(account)
      touched.entries += entriesAtMost(posting)
      if (posting._tag === "TakeBack") touched.takesBack = true
      if (posting._tag === "Reserve") {
        const { call, facts, sources } = posting
        touched.runs.add(nodeRunOf(posting.run))
        tenants.set(call, facts.tenant_id)
        // Locking the tenant's account reveals a concurrent change of a limit. Without that account, lock the tenant's head.
        if (facts.application_id !== null && !sources.some(({ tenant_id }) => tenant_id === facts.tenant_id))
          touched.tenants.add(facts.tenant_id)
      }
      if (posting._tag === "SetLimit") {
        touched.setsLimits = true
        touched.tenants.add(posting.tenant)
      }
      if (posting._tag !== "Settle") continue
      touched.records++
      // A call may be reserved and settled within the batch.
      const tenant = tenants.get(posting.call)
      if (tenant === undefined) touched.calls.add(posting.call)
      else touched.tenants.add(tenant)
    }
  }
  return touched
}

/** The run of a node. A held call's run has a prefix (`books/gate/Gate`). */
const nodeRunOf = (run: string): string => run.slice(run.lastIndexOf(" ") + 1)

/** The maximum number of entries that a posting writes, without those that pay debts. */
const entriesAtMost = ({ _tag }: Posting): number => {
  if (_tag === "Open" || _tag === "SetStatus" || _tag === "SetLimit" || _tag === "Reserve") return 0
  return _tag === "Renew" ? 2 : 1
}

/** The batch's applications that may have a limit, because some key of their tenant has one. */
const limitedBy = (
  transactions: ReadonlyArray<Transaction>,
  limited: ReadonlySet<string>,
  reservations: ReadonlyMap<string, Reservation>
): ReadonlySet<string> => {
  const applications = new Set<string>()
  const look = (facts: Pick<Dimensions, "application_id" | "tenant_id"> | undefined) => {
    if (facts !== undefined && facts.application_id !== null && limited.has(facts.tenant_id))
      applications.add(facts.application_id)
  }
  for (const { postings } of transactions) {
    for (const posting of postings) {
      if (posting._tag === "Reserve") look(posting.facts)
      else if (posting._tag === "Settle") look(reservations.get(posting.call)?.dimensions)
      else if (posting._tag === "SetLimit") applications.add(posting.application)
    }
  }
  return applications
}

/**
 * Locks the rows that the transactions touch, and reads them into the memory. `bookedAt` is the time of the owners' newest row: later rows must
 * not be earlier in time. `seqs` are the numbers of the new rows. They are taken under the locks, so they ascend within an account or a
 * tenant.
 */
export function* load(
  transactions: ReadonlyArray<Transaction>,
  memory: Memory,
  known: Known
): SqlSteps<{ readonly bookedAt: number; readonly seqs: Seqs }> {
  const touched = touchedBy(transactions)
  if (touched.hasStatements) yield* run(`SELECT pg_advisory_xact_lock(${Locks.statements})`)
  known.trim()
  const calls = yield* learnCalls(touched, known)
  const accounts = yield* learnAccounts(touched.accounts, known)
  const tenants = yield* learnTenants(touched.tenants, known)

  const questions: Array<Query> = []
  /** Adds a query if it is needed. Returns a function that takes its rows. */
  const ask = (isNeeded: boolean, text: string, ...params: ReadonlyArray<unknown>): (() => Found) => {
    if (!isNeeded) return () => []
    const place = questions.push(asked(text, params)) - 1
    return () => found[place]!
  }
  const owners = numberArray(tenants.keys())
  const payers = numberArray(accounts.keys())
  const { entries, records } = touched
  const endedRuns = ask(touched.runs.size > 0, selectEnded, JSON.stringify([...touched.runs]))
  const reservations = ask(calls.size > 0, lockReservations, textArray([...calls.keys()]))
  const heads = ask(tenants.size > 0, lockHeads, owners)
  // A batch that only opens accounts has no rows to lock, but must lock the table before it takes numbers (`SafeHorizon`).
  const amounts = ask(accounts.size > 0 || entries + records > 0, lockAmounts, payers)
  // A separate statement after the lock, so it sees commits made during the wait for the lock.
  const facts = ask(accounts.size > 0, selectFacts, payers)
  const tails = ask(tenants.size > 0, selectTails, owners, records, Math.min(pooledMax, memory.tailMax))
  const takenSeqs = ask(entries + records > 0, nextSeqs, entries, records)
  const found = yield* all(questions)
  if (endedRuns().some((row) => row.ended === 1)) throw new LeaseLost()

  for (const { id } of reservations()) remember(calls.get(id)!, memory)
  // Read after locking the tenants: a late settlement holds these locks until it is committed.
  const ended = [...calls.keys()].filter((call) => !memory.reservations.has(call))
  for (const released of yield* Released.load(ended)) remember(released, memory)
  const seen: Seen = { bookedAt: 0, debts: 0, limited: new Set() }
  rememberHeads(heads(), tenants, memory, seen)
  rememberAccounts(amounts(), facts(), accounts, memory, seen)
  for (const row of tails()) memory.tails.set(row.id, { watermark: row.watermark, pooled: row.pooled === 1 })
  const [taken] = takenSeqs()
  if (seen.limited.size > 0 || touched.setsLimits) {
    const applications = limitedBy(transactions, seen.limited, memory.reservations)
    for (const limit of applications.size === 0 ? [] : yield* KeyLimits.load(applications, true)) {
      memory.limits.set(limit.application_id, limit)
      seen.bookedAt = Math.max(seen.bookedAt, limit.start)
    }
  }
  const seqs = { entries: numbersOf(taken?.entries), records: numbersOf(taken?.records) }
  const { bookedAt, debts } = seen
  if (debts === 0 && !touched.takesBack) return { bookedAt, seqs }
  // Each posting may pay several debts in full and one in part, and may leave a debt.
  const [more] = yield* query(nextSeqs, [debts + 2 * entries, 0])
  return { bookedAt, seqs: { ...seqs, entries: [...seqs.entries, ...numbersOf(more?.entries)] } }
}

/** Facts read from the rows of a batch's owners. */
interface Seen {
  /** The time of the owners' newest row. */
  bookedAt: number
  /** The number of debts of the accounts. */
  debts: number
  /** Tenants whose keys have limits. */
  readonly limited: Set<string>
}

const remember = ({ number, reservation }: OpenCall, memory: Memory): void => {
  memory.reservations.set(reservation.id, reservation)
  memory.dimensions.set(reservation.dimensions, number)
}

const rememberHeads = (heads: Found, tenants: ReadonlyMap<number, string>, memory: Memory, seen: Seen): void => {
  for (const row of heads) {
    const id = tenants.get(row.tenant)!
    if (row.limits > 0) seen.limited.add(id)
    memory.records.set(id, row.records)
    memory.tenantHeads.set(id, { owner: row.tenant, newest: row.newest })
    seen.bookedAt = Math.max(seen.bookedAt, row.booked_at)
  }
}

const rememberAccounts = (
  amounts: Found,
  facts: Found,
  accounts: ReadonlyMap<number, { readonly id: string; readonly tenant_id: string }>,
  memory: Memory,
  seen: Seen
): void => {
  const factsOf = new Map(facts.map((row) => [row.number as number, row]))
  for (const row of amounts) {
    const { id, tenant_id } = accounts.get(row.account)!
    if (row.limits > 0) seen.limited.add(tenant_id)
    const account = Rows.accountOf({ ...factsOf.get(row.account), ...row, id, tenant_id })
    seen.debts += account.debts?.length ?? 0
    memory.accounts.set(id, account)
    memory.accountHeads.set(id, { owner: row.account, newest: row.newest, booked_at: row.booked_at })
    seen.bookedAt = Math.max(seen.bookedAt, row.booked_at)
  }
}

/** Updates the counts of tenants whose keys gained or lost a limit. The limits are already written, and the tenants' rows locked. */
export function* countLimits({ limits }: Books.Draft, memory: Memory): SqlSteps<void> {
  const tenants = new Set<string>()
  for (const [application, limit] of limits) {
    const before = memory.limits.get(application)
    if ((before === undefined) !== (limit === undefined)) tenants.add((before ?? limit)!.tenant_id)
  }
  for (const tenant of tenants) {
    yield* run(countInHead, [tenant])
    yield* run(countInAccount, [tenant])
  }
}

const counted = "(SELECT count(*) FROM tollgate_ledger_limits l WHERE l.tenant_id = o.tenant_id)"

const countInHead = `UPDATE tollgate_usage_heads h SET limits = ${counted}
  FROM (SELECT number, id AS tenant_id FROM tollgate_usage_tenants WHERE id = ?) o WHERE h.tenant = o.number`

const countInAccount = `UPDATE tollgate_ledger_amounts m SET limits = ${counted}
  FROM (SELECT number, tenant_id FROM tollgate_ledger_accounts WHERE tenant_id = ?) o WHERE m.account = o.number`

/** The calls to settle that were open when last read. Adds the rows that they touch. */
function* learnCalls(touched: Touched, known: Known): SqlSteps<ReadonlyMap<string, OpenCall>> {
  const calls = new Map<string, OpenCall>()
  const unknown: Array<string> = []
  for (const call of touched.calls) {
    const open = known.calls.get(call)
    if (open === undefined) unknown.push(call)
    else calls.set(call, open)
  }
  if (unknown.length > 0) {
    const rows = (yield* query(selectCalls, [textArray(unknown)])) as ReadonlyArray<CallRow>
    const dimensions = yield* learnDimensions(new Set(rows.map((row) => row.dimensions)), known)
    for (const { amount, at, dimensions: number, id, run } of rows)
      calls.set(id, {
        reservation: { id, dimensions: dimensions.get(number)!, amount: BigInt(amount), at, run },
        number
      })
    for (const released of yield* Released.load(unknown.filter((call) => !calls.has(call))))
      calls.set(released.reservation.id, released)
  }
  for (const { reservation } of calls.values()) {
    touched.accounts.add(reservation.dimensions.billing_account_id)
    touched.tenants.add(reservation.dimensions.tenant_id)
  }
  return calls
}

function* learnDimensions(numbers: ReadonlySet<number>, known: Known): SqlSteps<ReadonlyMap<number, Dimensions>> {
  const found = new Map<number, Dimensions>()
  const unknown: Array<number> = []
  for (const number of numbers) {
    const dimensions = known.dimensions.get(number)
    if (dimensions === undefined) unknown.push(number)
    else found.set(number, dimensions)
  }
  if (unknown.length === 0) return found
  for (const row of yield* query(selectDimensions, [numberArray(unknown)])) {
    const dimensions = dimensionsOf(row)
    found.set(row.number, dimensions)
    known.dimensions.set(row.number, dimensions)
  }
  return found
}

/** The existing accounts, by number. */
function* learnAccounts(
  ids: ReadonlySet<string>,
  known: Known
): SqlSteps<ReadonlyMap<number, { readonly id: string; readonly tenant_id: string }>> {
  const accounts = new Map<number, { readonly id: string; readonly tenant_id: string }>()
  const unknown: Array<string> = []
  for (const id of ids) {
    const account = known.accounts.get(id)
    if (account === undefined) unknown.push(id)
    else accounts.set(account.number, { id, tenant_id: account.tenant_id })
  }
  if (unknown.length === 0) return accounts
  for (const { id, number, tenant_id } of yield* query(selectAccounts, [textArray(unknown)])) {
    accounts.set(number, { id, tenant_id })
    known.accounts.set(id, { number, tenant_id })
  }
  return accounts
}

/** The tenants, by number. A tenant without records gets its number and head here. */
function* learnTenants(ids: ReadonlySet<string>, known: Known): SqlSteps<ReadonlyMap<number, string>> {
  const tenants = new Map<number, string>()
  const unknown: Array<string> = []
  for (const id of ids) {
    const number = known.tenants.get(id)
    if (number === undefined) unknown.push(id)
    else tenants.set(number, id)
  }
  if (unknown.length === 0) return tenants
  const list = [textArray(unknown.toSorted())]
  for (const { id, number } of yield* query(selectTenantNumbers, list)) {
    known.tenants.set(id, number)
    tenants.set(number, id)
  }
  if (tenants.size === ids.size) return tenants
  yield* run(insertTenants, list)
  yield* run(insertHeads, list)
  // Not cached: this batch is not committed yet.
  for (const { id, number } of yield* query(selectTenantNumbers, list)) tenants.set(number, id)
  return tenants
}

/** The numbers of dimensions that exist, in the order of `rows`. */
function* selectNumbers(rows: ReadonlyArray<ReadonlyArray<string>>): SqlSteps<ReadonlyArray<number>> {
  const found = yield* query(
    selectByDimensions,
    dimensionColumns.map((_, i) => textArray(rows.map((row) => row[i]!)))
  )
  return found.map(({ number }) => number as number)
}

const selectByDimensions = `SELECT d.number FROM unnest(${dimensionColumns.map(() => "?::text[]").join(", ")})
    WITH ORDINALITY AS v (${dimensionColumns.join(", ")}, place)
  CROSS JOIN tollgate_usage_dimensions d ON ${dimensionColumns.map((column) => `d.${column} = v.${column}`).join(" AND ")}
  ORDER BY v.place`

interface CallRow {
  readonly id: string
  readonly amount: string
  readonly at: number
  readonly run: string
  readonly dimensions: number
}

const selectCalls = `SELECT id, CAST(amount AS TEXT) AS amount, at, run, dimensions
  FROM tollgate_ledger_reservations WHERE id = ANY(?::text[])`

const selectAccounts = "SELECT id, number, tenant_id FROM tollgate_ledger_accounts WHERE id = ANY(?::text[])"

const selectTenantNumbers = "SELECT id, number FROM tollgate_usage_tenants WHERE id = ANY(?::text[])"

const insertTenants =
  "INSERT INTO tollgate_usage_tenants (id) SELECT id FROM unnest(?::text[]) AS v (id) ON CONFLICT DO NOTHING"

const insertHeads = `INSERT INTO tollgate_usage_heads (tenant, records, limits)
  SELECT number, 0, (SELECT count(*) FROM tollgate_ledger_limits l WHERE l.tenant_id = t.id) FROM tollgate_usage_tenants t
  WHERE id = ANY(?::text[]) ORDER BY number ON CONFLICT DO NOTHING`

/** Locks the reservations that still exist. */
const lockReservations = "SELECT id FROM tollgate_ledger_reservations WHERE id = ANY(?::text[]) ORDER BY id FOR UPDATE"

const lockHeads = `SELECT tenant, records, newest, booked_at, limits FROM tollgate_usage_heads
  WHERE tenant = ANY(?::bigint[]) ORDER BY tenant FOR UPDATE`

const lockAmounts = `SELECT account, CAST(giftable AS TEXT) AS giftable, CAST(granted AS TEXT) AS granted,
    CAST(reserved AS TEXT) AS reserved, entries, newest, booked_at, limits
  FROM tollgate_ledger_amounts WHERE account = ANY(?::bigint[]) ORDER BY account FOR UPDATE`

const selectFacts = `SELECT number, status, CAST(held AS TEXT) AS held, funded, debts
  FROM tollgate_ledger_accounts WHERE number = ANY(?::bigint[])`

/** The rollup lag of tenants whose record count will pass a multiple of `step` when `added` records are written. Only these are folded. */
const selectTails = `SELECT h.id, ${tailColumns("h.id")} FROM ${tables.r.heads} h CROSS JOIN (SELECT ?::bigint[] AS numbers, ?::bigint AS added, ?::bigint AS step) p ON true
  WHERE h.owner = ANY(p.numbers) AND (h.total + p.added) / p.step > h.total / p.step`

/** Numbers for this many new accounts. */
export const nextAccounts = "SELECT nextval('tollgate_ledger_accounts_seq') AS number FROM generate_series(1, ?::int)"

const nextSeqs = `SELECT
  (SELECT string_agg(nextval('tollgate_ledger_entries_seq')::text, ',') FROM generate_series(1, ?::int)) AS entries,
  (SELECT string_agg(nextval('tollgate_usage_records_seq')::text, ',') FROM generate_series(1, ?::int)) AS records`

const numbersOf = (list: string | null | undefined): ReadonlyArray<number> =>
  list === null || list === undefined ? [] : list.split(",").map(Number)

/** A list as one array parameter. */
const numberArray = (numbers: Iterable<number>): string => `{${[...numbers].join(",")}}`

const textArray = (texts: ReadonlyArray<string>): string => `{${texts.map(quoted).join(",")}}`

/** An element of a text array. */
export const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, "\\$&")}"`
