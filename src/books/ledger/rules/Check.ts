/** Checks of the books: a rule, what finds its breaches, and how a breach is reported. Each room has checks of its own; `app/Checks` lists them all. */
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
  /** The same as a sentence. */
  readonly message: string
}

/** The result of a check. */
export interface Looked {
  readonly name: string
  readonly findings: ReadonlyArray<Finding>
}

/** The rows that a check's query answers. */
export interface CheckRow {
  readonly id: string
  readonly expected: string
  readonly found: string
}

/** A rule that must hold, with the query that finds its breaches, or a program where one query cannot. */
export type Check = {
  readonly name: string
  /** Whether its cost does not grow with the history. An audit since a checkpoint runs only these. */
  readonly isShort?: true
  readonly sentence: (row: CheckRow) => string
} & (
  | {
      /** Answers rows of `id`, `expected` and `found`, all of them text. */
      readonly query: string
    }
  | { readonly find: (sql: SqlClient) => Effect.Effect<ReadonlyArray<CheckRow>, SqlError> }
)

/** The most findings that one check reports. */
export const findingsMax = 100

/** An amount of nano-USD in a sentence. */
export const usd = (nano: string): string => (/^-?\d+$/.test(nano) ? `${toDecimal(BigInt(nano))} USD` : nano)

/** A column of `id`, `expected` and `found`. */
export const text = (expression: string) => `CAST(${expression} AS TEXT)`
