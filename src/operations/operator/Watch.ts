/**
 * What the operator watches: money in flight by age, open reservations, what refunds could not take back, loops and jobs, verifications and the
 * invariants. What a node alone knows (unsettled calls, its loops, a verification that it runs) is said of the node that answers.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import { day } from "../../kernel/Moment.ts"
import type { Looked } from "../../books/ledger/Invariants.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Reservations from "../../books/ledger/Reservations.ts"
import * as Verified from "../../books/ledger/Verifications.ts"
import { Verifier } from "../../books/ledger/Verifier.ts"
import { waitingLetters } from "../../people/mail/Waiting.ts"
import { openJobs } from "../../calls/media/Open.ts"
import { Loops } from "../ops/Loops.ts"
import { Readiness } from "../ops/Readiness.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import * as Transfers from "../../money/transfers/Directory.ts"
import { AuditLog } from "./AuditLog.ts"
import type {
  Flight,
  InvariantsLooked,
  LiveFigures,
  Owed,
  ReservationLine,
  Verification,
  Verifications,
  Work
} from "./Flight.ts"
import { keyset } from "./Keyset.ts"
import type { KeysetOf } from "./Keyset.ts"
import type { Operator } from "./Operator.ts"
import { AlreadyRunning } from "./Problems.ts"

export interface OperatorWatchContract {
  readonly flight: Effect.Effect<Flight>
  /** The oldest first. */
  readonly reservations: (asked: {
    readonly limit: number
    readonly after?: string | undefined
  }) => Effect.Effect<KeysetOf<ReservationLine>>
  readonly owed: Effect.Effect<Owed>
  readonly work: Effect.Effect<Work>
  readonly verifications: Effect.Effect<Verifications>
  /** Starts a verification on this node. */
  readonly verify: (by: Operator, whole: boolean) => Effect.Effect<Verifications, AlreadyRunning | BooksUnavailable>
  /** Looks at the invariants that cost little, now; one look at a time on this node. */
  readonly invariants: (by: Operator) => Effect.Effect<InvariantsLooked, AlreadyRunning | BooksUnavailable>
  /** Read once a second at most, however many ask. */
  readonly live: Effect.Effect<LiveFigures>
}

export class OperatorWatch extends Context.Tag("tollgate/operator/Watch")<OperatorWatch, OperatorWatchContract>() {
  /** `load` gives the look at the invariants; it is asked for when it is first wanted. */
  static readonly layer = (load: Effect.Effect<Effect.Effect<ReadonlyArray<Looked>, never, SqlClient>>) =>
    Layer.effect(OperatorWatch, make(load))
}

/** Where classes of ages begin, in seconds and in days. */
const seconds = [0, 1, 10, 60, 600, 3_600]
const days = [0, 1, 3, 7, 14, 30]

const listMax = 1_000
const recentMax = 20

const make = (load: Effect.Effect<Effect.Effect<ReadonlyArray<Looked>, never, SqlClient>>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const ledger = yield* Ledger
    const gate = yield* Gate
    const purchases = yield* Purchases
    const verifier = yield* Verifier
    const loops = yield* Loops
    const readiness = yield* Readiness
    const log = yield* AuditLog
    const reservations = Reservations.make(sql)
    const transfers = Transfers.make(sql)
    const tenancy = Tenancy.make(sql)
    const looking = yield* Effect.makeSemaphore(1)

    const escrowAges = Effect.fnUntraced(function* (now: number) {
      const pending = yield* transfers.pending
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

    const flight: OperatorWatchContract["flight"] = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const totals = yield* ledger.totals
      const byAge = yield* reservations.byAge(
        seconds.map((from) => (from === 0 ? Number.MAX_SAFE_INTEGER : now - from * 1_000))
      )
      const escrow_ages = yield* escrowAges(now)
      return {
        at: now,
        node: (yield* readiness.node)?.name ?? null,
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

    const page: OperatorWatchContract["reservations"] = Effect.fn("OperatorWatch.reservations")(function* ({
      after,
      limit
    }) {
      const place = /^(\d{1,15}):(call_[0-9a-z]{1,40})$/.exec(after ?? "")
      const from = place === null ? undefined : { at: Number(place[1]), id: place[2]! }
      const found = yield* reservations.page(from, limit + 1)
      const abandoned = new Map<string, boolean>()
      for (const run of new Set(found.map(({ run }) => run))) abandoned.set(run, yield* gate.isAbandoned(run))
      const names = yield* tenancy.namesOf(found.flatMap((one) => [one.tenant_id, one.payer_tenant_id]))
      const lines = found.map((one): ReservationLine => ({
        ...one,
        tenant_name: names.get(one.tenant_id) ?? null,
        payer_tenant_name: names.get(one.payer_tenant_id) ?? null,
        node_alive: abandoned.get(one.run) === false
      }))
      return keyset(lines, limit, ({ at, id }) => `${at}:${id}`)
    })

    const owed: OperatorWatchContract["owed"] = Effect.gen(function* () {
      const owing = (yield* purchases.owed).slice(0, listMax)
      const waiting = (yield* purchases.waiting).slice(0, listMax)
      const names = yield* tenancy.namesOf(owing.map(({ tenant_id }) => tenant_id))
      return { owed: owing.map((one) => ({ ...one, tenant_name: names.get(one.tenant_id) ?? null })), waiting }
    })

    const work: OperatorWatchContract["work"] = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const jobs = yield* openJobs(sql)
      const instant = (seconds: number | undefined): number | null =>
        seconds === undefined ? null : Math.round(now + seconds * 1_000)
      return {
        node: (yield* readiness.node) ?? null,
        loops: loops.figures().map(({ seconds_since_turn, seconds_until_turn, ...loop }) => ({
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

    const verifications: OperatorWatchContract["verifications"] = Effect.gen(function* () {
      const recent = yield* Verified.recent(sql, recentMax)
      const held = yield* Verified.lastHeld(sql)
      const newest = yield* Verified.newest(sql)
      return {
        running: verifier.running() ?? null,
        last: recent[0] === undefined ? null : verificationOf(recent[0]),
        last_held: held === undefined ? null : verificationOf(held),
        recent: recent.map(verificationOf),
        behind: {
          entries: Math.max(0, newest.entry - (held?.mark.entry ?? 0)),
          records: Math.max(0, newest.record - (held?.mark.record ?? 0))
        },
        found: verifier.found().map(({ check, message }) => ({ check, message }))
      }
    })

    const verify: OperatorWatchContract["verify"] = Effect.fn("OperatorWatch.verify")(function* (by, whole) {
      const act = { action: "verify", details: { whole } }
      if (!(yield* verifier.start(whole))) {
        const problem = new AlreadyRunning()
        yield* log.refused(by, act, problem.code ?? "")
        return yield* problem
      }
      yield* log.done(by, act)
      return yield* verifications
    })

    const look = Effect.gen(function* () {
      const began = yield* Clock.currentTimeMillis
      const looked = yield* Effect.provideService(Effect.flatten(load), SqlClient, sql)
      const at = yield* Clock.currentTimeMillis
      return {
        at,
        millis: at - began,
        checks: looked.map(({ findings, name }) => ({
          name,
          holds: findings.length === 0,
          findings: findings.map(({ message }) => message)
        }))
      }
    })

    const invariants: OperatorWatchContract["invariants"] = Effect.fn("OperatorWatch.invariants")(function* (by) {
      const looked = yield* looking.withPermitsIfAvailable(1)(look)
      if (Option.isNone(looked)) return yield* new AlreadyRunning()
      const broken = looked.value.checks.filter(({ holds }) => !holds).length
      yield* log.done(by, { action: "invariants", details: { broken } })
      return looked.value
    })

    let before: { readonly at: number; readonly record: number } | undefined
    const readLive = Effect.gen(function* () {
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
        loops: loops.figures().map(({ loop, trouble }) => ({ loop, trouble: trouble ?? null }))
      }
    })

    return {
      flight,
      reservations: page,
      owed,
      work,
      verifications,
      verify,
      invariants,
      live: yield* Effect.cachedWithTTL(readLive, "900 millis")
    } satisfies OperatorWatchContract
  })

const verificationOf = ({ at, findings, mark, millis, whole }: Verified.Verification): Verification => ({
  at,
  whole,
  findings,
  millis,
  entry: mark.entry,
  record: mark.record
})
