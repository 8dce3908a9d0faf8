/** A module's cleanup when a new secret replaces the deployment's secret. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Statement as SqlStatement } from "@effect/sql/Statement"
import type { Statement } from "../rules/Transaction.ts"

/**
 * The cleanup of rows that the old secret protected. They can no longer be matched or decrypted. `count` counts these rows, `statements` invalidates
 * them, and `notice` reports their number to the operator.
 */
export interface Ending {
  readonly count: (sql: SqlClient, now: number) => SqlStatement<{ readonly n: number }>
  readonly statements: (sql: SqlClient, now: number) => ReadonlyArray<Statement>
  readonly notice: (n: number) => string
}
