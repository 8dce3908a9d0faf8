/** Reads all account balances as of a ledger row, for the proof of liabilities (`books/log/Liabilities`). */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { turn } from "../../../kernel/Pieces.ts"
import { lastUpTo } from "./RowLinks.ts"

/** An account's balance after its last entry up to a row. `entry` is the number of that entry. */
export interface ClosingBalance {
  /** The account number in the tables. */
  readonly account: number
  readonly id: string
  readonly entry: number
  readonly balance: bigint
}

export interface ClosingPage {
  /** The balances, by account number. Accounts without an entry up to the row are omitted. */
  readonly balances: ReadonlyArray<ClosingBalance>
  /** The number of the last account read; `undefined` if there are no more accounts. */
  readonly next: number | undefined
}

/** The number of accounts to read before yielding to other work. Each account can require a query. */
const accountsInTurn = 16

interface Row {
  readonly account: number
  readonly id: string
  readonly newest: number | null
  readonly entry: number | null
  readonly balance: string | null
}

/** Reads at most `most` accounts with numbers after `after` and up to `last`, with their balances as of the row `seq`. */
export const closingBalances = Effect.fnUntraced(function* (
  sql: SqlClient,
  seq: number,
  { after, last, most }: { readonly after: number; readonly last: number; readonly most: number }
): Effect.fn.Return<ClosingPage, SqlError> {
  const rows =
    yield* sql<Row>`SELECT a.number AS account, a.id, m.newest, e.number AS entry, CAST(e.balance AS TEXT) AS balance
    FROM tollgate_ledger_accounts a JOIN tollgate_ledger_amounts m ON m.account = a.number
    LEFT JOIN tollgate_ledger_entries e ON e.seq = m.newest
    WHERE a.number > ${after} AND a.number <= ${last} ORDER BY a.number LIMIT ${most}`
  const balances: Array<ClosingBalance> = []
  for (const [i, { account, balance, entry, id, newest }] of rows.entries()) {
    if (i % accountsInTurn === accountsInTurn - 1) yield* turn
    // Most accounts have no entry after the row.
    if (newest === null || newest <= seq) {
      if (entry !== null && balance !== null) balances.push({ account, id, entry, balance: BigInt(balance) })
      continue
    }
    const [found] = yield* sql<{ readonly entry: number; readonly balance: string }>`${lastUpTo(
      sql,
      "e",
      id,
      seq,
      "e.number AS entry, CAST(e.balance AS TEXT) AS balance"
    )}`
    if (found !== undefined) balances.push({ account, id, entry: found.entry, balance: BigInt(found.balance) })
  }
  return { balances, next: rows.length < most ? undefined : rows.at(-1)!.account }
})

/** Reads the account number in the tables; `undefined` if the account does not exist. */
export const accountNumber = (sql: SqlClient, id: string): Effect.Effect<number | undefined, SqlError> =>
  Effect.map(
    sql<{ readonly number: number }>`SELECT number FROM tollgate_ledger_accounts WHERE id = ${id}`,
    ([row]) => row?.number
  )

/** Reads the ids and numbers of at most `most` accounts after the number `after`, in ascending order. */
export const accountsAfter = (
  sql: SqlClient,
  after: number,
  most: number
): Effect.Effect<ReadonlyArray<{ readonly id: string; readonly number: number }>, SqlError> =>
  sql<{ readonly id: string; readonly number: number }>`SELECT id, number FROM tollgate_ledger_accounts
    WHERE number > ${after} ORDER BY number LIMIT ${most}`

/** An entry as a change of an account's balance, in nano-USD. */
export interface Movement {
  readonly seq: number
  /** The account number in the tables; `null` if the entry's account does not exist. */
  readonly account: number | null
  readonly entry: number
  readonly balance: bigint
  /** Negative for a debit. */
  readonly amount: bigint
}

const selectMovements = `SELECT e.seq, a.number, e.number, e.type, CAST(e.amount AS TEXT), CAST(e.balance AS TEXT)
  FROM tollgate_ledger_entries e LEFT JOIN tollgate_ledger_accounts a ON a.id = e.billing_account_id
  WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?`

/** Reads at most `most` entries after the row `seq` and up to the row `last`. */
export const movementsAfter = (
  sql: SqlClient,
  seq: number,
  last: number,
  most: number
): Effect.Effect<ReadonlyArray<Movement>, SqlError> =>
  Effect.map(sql.unsafe(selectMovements, [seq, last, most]).values, (rows) =>
    (rows as unknown as ReadonlyArray<readonly [number, number | null, number, string, string, string]>).map(
      ([seq, account, entry, type, amount, balance]) => ({
        seq,
        account,
        entry,
        balance: BigInt(balance),
        amount: type === "credit" ? BigInt(amount) : -BigInt(amount)
      })
    )
  )

/** Finds the last entry row up to `last` from before the time `at`; 0 if there is none. Assumes that rows are in chronological order. */
export const lastEntryBefore = Effect.fnUntraced(function* (
  sql: SqlClient,
  at: number,
  last: number
): Effect.fn.Return<number, SqlError> {
  const upTo = (from: number, to: number) =>
    Effect.map(
      sql<{ readonly seq: number; readonly at: number }>`SELECT seq, at FROM tollgate_ledger_entries
        WHERE seq > ${from} AND seq <= ${to} ORDER BY seq DESC LIMIT 1`,
      ([row]) => row
    )
  let [low, high] = [0, last]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const row = yield* upTo(low, middle)
    if (row === undefined || row.at < at) low = middle
    else high = row.seq - 1
  }
  return (yield* upTo(0, low))?.seq ?? 0
})
