/** Everything that must hold of a database: the audit of the books, and the checks of all rooms. `tollgate verify` and the tests look at them. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import * as Audit from "./ledger/Audit.ts"
import * as BatchEnd from "./ledger/BatchEnd.ts"
import * as Invariants from "./ledger/Invariants.ts"
import { beginning } from "./ledger/Mark.ts"
import type { Mark } from "./ledger/Mark.ts"
import type { VerifySince } from "./ledger/Verifications.ts"
import * as payments from "./payments/Checks.ts"
import * as transfers from "./transfers/Checks.ts"

const checks: ReadonlyArray<Invariants.Check> = [...Invariants.checks, ...transfers.checks, ...payments.checks]

/** The names of all checks, in the order in which they run. */
export const checkNames: ReadonlyArray<string> = [...Object.keys(Audit.sentences), ...checks.map(({ name }) => name)]

const looked = Effect.fnUntraced(function* (
  mark: Mark | undefined,
  { pace, progress = () => Effect.void }: Parameters<VerifySince>[1] = {},
  end: Audit.End | undefined
) {
  const found = new Map<string, Array<Invariants.Finding>>()
  const report: Audit.Report = (check, row) => {
    const findings = found.get(check) ?? []
    if (findings.length === 0) found.set(check, findings)
    if (findings.length < Invariants.findingsMax) findings.push({ check, ...row, message: Audit.sentences[check](row) })
  }
  const reached = yield* Audit.audit(mark ?? beginning, report, progress, pace, end)
  const rest = yield* Invariants.lookAt(
    mark === undefined ? checks : checks.filter(({ isShort }) => isShort === true),
    pace
  )
  const audited = Object.keys(Audit.sentences).flatMap((check) => found.get(check) ?? [])
  return { findings: [...audited, ...rest], mark: reached }
})

/** In slices: nobody waits for it. */
export const verifySince: VerifySince = (mark, options) =>
  Effect.flatMap(BatchEnd.find(mark ?? beginning), (end) => atOneMoment(looked(mark, options, end)))

/**
 * On PostgreSQL all of it is read as it was at one moment, which keeps nobody from writing. On SQLite that would keep the log from being
 * taken in, so each slice is read at a moment of its own.
 */
const atOneMoment = <A>(effect: Effect.Effect<A, never, SqlClient>): Effect.Effect<A, never, SqlClient> =>
  Effect.flatMap(SqlClient, (sql) =>
    sql.onDialectOrElse({
      pg: () =>
        Effect.orDie(
          sql.withTransaction(Effect.zipRight(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`, effect))
        ),
      orElse: () => effect
    })
  )

/** Looks at the checks that cost little however long the history is, one by one. */
export const short: Effect.Effect<ReadonlyArray<Invariants.Looked>, never, SqlClient> = Effect.forEach(
  checks.filter(({ isShort }) => isShort === true),
  (check) => Effect.map(Invariants.lookAt([check]), (findings) => ({ name: check.name, findings }))
)

/** Looks at everything; gives what is off. */
export const verify: Effect.Effect<ReadonlyArray<Invariants.Finding>, never, SqlClient> = Effect.map(
  verifySince(undefined),
  ({ findings }) => findings
)
