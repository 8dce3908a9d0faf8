/**
 * Finds a billing account's entries by source. Entries other than charges are in a partial index that charges do not update. A charge's number is
 * computed by counting the other entries after it.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Effect } from "effect"
import { fromRow } from "../../../kernel/Money.ts"
import type { Nano } from "../../../kernel/Money.ts"
import type { PageOf } from "../../../kernel/Page.ts"
import { entriesAmong } from "./RowLinks.ts"
import type { CreditSource } from "../rules/Transaction.ts"

/** The requested sources. `call` selects charges, the entries without a source. */
export type EntrySources = "call" | ReadonlyArray<CreditSource>

/** A page of entries: the total number on all pages, and SQL for the page's rows as `tollgate_ledger_entries e`, newest first. */
export interface EntriesFound {
  readonly total: number
  readonly rows: Fragment
}

export const ofSources = Effect.fnUntraced(function* (
  sql: SqlClient,
  account: string,
  sources: ReadonlyArray<CreditSource>,
  { page, per_page }: PageOf
) {
  const wanted = sql`e.billing_account_id = ${account} AND e.source IS NOT NULL
    AND e.source IN (SELECT value FROM json_each(${JSON.stringify(sources)}))`
  const [all] = yield* sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_ledger_entries e WHERE ${wanted}`
  const rows = sql`tollgate_ledger_entries e WHERE ${wanted}
    ORDER BY e.number DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}`
  return { total: all!.n, rows } satisfies EntriesFound
})

/** Finds a page of charges. `entries` is the account's entry count. */
export const ofCalls = Effect.fnUntraced(function* (
  sql: SqlClient,
  account: string,
  entries: number,
  { page, per_page }: PageOf
) {
  const others = (from: number, to: number) =>
    Effect.map(
      sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_ledger_entries
        WHERE billing_account_id = ${account} AND source IS NOT NULL AND number >= ${from} AND number < ${to}`,
      ([row]) => row!.n
    )
  /** Finds the number of the charge with this many later charges. */
  const numberOf = Effect.fnUntraced(function* (behind: number) {
    let [number, counted, passed] = [entries - behind, entries + 1, 0]
    while (counted > number) {
      passed += yield* others(number, counted)
      counted = number
      number = entries - behind - passed
    }
    return number
  })
  const total = entries - (yield* others(1, entries + 1))
  const skipped = (page - 1) * per_page
  const last = Math.min(total, skipped + per_page)
  const range =
    skipped < last ? { from: yield* numberOf(last - 1), to: (yield* numberOf(skipped)) + 1 } : { from: 1, to: 1 }
  const rows = sql`${entriesAmong(sql, account, range)} AND e.source IS NULL ORDER BY e.number DESC`
  return { total, rows } satisfies EntriesFound
})

/** Reads the amount of an entry with this source and reference; `undefined` if there is none. */
export const amountUnder = (
  sql: SqlClient,
  account: string,
  source: CreditSource,
  reference: string
): Effect.Effect<Nano | undefined> =>
  Effect.map(
    Effect.orDie(
      sql<{ amount: string }>`SELECT CAST(amount AS TEXT) AS amount FROM tollgate_ledger_entries
        WHERE billing_account_id = ${account} AND source IS NOT NULL AND source = ${source} AND reference_id = ${reference}`
    ),
    ([row]) => row && fromRow(row.amount)
  )
