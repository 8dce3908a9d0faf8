/** What verifications of the books found: their result and time, and how far those that held have read. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { Mark } from "./Audit.ts"
import type { Statement } from "./Transaction.ts"

export interface Verification {
  /** When it was over. */
  readonly at: number
  /** Whether it looked at everything there was. */
  readonly whole: boolean
  /** How many findings it had: it held where there were none. */
  readonly findings: number
  readonly millis: number
  readonly mark: Mark
}

interface Row {
  readonly at: number
  readonly whole: number
  readonly findings: number
  readonly millis: number
  readonly entry: number
  readonly record: number
  readonly world: string
  readonly revenue: string
}

const columns = `at, whole, findings, millis, entry, record, CAST(world AS TEXT) AS world, CAST(revenue AS TEXT) AS revenue`

/**
 * The last verification that held; none where one of everything found something later: what it found may lie before that mark.
 */
export const lastHeld = (sql: SqlClient): Effect.Effect<Verification | undefined> =>
  one(
    sql,
    `findings = 0 AND id > COALESCE((SELECT MAX(id) FROM tollgate_ledger_verifications WHERE findings > 0 AND whole = 1), 0)`
  )

/** The last verification, whatever it found. */
export const last = (sql: SqlClient): Effect.Effect<Verification | undefined> => one(sql, "true")

const one = (sql: SqlClient, condition: string) =>
  Effect.map(
    Effect.orDie(
      sql.unsafe<Row>(
        `SELECT ${columns} FROM tollgate_ledger_verifications WHERE ${condition} ORDER BY id DESC LIMIT 1`
      )
    ),
    ([row]): Verification | undefined =>
      row === undefined
        ? undefined
        : {
            at: row.at,
            whole: row.whole === 1,
            findings: row.findings,
            millis: row.millis,
            mark: {
              entry: row.entry,
              record: row.record,
              world: BigInt(row.world),
              revenue: BigInt(row.revenue)
            }
          }
  )

/** How many verifications are kept, besides the last that held. */
const keptMax = 100

/** Keeps a verification, and forgets old ones. */
export const keep = ({ at, findings, mark, millis, whole }: Verification): ReadonlyArray<Statement> => [
  {
    text: `INSERT INTO tollgate_ledger_verifications (at, whole, findings, millis, entry, record, world, revenue)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    params: [at, whole ? 1 : 0, findings, millis, mark.entry, mark.record, mark.world, mark.revenue]
  },
  {
    text: `DELETE FROM tollgate_ledger_verifications
      WHERE id <= (SELECT MAX(id) FROM tollgate_ledger_verifications) - ?
        AND id < (SELECT MAX(id) FROM tollgate_ledger_verifications WHERE findings = 0)`,
    params: [keptMax]
  }
]
