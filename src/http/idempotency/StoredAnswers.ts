/**
 * Limits the disk space of an account's stored responses. Above the limit, the oldest responses are deleted until an eighth of the space is free.
 * Their keys remain, so a replay is refused instead of making a second call.
 *
 * A process counts an account's responses in the database when it first stores one, and then adds each response that it stores. It counts them again
 * after ten minutes, because other nodes also store responses for the account.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Schema } from "effect"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Writer } from "../../books/ledger/write/Writer.ts"
import { answerBytesMax } from "./Answers.ts"

export const StoredAnswersSettings = Schema.Struct({
  answers_per_account: Schema.optionalWith(Schema.Int.pipe(Schema.greaterThanOrEqualTo(100)), {
    default: () => 10_000
  }),
  /** The maximum total size of an account's stored responses after compression, in bytes. At least two responses of the maximum size must fit. */
  bytes_per_account: Schema.optionalWith(Schema.Int.pipe(Schema.greaterThanOrEqualTo(2 * answerBytesMax)), {
    default: () => 32 * 1024 * 1024
  })
})
export interface StoredAnswersSettings extends Schema.Schema.Type<typeof StoredAnswersSettings> {}

export class StoredAnswersConfig extends Context.Reference<StoredAnswersConfig>()(
  "tollgate/idempotency/StoredAnswersConfig",
  {
    defaultValue: () => Schema.decodeSync(StoredAnswersSettings)({})
  }
) {}

interface Sum {
  readonly answers: number
  readonly bytes: number
}

interface Counted extends Sum {
  /** The time of the last count in the database. */
  readonly at: number
}

const countAgainAfter = Duration.toMillis("10 minutes")

/** The maximum number of accounts in a process's cache of counts. */
const accountsMax = 10_000

export const make = (sql: SqlClient, writer: Context.Tag.Service<Writer>, settings: StoredAnswersSettings) => {
  const { answers_per_account, bytes_per_account } = settings
  const sums = new Map<string, Counted>()

  const count = (account: string) =>
    Effect.map(
      Effect.orDie(
        sql<Sum>`SELECT count(*) AS answers, CAST(COALESCE(sum(length(body)), 0) AS BIGINT) AS bytes
          FROM tollgate_idempotency_keys WHERE account_id = ${account} AND body IS NOT NULL`
      ),
      ([sum]) => sum!
    )

  /** Deletes the account's oldest responses beyond seven eighths of its limit. */
  const trim = (account: string) =>
    Statements.write(
      writer,
      statement(sql`UPDATE tollgate_idempotency_keys SET status = NULL, headers = NULL, body = NULL
        WHERE (tenant_id, account_id, key, holder) IN (
          SELECT tenant_id, account_id, key, holder FROM (
            SELECT tenant_id, account_id, key, holder,
              row_number() OVER newest AS answers, sum(length(body)) OVER newest AS bytes
            FROM tollgate_idempotency_keys WHERE account_id = ${account} AND body IS NOT NULL
            WINDOW newest AS (ORDER BY answered_at DESC, tenant_id, key, holder ROWS UNBOUNDED PRECEDING)) AS ranked
          WHERE answers > ${Math.floor((answers_per_account / 8) * 7)} OR bytes > ${Math.floor((bytes_per_account / 8) * 7)})`)
    )

  return {
    /** Counts a new response for the account, and deletes the oldest responses if a limit is exceeded. */
    stored: Effect.fnUntraced(function* (account: string, bytes: number) {
      const now = yield* Clock.currentTimeMillis
      const before = sums.get(account)
      const sum: Counted =
        before === undefined || now - before.at > countAgainAfter
          ? { ...(yield* count(account)), at: now }
          : { answers: before.answers + 1, bytes: before.bytes + bytes, at: before.at }
      if (sums.size >= accountsMax) sums.clear()
      sums.set(account, sum)
      if (sum.answers <= answers_per_account && sum.bytes <= bytes_per_account) return
      yield* trim(account)
      sums.delete(account)
    })
  }
}
