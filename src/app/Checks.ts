/** All invariants of a database: the audit of the books, and the checks of all rooms. `tollgate verify` and tests run them. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, identity } from "effect"
import * as Audit from "../books/ledger/Audit.ts"
import * as BatchEnd from "../books/ledger/BatchEnd.ts"
import * as Invariants from "../books/ledger/Invariants.ts"
import { beginning } from "../books/ledger/Mark.ts"
import type { Mark } from "../books/ledger/Mark.ts"
import type { VerifySince } from "../books/ledger/Verifications.ts"
import * as allowances from "../money/allowances/Checks.ts"
import * as payments from "../money/payments/Checks.ts"
import * as transfers from "../money/transfers/Checks.ts"
import * as vouchers from "../money/vouchers/Checks.ts"

const checks: ReadonlyArray<Invariants.Check> = [
  ...Invariants.checks,
  ...transfers.checks,
  ...payments.checks,
  ...allowances.checks,
  ...vouchers.checks
]

/** The names of all checks, in the order in which they run. */
export const checkNames: ReadonlyArray<string> = [...Object.keys(Audit.sentences), ...checks.map(({ name }) => name)]

const runChecks = Effect.fnUntraced(function* (
  mark: Mark | undefined,
  { pace, progress = () => Effect.void }: Parameters<VerifySince>[1] = {},
  several?: Audit.SeveralWriters
) {
  const found = new Map<string, Array<Invariants.Finding>>()
  const report: Audit.Report = (check, row) => {
    const findings = found.get(check) ?? []
    if (findings.length === 0) found.set(check, findings)
    if (findings.length < Invariants.findingsMax) findings.push({ check, ...row, message: Audit.sentences[check](row) })
  }
  const reached = yield* Audit.audit(mark ?? beginning, report, progress, pace, several)
  const atOneMoment = several?.atOneMoment ?? identity
  const others = checks
    .filter(({ isShort }) => mark === undefined || isShort === true)
    .map((check) => Effect.zipRight(pace?.pause ?? Effect.void, atOneMoment(Invariants.lookAt([check]))))
  const rest = yield* Effect.orDie(Effect.all(others))
  const audited = Object.keys(Audit.sentences).flatMap((check) => found.get(check) ?? [])
  return { findings: [...audited, ...rest.flat()], mark: reached }
})

/** Reads in slices, so no call waits for it. */
export const verifySince: VerifySince = (mark, options) =>
  Effect.flatMap(SqlClient, (sql) =>
    sql.onDialectOrElse({ pg: () => verifyShared(sql, mark, options), orElse: () => runChecks(mark, options) })
  )

/** Several nodes may write. Without a known safe horizon everything is read in one snapshot, and the checkpoint stays. */
const verifyShared = (sql: SqlClient, ...[mark, options]: Parameters<VerifySince>): ReturnType<VerifySince> => {
  const atOneMoment = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    sql.withTransaction(Effect.zipRight(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`, effect))
  const end = BatchEnd.find(sql)
  return Effect.flatMap(end, (first) =>
    first === undefined
      ? Effect.map(Effect.orDie(atOneMoment(runChecks(mark, options))), ({ findings }) => ({
          findings,
          mark: mark ?? beginning
        }))
      : runChecks(mark, options, { first, end, atOneMoment })
  )
}

/** Runs the checks whose cost does not grow with the history, one by one. */
export const shortChecks: Effect.Effect<ReadonlyArray<Invariants.Looked>, never, SqlClient> = Effect.forEach(
  checks.filter(({ isShort }) => isShort === true),
  (check) => Effect.map(Invariants.lookAt([check]), (findings) => ({ name: check.name, findings }))
)

/** Runs all checks. Answers the findings. */
export const verify: Effect.Effect<ReadonlyArray<Invariants.Finding>, never, SqlClient> = Effect.map(
  verifySince(undefined),
  ({ findings }) => findings
)
