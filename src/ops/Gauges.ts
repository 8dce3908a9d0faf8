/** What the books hold at the moment, for the metrics. It costs what is open, however many accounts there are. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"

export interface Gauges {
  /** USD set aside by calls, and in escrow of transfers. */
  readonly reserved_usd: number
  readonly escrowed_usd: number
  /** How long the oldest open call has been open. */
  readonly oldest_unsettled_seconds: number
  readonly open_calls: number
}

export const read = Effect.gen(function* () {
  const sql = yield* SqlClient
  const now = yield* Clock.currentTimeMillis
  const [held] = yield* sql<{
    usd: number
  }>`SELECT TOTAL(held) / 1e9 AS usd FROM tollgate_ledger_accounts WHERE held > 0`
  const [open] = yield* sql<{ usd: number; calls: number; oldest: number | null }>`
    SELECT TOTAL(amount) / 1e9 AS usd, count(*) AS calls, min(at) AS oldest FROM tollgate_ledger_reservations`
  return {
    reserved_usd: open?.usd ?? 0,
    escrowed_usd: held?.usd ?? 0,
    open_calls: open?.calls ?? 0,
    oldest_unsettled_seconds: open?.oldest == null ? 0 : Math.max(0, (now - open.oldest) / 1000)
  } satisfies Gauges
}).pipe(Effect.orDie)
