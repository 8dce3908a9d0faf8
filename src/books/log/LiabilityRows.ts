/** Reads and writes the rows of proofs of liabilities: a row per day, and a row per day and block of accounts. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { Statement } from "../ledger/rules/Transaction.ts"
import type { SumNode } from "./SumTree.ts"

/** A UTC day that has ended. */
export interface Day {
  readonly day: string
  /** The last ledger row up to the end of the day; 0 if there was none. */
  readonly entry: number
  /** The number of entries up to that row. */
  readonly entries: number
  /** The signed statement; `null` while the tree is being built. */
  readonly statement: string | null
}

/** A block of accounts. */
export interface Block extends SumNode {
  readonly n: number
  /** The first and last account number. */
  readonly first: number
  readonly last: number
  /** The number of accounts. */
  readonly width: number
}

/** Reads all days, oldest first. */
export const days = (sql: SqlClient): Effect.Effect<ReadonlyArray<Day>, SqlError> =>
  sql<Day>`SELECT day, entry, entries, statement FROM tollgate_log_liabilities ORDER BY day`

export const newestDay = (sql: SqlClient): Effect.Effect<Day | undefined, SqlError> =>
  Effect.map(
    sql<Day>`SELECT day, entry, entries, statement FROM tollgate_log_liabilities ORDER BY day DESC LIMIT 1`,
    ([row]) => row
  )

/** Reads this day if it has a statement. Without a day, reads the newest day with a statement. */
export const statedDay = (sql: SqlClient, day: string | undefined): Effect.Effect<Day | undefined, SqlError> =>
  Effect.map(
    sql<Day>`SELECT day, entry, entries, statement FROM tollgate_log_liabilities
      WHERE statement IS NOT NULL AND day >= ${day ?? ""} AND day <= ${day ?? "9999-12-31"} ORDER BY day DESC LIMIT 1`,
    ([row]) => row
  )

interface BlockRow {
  readonly n: number
  readonly first: number
  readonly last: number
  readonly width: number
  readonly sum: string
  readonly hash: Uint8Array
}

const blockOf = (row: BlockRow): Block => ({ ...row, sum: /^\d+$/.test(row.sum) ? BigInt(row.sum) : -1n })

/** Reads a day's blocks, in order. A malformed sum becomes -1, which no valid sum equals. */
export const blocks = (sql: SqlClient, day: string): Effect.Effect<ReadonlyArray<Block>, SqlError> =>
  Effect.map(
    sql<BlockRow>`SELECT n, first, last, width, sum, hash FROM tollgate_log_liability_blocks WHERE day = ${day} ORDER BY n`,
    (rows) => rows.map(blockOf)
  )

/** Reads a day's last block; `undefined` if there is none. */
export const lastBlock = (sql: SqlClient, day: string): Effect.Effect<Block | undefined, SqlError> =>
  Effect.map(
    sql<BlockRow>`SELECT n, first, last, width, sum, hash FROM tollgate_log_liability_blocks WHERE day = ${day}
      ORDER BY n DESC LIMIT 1`,
    ([row]) => (row === undefined ? undefined : blockOf(row))
  )

/** Reads up to `most` blocks of missing days. */
export const strayBlocks = (
  sql: SqlClient,
  most: number
): Effect.Effect<ReadonlyArray<{ readonly day: string; readonly n: number }>, SqlError> =>
  sql<{ readonly day: string; readonly n: number }>`SELECT t.day, t.n FROM tollgate_log_liability_blocks t
    LEFT JOIN tollgate_log_liabilities d ON d.day = t.day WHERE d.day IS NULL LIMIT ${most}`

// ---- writing ------------------------------------------------------------------------------------------------------------

/** Builds the statement that begins a day. It conflicts if the day exists. */
export const beginning = ({ day, entries, entry }: Omit<Day, "statement">): Statement => ({
  text: `INSERT INTO tollgate_log_liabilities (day, entry, entries, statement) VALUES (?, ?, ?, NULL)
    ON CONFLICT DO NOTHING RETURNING day`,
  params: [day, entry, entries],
  rows: 1
})

/** Builds the statement that adds a block. It conflicts if the block exists. */
export const adding = (day: string, { first, hash, last, n, sum, width }: Block): Statement => ({
  text: `INSERT INTO tollgate_log_liability_blocks (day, n, first, last, width, sum, hash) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING RETURNING n`,
  params: [day, n, first, last, width, String(sum), hash],
  rows: 1
})

/** Builds the statement that completes a day. It conflicts if the day already has a signed statement. */
export const stating = (day: string, statement: string): Statement => ({
  text: "UPDATE tollgate_log_liabilities SET statement = ? WHERE day = ? AND statement IS NULL RETURNING day",
  params: [statement, day],
  rows: 1
})
