/**
 * The forms of the log's leaves. Ranges of rows (`tollgate_log_forms`) have leaves of form 2. The leaves of all other rows have form 1.
 *
 * The transaction that adds leaves of form 2 also extends their range. Earlier versions add leaves of form 1 and know no ranges, so the ranges are
 * exact even if nodes of both versions take turns. On PostgreSQL, a range begins only once no node of an earlier version runs, because that node
 * could not issue receipts for the range's entries. A new range is therefore needed only after an earlier version was started again.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { selectOlder } from "../../storage/postgres/Leases.ts"
import type { Statement } from "../ledger/rules/Transaction.ts"
import type { LeafForm } from "./Leaf.ts"

/** A range's first and last row. Both are entries. */
export interface FormRange {
  readonly first: number
  readonly last: number
}

/** The PostgreSQL migration that introduced form 2. */
const migration = 29

/** Returns whether a range may begin, because every running node can issue receipts of form 2. */
export const mayBegin = (sql: SqlClient): Effect.Effect<boolean, SqlError> =>
  sql.onDialectOrElse({
    pg: () => Effect.map(sql.unsafe(selectOlder, [migration]), (older) => older.length === 0),
    // The processes that serve one file have the same version.
    orElse: () => Effect.succeed(true)
  })

/** Builds the statement that begins a range, or extends the range that begins at `first`. */
export const extending = ({ first, last }: FormRange): Statement => ({
  text: `INSERT INTO tollgate_log_forms (first, last) VALUES (?, ?)
    ON CONFLICT (first) DO UPDATE SET last = excluded.last`,
  params: [first, last]
})

/** Reads all ranges, in row order. */
export const ranges = (sql: SqlClient): Effect.Effect<ReadonlyArray<FormRange>, SqlError> =>
  sql<FormRange>`SELECT first, last FROM tollgate_log_forms ORDER BY first`

/** Returns the leaf form of the entry in the row `seq`. */
export const formIn = (ranges: ReadonlyArray<FormRange>, seq: number): LeafForm =>
  ranges.some(({ first, last }) => first <= seq && seq <= last) ? 2 : 1
