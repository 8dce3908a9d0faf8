/**
 * Auto-reload and balance alerts for tenants. When a movement takes the balance below a threshold, the service makes one payment or sends one alert.
 * The writer reports the movements of this process (`Writer.watch`). A check of all watched balances at startup and every ten minutes finds the other
 * movements. The leading node runs the job, and other nodes signal it when they take a balance below a threshold.
 *
 * Where the specification is silent:
 * - Auto-reload is triggered when a balance falls below the threshold, not when a threshold is set above the balance. If no attempt may begin at that
 *   moment, the fall is stored. The attempt begins as soon as one is allowed, if the balance is still low. Nothing is charged while the billing
 *   account is inactive.
 * - A tenant has at most one attempt at a time. An attempt is committed, with its idempotency key, before the request to the processor. The processor
 *   forgets keys after a day. If the outcome is unknown, even after a restart, the service therefore searches for the payment first. It repeats the
 *   request with the same key only if there is no payment. The ten minutes between attempts count from the attempt or its charge, whichever is later,
 *   even if the ledger is credited after both. Once disabled, the settings show `disabled` immediately, but an attempt in flight continues.
 * - When the balance falls below the alert threshold, the tenant is alerted by email and by notification. The next alert requires that a movement
 *   first raises the balance above the second threshold.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option, Runtime } from "effect"
import { BillingAccounts } from "../billing/BillingAccounts.ts"
import type { Actor } from "../../kernel/Caller.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import * as Loop from "../../kernel/Loop.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/write/Writer.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import type { ProcessorTooOften, ProcessorUnavailable } from "../payments/Problems.ts"
import { Purchases } from "../payments/Purchases.ts"
import { Runs } from "../../storage/engine/Runs.ts"
import { Signals } from "../../storage/engine/Signals.ts"
import type { InsufficientRole } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Payments } from "../../upstream/payments/Payments.ts"
import * as Alerts from "./Alerts.ts"
import * as Attempts from "./Attempts.ts"
import {
  AutoReloadBusy,
  AutoReloadDisabled,
  AutoReloadUnconfigured,
  PaymentDeclined,
  PaymentMethodNotFound,
  PaymentMethodRequired
} from "./Problems.ts"
import { checked, cooledAt, isCooling, stateOf } from "./AutoReload.ts"
import type { AutoReload, AutoReloadChange, StoredSettings } from "./AutoReload.ts"
import * as Storage from "./Storage.ts"
import * as Turns from "./Turns.ts"
import * as WatchList from "./WatchList.ts"

/**
 * Amounts and thresholds are in nano-USD; times are Unix times in milliseconds. Only owners and admins may change settings or start a
 * charge.
 */
export interface AutoReloadsContract {
  readonly find: (tenant: TenantId) => Effect.Effect<AutoReload>
  /** Replaces all settings of the caller's tenant. */
  readonly change: (request: {
    readonly caller: Actor
    readonly change: AutoReloadChange
  }) => Effect.Effect<
    AutoReload,
    | InsufficientRole
    | InvalidRequest
    | AutoReloadUnconfigured
    | PaymentMethodRequired
    | PaymentMethodNotFound
    | ProcessorTooOften
    | ProcessorUnavailable
    | BooksUnavailable
  >
  /**
   * Charges the caller's tenant now, regardless of its balance. If the processor does not respond, the returned settings show the attempt in flight,
   * and the job retries. Interrupting the caller does not stop the charge.
   */
  readonly charge: (request: {
    readonly caller: Actor
  }) => Effect.Effect<
    AutoReload,
    InsufficientRole | AutoReloadUnconfigured | AutoReloadDisabled | AutoReloadBusy | PaymentDeclined | BooksUnavailable
  >
  /**
   * The job that sends alerts, begins due attempts and retries attempts with an unknown outcome. `layerJobs` runs it. Without it, only `charge`
   * causes charges.
   */
  readonly job: Loop.Job
}

export class AutoReloads extends Context.Tag("tollgate/autoreload/AutoReloads")<AutoReloads, AutoReloadsContract>() {
  static readonly layer = Layer.suspend(() =>
    Layer.scoped(AutoReloads, make).pipe(Layer.provide([Runs.layer, Signals.layer]))
  )
  static readonly layerJobs = Loop.layer(AutoReloads, ({ job }) => [job])
}

/** Signals to other nodes that settings changed. */
const topic = "autoreload"

interface Parts extends Turns.Parts {
  readonly tenants: Tenants["Type"]
  readonly publish: Context.Tag.Service<typeof Signals>["publish"]
}

const make = Effect.gen(function* () {
  const writer = yield* Writer
  const ledger = yield* Ledger
  const tenants = yield* Tenants
  const outbox = yield* Outbox
  const purchases = yield* Purchases
  const processor = yield* Payments
  const waker = yield* Loop.waker
  const scope = yield* Effect.scope
  const storage = Storage.make(yield* SqlClient)
  const watchList = WatchList.make()
  const { node } = yield* Runs
  const { publish, subscribe } = yield* Signals
  const alerts = Alerts.make(tenants, yield* BillingAccounts, outbox)
  const balanceOf = (tenant: TenantId) => balanceNow(ledger, tenant)
  const attemptParts = { writer, storage, watchList, alerts, outbox, purchases, processor, waker, node, balanceOf }
  const attempts = Attempts.make(attemptParts)
  const parts: Parts = { ...attemptParts, ledger, attempts, scope, tenants, publish }
  const takeOver = takeOverAll(parts)

  yield* watchAll(parts)
  yield* attempts.takeOver
  const run = Runtime.runFork(yield* Effect.runtime<never>())
  yield* subscribe(topic, (tenants) =>
    run(
      tenants === undefined
        ? Effect.zipRight(takeOver, waker.wake)
        : Effect.forEach(tenants, (tenant) => watch(parts, tenant as TenantId), { discard: true })
    )
  )
  yield* writer.watch((account, before, after) => {
    const news =
      node?.leads() === false ? watchList.concerns(account, before, after) : watchList.moved(account, before, after)
    if (news) waker.wakeNow()
  })

  return {
    find: find(parts),
    change: change(parts),
    charge: charge(parts),
    job: { name: Turns.jobName, turn: Turns.turn(parts), waker, takeOver }
  } satisfies AutoReloadsContract
})

const balanceNow = (ledger: Ledger["Type"], tenant: TenantId): Effect.Effect<Nano> =>
  Effect.map(ledger.accountOfTenant(tenant), (account) => (Option.isNone(account) ? 0n : balanceOf(account.value)))

const find = ({ processor, storage }: Parts): AutoReloadsContract["find"] =>
  Effect.fn("AutoReloads.find")(function* (tenant) {
    return autoReloadOf(yield* storage.settings(tenant), processor !== undefined, yield* Clock.currentTimeMillis)
  })

const change = (parts: Parts): AutoReloadsContract["change"] =>
  Effect.fn("AutoReloads.change")(function* (request) {
    const { balanceOf, processor, publish, purchases, storage, tenants, writer } = parts
    const { tenant_id } = request.caller
    yield* tenants.mayManage(request.caller)
    const settings = yield* checked(request.change)
    const { enabled, payment_method_id } = settings.auto_reload
    if ((enabled || payment_method_id !== null) && processor === undefined) return yield* new AutoReloadUnconfigured()
    if (enabled && payment_method_id === null) return yield* new PaymentMethodRequired()
    if (payment_method_id !== null) {
      const methods = yield* Effect.catchTag(
        purchases.methods(request),
        "PaymentsUnconfigured",
        () => new AutoReloadUnconfigured()
      )
      if (!methods.some(({ id }) => id === payment_method_id)) {
        return yield* new PaymentMethodNotFound({ payment_method_id })
      }
    }
    const now = yield* Clock.currentTimeMillis
    const balance = yield* balanceOf(tenant_id)
    const written = Statements.write(writer, storage.replace(tenant_id, settings, balance, now))
    yield* afterCommit(written, Effect.zipRight(watch(parts, tenant_id), publish(topic, [tenant_id])))
    return autoReloadOf(yield* storage.settings(tenant_id), processor !== undefined, now)
  })

const charge = (parts: Parts): AutoReloadsContract["charge"] =>
  Effect.fn("AutoReloads.charge")(function* ({ caller }) {
    const { attempts, balanceOf, processor, storage, tenants } = parts
    yield* tenants.mayManage(caller)
    const { tenant_id } = caller
    if (processor === undefined) return yield* new AutoReloadUnconfigured()
    const settings = yield* storage.settings(tenant_id)
    const now = yield* Clock.currentTimeMillis
    if (settings.attempt !== null) return yield* new AutoReloadBusy({ free_at: null })
    const { disabled_reason } = settings
    if (!settings.enabled) return yield* new AutoReloadDisabled({ disabled_reason })
    if (isCooling(settings, now)) return yield* new AutoReloadBusy({ free_at: cooledAt(settings) })
    const begun = yield* attempts.begin(tenant_id, settings, yield* balanceOf(tenant_id), now)
    if (begun === undefined) return yield* new AutoReloadBusy({ free_at: null })
    const outcome = yield* attempts.pursue(begun)
    if (outcome._tag === "Declined") {
      const { reason } = outcome
      const { amount, id: attempt } = begun.attempt
      return yield* new PaymentDeclined({ message: reason, attempt, amount, reason })
    }
    return yield* find(parts)(tenant_id)
  }, Effect.uninterruptible)

const watch = (parts: Parts, tenant: TenantId) =>
  Effect.flatMap(parts.storage.settings(tenant), (settings) => watchBy(parts, tenant, settings))

const watchBy = ({ balanceOf, watchList }: Parts, tenant: TenantId, settings: StoredSettings) =>
  Effect.map(settings.looked === null ? balanceOf(tenant) : Effect.succeed(settings.looked), (balance) =>
    watchList.watch(tenant, settings, balance)
  )

const watchAll = (parts: Parts) =>
  Effect.flatMap(parts.storage.all, (all) =>
    Effect.forEach(all, ({ settings, tenant }) => watchBy(parts, tenant, settings), { discard: true })
  )

/** Takes over from other nodes: reads the settings now, and balances and attempts at the next check. */
const takeOverAll = (parts: Parts) =>
  Effect.zipRight(
    watchAll(parts),
    Effect.sync(() => (parts.watchList.checkAt = 0))
  )

const autoReloadOf = (settings: StoredSettings, hasProcessor: boolean, now: number): AutoReload => ({
  configured: hasProcessor && settings.payment_method_id !== null,
  auto_reload: {
    enabled: settings.enabled,
    threshold_usd: settings.threshold,
    amount_credits: settings.amount,
    payment_method_id: settings.payment_method_id,
    state: stateOf(settings, now),
    last_charged_at: settings.last_charged_at,
    last_error: settings.last_error,
    disabled_reason: settings.disabled_reason,
    in_flight_started_at: settings.in_flight_started_at,
    failures: settings.failures,
    free_at: settings.attempt === null && isCooling(settings, now) ? cooledAt(settings) : null
  },
  alerts: {
    enabled: settings.alerts_enabled,
    warn_threshold_usd: settings.warn_threshold,
    rearm_threshold_usd: settings.rearm_threshold
  },
  alerts_warned: settings.warned
})
