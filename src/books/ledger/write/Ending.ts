/** How a room ends what the deployment's secret protected, when another secret replaces it. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Statement as SqlStatement } from "@effect/sql/Statement"
import type { Statement } from "../rules/Transaction.ts"

/**
 * Nothing that the old secret protected can be matched or opened any more. `count` counts those rows, `statements` end them, and
 * `notice` tells the operator their number.
 */
export interface Ending {
  readonly count: (sql: SqlClient, now: number) => SqlStatement<{ readonly n: number }>
  readonly statements: (sql: SqlClient, now: number) => ReadonlyArray<Statement>
  readonly notice: (n: number) => string
}
