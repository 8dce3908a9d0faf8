/** Cleans up old rows in the outbox: deletes finished emails, and fails emails that waited too long without a mail server. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Duration, Effect } from "effect"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { lifetime } from "./Delivery.ts"

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
}

/** How long a row is retained after its email was created. */
const retention = Duration.toMillis(Duration.days(30))
/** The maximum number of rows changed per iteration. */
const sweptMax = 1_000

/** Applies a change to up to `sweptMax` of the selected rows. */
const sweep = Effect.fnUntraced(function* (
  { sql, writer }: Dependencies,
  which: Fragment,
  change: (keys: Fragment) => Parameters<typeof statement>[0]
): Effect.fn.Return<void, BooksUnavailable> {
  const keys = sql`SELECT key FROM tollgate_mail_outbox WHERE ${which} LIMIT ${sql.literal(String(sweptMax))}`
  const found = yield* Effect.orDie(sql`SELECT 1 FROM tollgate_mail_outbox WHERE ${which} LIMIT 1`)
  if (found.length > 0) yield* Statements.write(writer, statement(change(keys)))
})

/** Deletes finished emails that are older than the retention period. */
export const deleteOld = (dependencies: Dependencies, now: number) => {
  const { sql } = dependencies
  const old = sql`status IN ('sent', 'failed', 'unknown') AND created_at < ${now - retention}`
  return sweep(dependencies, old, (keys) => sql`DELETE FROM tollgate_mail_outbox WHERE key IN (${keys})`)
}

/** Fails emails that have waited longer than `lifetime`. */
export const failOld = (dependencies: Dependencies, now: number) => {
  const { sql } = dependencies
  const old = sql`status = 'waiting' AND created_at < ${now - lifetime}`
  return sweep(
    dependencies,
    old,
    (keys) => sql`UPDATE tollgate_mail_outbox SET status = 'failed', sealed = '', ended_at = ${now},
      last_error = 'there is no mail server' WHERE key IN (${keys})`
  )
}
