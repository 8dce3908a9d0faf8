/** Reads the state of the books for the metrics. */
import { Clock, Context, Effect } from "effect"
import type { Nano } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { WitnessFigures } from "../../books/log/Cosigning.ts"

export interface Gauges {
  /** The USD reserved by open calls, and the USD held in escrow for pending transfers. */
  readonly reserved_usd: number
  readonly escrowed_usd: number
  /** The age of the oldest open call, in seconds. */
  readonly oldest_unsettled_seconds: number
  readonly open_calls: number
  /** Seconds since the last verification without findings; infinite if there was none. */
  readonly seconds_since_verified: number
  readonly findings: number
}

/** The result for a vendor's newest compared day. */
export interface BillDrift {
  readonly vendor: string
  readonly drift: Nano
  readonly billed: Nano
  readonly coverage: number
}

/** The reader of each vendor's newest compared day, for the metrics. The default returns none. */
export class BillDrifts extends Context.Reference<BillDrifts>()("tollgate/ops/BillDrifts", {
  defaultValue: (): Effect.Effect<ReadonlyArray<BillDrift>> => Effect.succeed([])
}) {}

/** Reads the state of the log's witnesses, for the metrics. There are none by default. */
export class WitnessStates extends Context.Reference<WitnessStates>()("tollgate/ops/WitnessStates", {
  defaultValue: (): Effect.Effect<ReadonlyArray<WitnessFigures>> => Effect.succeed([])
}) {}

export const read: Effect.Effect<Gauges, never, Ledger> = Effect.gen(function* () {
  const now = yield* Clock.currentTimeMillis
  const { escrowed, findings, oldest_at, open_calls, reserved, verified_at } = yield* Effect.flatMap(
    Ledger,
    ({ totals }) => totals
  )
  return {
    reserved_usd: Number(reserved) / 1e9,
    escrowed_usd: Number(escrowed) / 1e9,
    open_calls,
    oldest_unsettled_seconds: oldest_at === null ? 0 : Math.max(0, (now - oldest_at) / 1000),
    seconds_since_verified: verified_at === null ? Number.POSITIVE_INFINITY : Math.max(0, (now - verified_at) / 1000),
    findings
  }
})
