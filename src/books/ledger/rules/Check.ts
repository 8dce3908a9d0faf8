/** Checks of the books: a rule, the query for its violations, and the text of a finding. Rooms define their checks; `app/Checks` lists them. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type { Effect } from "effect"
import { toDecimal } from "../../../kernel/Money.ts"

/** A broken rule. */
export interface Finding {
  /** The name of the check that found it. */
  readonly check: string
  /** The subject: an account, an entry, a record, a key of a rollup. */
  readonly id: string
  readonly expected: string
  readonly found: string
  /** The finding as a sentence. */
  readonly message: string
}

/** The result of running a check. */
export interface Looked {
  readonly name: string
  readonly findings: ReadonlyArray<Finding>
}

/** A row of a check's query. */
export interface CheckRow {
  readonly id: string
  readonly expected: string
  readonly found: string
}

/** A rule that must hold, with the query that finds its violations, or a program if one query cannot. */
export type Check = {
  readonly name: string
  /** Whether its cost does not grow with the history. An audit since a checkpoint runs only these. */
  readonly isShort?: true
  readonly sentence: (row: CheckRow) => string
} & (
  | {
      /** Returns `id`, `expected` and `found`, all as text. */
      readonly query: string
    }
  | { readonly find: (sql: SqlClient) => Effect.Effect<ReadonlyArray<CheckRow>, SqlError> }
)

/** The maximum number of findings that one check reports. */
export const findingsMax = 100

/** An amount of nano-USD in a sentence. */
export const usd = (nano: string): string => (/^-?\d+$/.test(nano) ? `${toDecimal(BigInt(nano))} USD` : nano)

/** The expression as text, for the columns `id`, `expected` and `found`. */
export const text = (expression: string) => `CAST(${expression} AS TEXT)`
