/** Reports money in flight: reservations and escrow by age, open reservations, and unrecovered refunds and disputes. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import type { GateContract } from "../../books/gate/Gate.ts"
import { day } from "../../kernel/Moment.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import * as Reservations from "../../books/ledger/rows/Reservations.ts"
import type { ReadinessContract } from "../ops/Readiness.ts"
import type { PurchasesContract } from "../../money/payments/Purchases.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import * as Transfers from "../../money/transfers/Directory.ts"
import type { MoneyInFlight, ReservationLine } from "./Figures.ts"
import { keyset } from "./Keyset.ts"
import type { OperatorWatchContract } from "./Watch.ts"

/** The lower bounds of the age buckets, in seconds and in days. */
const seconds = [0, 1, 10, 60, 600, 3_600]
const days = [0, 1, 3, 7, 14, 30]

const listMax = 1_000

interface Parts {
  readonly sql: SqlClient
  readonly ledger: LedgerContract
  readonly gate: GateContract
  readonly purchases: PurchasesContract
  readonly readiness: ReadinessContract
}

export const flight = ({ gate, ledger, purchases, readiness, sql }: Parts): OperatorWatchContract["flight"] =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const totals = yield* ledger.totals
    const byAge = yield* Reservations.make(sql).byAge(
      seconds.map((from) => (from === 0 ? Number.MAX_SAFE_INTEGER : now - from * 1_000))
    )
    const escrow_ages = yield* escrowAges(sql, now)
    return {
      at: now,
      node: readiness.name ?? null,
      reserved: totals.reserved,
      open_calls: totals.open_calls,
      oldest_at: totals.oldest_at,
      unsettled: yield* gate.unsettled,
      escrowed: totals.escrowed,
      pending_transfers: escrow_ages.reduce((sum, one) => sum + one.transfers, 0),
      ages: byAge.map((sum, i) => ({ from_seconds: seconds[i]!, to_seconds: seconds[i + 1] ?? null, ...sum })),
      escrow_ages,
      owed: (yield* purchases.owed).reduce((sum, { owed }) => sum + owed, 0n)
    }
  })

const escrowAges = (sql: SqlClient, now: number): Effect.Effect<MoneyInFlight["escrow_ages"]> =>
  Effect.map(Transfers.make(sql).pending, (pending) => {
    const today = now - (now % day)
    return days.map((from, i) => {
      const to = days[i + 1] ?? null
      const those = pending.filter(({ since }) => {
        const age = Math.max(0, (today - since) / day)
        return age >= from && (to === null || age < to)
      })
      return {
        from_days: from,
        to_days: to,
        transfers: those.reduce((sum, one) => sum + one.transfers, 0),
        amount: those.reduce((sum, one) => sum + one.amount, 0n)
      }
    })
  })

export const reservationPage = ({ gate, sql }: Parts): OperatorWatchContract["reservations"] =>
  Effect.fn("OperatorWatch.reservations")(function* ({ after, limit }) {
    const cursor = /^(\d{1,15}):(call_[0-9a-z]{1,40})$/.exec(after ?? "")
    const from = cursor === null ? undefined : { at: Number(cursor[1]), id: cursor[2]! }
    const found = yield* Reservations.make(sql).page(from, limit + 1)
    const abandoned = new Map<string, boolean>()
    for (const run of new Set(found.map(({ run }) => run))) abandoned.set(run, yield* gate.isAbandoned(run))
    const names = yield* Tenancy.make(sql).namesOf(found.flatMap((one) => [one.tenant_id, one.payer_tenant_id]))
    const lines = found.map((one): ReservationLine => ({
      ...one,
      tenant_name: names.get(one.tenant_id) ?? null,
      payer_tenant_name: names.get(one.payer_tenant_id) ?? null,
      node_alive: abandoned.get(one.run) === false
    }))
    return keyset(lines, limit, ({ at, id }) => `${at}:${id}`)
  })

export const owed = ({ purchases, sql }: Parts): OperatorWatchContract["owed"] =>
  Effect.gen(function* () {
    const owing = (yield* purchases.owed).slice(0, listMax)
    const waiting = (yield* purchases.waiting).slice(0, listMax)
    const names = yield* Tenancy.make(sql).namesOf(owing.map(({ tenant_id }) => tenant_id))
    return { owed: owing.map((one) => ({ ...one, tenant_name: names.get(one.tenant_id) ?? null })), waiting }
  })
