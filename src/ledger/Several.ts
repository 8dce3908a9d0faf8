/**
 * A batch where other writers are at work on the same books (PostgreSQL, several nodes). What it touches is locked, always in one order:
 * reservations, tenants, accounts, each by number or id. What it reads under the lock is true until it commits. Statements of other rooms
 * are written one batch at a time over all nodes, as SQLite does it, under a lock of their own that comes first; charges do not take it.
 */
import { selectEnded } from "../sql/postgres/Leases.ts"
import { query, run } from "./Ask.ts"
import type { Asking } from "./Ask.ts"
import type { Seqs } from "./Batch.ts"
import * as Rows from "./Rows.ts"
import type { Transaction } from "./Transaction.ts"

/** The number of the advisory lock under which rooms' statements are written. */
const statementsLock = 7_062_516_341

/** Another node has ended the run that a call is to be admitted under, since its lease had lapsed. */
export class LeaseLost extends Error {
  constructor() {
    super("this node's lease has lapsed")
  }
}

/** Locks what comes before any row. A run without a lease is a host's own. */
export function* lockBefore(transactions: ReadonlyArray<Transaction>): Asking<void> {
  if (transactions.some(({ statements }) => statements.length > 0))
    yield* run(`SELECT pg_advisory_xact_lock(${statementsLock})`)
  const runs = new Set<string>()
  for (const { postings } of transactions)
    for (const posting of postings) if (posting._tag === "Reserve") runs.add(posting.run)
  if (runs.size === 0) return
  const found = yield* query(selectEnded, [JSON.stringify([...runs])])
  if (found.some(({ ended }) => ended === 1)) throw new LeaseLost()
}

/** Those that are there and that nobody else is ending. */
export const selectReservations = `${Rows.selectReservations} ORDER BY r.id FOR UPDATE OF r`

/**
 * Locks the tenants' heads and the accounts' amounts, which every change of theirs locks. Answers when the newest row of one of them was
 * booked: time never runs against the order of an owner's rows. What they hold is to be read behind it, by statements that see what
 * was committed while this one waited.
 */
export function* lockRows(tenants: ReadonlyArray<string>, accounts: ReadonlyArray<string>): Asking<number> {
  let bookedAt = 0
  if (tenants.length > 0) {
    const list = [JSON.stringify(tenants)]
    let heads = yield* query(lockHeads, list)
    if (heads.length < tenants.length) {
      yield* run(
        "INSERT INTO tollgate_usage_tenants (id) SELECT value FROM json_each(?) ORDER BY value ON CONFLICT DO NOTHING",
        list
      )
      yield* run(
        `INSERT INTO tollgate_usage_heads (tenant, records) SELECT number, 0 FROM tollgate_usage_tenants
          WHERE id IN (SELECT value FROM json_each(?)) ORDER BY number ON CONFLICT DO NOTHING`,
        list
      )
      heads = yield* query(lockHeads, list)
    }
    for (const { booked_at } of heads) bookedAt = Math.max(bookedAt, booked_at)
  }
  if (accounts.length > 0) {
    for (const { booked_at } of yield* query(lockAmounts, [JSON.stringify(accounts)]))
      bookedAt = Math.max(bookedAt, booked_at)
  }
  return bookedAt
}

const lockHeads = `SELECT booked_at FROM tollgate_usage_heads WHERE tenant IN (
    SELECT number FROM tollgate_usage_tenants WHERE id IN (SELECT value FROM json_each(?))
  ) ORDER BY tenant FOR UPDATE`

const lockAmounts = `SELECT booked_at FROM tollgate_ledger_amounts WHERE account IN (
    SELECT number FROM tollgate_ledger_accounts WHERE id IN (SELECT value FROM json_each(?))
  ) ORDER BY account FOR UPDATE`

/** The numbers of so many new accounts. */
export const nextAccounts = "SELECT nextval('tollgate_ledger_accounts_seq') AS number FROM generate_series(1, ?::int)"

/** The places of rows to come. They are taken under the locks, so that those of one account, or one tenant, ascend. */
export function* nextSeqs(entries: number, records: number): Asking<Seqs> {
  if (entries + records === 0) return { entries: [], records: [] }
  const rows = yield* query(
    `SELECT 0 AS kind, nextval('tollgate_ledger_entries_seq') AS seq FROM generate_series(1, ?::int)
    UNION ALL SELECT 1, nextval('tollgate_usage_records_seq') FROM generate_series(1, ?::int)`,
    [entries, records]
  )
  const of = (kind: number) =>
    rows
      .filter((row) => row.kind === kind)
      .map(({ seq }) => seq as number)
      .toSorted((a, b) => a - b)
  return { entries: of(0), records: of(1) }
}
