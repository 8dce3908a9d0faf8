/** Saves the results of verifications. A verification without findings is *clean*. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import type { Finding } from "../rules/Check.ts"
import type { Checkpoint, Pace, Progress } from "./Checkpoint.ts"
import type { Statement } from "../rules/Transaction.ts"
import { Writer } from "../write/Writer.ts"

export interface Verified {
  readonly findings: ReadonlyArray<Finding>
  readonly checkpoint: Checkpoint
}

/**
 * A function that verifies the rows after a checkpoint and the accounts that they touch, and runs the cheap checks. Without a checkpoint, it verifies
 * everything.
 */
export type VerifySince = (
  checkpoint: Checkpoint | undefined,
  options?: {
    /** Called with the progress after each slice. */
    readonly progress?: (progress: Progress) => Effect.Effect<void>
    readonly pace?: Pace
  }
) => Effect.Effect<Verified, never, SqlClient>

export interface Verification {
  /** The Unix time when the verification ended, in milliseconds. */
  readonly at: number
  /** Whether the verification covered all rows. */
  readonly whole: boolean
  readonly findings: number
  readonly millis: number
  readonly checkpoint: Checkpoint
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
 * Returns the last clean verification. Returns `undefined` if there is none or if a later full verification has findings, because the affected
 * rows might precede the checkpoint.
 */
export const lastClean = (sql: SqlClient): Effect.Effect<Verification | undefined> =>
  one(
    sql,
    `findings = 0 AND id > COALESCE((SELECT MAX(id) FROM tollgate_ledger_verifications WHERE findings > 0 AND whole = 1), 0)`
  )

/** Returns the last verification, with or without findings; `undefined` if there is none. */
export const last = (sql: SqlClient): Effect.Effect<Verification | undefined> => one(sql, "true")

const one = (sql: SqlClient, condition: string) =>
  Effect.map(
    Effect.orDie(
      sql.unsafe<Row>(
        `SELECT ${columns} FROM tollgate_ledger_verifications WHERE ${condition} ORDER BY id DESC LIMIT 1`
      )
    ),
    ([row]) => row && verificationOf(row)
  )

const verificationOf = (row: Row): Verification => ({
  at: row.at,
  whole: row.whole === 1,
  findings: row.findings,
  millis: row.millis,
  checkpoint: { entry: row.entry, record: row.record, world: BigInt(row.world), revenue: BigInt(row.revenue) }
})

/** Returns up to `limit` verifications, newest first. */
export const recent = (sql: SqlClient, limit: number): Effect.Effect<ReadonlyArray<Verification>> =>
  Effect.map(
    Effect.orDie(
      sql<Row>`SELECT ${sql.literal(columns)} FROM tollgate_ledger_verifications ORDER BY id DESC LIMIT ${limit}`
    ),
    (rows) => rows.map(verificationOf)
  )

/** Returns the row numbers of the newest entry and record; 0 if there is none. */
export const newest = (sql: SqlClient): Effect.Effect<{ readonly entry: number; readonly record: number }> =>
  Effect.map(
    Effect.orDie(
      sql<{ entry: number; record: number }>`SELECT
        COALESCE((SELECT MAX(seq) FROM tollgate_ledger_entries), 0) AS entry,
        COALESCE((SELECT MAX(seq) FROM tollgate_usage_records), 0) AS record`
    ),
    ([row]) => row!
  )

export const isNewest = (sql: SqlClient, { entry, record }: Checkpoint): Effect.Effect<boolean> =>
  Effect.map(
    Effect.orDie(
      sql<{ readonly found: number }>`SELECT EXISTS (SELECT 1 FROM tollgate_ledger_entries WHERE seq > ${entry})
        OR EXISTS (SELECT 1 FROM tollgate_usage_records WHERE seq > ${record}) AS found`
    ),
    ([row]) => row!.found === 0
  )

/** Runs a verification and saves its result. `kept` is false if the result could not be saved, and `millis` is the duration. */
export const runAndSave = Effect.fnUntraced(function* <R>(whole: boolean, verify: Effect.Effect<Verified, never, R>) {
  const { submit } = yield* Writer
  const began = yield* Clock.currentTimeMillis
  const { findings, checkpoint } = yield* verify
  const at = yield* Clock.currentTimeMillis
  const millis = at - began
  const kept = yield* submit({
    postings: [],
    statements: keep({ at, whole, findings: findings.length, millis, checkpoint })
  }).pipe(
    Effect.as(true),
    Effect.orElseSucceed(() => false)
  )
  return { findings, millis, kept }
})

/** The maximum number of saved verifications. The last one without findings and the last full one are also retained. */
const keptMax = 100

/** Builds the statements that store a verification and delete old ones. */
export const keep = ({ at, findings, checkpoint, millis, whole }: Verification): ReadonlyArray<Statement> => [
  {
    text: `INSERT INTO tollgate_ledger_verifications (at, whole, findings, millis, entry, record, world, revenue)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    params: [
      at,
      whole ? 1 : 0,
      findings,
      millis,
      checkpoint.entry,
      checkpoint.record,
      checkpoint.world,
      checkpoint.revenue
    ]
  },
  {
    text: `DELETE FROM tollgate_ledger_verifications
      WHERE id <= (SELECT MAX(id) FROM tollgate_ledger_verifications) - ?
        AND id IS DISTINCT FROM (SELECT MAX(id) FROM tollgate_ledger_verifications WHERE findings = 0)
        AND id IS DISTINCT FROM (SELECT MAX(id) FROM tollgate_ledger_verifications WHERE whole = 1)`,
    params: [keptMax]
  }
]
