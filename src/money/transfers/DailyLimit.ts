/** Limits the number of transfers that a tenant creates in 24 hours (`TransferLimits`) by counting rows of the transfer table. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { BillingAccountId } from "../../kernel/Ids.ts"
import { day } from "../../kernel/Moment.ts"
import { TooManyTransfers } from "./Problems.ts"
import type { TransferLimitFacts } from "./Settings.ts"

export const make = (sql: SqlClient, { per_day }: TransferLimitFacts) => {
  /** Selects the account's transfers from the last 24 hours. Ids sort by time, so the index on account and id finds them. */
  const recent = (account: BillingAccountId, now: number) =>
    sql`tollgate_transfers WHERE billing_account_id = ${account} AND id > ${Ids.at("trf", now - day)}
      AND created_at > ${now - day}`

  return {
    /** Rejects a transfer beyond the limit. The error contains the time until the next transfer is allowed. */
    check: Effect.fnUntraced(function* (account: BillingAccountId) {
      const now = yield* Clock.currentTimeMillis
      const [last] = yield* Effect.orDie(
        sql<{ created_at: number }>`SELECT created_at FROM ${recent(account, now)}
          ORDER BY id DESC LIMIT 1 OFFSET ${per_day - 1}`
      )
      if (last === undefined) return
      const retry_after = Math.max(1, Math.ceil((last.created_at + day - now) / 1000))
      return yield* new TooManyTransfers({ limit: per_day, retry_after })
    }),

    /** Repeats the check in the transaction that creates the transfer, after its row is written, so that concurrent transfers also count. */
    condition: (account: BillingAccountId, now: number): Statement =>
      statement(sql`SELECT 1 WHERE (SELECT count(*) FROM ${recent(account, now)}) <= ${per_day}`, 1)
  }
}

export type DailyLimit = ReturnType<typeof make>
