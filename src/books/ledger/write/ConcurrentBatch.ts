/**
 * Runs a batch while other writers can write the same books (several nodes on PostgreSQL). The batch locks the rows that it touches, always in the
 * same order: reservations, tenants, accounts, then budgets, each by number or id. Rows read under the lock remain valid until the commit. A batch
 * with statements from other modules first acquires an additional lock, so only one of these batches runs at a time across all nodes. Batches
 * without statements, such as charges, do not acquire that lock.
 *
 * Locking and reading take a single round trip if the node has cached the row numbers, which never change. Released calls, budgets and debts need
 * further round trips. Each tenant's head and account contain the tenant's budget count. A batch locks at least one of these rows in any case, and
 * setting a budget locks both. Every batch that reserves looks up the budgets that count all tenants.
 */
import { selectEnded } from "../../../storage/postgres/Ended.ts"
import * as Locks from "../../../storage/postgres/Locks.ts"
import { all, queryOf, query, run } from "../rows/SqlEffect.ts"
import type { SqlSteps, Query, Rows as Found } from "../rows/SqlEffect.ts"
import type { BatchCache, RowNumbers } from "./Batch.ts"
import * as Books from "../rules/Books.ts"
import { tables } from "../rows/RowLinks.ts"
import { dimensionColumns, dimensionsOf, selectDimensions } from "../rows/Dimensions.ts"
import * as Budgets from "../rows/Budgets.ts"
import * as Released from "../rows/Released.ts"
import * as Rows from "../rows/Rows.ts"
import { pooledMax, tailColumns } from "../rows/RollupLag.ts"
import { everyone } from "../rules/Budget.ts"
import type { Dimensions, Posting, Reservation, Transaction } from "../rules/Transaction.ts"

/** This node's lease has lapsed, and another node has ended its run. The run cannot admit further calls. */
export class LeaseLost extends Error {
  constructor() {
    super("this node's lease has lapsed")
  }
}

/** A call's reservation and dimensions number. */
interface OpenCall {
  readonly reservation: Reservation
  readonly number: number
}

interface KnownAccount {
  readonly number: number
  readonly tenant_id: string
}

/** A node's cache of rows that never change once they are committed. The node's connections share the cache. It contains only committed rows. */
export class RowCache {
  readonly accounts = new Map<string, KnownAccount>()
  readonly tenants = new Map<string, number>()
  readonly dimensions = new Map<number, Dimensions>()
  readonly numbers = new WeakMap<Dimensions, number>()
  /** Calls that this node has reserved. A call that another node settles remains here until the cache is cleared. */
  readonly calls = new Map<string, OpenCall>()
  readonly select = selectNumbers

  /** Clears each map that is too large. Concurrent batches keep references to the entries that they have read. */
  trim(): void {
    for (const map of [this.accounts, this.tenants, this.dimensions, this.calls]) if (map.size > knownMax) map.clear()
  }

  /** Caches the rows that a committed batch has written. */
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

interface TouchedRows {
  readonly accounts: Set<string>
  readonly tenants: Set<string>
  readonly runs: Set<string>
  readonly calls: Set<string>
  /** The maximum number of entries (excluding the payment of debts) and usage records that the batch can write. */
  entries: number
  records: number
  readonly hasStatements: boolean
  setsBudgets: boolean
  reserves: boolean
  takesBack: boolean
}

const touchedBy = (transactions: ReadonlyArray<Transaction>): TouchedRows => {
  const touched: TouchedRows = {
    accounts: new Set(),
    tenants: new Set(),
    runs: new Set(),
    calls: new Set(),
    entries: 0,
    records: 0,
    hasStatements: transactions.some(({ statements }) => statements.length > 0),
    setsBudgets: false,
    reserves: false,
    takesBack: false
  }
  const tenants = new Map<string, string>()
  for (const { postings } of transactions) {
    for (const posting of postings) {
      for (const account of Books.accountsOf(posting)) touched.accounts.add(account)
      touched.entries += maxEntriesOf(posting)
      if (posting._tag === "TakeBack") touched.takesBack = true
      if (posting._tag === "Reserve") {
        const { call, facts, sources } = posting
        touched.reserves = true
        touched.runs.add(nodeRunOf(posting.run))
        tenants.set(call, facts.tenant_id)
        // The lock on the tenant's account guards its budgets. If the account is not among the sources, lock the tenant's head instead.
        if (!sources.some(({ tenant_id }) => tenant_id === facts.tenant_id)) touched.tenants.add(facts.tenant_id)
      }
      if (posting._tag === "SetLimit" || posting._tag === "SetBudget") {
        touched.setsBudgets = true
        if (posting.tenant !== undefined) touched.tenants.add(posting.tenant)
      }
      if (posting._tag !== "Settle") continue
      touched.records++
      // A call can be reserved and settled within the batch.
      const tenant = tenants.get(posting.call)
      if (tenant === undefined) touched.calls.add(posting.call)
      else touched.tenants.add(tenant)
    }
  }
  return touched
}

/** Returns a node's run without the prefix of a held call (`books/gate/Gate`). */
const nodeRunOf = (run: string): string => run.slice(run.lastIndexOf(" ") + 1)

/** Returns the maximum number of entries that a posting writes, excluding the payment of debts. */
const maxEntriesOf = ({ _tag }: Posting): number => {
  if (_tag === "Open" || _tag === "SetStatus" || _tag === "SetLimit" || _tag === "SetBudget" || _tag === "Reserve")
    return 0
  return _tag === "Renew" ? 2 : 1
}

/** Finds the anchors and ids of the budgets that the batch can touch. Anchors of tenants without budgets are skipped. */
const budgetsOf = (
  transactions: ReadonlyArray<Transaction>,
  limited: ReadonlySet<string>,
  reservations: ReadonlyMap<string, Reservation>
): { readonly anchors: ReadonlySet<string>; readonly ids: ReadonlySet<string> } => {
  const anchors = new Set<string>()
  const ids = new Set<string>()
  const addKey = ({ application_id, tenant_id }: Pick<Dimensions, "application_id" | "tenant_id">) => {
    if (application_id !== null && limited.has(tenant_id)) anchors.add(application_id)
  }
  for (const posting of transactions.flatMap(({ postings }) => postings)) {
    if (posting._tag === "Reserve") {
      const { facts, sources } = posting
      addKey(facts)
      if (limited.has(facts.tenant_id)) for (const run of facts.runs ?? []) anchors.add(run)
      for (const one of [everyone, facts.tenant_id, ...sources.map(({ tenant_id }) => tenant_id)])
        if (limited.has(one)) anchors.add(one)
    } else if (posting._tag === "Settle") {
      const reservation = reservations.get(posting.call)
      if (reservation !== undefined) addKey(reservation.dimensions)
      for (const id of reservation?.budgets ?? []) ids.add(id)
    } else if (posting._tag === "SetLimit") anchors.add(posting.application)
    else if (posting._tag === "SetBudget") {
      anchors.add(posting.anchor)
      ids.add(posting.id)
    }
  }
  return { anchors, ids }
}

/**
 * Locks the rows that the transactions touch and reads them into `memory`. `bookedAt` is the earliest time for new rows: the time of the owners'
 * newest row or a budget's period start. `seqs` contains the numbers for new rows. They are drawn under the locks, so they ascend within an account
 * or a tenant.
 */
export function* load(
  transactions: ReadonlyArray<Transaction>,
  memory: BatchCache,
  known: RowCache
): SqlSteps<{ readonly bookedAt: number; readonly seqs: RowNumbers }> {
  const touched = touchedBy(transactions)
  if (touched.hasStatements) yield* run(`SELECT pg_advisory_xact_lock(${Locks.statements})`)
  known.trim()
  const calls = yield* learnCalls(touched, known)
  const accounts = yield* learnAccounts(touched.accounts, known)
  const tenants = yield* learnTenants(touched.tenants, known)

  const queries: Array<Query> = []
  /** Adds a query if it is needed. Returns a function that returns its rows once the queries have run. */
  const addQuery = (isNeeded: boolean, text: string, ...params: ReadonlyArray<unknown>): (() => Found) => {
    if (!isNeeded) return () => []
    const place = queries.push(queryOf(text, params)) - 1
    return () => found[place]!
  }
  const owners = numberArray(tenants.keys())
  const payers = numberArray(accounts.keys())
  const { entries, records } = touched
  const endedRuns = addQuery(touched.runs.size > 0, selectEnded, JSON.stringify([...touched.runs]))
  const reservations = addQuery(calls.size > 0, lockReservations, textArray([...calls.keys()]))
  const heads = addQuery(tenants.size > 0, lockHeads, owners)
  // If all accounts of a batch are new, there are no rows to lock. The batch must still lock the table before it draws numbers (`SafeHorizon`).
  const amounts = addQuery(accounts.size > 0 || entries + records > 0, lockAmounts, payers)
  // This must be a separate statement, because only a statement that starts after the lock sees the commits made while waiting for it.
  const facts = addQuery(accounts.size > 0, selectFacts, payers)
  const tails = addQuery(tenants.size > 0, selectTails, owners, records, Math.min(pooledMax, memory.tailMax))
  const ofEveryone = addQuery(touched.reserves, selectOfEveryone)
  const takenSeqs = addQuery(entries + records > 0, nextSeqs, entries, records)
  const found = yield* all(queries)
  if (endedRuns().some((row) => row.ended === 1)) throw new LeaseLost()

  for (const { id } of reservations()) remember(calls.get(id)!, memory)
  // Released calls are read after the tenants are locked, because a late settlement holds these locks until it commits.
  const ended = [...calls.keys()].filter((call) => !memory.reservations.has(call))
  for (const released of yield* Released.load(ended)) remember(released, memory)
  const seen: OwnerFacts = { bookedAt: 0, debts: 0, limited: new Set() }
  rememberHeads(heads(), tenants, memory, seen)
  rememberAccounts(amounts(), facts(), accounts, memory, seen)
  for (const row of tails()) memory.tails.set(row.id, { watermark: row.watermark, pooled: row.pooled === 1 })
  const [taken] = takenSeqs()
  if (ofEveryone().length > 0) seen.limited.add(everyone)
  const { anchors, ids } = budgetsOf(transactions, seen.limited, memory.reservations)
  if (anchors.size + ids.size > 0) {
    const budgets = yield* Budgets.load(anchors, ids, true)
    for (const budget of budgets) memory.keepBudget(budget.id, budget)
    Budgets.groupInto(memory.anchors, anchors, budgets)
    seen.bookedAt = Math.max(seen.bookedAt, memory.begun)
  }
  const seqs = { entries: numbersOf(taken?.entries), records: numbersOf(taken?.records) }
  const { bookedAt, debts } = seen
  if (debts === 0 && !touched.takesBack) return { bookedAt, seqs }
  // Each posting can pay several debts in full and one in part, and can add a debt.
  const [more] = yield* query(nextSeqs, [debts + 2 * entries, 0])
  return { bookedAt, seqs: { ...seqs, entries: [...seqs.entries, ...numbersOf(more?.entries)] } }
}

/** Facts from the rows of a batch's owners. */
interface OwnerFacts {
  /** The earliest time for new rows. */
  bookedAt: number
  debts: number
  /** The tenants with budgets or key limits, and `everyone` if there are budgets that count all tenants. */
  readonly limited: Set<string>
}

const remember = ({ number, reservation }: OpenCall, memory: BatchCache): void => {
  memory.reservations.set(reservation.id, reservation)
  memory.dimensions.set(reservation.dimensions, number)
}

const rememberHeads = (
  heads: Found,
  tenants: ReadonlyMap<number, string>,
  memory: BatchCache,
  seen: OwnerFacts
): void => {
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
  memory: BatchCache,
  seen: OwnerFacts
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

/** Updates the budget count of each tenant that gained or lost budgets. The tenants' rows are locked. */
export function* countBudgets({ budgets }: Books.Draft, memory: BatchCache): SqlSteps<void> {
  const gained = new Map<string, number>()
  for (const [id, budget] of budgets) {
    const before = memory.budgets.get(id)
    const tenant = (before ?? budget)?.tenant_id
    if (tenant === undefined || (before === undefined) === (budget === undefined)) continue
    gained.set(tenant, (gained.get(tenant) ?? 0) + (budget === undefined ? -1 : 1))
  }
  for (const [tenant, more] of gained) {
    yield* run(countInHead, [more, tenant])
    yield* run(countInAccount, [more, tenant])
  }
}

const countInHead = `UPDATE tollgate_usage_heads h SET limits = h.limits + ?
  FROM tollgate_usage_tenants t WHERE t.id = ? AND h.tenant = t.number`

const countInAccount = `UPDATE tollgate_ledger_amounts m SET limits = m.limits + ?
  FROM tollgate_ledger_accounts a WHERE a.tenant_id = ? AND m.account = a.number`

const selectOfEveryone = `SELECT id FROM tollgate_ledger_budgets WHERE anchor = '${everyone}' LIMIT 1`

/** Returns the calls to settle that are open or released, as of their last read, and adds the rows that they touch to `touched`. */
function* learnCalls(touched: TouchedRows, known: RowCache): SqlSteps<ReadonlyMap<string, OpenCall>> {
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
    for (const row of rows)
      calls.set(row.id, {
        reservation: Rows.reservationOf(row, dimensions.get(row.dimensions)!),
        number: row.dimensions
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

function* learnDimensions(numbers: ReadonlySet<number>, known: RowCache): SqlSteps<ReadonlyMap<number, Dimensions>> {
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

/** Returns the existing accounts, by number. */
function* learnAccounts(
  ids: ReadonlySet<string>,
  known: RowCache
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

/** Returns the tenants, by number. Creates missing numbers and heads. */
function* learnTenants(ids: ReadonlySet<string>, known: RowCache): SqlSteps<ReadonlyMap<number, string>> {
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
  // Do not cache the new numbers yet, because this batch is not committed.
  for (const { id, number } of yield* query(selectTenantNumbers, list)) tenants.set(number, id)
  return tenants
}

/** Returns the numbers of existing dimensions, in the order of `rows`. */
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
  readonly budgets: string | null
  readonly tokens: number
}

const selectCalls = `SELECT id, CAST(amount AS TEXT) AS amount, at, run, dimensions, budgets, tokens
  FROM tollgate_ledger_reservations WHERE id = ANY(?::text[])`

const selectAccounts = "SELECT id, number, tenant_id FROM tollgate_ledger_accounts WHERE id = ANY(?::text[])"

const selectTenantNumbers = "SELECT id, number FROM tollgate_usage_tenants WHERE id = ANY(?::text[])"

const insertTenants =
  "INSERT INTO tollgate_usage_tenants (id) SELECT id FROM unnest(?::text[]) AS v (id) ON CONFLICT DO NOTHING"

const insertHeads = `INSERT INTO tollgate_usage_heads (tenant, records, limits)
  SELECT number, 0, (SELECT count(*) FROM tollgate_ledger_budgets b WHERE b.tenant_id = t.id) FROM tollgate_usage_tenants t
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

/** Selects the rollup lags of tenants whose record count reaches a multiple of `step` with `added` more records. Only these lags are folded. */
const selectTails = `SELECT h.id, ${tailColumns("h.id")} FROM ${tables.r.heads} h CROSS JOIN (SELECT ?::bigint[] AS numbers, ?::bigint AS added, ?::bigint AS step) p ON true
  WHERE h.owner = ANY(p.numbers) AND (h.total + p.added) / p.step > h.total / p.step`

export const nextAccounts = "SELECT nextval('tollgate_ledger_accounts_seq') AS number FROM generate_series(1, ?::int)"

const nextSeqs = `SELECT
  (SELECT string_agg(nextval('tollgate_ledger_entries_seq')::text, ',') FROM generate_series(1, ?::int)) AS entries,
  (SELECT string_agg(nextval('tollgate_usage_records_seq')::text, ',') FROM generate_series(1, ?::int)) AS records`

const numbersOf = (list: string | null | undefined): ReadonlyArray<number> =>
  list === null || list === undefined ? [] : list.split(",").map(Number)

/** Formats numbers as a single array parameter. */
const numberArray = (numbers: Iterable<number>): string => `{${[...numbers].join(",")}}`

const textArray = (texts: ReadonlyArray<string>): string => `{${texts.map(quoted).join(",")}}`

/** Quotes an element of a text array. */
export const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, "\\$&")}"`
