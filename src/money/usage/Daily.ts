/**
 * Sums over all tenants by day, provider and model. Each query adds the records after the saved sums to these sums
 * (`books/ledger/totals/ProviderTotals`). There are many such records only in the first minute after the upgrade of a large database without stored
 * sums.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import * as ProviderTotals from "../../books/ledger/totals/ProviderTotals.ts"
import type { DailySum, Days } from "../../books/ledger/totals/ProviderTotals.ts"

export interface DailyContract {
  /** Returns the sums, ordered by day, provider and model. */
  readonly sums: (days: Days) => Effect.Effect<ReadonlyArray<DailySum>>
}

export class Daily extends Context.Tag("tollgate/usage/Daily")<Daily, DailyContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Daily, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  /** Runs one query at a time, because each can read many rows. */
  const alone = yield* Effect.makeSemaphore(1)

  const sums: DailyContract["sums"] = Effect.fn("Daily.sums")(function* (days) {
    const { end, sums } = yield* ProviderTotals.storedTotals(sql, days)
    const behind = { from: end + 1, to: (yield* ProviderTotals.lastRow(sql)) + 1 }
    return ProviderTotals.together([...sums, ...(yield* ProviderTotals.among(sql, behind, days))]).toSorted(
      (a, b) => a.day - b.day || compare(a.provider, b.provider) || compare(a.model, b.model)
    )
  }, Effect.orDie)

  return { sums: (days) => alone.withPermits(1)(sums(days)) } satisfies DailyContract
})

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
