/** All invariants of a database: the ledger's audit and the checks of every room. `tollgate verify` and the tests run them. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, identity } from "effect"
import * as Audit from "../books/ledger/audit/Audit.ts"
import { sentences } from "../books/ledger/audit/AuditRules.ts"
import type { Report } from "../books/ledger/audit/AuditRules.ts"
import * as SafeHorizon from "../books/ledger/write/SafeHorizon.ts"
import * as Invariants from "../books/ledger/audit/Invariants.ts"
import { beginning } from "../books/ledger/audit/Checkpoint.ts"
import type { Checkpoint } from "../books/ledger/audit/Checkpoint.ts"
import type { VerifySince } from "../books/ledger/audit/Verifications.ts"
import * as log from "../books/log/Checks.ts"
import * as liabilities from "../books/log/LiabilityChecks.ts"
import { findingsMax } from "../books/ledger/rules/Check.ts"
import type { Check, Finding, Looked } from "../books/ledger/rules/Check.ts"
import * as allowances from "../money/allowances/Checks.ts"
import * as budgets from "../money/budgets/Checks.ts"
import * as payments from "../money/payments/Checks.ts"
import * as transfers from "../money/transfers/Checks.ts"
import * as vouchers from "../money/vouchers/Checks.ts"
import * as runs from "../people/runs/Checks.ts"

const checks: ReadonlyArray<Check> = [
  ...Invariants.checks,
  ...log.checks,
  ...liabilities.checks,
  ...transfers.checks,
  ...payments.checks,
  ...allowances.checks,
  ...vouchers.checks,
  ...budgets.checks,
  ...runs.checks
]

/** The names of all checks, in execution order. */
export const checkNames: ReadonlyArray<string> = [...Object.keys(sentences), ...checks.map(({ name }) => name)]

const runChecks = Effect.fnUntraced(function* (
  checkpoint: Checkpoint | undefined,
  { pace, progress = () => Effect.void }: Parameters<VerifySince>[1] = {},
  several?: Audit.ConcurrentWriters
) {
  const found = new Map<string, Array<Finding>>()
  const report: Report = (check, row) => {
    const findings = found.get(check) ?? []
    if (findings.length === 0) found.set(check, findings)
    if (findings.length < findingsMax) findings.push({ check, ...row, message: sentences[check](row) })
  }
  const reached = yield* Audit.audit(checkpoint ?? beginning, report, progress, pace, several)
  const atOneMoment = several?.atOneMoment ?? identity
  const others = checks
    .filter(({ isShort }) => checkpoint === undefined || isShort === true)
    .map((check) => Effect.zipRight(pace?.pause ?? Effect.void, atOneMoment(Invariants.lookAt([check]))))
  const rest = yield* Effect.orDie(Effect.all(others))
  const audited = Object.keys(sentences).flatMap((check) => found.get(check) ?? [])
  return { findings: [...audited, ...rest.flat()], checkpoint: reached }
})

/** Verifies the rows added since a checkpoint, or all rows without one. Reads in slices, so that it does not delay calls. */
export const verifySince: VerifySince = (checkpoint, options) =>
  Effect.flatMap(SqlClient, (sql) =>
    sql.onDialectOrElse({
      pg: () => verifyShared(sql, checkpoint, options),
      orElse: () => runChecks(checkpoint, options)
    })
  )

/**
 * Verifies a database that several nodes write to. If the safe horizon is unknown, reads these rows in one snapshot and leaves the checkpoint
 * unchanged.
 */
const verifyShared = (sql: SqlClient, ...[checkpoint, options]: Parameters<VerifySince>): ReturnType<VerifySince> => {
  const atOneMoment = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    sql.withTransaction(Effect.zipRight(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`, effect))
  const end = SafeHorizon.find(sql)
  return Effect.flatMap(end, (first) =>
    first === undefined
      ? Effect.map(Effect.orDie(atOneMoment(runChecks(checkpoint, options))), ({ findings }) => ({
          findings,
          checkpoint: checkpoint ?? beginning
        }))
      : runChecks(checkpoint, options, { first, end, atOneMoment })
  )
}

/** Runs the short checks one after another. Their cost does not grow with the history. */
export const shortChecks: Effect.Effect<ReadonlyArray<Looked>, never, SqlClient> = Effect.forEach(
  checks.filter(({ isShort }) => isShort === true),
  (check) => Effect.map(Invariants.lookAt([check]), (findings) => ({ name: check.name, findings }))
)

export const verify: Effect.Effect<ReadonlyArray<Finding>, never, SqlClient> = Effect.map(
  verifySince(undefined),
  ({ findings }) => findings
)
