/** Everything that must hold of a database: the checks of all rooms. `tollgate verify` and the tests look at them. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Effect } from "effect"
import * as Invariants from "./ledger/Invariants.ts"
import * as payments from "./payments/Checks.ts"
import * as transfers from "./transfers/Checks.ts"

const checks: ReadonlyArray<Invariants.Check> = [...Invariants.checks, ...transfers.checks, ...payments.checks]

/** Looks at everything, in one read transaction; gives what is off. */
export const verify: Effect.Effect<ReadonlyArray<Invariants.Finding>, never, SqlClient> = Invariants.lookAt(checks)

/** The names of all checks, in the order in which they run. */
export const checkNames: ReadonlyArray<string> = checks.map(({ name }) => name)
