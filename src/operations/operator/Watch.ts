/**
 * Figures for the operator: money in flight by age, open reservations, debts, loops and jobs, verifications, invariants and live figures. The
 * responding node reports its own unsettled calls, loops and running verification.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import type { GateContract } from "../../books/gate/Gate.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Verified from "../../books/ledger/audit/Verifications.ts"
import { Verifier } from "../../books/ledger/audit/Verifier.ts"
import { waitingLetters } from "../../people/mail/Waiting.ts"
import { openJobs } from "../../calls/media/Open.ts"
import { Readiness } from "../ops/Readiness.ts"
import type { ReadinessContract } from "../ops/Readiness.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import { AuditLog } from "./AuditLog.ts"
import { invariants, verifications, verify } from "./BooksWatch.ts"
import type { LoadChecks } from "./BooksWatch.ts"
import type {
  InvariantChecks,
  LiveFigures,
  MoneyInFlight,
  Owed,
  ReservationLine,
  Verifications,
  Work
} from "./Figures.ts"
import type { KeysetOf } from "./Keyset.ts"
import { flight, owed, reservationPage } from "./MoneyInFlight.ts"
import type { Operator } from "./Operator.ts"
import type { AlreadyRunning } from "./Problems.ts"

export interface OperatorWatchContract {
  readonly flight: Effect.Effect<MoneyInFlight>
  /** Lists open reservations, oldest first. */
  readonly reservations: (asked: {
    readonly limit: number
    readonly after?: string | undefined
  }) => Effect.Effect<KeysetOf<ReservationLine>>
  readonly owed: Effect.Effect<Owed>
  readonly work: Effect.Effect<Work>
  readonly verifications: Effect.Effect<Verifications>
  /** Starts a verification on this node. */
  readonly verify: (by: Operator, whole: boolean) => Effect.Effect<Verifications, AlreadyRunning | BooksUnavailable>
  /** Checks the quick invariants now. Only one check at a time runs on this node. */
  readonly invariants: (by: Operator) => Effect.Effect<InvariantChecks, AlreadyRunning | BooksUnavailable>
  /** Yields live figures. Concurrent readers share figures that are up to 0.9 seconds old. */
  readonly live: Effect.Effect<LiveFigures>
}

export class OperatorWatch extends Context.Tag("tollgate/operator/Watch")<OperatorWatch, OperatorWatchContract>() {
  /** `load` loads the invariant checks on first use. */
  static readonly layer = (load: LoadChecks) => Layer.effect(OperatorWatch, make(load))
}

const make = (load: LoadChecks) =>
  Effect.gen(function* () {
    const parts = {
      sql: yield* SqlClient,
      ledger: yield* Ledger,
      gate: yield* Gate,
      purchases: yield* Purchases,
      verifier: yield* Verifier,
      readiness: yield* Readiness,
      log: yield* AuditLog
    }
    return {
      flight: flight(parts),
      reservations: reservationPage(parts),
      owed: owed(parts),
      work: work(parts),
      verifications: verifications(parts),
      verify: verify(parts),
      invariants: invariants(parts, load),
      live: yield* Effect.cachedWithTTL(liveFigures(parts), "900 millis")
    } satisfies OperatorWatchContract
  })

interface WorkParts {
  readonly sql: SqlClient
  readonly readiness: ReadinessContract
}

const work = ({ readiness, sql }: WorkParts): OperatorWatchContract["work"] =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const jobs = yield* openJobs(sql)
    const instant = (seconds: number | undefined): number | null =>
      seconds === undefined ? null : Math.round(now + seconds * 1_000)
    return {
      node: (yield* readiness.node) ?? null,
      loops: (yield* readiness.loops).map(({ seconds_since_turn, seconds_until_turn, ...loop }) => ({
        loop: loop.loop,
        running: loop.running,
        last_turn_at: instant(seconds_since_turn === undefined ? undefined : -seconds_since_turn),
        next_turn_at: instant(seconds_until_turn),
        seconds_since_good: loop.seconds_since_good,
        failures: loop.failures,
        trouble: loop.trouble ?? null
      })),
      jobs: jobs.map((job) => ({ kind: "media" as const, ...job })),
      outbox: yield* waitingLetters(sql)
    }
  })

interface LiveParts {
  readonly sql: SqlClient
  readonly ledger: LedgerContract
  readonly gate: GateContract
  readonly readiness: ReadinessContract
}

const liveFigures = ({ gate, ledger, readiness, sql }: LiveParts): Effect.Effect<LiveFigures> => {
  let before: { readonly at: number; readonly record: number } | undefined
  return Effect.gen(function* () {
    const at = yield* Clock.currentTimeMillis
    const { record } = yield* Verified.newest(sql)
    const totals = yield* ledger.totals
    const passed = before === undefined ? 0 : (at - before.at) / 1_000
    const calls = before === undefined || passed <= 0 ? 0 : (record - before.record) / passed
    before = { at, record }
    return {
      at,
      calls_per_second: Math.round(Math.max(0, calls) * 10) / 10,
      reserved: totals.reserved,
      open_calls: totals.open_calls,
      escrowed: totals.escrowed,
      unsettled: yield* gate.unsettled,
      loops: (yield* readiness.loops).map(({ loop, trouble }) => ({ loop, trouble: trouble ?? null }))
    }
  })
}
