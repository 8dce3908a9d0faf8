/** One iteration of the auto-reload job: it checks balances, sends alerts, begins due reloads and retries open attempts. */
import { Clock, Effect, Option } from "effect"
import type { Scope } from "effect"
import type { BillingAccountId } from "../../kernel/Ids.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Ledger } from "../../books/ledger/Ledger.ts"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { Attempts, Parts as AttemptParts } from "./Attempts.ts"
import { cooledAt, isCooling } from "./AutoReload.ts"
import type { Crossing, Watched } from "./Watched.ts"

export const jobName = "autoreload"

/** The interval between checks of all watched balances, in milliseconds. */
const checkEvery = 600_000
/** The delay before a failed step is retried, in milliseconds. */
const retryAfter = 5_000

export interface Parts extends AttemptParts {
  readonly ledger: Ledger["Type"]
  readonly attempts: Attempts
  readonly scope: Scope.Scope
}

/** Returns the milliseconds until the next iteration. */
export const turn = Effect.fnUntraced(function* (parts: Parts) {
  const { attempts, scope, watchList } = parts
  const { crossed, due } = watchList
  const now = yield* Clock.currentTimeMillis
  if (now >= watchList.checkAt) {
    // The time is set first, so a check requested during this iteration is not lost.
    watchList.checkAt = now + checkEvery
    yield* Effect.tapErrorCause(checkAll(parts), () => Effect.sync(() => (watchList.checkAt = now)))
  }
  const ready = [...due].flatMap(([one, at]) => (at <= now ? [one] : []))
  const tenantOf = ({ tenant }: Watched) => tenant
  const later = (one: Watched) => Effect.sync(() => due.set(one, now + retryAfter))
  const failed = yield* Loop.each(jobName, [...crossed], tenantOf, (one) => handleCrossings(parts, one))
  yield* Loop.each(jobName, ready, tenantOf, (one) => Effect.tapErrorCause(reload(parts, one), () => later(one)))
  for (const one of attempts.open.values()) {
    if (one.at === undefined || one.at > now) continue
    one.at = undefined
    // Forked, so a slow processor delays only this tenant.
    yield* Effect.forkIn(
      Loop.each(jobName, [one], ({ attempt }) => attempt.id, attempts.pursue),
      scope
    )
  }
  const { checkAt } = watchList
  const next = [checkAt, ...due.values(), ...[...attempts.open.values()].map(({ at }) => at ?? checkAt)]
  return Math.max(0, Math.min(...next, ...(failed > 0 ? [now + retryAfter] : [])) - now)
})

const submit = ({ writer }: Parts, statements: ReadonlyArray<Statement>) => writer.submit({ postings: [], statements })

/** Detects movements that this process did not report, saves the balances read, and takes over attempts. */
const checkAll = Effect.fnUntraced(function* (parts: Parts) {
  const { attempts, ledger, storage, watchList } = parts
  const before = [...watchList.byAccount].map(([account, one]) => ({ account, one, movements: one.movements }))
  const accounts = yield* ledger.accounts(before.map(({ account }) => account as BillingAccountId))
  const balances: Record<string, string> = {}
  for (const { account, movements, one } of before) {
    const found = accounts.get(account)
    // Skips balances that moved after they were read.
    if (found === undefined || one.movements !== movements) continue
    const balance = balanceOf(found)
    if (balance !== one.last) watchList.moved(account, one.last, balance)
    balances[one.tenant] = balance.toString()
  }
  yield* submit(parts, [storage.looked(balances)])
  // The write above waited for all earlier writes, so an attempt submitted earlier is either committed by now or never will be.
  yield* attempts.takeOver
})

/** Handles a balance's crossings in order. A crossing that fails stays at the front of the queue. */
const handleCrossings = Effect.fnUntraced(function* (parts: Parts, one: Watched) {
  for (let next = one.crossings[0]; next !== undefined; next = one.crossings[0]) {
    yield* handle(parts, one, next)
    one.crossings.shift()
  }
  parts.watchList.crossed.delete(one)
})

const handle = Effect.fnUntraced(function* (
  parts: Parts,
  { last, tenant, updated_at, warn_below }: Watched,
  crossing: Crossing
) {
  const { alerts, outbox, storage } = parts
  const now = yield* Clock.currentTimeMillis
  const warning =
    crossing._tag === "low"
      ? storage.warned(tenant, true, crossing.balance, updated_at)
      : storage.warned(tenant, false, last, updated_at)
  const alert =
    crossing._tag === "low"
      ? yield* alerts.statements(
          tenant,
          {
            kind: "low_balance",
            key: `alert/${tenant}/${now}`,
            title: "The balance is low",
            text: `The balance fell below ${toDecimal(warn_below)} USD, to ${toDecimal(crossing.balance)} USD.`
          },
          now
        )
      : []
  // A conflict means that the settings were replaced, so this alert is obsolete.
  yield* Effect.catchTag(submit(parts, [warning, ...alert]), "Conflict", () => Effect.void)
  if (alert.length > 0) yield* outbox.wake
})

/** Begins an attempt, or cancels the reload if it is no longer needed. If no attempt may begin yet, the reload remains due. */
const reload = Effect.fnUntraced(function* (parts: Parts, one: Watched) {
  const { attempts, ledger, processor, storage, watchList } = parts
  const { due } = watchList
  const settings = yield* storage.settings(one.tenant)
  const now = yield* Clock.currentTimeMillis
  const account = Option.getOrUndefined(yield* ledger.account(billingAccountOf(one.tenant)))
  const balance = account === undefined ? 0n : balanceOf(account)
  const wanted = processor !== undefined && settings.enabled && settings.payment_method_id !== null
  const needed = wanted && balance < settings.threshold
  // A suspended or closed account is never charged. Its status is rechecked later.
  const active = account?.status === "active"
  if (needed && active && settings.attempt === null && !isCooling(settings, now)) {
    const begun = yield* attempts.begin(one.tenant, settings, balance, now)
    if (begun !== undefined) begun.at = now
    return
  }
  if (settings.fell !== needed) yield* submit(parts, [storage.fell(one.tenant, settings, needed)])
  one.due = needed
  if (!needed) due.delete(one)
  // When an open attempt ends, the reload becomes due at once.
  else due.set(one, active && settings.attempt === null ? cooledAt(settings) : now + checkEvery)
})
