/**
 * A tenant that funds itself, and gets an alert when its balance is low. A movement that makes the balance fall below a threshold
 * causes one payment, or one alert. The writer reports the movements of this process (`Writer.watch`); a look at all watched balances
 * at the start and every ten minutes finds the others. Of several nodes one runs the job; the others tell it when a balance that they
 * moved is low, and it looks.
 *
 * Where the specification is silent:
 * - Auto-reload is triggered by a balance that falls below the threshold, not by a setting that is put above the balance. A fall while no
 *   attempt may begin is remembered, and the attempt begins as soon as it may, if the balance is still low. Nothing is charged while the
 *   billing account is not active. An attempt
 *   is on disk, with the name under which the processor knows it, before the processor is asked; an attempt whose end is not known is
 *   first looked for at the processor, which forgets its keys after a day, and asked again under that name only if it is not there; after
 *   a restart too. The ten minutes count from the later of the attempt and its charge, however much later the charge could be written. One
 *   attempt at a time for a tenant. Settings that are disabled show `disabled` at once; the attempt in flight goes on.
 * - Alerts come when the balance falls, by mail and by notification, and again only after it has been above the second threshold,
 *   whichever movement lifted it.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option, Runtime } from "effect"
import { BillingAccounts } from "../billing/BillingAccounts.ts"
import type { Actor } from "../../kernel/Caller.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { balanceOf } from "../../books/ledger/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/Writer.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import type { ProcessorUnavailable } from "../payments/Problems.ts"
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

/** Amounts and thresholds are nano-USD, times milliseconds since 1970. Who changes or charges is an owner or admin. */
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
    | ProcessorUnavailable
    | BooksUnavailable
  >
  /**
   * Charges the caller's tenant now, whatever its balance. Where the processor does not answer, the settings that are given show the
   * attempt in flight, and the job asks again. The charge goes on when the caller is interrupted.
   */
  readonly charge: (request: {
    readonly caller: Actor
  }) => Effect.Effect<
    AutoReload,
    InsufficientRole | AutoReloadUnconfigured | AutoReloadDisabled | AutoReloadBusy | PaymentDeclined | BooksUnavailable
  >
  /**
   * Sends the alerts of low balances, begins the attempts that are due, and asks the processor about those whose outcome is not
   * known. `layerJobs` runs it; without it nothing is charged but by `charge`.
   */
  readonly job: Loop.Job
}

export class AutoReloads extends Context.Tag("tollgate/autoreload/AutoReloads")<AutoReloads, AutoReloadsContract>() {
  static readonly layer = Layer.suspend(() =>
    Layer.scoped(AutoReloads, make).pipe(Layer.provide([Runs.layer, Signals.layer]))
  )
  static readonly layerJobs = Loop.layer(AutoReloads, ({ job }) => [job])
}

/** Under which the other nodes are told of settings. */
const topic = "autoreload"

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
  const run = Runtime.runFork(yield* Effect.runtime<never>())
  const alerts = Alerts.make(tenants, yield* BillingAccounts, outbox)

  const balanceNow = (tenant: TenantId) =>
    Effect.map(ledger.accountOfTenant(tenant), (account) => (Option.isNone(account) ? 0n : balanceOf(account.value)))

  const parts = { writer, storage, watchList, alerts, outbox, purchases, processor, waker, node, balanceOf: balanceNow }
  const attempts = Attempts.make(parts)
  const { turn } = Turns.make({ ...parts, ledger, attempts, scope })

  const find = Effect.fn("AutoReloads.find")(function* (tenant: TenantId) {
    return autoReloadOf(yield* storage.settings(tenant), yield* Clock.currentTimeMillis)
  })

  const autoReloadOf = (settings: StoredSettings, now: number): AutoReload => ({
    configured: processor !== undefined && settings.payment_method_id !== null,
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

  const change: AutoReloadsContract["change"] = Effect.fn("AutoReloads.change")(function* (request) {
    const { tenant_id } = request.caller
    yield* tenants.mayManage(request.caller)
    const settings = yield* checked(request.change)
    const { enabled, payment_method_id } = settings.auto_reload
    if ((enabled || payment_method_id !== null) && processor === undefined) return yield* new AutoReloadUnconfigured()
    if (enabled && payment_method_id === null) return yield* new PaymentMethodRequired()
    if (payment_method_id !== null) {
      const methods = yield* Effect.catchTag(
        purchases.methods(tenant_id),
        "PaymentsUnconfigured",
        () => new AutoReloadUnconfigured()
      )
      if (!methods.some(({ id }) => id === payment_method_id)) {
        return yield* new PaymentMethodNotFound({ payment_method_id })
      }
    }
    const now = yield* Clock.currentTimeMillis
    const balance = yield* balanceNow(tenant_id)
    const written = Statements.write(writer, storage.replace(tenant_id, settings, balance, now))
    yield* afterCommit(written, Effect.zipRight(watch(tenant_id), publish(topic, [tenant_id])))
    return autoReloadOf(yield* storage.settings(tenant_id), now)
  })

  const charge: AutoReloadsContract["charge"] = Effect.fn("AutoReloads.charge")(function* ({ caller }) {
    yield* tenants.mayManage(caller)
    const { tenant_id } = caller
    if (processor === undefined) return yield* new AutoReloadUnconfigured()
    const settings = yield* storage.settings(tenant_id)
    const now = yield* Clock.currentTimeMillis
    if (settings.attempt !== null) return yield* new AutoReloadBusy({ free_at: null })
    const { disabled_reason } = settings
    if (!settings.enabled) return yield* new AutoReloadDisabled({ disabled_reason })
    if (isCooling(settings, now)) return yield* new AutoReloadBusy({ free_at: cooledAt(settings) })
    const begun = yield* attempts.begin(tenant_id, settings, yield* balanceNow(tenant_id), now)
    if (begun === undefined) return yield* new AutoReloadBusy({ free_at: null })
    const outcome = yield* attempts.pursue(begun)
    if (outcome._tag === "Declined") {
      const { reason } = outcome
      const { amount, id: attempt } = begun.attempt
      return yield* new PaymentDeclined({ message: reason, attempt, amount, reason })
    }
    return yield* find(tenant_id)
  }, Effect.uninterruptible)

  /** Watches by the settings as they are stored now. */
  const watch = (tenant: TenantId) =>
    Effect.flatMap(storage.settings(tenant), (settings) => watchBy({ tenant, settings }))
  const watchBy = ({ settings, tenant }: { readonly tenant: TenantId; readonly settings: StoredSettings }) =>
    Effect.map(settings.looked === null ? balanceNow(tenant) : Effect.succeed(settings.looked), (balance) =>
      watchList.watch(tenant, settings, balance)
    )
  const watchAll = Effect.flatMap(storage.all, (all) => Effect.forEach(all, watchBy, { discard: true }))

  /** What other nodes did: their settings, movements that they saw, attempts that they began. */
  const takeOver = Effect.zipRight(
    watchAll,
    Effect.sync(() => (watchList.lookAt = 0))
  )

  yield* watchAll
  yield* attempts.takeOver
  yield* subscribe(topic, (tenants) =>
    run(
      tenants === undefined
        ? Effect.zipRight(takeOver, waker.wake)
        : Effect.forEach(tenants, (tenant) => watch(tenant as TenantId), { discard: true })
    )
  )
  yield* writer.watch((account, before, after) => {
    const news =
      node?.leads() === false ? watchList.concerns(account, before, after) : watchList.moved(account, before, after)
    if (news) waker.wakeNow()
  })

  return { find, change, charge, job: { name: Turns.jobName, turn, waker, takeOver } } satisfies AutoReloadsContract
})
