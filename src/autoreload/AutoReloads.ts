/**
 * A tenant that funds itself, and is told when its balance is low: a movement that makes the balance fall below a threshold sets off one
 * payment, or one alert. The writer tells of the movements (`Writer.watch`); a look at all watched balances at the start and every ten
 * minutes finds those that nobody told of. An attempt is on disk before the processor is called; it ends in the transaction that
 * credits it or gives it up, and what an earlier run left open is asked again under the same name, which the processor charges once.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Either, Layer, Option } from "effect"
import { BillingAccounts } from "../billing/BillingAccounts.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { InvalidRequest } from "../kernel/InvalidRequest.ts"
import * as Ids from "../kernel/Ids.ts"
import type { AccountId, BillingAccountId, TenantId } from "../kernel/Ids.ts"
import * as Loop from "../kernel/Loop.ts"
import { fromRow, toDecimal } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { balanceOf, statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { shownName } from "../mail/Letter.ts"
import { Outbox } from "../mail/Outbox.ts"
import { notice } from "../notifications/Notification.ts"
import type { Kind } from "../notifications/Notification.ts"
import type { ProcessorUnavailable } from "../payments/Problems.ts"
import { Purchases } from "../payments/Purchases.ts"
import { manages } from "../tenants/Organisation.ts"
import type { InsufficientRole } from "../tenants/Problems.ts"
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
import { cooledAt, failuresMax, fits, isCooling, stateOf, unset } from "./Settings.ts"
import type { AutoReload, AutoReloadChange, Kept } from "./Settings.ts"
import { show, watched } from "./Watched.ts"
import type { Turn, Watched } from "./Watched.ts"

export interface AutoReloadsContract {
  readonly find: (tenant: TenantId) => Effect.Effect<AutoReload>
  /** Replaces all settings. */
  readonly change: (
    caller: Caller,
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
    caller: Caller
  ) => Effect.Effect<
    AutoReload,
    InsufficientRole | AutoReloadUnconfigured | AutoReloadDisabled | AutoReloadBusy | PaymentDeclined
  >
  /**
   * Sends the alerts of low balances, begins the attempts that are due, and asks the processor about those whose outcome is not
   * known. `layerJobs` runs it; without it nothing is charged but by `charge`.
   */
  readonly job: Loop.Job
}

export class AutoReloads extends Context.Tag("tollgate/autoreload/AutoReloads")<AutoReloads, AutoReloadsContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(AutoReloads, make))
  static readonly layerJobs = Loop.layer(AutoReloads, ({ job }) => [job])
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
/** Between two looks at all watched balances. */
const lookEvery = 600_000
/** How long what failed waits to be tried again. */
const tryAgainAfter = 5_000

const loopName = "autoreload"

/** A charge that the processor was asked for, or is to be. */
interface Attempt {
  readonly id: string
  readonly tenant_id: TenantId
  readonly amount_credits: number
  readonly payment_method_id: string
  readonly created_at: number
}

/** An attempt whose outcome is still to be learned. */
interface Open {
  readonly attempt: Attempt
  /** Whether the processor may have been asked. */
  asked: boolean
  tries: number
  /** When it is to be asked; `undefined` while it is. */
  at: number | undefined
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const ledger = yield* Ledger
  const tenants = yield* Tenants
  const accounts = yield* BillingAccounts
  const outbox = yield* Outbox
  const purchases = yield* Purchases
  const processor = yield* Payments
  const scope = yield* Effect.scope
  const waker = yield* Loop.waker
  /** By billing account; nothing else of a movement costs more than a look in here. */
  const watching = new Map<string, Watched>()
  /** Whose turns are to be told. */
  const turned = new Set<Watched>()
  /** For whom a reload is due, and from when on an attempt may begin. */
  const due = new Map<Watched, number>()
  const open = new Map<string, Open>()
  let lookAt = 0

  const submit = (...statements: ReadonlyArray<Statement>) => writer.submit({ postings: [], statements })

  const keptOf = (tenant: TenantId) =>
    sql<Row>`SELECT enabled, CAST(threshold AS TEXT) AS threshold, amount_credits, payment_method_id, attempt,
        in_flight_started_at, last_attempt_at, last_charged_at, last_failed, last_error, failures, disabled_reason,
        alerts_enabled, CAST(warn_threshold AS TEXT) AS warn_threshold, CAST(rearm_threshold AS TEXT) AS rearm_threshold,
        warned, CAST(looked AS TEXT) AS looked, fell, updated_at
      FROM tollgate_autoreload_settings WHERE tenant_id = ${tenant}`.pipe(
      Effect.orDie,
      Effect.map(([row]): Kept => (row === undefined ? unset : fromSettingsRow(row)))
    )

  /** Watches the balance by these settings from now on, and no longer by earlier ones. */
  const watch = (tenant: TenantId, kept: Kept, balance: Nano) => {
    const account = Ids.billingAccountOf(tenant)
    const before = watching.get(account)
    if (before !== undefined) {
      turned.delete(before)
      due.delete(before)
    }
    const one = watched(tenant, kept, balance)
    if (one === undefined) return void watching.delete(account)
    watching.set(account, one)
    if (one.due) due.set(one, 0)
  }

  const balancesOf = (all: ReadonlyArray<string>) => ledger.accounts(all as ReadonlyArray<BillingAccountId>)

  const accountOf = (tenant: TenantId) => Effect.map(ledger.accountOfTenant(tenant), Option.getOrUndefined)

  const balanceNow = (tenant: TenantId) =>
    Effect.map(accountOf(tenant), (account) => (account === undefined ? 0n : balanceOf(account)))

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

  const change: AutoReloadsContract["change"] = Effect.fn("AutoReloads.change")(function* (caller, wish) {
    yield* tenants.mayManage(caller)
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
    const balance = yield* balanceNow(caller.tenant_id)
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
      // A threshold that is put above the balance sets off nothing: only a movement does.
      looked: balance,
      fell: 0,
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
    watch(caller.tenant_id, kept, balance)
    return shown(kept, now)
  })

  // ---- charging -----------------------------------------------------------------------------------------------------------

  /** Puts an attempt on disk, if there is none and none was lately. It is in `open` from then on, and to be asked by the caller. */
  const begin = Effect.fnUntraced(function* (tenant: TenantId, kept: Kept, balance: Nano, now: number) {
    const id = Ids.at("pay", now)
    const { amount_credits, payment_method_id } = kept
    const attempt = { id, tenant_id: tenant, created_at: now, amount_credits, payment_method_id: payment_method_id! }
    const entry: Open = { attempt, asked: false, tries: 0, at: undefined }
    open.set(id, entry)
    const begun = yield* submit(
      statement(
        sql`UPDATE tollgate_autoreload_settings SET attempt = ${id}, in_flight_started_at = ${now}, last_attempt_at = ${now},
          looked = ${balance}, fell = 0
          WHERE tenant_id = ${tenant} AND enabled = 1 AND attempt IS NULL
            AND last_attempt_at IS ${kept.last_attempt_at} RETURNING tenant_id`,
        1
      ),
      statement(sql`INSERT INTO tollgate_autoreload_attempts (id, tenant_id, amount_credits, payment_method_id, status, created_at)
        VALUES (${id}, ${tenant}, ${amount_credits}, ${payment_method_id}, 'in_flight', ${now})`)
    ).pipe(
      Effect.as(true),
      Effect.catchTag("Conflict", () => Effect.succeed(false)),
      Effect.tapErrorTag("BooksUnavailable", ({ maybe_written }) => {
        if (!maybe_written) return Effect.void
        // Should it be on disk, a look finds it.
        lookAt = now
        return waker.wake
      }),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          if (exit._tag === "Failure" || !exit.value) open.delete(id)
        })
      ),
      Effect.orDie
    )
    if (!begun) return undefined
    const one = watching.get(Ids.billingAccountOf(tenant))
    if (one !== undefined) {
      one.due = false
      due.delete(one)
    }
    return entry
  })

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
    const disabled = ends ? sql`, enabled = 0, disabled_reason = 'payment_failed', fell = 0` : sql``
    yield* Effect.orDie(
      submit(
        endAttempt(id, "failed", reason, now),
        statement(sql`UPDATE tollgate_autoreload_settings SET attempt = NULL, in_flight_started_at = NULL, last_failed = 1,
          last_error = ${reason}, failures = ${failures}${disabled} WHERE tenant_id = ${tenant_id} AND attempt = ${id}`),
        ...words
      )
    )
    if (ends) {
      watch(tenant_id, yield* keptOf(tenant_id), yield* balanceNow(tenant_id))
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
    const members = (yield* tenants.members(tenant)).filter(({ status }) => status === "active")
    // The addresses are the tenant's choice and its balance moves as it likes, so its owner answers for the letters.
    const caused_by = members.find(({ role }) => role === "owner")?.account_id
    const subject = `${title}: ${shownName(name, "your team")}`
    const letters = yield* Effect.forEach(emails, (to) =>
      outbox.letter({ key: `${key}/${to}`, to, caused_by, subject, text })
    )
    const notices = members
      .filter(({ role }) => manages(role))
      .map(({ account_id }: { readonly account_id: AccountId }) =>
        notice({ account_id, kind, title, text, data: { tenant_id: tenant } }, now)
      )
    return [...letters, ...notices]
  })

  /** Asks once. Where the outcome stays unknown it is to be asked again later. */
  const pursue = (one: Open): Effect.Effect<"paid" | "unknown" | { readonly declined: string }> =>
    Effect.gen(function* () {
      const outcome = yield* ask(one.attempt, one.asked)
      if (outcome !== "unknown") {
        open.delete(one.attempt.id)
        const there = watching.get(Ids.billingAccountOf(one.attempt.tenant_id))
        // Until now no other attempt could begin.
        if (there?.due === true) due.set(there, 0)
      }
      return outcome
    }).pipe(
      Effect.ensuring(
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          one.asked = true
          one.at = now + askAgainAfter[Math.min(one.tries++, askAgainAfter.length - 1)]!
          return waker.wake
        })
      )
    )

  const charge: AutoReloadsContract["charge"] = Effect.fn("AutoReloads.charge")(function* (caller) {
    yield* tenants.mayManage(caller)
    const tenant = caller.tenant_id
    if (processor === undefined) return yield* new AutoReloadUnconfigured()
    const kept = yield* keptOf(tenant)
    const now = yield* Clock.currentTimeMillis
    if (kept.attempt !== null) return yield* new AutoReloadBusy()
    if (!kept.enabled) return yield* new AutoReloadDisabled()
    if (isCooling(kept, now)) return yield* new AutoReloadBusy()
    const begun = yield* begin(tenant, kept, yield* balanceNow(tenant), now)
    if (begun === undefined) return yield* new AutoReloadBusy()
    const outcome = yield* pursue(begun)
    if (outcome !== "unknown" && outcome !== "paid") return yield* new PaymentDeclined({ message: outcome.declined })
    return yield* find(tenant)
  }, Effect.uninterruptible)

  // ---- listening ----------------------------------------------------------------------------------------------------------

  const moved = (account: string, before: Nano, after: Nano): boolean => {
    const one = watching.get(account)
    if (one === undefined || !show(one, before, after)) return false
    if (one.turns.length > 0) turned.add(one)
    if (one.due && !due.has(one)) due.set(one, 0)
    return true
  }

  /** Takes over the attempts on disk that nobody pursues: an earlier run began them, or no answer came to their beginning. */
  const takeOver = Effect.gen(function* () {
    const pursued = new Set(open.keys())
    const attempts = yield* Effect.orDie(
      sql<Attempt>`SELECT id, tenant_id, amount_credits, payment_method_id, created_at FROM tollgate_autoreload_attempts
        WHERE status = 'in_flight'`
    )
    for (const attempt of attempts) {
      if (!pursued.has(attempt.id) && !open.has(attempt.id))
        open.set(attempt.id, { attempt, asked: true, tries: 0, at: 0 })
    }
  })

  /** Shows what nobody told of as one movement, notes on disk what was seen, and takes over attempts. */
  const look = Effect.gen(function* () {
    const all = [...watching].map(([account, one]) => ({ account, one, shown: one.shown }))
    const found = yield* balancesOf(all.map(({ account }) => account))
    const seen: Record<string, string> = {}
    for (const { account, one, shown } of all) {
      const there = found.get(account)
      // What was shown meanwhile is newer than what was read.
      if (there === undefined || one.shown !== shown) continue
      const balance = balanceOf(there)
      if (balance !== one.last) moved(account, one.last, balance)
      seen[one.tenant] = balance.toString()
    }
    const text = JSON.stringify(seen)
    yield* Effect.orDie(
      submit(
        statement(sql`UPDATE tollgate_autoreload_settings SET looked = CAST(j.value AS INTEGER) FROM json_each(${text}) j
          WHERE tenant_id = j.key AND looked IS NOT CAST(j.value AS INTEGER)`)
      )
    )
    // What was handed in before that is on disk by now, or never will be.
    yield* takeOver
  })

  /** Tells the turns of a balance in their order; one that fails stays the first. */
  const tell = Effect.fnUntraced(function* (one: Watched) {
    for (let turn = one.turns[0]; turn !== undefined; turn = one.turns[0]) {
      yield* tellTurn(one, turn)
      one.turns.shift()
    }
    turned.delete(one)
  })

  const tellTurn = Effect.fnUntraced(function* ({ last, tenant, updated_at, warn_below }: Watched, turn: Turn) {
    const now = yield* Clock.currentTimeMillis
    const words =
      turn._tag === "rearmed"
        ? []
        : yield* told(tenant, now, "low_balance", `alert/${tenant}/${now}`, {
            title: "The balance is low",
            text: `The balance has fallen below ${toDecimal(warn_below)} USD; it was ${toDecimal(turn.balance)} USD then.`
          })
    yield* submit(
      // Other settings since then are other alerts.
      statement(
        sql`UPDATE tollgate_autoreload_settings SET warned = ${turn._tag === "low" ? 1 : 0},
          looked = ${turn._tag === "low" ? turn.balance : last}
          WHERE tenant_id = ${tenant} AND updated_at = ${updated_at} RETURNING tenant_id`,
        1
      ),
      ...words
    ).pipe(
      Effect.catchTag("Conflict", () => Effect.void),
      Effect.orDie
    )
    if (words.length > 0) yield* outbox.wake
  })

  /** Begins an attempt, unless the balance is up again; where none may begin yet, it stays due until one may. */
  const reload = Effect.fnUntraced(function* (one: Watched) {
    const kept = yield* keptOf(one.tenant)
    const now = yield* Clock.currentTimeMillis
    const account = yield* accountOf(one.tenant)
    const balance = account === undefined ? 0n : balanceOf(account)
    const wanted = processor !== undefined && kept.enabled && kept.payment_method_id !== null
    const needed = wanted && balance < kept.threshold
    // An account that is suspended or closed is charged nothing, and looked at again now and then.
    const active = account?.status === "active"
    if (needed && active && kept.attempt === null && !isCooling(kept, now)) {
      const begun = yield* begin(one.tenant, kept, balance, now)
      if (begun !== undefined) begun.at = now
      return
    }
    if (kept.fell !== needed) {
      yield* Effect.orDie(
        submit(
          statement(
            sql`UPDATE tollgate_autoreload_settings SET fell = ${needed ? 1 : 0} WHERE tenant_id = ${one.tenant}`
          )
        )
      )
    }
    one.due = needed
    if (!needed) due.delete(one)
    // The end of an attempt that is open makes it due at once.
    else due.set(one, active && kept.attempt === null ? cooledAt(kept) : now + lookEvery)
  })

  const turn: Effect.Effect<number> = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (now >= lookAt) {
      // What calls for another look meanwhile is not forgotten.
      lookAt = now + lookEvery
      yield* Effect.tapErrorCause(look, () => Effect.sync(() => (lookAt = now)))
    }
    const ready = [...due].flatMap(([one, at]) => (at <= now ? [one] : []))
    const tenantOf = ({ tenant }: Watched) => tenant
    const later = (one: Watched) => Effect.sync(() => due.set(one, now + tryAgainAfter))
    const failed = yield* Loop.each(loopName, [...turned], tenantOf, tell)
    yield* Loop.each(loopName, ready, tenantOf, (one) => Effect.tapErrorCause(reload(one), () => later(one)))
    for (const one of open.values()) {
      if (one.at === undefined || one.at > now) continue
      one.at = undefined
      // Nobody waits for it: a processor that takes its time holds up one tenant.
      yield* Effect.forkIn(
        Loop.each(loopName, [one], ({ attempt }) => attempt.id, pursue),
        scope
      )
    }
    const next = [lookAt, ...due.values(), ...[...open.values()].map(({ at }) => at ?? lookAt)]
    return Math.max(0, Math.min(...next, ...(failed > 0 ? [now + tryAgainAfter] : [])) - now)
  })

  for (const { tenant_id } of yield* Effect.orDie(
    sql<{ tenant_id: TenantId }>`SELECT tenant_id FROM tollgate_autoreload_settings`
  )) {
    watch(tenant_id, yield* keptOf(tenant_id), yield* balanceNow(tenant_id))
  }
  yield* takeOver
  yield* writer.watch((account, before, after) => {
    if (moved(account, before, after)) waker.wakeNow()
  })

  return { find, change, charge, job: { name: loopName, turn, waker } } satisfies AutoReloadsContract
})

const fromSettingsRow = (row: Row): Kept => ({
  ...row,
  enabled: row.enabled === 1,
  threshold: fromRow(row.threshold),
  last_failed: row.last_failed === 1,
  alerts_enabled: row.alerts_enabled === 1,
  warn_threshold: row.warn_threshold === null ? null : fromRow(row.warn_threshold),
  rearm_threshold: row.rearm_threshold === null ? null : fromRow(row.rearm_threshold),
  warned: row.warned === 1,
  looked: row.looked === null ? null : fromRow(row.looked),
  fell: row.fell === 1
})
