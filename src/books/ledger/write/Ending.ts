/** Cleanups for a new deployment secret. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Statement as SqlStatement } from "@effect/sql/Statement"
import type { Statement } from "../rules/Transaction.ts"

/**
 * A module's cleanup when a new secret replaces the deployment's secret. Rows that the old secret protected can no longer be matched or decrypted.
 * `count` selects the number of these rows, `statements` invalidates them, and `notice` reports their number to the operator.
 */
export interface Ending {
  readonly count: (sql: SqlClient, now: number) => SqlStatement<{ readonly n: number }>
  readonly statements: (sql: SqlClient, now: number) => ReadonlyArray<Statement>
  readonly notice: (n: number) => string
}
