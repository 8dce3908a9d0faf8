/**
 * A tenant that funds itself: the charge that makes its balance fall below the threshold sets off one payment, and nothing polls.
 * An attempt is on disk before the processor is called; it ends in the transaction that credits it or gives it up, and what an
 * earlier run left open is asked again under the same name, which the processor charges once.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Either, Layer, Queue, Schedule } from "effect"
import { BillingAccounts } from "../billing/BillingAccounts.ts"
import { BalanceWatch } from "../gate/BalanceWatch.ts"
import type { CallerFacts } from "../http/Caller.ts"
import type { InvalidRequest } from "../http/Problems.ts"
import * as Ids from "../kernel/Ids.ts"
import type { AccountId, TenantId } from "../kernel/Ids.ts"
import { fromRow, toDecimal } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { Outbox } from "../mail/Outbox.ts"
import { notice } from "../notifications/Notification.ts"
import type { Kind } from "../notifications/Notification.ts"
import type { ProcessorUnavailable } from "../payments/Problems.ts"
import { Purchases } from "../payments/Purchases.ts"
import { manages } from "../tenants/Organisation.ts"
import { InsufficientRole } from "../tenants/Problems.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Payments } from "../upstream/Payments.ts"
import {
  AutoReloadBusy,
  AutoReloadDisabled,
  AutoReloadUnconfigured,
  PaymentDeclined,
  PaymentMethodNotFound,
  PaymentMethodRequired
} from "./Problems.ts"
import { failuresMax, fits, isCooling, stateOf, unset } from "./Settings.ts"
import type { AutoReload, AutoReloadChange, Kept } from "./Settings.ts"

export interface Contract {
  readonly find: (tenant: TenantId) => Effect.Effect<AutoReload>
  /** Replaces all settings. */
  readonly change: (
    caller: CallerFacts,
    change: AutoReloadChange
  ) => Effect.Effect<
    AutoReload,
    | InsufficientRole
    | InvalidRequest
    | AutoReloadUnconfigured
    | PaymentMethodRequired
    | PaymentMethodNotFound
    | ProcessorUnavailable
  >
  /** Charges now, whatever the balance. */
  readonly charge: (
    caller: CallerFacts
  ) => Effect.Effect<
    AutoReload,
    InsufficientRole | AutoReloadUnconfigured | AutoReloadDisabled | AutoReloadBusy | PaymentDeclined
  >
  /** Told of every balance that fell. */
  readonly fell: (billing_account: string, before: Nano, after: Nano) => void
}

export class AutoReloads extends Context.Tag("tollgate/autoreload/AutoReloads")<AutoReloads, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(AutoReloads, make))
  /** For the gate and the transfers: they tell it of every balance that falls. */
  static readonly layerWatch = Layer.suspend(() =>
    Layer.effect(
      BalanceWatch,
      Effect.map(AutoReloads, ({ fell }) => fell)
    )
  )
}

type Row = {
  readonly [Key in keyof Kept]: Kept[Key] extends boolean
    ? number
    : Kept[Key] extends Nano
      ? string
      : Kept[Key] extends Nano | null
        ? string | null
        : Kept[Key]
}

/** How long an attempt whose outcome is unknown waits to be asked again, in milliseconds; the last repeats. */
const askAgainAfter = [5_000, 30_000, 120_000, 600_000]

interface Fall {
  readonly tenant: TenantId
  readonly before: Nano
  readonly after: Nano
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const tenants = yield* Tenants
  const accounts = yield* BillingAccounts
  const outbox = yield* Outbox
  const purchases = yield* Purchases
  const processor = yield* Payments
  const falls = yield* Queue.unbounded<Fall>()
  /** The balance below which somebody must be told, by billing account; nothing else of a fall costs more than a look in here. */
  const levels = new Map<string, Nano>()

  const submit = (...statements: ReadonlyArray<Statement>) => writer.submit({ postings: [], statements })

  const keptOf = (tenant: TenantId) =>
    sql<Row>`SELECT enabled, CAST(threshold AS TEXT) AS threshold, amount_credits, payment_method_id, attempt,
        in_flight_started_at, last_attempt_at, last_charged_at, last_failed, last_error, failures, disabled_reason,
        alerts_enabled, CAST(warn_threshold AS TEXT) AS warn_threshold, CAST(rearm_threshold AS TEXT) AS rearm_threshold,
        warned
      FROM tollgate_autoreload_settings WHERE tenant_id = ${tenant}`.pipe(
      Effect.orDie,
      Effect.map(([row]): Kept => (row === undefined ? unset : fromSettingsRow(row)))
    )

  const arm = (tenant: TenantId, kept: Kept) => {
    const account = Ids.billingAccountOf(tenant)
    const reload = kept.enabled ? kept.threshold : 0n
    const alert = kept.alerts_enabled ? (kept.warn_threshold ?? 0n) : 0n
    const level = reload > alert ? reload : alert
    if (level === 0n) levels.delete(account)
    else levels.set(account, level)
  }

  const fell: Contract["fell"] = (account, before, after) => {
    const level = levels.get(account)
    if (level !== undefined && after < level) {
      Queue.unsafeOffer(falls, { tenant: Ids.tenantOf(account), before, after })
    }
  }

  const shown = (kept: Kept, now: number): AutoReload => ({
    configured: processor !== undefined && kept.payment_method_id !== null,
    auto_reload: {
      enabled: kept.enabled,
      threshold_usd: kept.threshold,
      amount_credits: kept.amount_credits,
      payment_method_id: kept.payment_method_id,
      state: stateOf(kept, now),
      last_charged_at: kept.last_charged_at,
      last_error: kept.last_error,
      disabled_reason: kept.disabled_reason,
      in_flight_started_at: kept.in_flight_started_at
    },
    alerts: {
      enabled: kept.alerts_enabled,
      warn_threshold_usd: kept.warn_threshold,
      rearm_threshold_usd: kept.rearm_threshold
    }
  })

  const find = Effect.fn("AutoReloads.find")(function* (tenant: TenantId) {
    return shown(yield* keptOf(tenant), yield* Clock.currentTimeMillis)
  })

  const mayManage = Effect.fnUntraced(function* ({ account_id, tenant_id }: CallerFacts) {
    const role = yield* tenants.roleOf(account_id, tenant_id)
    if (role === undefined || !manages(role)) return yield* new InsufficientRole()
  })

  const change: Contract["change"] = Effect.fn("AutoReloads.change")(function* (caller, wish) {
    yield* mayManage(caller)
    const { alerts, auto_reload } = yield* Either.match(fits(wish), { onLeft: Effect.fail, onRight: Effect.succeed })
    const { amount_credits, enabled, payment_method_id, threshold_usd } = auto_reload
    if ((enabled || payment_method_id !== null) && processor === undefined) return yield* new AutoReloadUnconfigured()
    if (enabled && payment_method_id === null) return yield* new PaymentMethodRequired()
    if (payment_method_id !== null) {
      const stored = yield* Effect.catchTag(
        purchases.methods(caller.tenant_id),
        "PaymentsUnconfigured",
        () => new AutoReloadUnconfigured()
      )
      if (!stored.some(({ id }) => id === payment_method_id)) return yield* new PaymentMethodNotFound()
    }
    const now = yield* Clock.currentTimeMillis
    const settings = {
      enabled: enabled ? 1 : 0,
      threshold: threshold_usd,
      amount_credits,
      payment_method_id,
      last_failed: 0,
      last_error: null,
      failures: 0,
      disabled_reason: null,
      alerts_enabled: alerts.enabled ? 1 : 0,
      warn_threshold: alerts.warn_threshold_usd,
      rearm_threshold: alerts.rearm_threshold_usd,
      // Other thresholds are other alerts.
      warned: 0,
      updated_at: now
    }
    yield* Effect.orDie(
      submit(
        statement(sql`INSERT INTO tollgate_autoreload_settings ${sql.insert({ tenant_id: caller.tenant_id, ...settings })}
          ON CONFLICT (tenant_id) DO UPDATE SET ${sql.csv(
            Object.keys(settings).map((name) => sql`${sql(name)} = excluded.${sql(name)}`)
          )}`)
      )
    )
    const kept = yield* keptOf(caller.tenant_id)
    arm(caller.tenant_id, kept)
    return shown(kept, now)
  })

  // ---- charging -----------------------------------------------------------------------------------------------------------

  /** Puts an attempt on disk, if there is none and none was lately; answers its name. */
  const begin = Effect.fnUntraced(function* (tenant: TenantId, kept: Kept, now: number) {
    const attempt = Ids.at("pay", now)
    return yield* submit(
      statement(
        sql`UPDATE tollgate_autoreload_settings SET attempt = ${attempt}, in_flight_started_at = ${now}, last_attempt_at = ${now}
          WHERE tenant_id = ${tenant} AND enabled = 1 AND attempt IS NULL
            AND last_attempt_at IS ${kept.last_attempt_at} RETURNING tenant_id`,
        1
      ),
      statement(sql`INSERT INTO tollgate_autoreload_attempts (id, tenant_id, amount_credits, payment_method_id, status, created_at)
        VALUES (${attempt}, ${tenant}, ${kept.amount_credits}, ${kept.payment_method_id}, 'in_flight', ${now})`)
    ).pipe(
      Effect.as(attempt),
      Effect.catchTag("Conflict", () => Effect.succeed(undefined)),
      Effect.orDie
    )
  })

  interface Attempt {
    readonly id: string
    readonly tenant_id: TenantId
    readonly amount_credits: number
    readonly payment_method_id: string
    readonly created_at: number
  }

  /** Asks the processor, once; what may have been asked before is looked for first. `unknown` where nobody can tell what it did. */
  const ask = Effect.fnUntraced(function* (
    attempt: Attempt,
    before: boolean
  ): Effect.fn.Return<"paid" | "unknown" | { readonly declined: string }> {
    const { amount_credits, created_at, id, payment_method_id: method, tenant_id } = attempt
    if (processor === undefined) return "unknown"
    const customer = yield* Effect.either(purchases.customerOf(tenant_id))
    if (Either.isLeft(customer)) return "unknown"
    const order = { attempt: id, customer: customer.right, tenant_id }
    const charging = processor.charge({ ...order, method, cents: amount_credits * 100 })
    const charged = yield* Effect.either(
      before
        ? Effect.flatMap(processor.found({ ...order, since: created_at }), (paid) =>
            paid === undefined ? charging : Effect.succeed(paid)
          )
        : charging
    )
    if (Either.isRight(charged)) {
      const now = yield* Clock.currentTimeMillis
      yield* purchases.book(charged.right, [
        endAttempt(id, "paid", null, now),
        statement(sql`UPDATE tollgate_autoreload_settings SET attempt = NULL, in_flight_started_at = NULL, last_charged_at = ${now},
          last_failed = 0, last_error = NULL, failures = 0 WHERE tenant_id = ${tenant_id} AND attempt = ${id}`)
      ])
      return "paid"
    }
    if (charged.left._tag === "ProcessorSilent") {
      yield* Effect.annotateLogs(Effect.logWarning("the outcome of a charge is unknown"), {
        attempt: id,
        reason: charged.left.reason
      })
      return "unknown"
    }
    yield* declined(attempt, charged.left.reason)
    return { declined: charged.left.reason }
  })

  const endAttempt = (id: string, status: "paid" | "failed", error: string | null, now: number): Statement =>
    statement(sql`UPDATE tollgate_autoreload_attempts SET status = ${status}, error = ${error}, ended_at = ${now}
      WHERE id = ${id} AND status = 'in_flight'`)

  const declined = Effect.fnUntraced(function* ({ id, tenant_id }: Attempt, reason: string) {
    const now = yield* Clock.currentTimeMillis
    const kept = yield* keptOf(tenant_id)
    const failures = kept.failures + 1
    const ends = failures >= failuresMax
    const words = ends
      ? yield* told(tenant_id, now, "auto_reload_failed", `autoreload/${id}`, {
          title: "Auto-reload was switched off",
          text: `Three charges in a row failed (${reason}). Choose another payment method and enable auto-reload again.`
        })
      : []
    const disabled = ends ? sql`, enabled = 0, disabled_reason = 'payment_failed'` : sql``
    yield* Effect.orDie(
      submit(
        endAttempt(id, "failed", reason, now),
        statement(sql`UPDATE tollgate_autoreload_settings SET attempt = NULL, in_flight_started_at = NULL, last_failed = 1,
          last_error = ${reason}, failures = ${failures}${disabled} WHERE tenant_id = ${tenant_id} AND attempt = ${id}`),
        ...words
      )
    )
    if (ends) {
      arm(tenant_id, yield* keptOf(tenant_id))
      yield* outbox.wake
    }
  })

  /** The statements that mail the billing emails and notify owners and admins. */
  const told = Effect.fnUntraced(function* (
    tenant: TenantId,
    now: number,
    kind: Kind,
    key: string,
    { text, title }: { readonly title: string; readonly text: string }
  ) {
    const name = (yield* tenants.nameOf(tenant)) ?? tenant
    const emails = yield* accounts.billingEmails(tenant)
    const letters = yield* Effect.forEach(emails, (to) =>
      outbox.letter({ key: `${key}/${to}`, to, subject: `${title}: ${name}`, text })
    )
    const members = yield* tenants.members(tenant)
    const notices = members
      .filter(({ role, status }) => status === "active" && manages(role))
      .map(({ account_id }: { readonly account_id: AccountId }) =>
        notice({ account_id, kind, title, text, data: { tenant_id: tenant } }, now)
      )
    return [...letters, ...notices]
  })

  /** Asks until the outcome is known. */
  const pursue = ({ asked, attempt }: Open): Effect.Effect<void> =>
    Effect.gen(function* () {
      for (let i = 0; (yield* ask(attempt, asked || i > 0)) === "unknown"; i++) {
        yield* Effect.sleep(askAgainAfter[Math.min(i, askAgainAfter.length - 1)]!)
      }
    })

  const charge: Contract["charge"] = Effect.fn("AutoReloads.charge")(function* (caller) {
    yield* mayManage(caller)
    const tenant = caller.tenant_id
    if (processor === undefined) return yield* new AutoReloadUnconfigured()
    const kept = yield* keptOf(tenant)
    const now = yield* Clock.currentTimeMillis
    if (kept.attempt !== null) return yield* new AutoReloadBusy()
    if (!kept.enabled) return yield* new AutoReloadDisabled()
    if (isCooling(kept, now)) return yield* new AutoReloadBusy()
    const id = yield* begin(tenant, kept, now)
    if (id === undefined) return yield* new AutoReloadBusy()
    const attempt = attemptOf(id, tenant, kept, now)
    const outcome = yield* ask(attempt, false)
    if (outcome === "unknown") yield* Queue.offer(open, { attempt, asked: true })
    else if (outcome !== "paid") return yield* new PaymentDeclined({ error: outcome.declined })
    return yield* find(tenant)
  }, Effect.uninterruptible)

  const attemptOf = (id: string, tenant_id: TenantId, kept: Kept, created_at: number): Attempt => ({
    id,
    tenant_id,
    created_at,
    amount_credits: kept.amount_credits,
    payment_method_id: kept.payment_method_id!
  })

  interface Open {
    readonly attempt: Attempt
    /** Whether the processor may have been asked. */
    readonly asked: boolean
  }

  /** Attempts whose outcome is still to be learned. */
  const open = yield* Queue.unbounded<Open>()

  // ---- listening ----------------------------------------------------------------------------------------------------------

  const heard = Effect.fnUntraced(function* ({ after, before, tenant }: Fall) {
    const kept = yield* keptOf(tenant)
    yield* warn(tenant, kept, before, after)
    const now = yield* Clock.currentTimeMillis
    const due = processor !== undefined && kept.enabled && kept.attempt === null && after < kept.threshold
    if (!due || kept.payment_method_id === null || isCooling(kept, now)) return
    // By now the balance may be up again.
    const account = yield* Effect.either(accounts.credits(tenant))
    if (Either.isLeft(account) || account.right.balance >= kept.threshold) return
    const id = yield* begin(tenant, kept, now)
    if (id !== undefined) yield* Queue.offer(open, { attempt: attemptOf(id, tenant, kept, now), asked: false })
  })

  /** Once, until the balance has been above the second threshold again. */
  const warn = Effect.fnUntraced(function* (tenant: TenantId, kept: Kept, before: Nano, after: Nano) {
    const { alerts_enabled, rearm_threshold, warn_threshold, warned } = kept
    if (!alerts_enabled || warn_threshold === null || after >= warn_threshold) return
    const rose = before > (rearm_threshold ?? warn_threshold)
    if (warned && !rose) return
    const now = yield* Clock.currentTimeMillis
    const words = yield* told(tenant, now, "low_balance", `alert/${tenant}/${now}`, {
      title: "The balance is low",
      text: `The balance has fallen below ${toDecimal(warn_threshold)} USD; it was ${toDecimal(after)} USD then.`
    })
    yield* Effect.orDie(
      submit(statement(sql`UPDATE tollgate_autoreload_settings SET warned = 1 WHERE tenant_id = ${tenant}`), ...words)
    )
    yield* outbox.wake
  })

  const listening = Queue.take(falls).pipe(
    Effect.flatMap(heard),
    Effect.tapErrorCause((cause) => Effect.logError("a fallen balance could not be looked at", cause)),
    Effect.catchAllCause(() => Effect.void),
    Effect.forever,
    Effect.withTracerEnabled(false)
  )

  const pursuing = Queue.take(open).pipe(
    Effect.flatMap((one) =>
      Effect.fork(
        pursue(one).pipe(
          Effect.tapErrorCause((cause) => Effect.logError("a charge stumbled", cause)),
          Effect.retry(Schedule.spaced("30 seconds"))
        )
      )
    ),
    Effect.forever,
    Effect.withTracerEnabled(false)
  )

  for (const { tenant_id } of yield* Effect.orDie(
    sql<{ tenant_id: TenantId }>`SELECT tenant_id FROM tollgate_autoreload_settings`
  )) {
    arm(tenant_id, yield* keptOf(tenant_id))
  }
  for (const attempt of yield* Effect.orDie(
    sql<Attempt>`SELECT id, tenant_id, amount_credits, payment_method_id, created_at FROM tollgate_autoreload_attempts
      WHERE status = 'in_flight'`
  )) {
    yield* Queue.offer(open, { attempt, asked: true })
  }
  yield* Effect.forkScoped(listening)
  yield* Effect.forkScoped(pursuing)

  return { find, change, charge, fell } satisfies Contract
})

const fromSettingsRow = (row: Row): Kept => ({
  ...row,
  enabled: row.enabled === 1,
  threshold: fromRow(row.threshold),
  last_failed: row.last_failed === 1,
  alerts_enabled: row.alerts_enabled === 1,
  warn_threshold: row.warn_threshold === null ? null : fromRow(row.warn_threshold),
  rearm_threshold: row.rearm_threshold === null ? null : fromRow(row.rearm_threshold),
  warned: row.warned === 1
})
