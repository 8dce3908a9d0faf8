/**
 * Checks of the books. A check consists of a rule's name, the query for its violations, and the sentence for a finding. Modules define checks, and
 * `app/Checks` lists them all.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type { Effect } from "effect"
import { toDecimal } from "../../../kernel/Money.ts"

/** A violation of a rule. */
export interface Finding {
  readonly check: string
  /** The subject of the finding, such as an account, an entry, a record or a rollup key. */
  readonly id: string
  readonly expected: string
  readonly found: string
  /** The finding as a sentence. */
  readonly message: string
}

export interface Looked {
  readonly name: string
  readonly findings: ReadonlyArray<Finding>
}

export interface CheckRow {
  readonly id: string
  readonly expected: string
  readonly found: string
}

/** A rule that must hold, with the query that finds its violations, or a program if one query is not enough. */
export type Check = {
  readonly name: string
  /** Present if the check's cost does not grow with the history. An audit since a checkpoint runs only these checks. */
  readonly isShort?: true
  readonly sentence: (row: CheckRow) => string
} & (
  | {
      /** The query. It must return `id`, `expected` and `found`, all as text. */
      readonly query: string
    }
  | { readonly find: (sql: SqlClient) => Effect.Effect<ReadonlyArray<CheckRow>, SqlError> }
)

export const findingsMax = 100

/** Formats an amount in nano-USD for a sentence. */
export const usd = (nano: string): string => (/^-?\d+$/.test(nano) ? `${toDecimal(BigInt(nano))} USD` : nano)

/** Casts an expression to text, for the columns `id`, `expected` and `found`. */
export const text = (expression: string) => `CAST(${expression} AS TEXT)`
