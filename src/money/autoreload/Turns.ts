/** The job of auto-reload: reads balances, sends alerts, begins the reloads that are due, and pursues the attempts that are open. */
import { Clock, Effect, Option } from "effect"
import type { Scope } from "effect"
import type { BillingAccountId } from "../../kernel/Ids.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Ledger } from "../../books/ledger/Ledger.ts"
import { balanceOf } from "../../books/ledger/Transaction.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import type { Attempts, Parts as AttemptParts } from "./Attempts.ts"
import { cooledAt, isCooling } from "./AutoReload.ts"
import type { Crossing, Watched } from "./Watched.ts"

/** As logs and metrics show it. */
export const jobName = "autoreload"

/** Between two looks at all watched balances, in milliseconds. */
const lookEvery = 600_000
/** How long what failed waits to be tried again. */
const tryAgainAfter = 5_000

export interface Parts extends AttemptParts {
  readonly ledger: Ledger["Type"]
  readonly attempts: Attempts
  /** Where attempts are pursued. */
  readonly scope: Scope.Scope
}

export const make = (parts: Parts) => {
  const { alerts, attempts, ledger, outbox, processor, scope, storage, watchList, writer } = parts
  const { byAccount, crossed, due } = watchList

  const submit = (statements: ReadonlyArray<Statement>) => writer.submit({ postings: [], statements })

  /** Takes in movements that were not reported as one movement each, notes the balances that were read, and takes over attempts. */
  const look = Effect.gen(function* () {
    const before = [...byAccount].map(([account, one]) => ({ account, one, movements: one.movements }))
    const accounts = yield* ledger.accounts(before.map(({ account }) => account as BillingAccountId))
    const balances: Record<string, string> = {}
    for (const { account, movements, one } of before) {
      const found = accounts.get(account)
      // What moved meanwhile is newer than what was read.
      if (found === undefined || one.movements !== movements) continue
      const balance = balanceOf(found)
      if (balance !== one.last) watchList.moved(account, one.last, balance)
      balances[one.tenant] = balance.toString()
    }
    yield* submit([storage.looked(balances)])
    // An attempt that was handed in before that is on disk by now, or never will be.
    yield* attempts.takeOver
  })

  /** Handles the crossings of a balance in their order; one that fails stays the first. */
  const handleCrossings = Effect.fnUntraced(function* (one: Watched) {
    for (let next = one.crossings[0]; next !== undefined; next = one.crossings[0]) {
      yield* handle(one, next)
      one.crossings.shift()
    }
    crossed.delete(one)
  })

  const handle = Effect.fnUntraced(function* ({ last, tenant, updated_at, warn_below }: Watched, crossing: Crossing) {
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
              text: `The balance has fallen below ${toDecimal(warn_below)} USD; it was ${toDecimal(crossing.balance)} USD then.`
            },
            now
          )
        : []
    // A conflict: other settings since then are other alerts.
    yield* Effect.catchTag(submit([warning, ...alert]), "Conflict", () => Effect.void)
    if (alert.length > 0) yield* outbox.wake
  })

  /** Begins an attempt, unless the balance is up again; where none may begin yet, it stays due until one may. */
  const reload = Effect.fnUntraced(function* (one: Watched) {
    const settings = yield* storage.settings(one.tenant)
    const now = yield* Clock.currentTimeMillis
    const account = Option.getOrUndefined(yield* ledger.account(billingAccountOf(one.tenant)))
    const balance = account === undefined ? 0n : balanceOf(account)
    const wanted = processor !== undefined && settings.enabled && settings.payment_method_id !== null
    const needed = wanted && balance < settings.threshold
    // An account that is suspended or closed is charged nothing, and looked at again now and then.
    const active = account?.status === "active"
    if (needed && active && settings.attempt === null && !isCooling(settings, now)) {
      const begun = yield* attempts.begin(one.tenant, settings, balance, now)
      if (begun !== undefined) begun.at = now
      return
    }
    if (settings.fell !== needed) yield* submit([storage.fell(one.tenant, needed)])
    one.due = needed
    if (!needed) due.delete(one)
    // The end of an attempt that is open makes it due at once.
    else due.set(one, active && settings.attempt === null ? cooledAt(settings) : now + lookEvery)
  })

  const turn = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (now >= watchList.lookAt) {
      // Set before the look: what asks for another look meanwhile is not forgotten.
      watchList.lookAt = now + lookEvery
      yield* Effect.tapErrorCause(look, () => Effect.sync(() => (watchList.lookAt = now)))
    }
    const ready = [...due].flatMap(([one, at]) => (at <= now ? [one] : []))
    const tenantOf = ({ tenant }: Watched) => tenant
    const later = (one: Watched) => Effect.sync(() => due.set(one, now + tryAgainAfter))
    const failed = yield* Loop.each(jobName, [...crossed], tenantOf, handleCrossings)
    yield* Loop.each(jobName, ready, tenantOf, (one) => Effect.tapErrorCause(reload(one), () => later(one)))
    for (const one of attempts.open.values()) {
      if (one.at === undefined || one.at > now) continue
      one.at = undefined
      // Nobody waits for it: a processor that takes its time holds up one tenant.
      yield* Effect.forkIn(
        Loop.each(jobName, [one], ({ attempt }) => attempt.id, attempts.pursue),
        scope
      )
    }
    const { lookAt } = watchList
    const next = [lookAt, ...due.values(), ...[...attempts.open.values()].map(({ at }) => at ?? lookAt)]
    return Math.max(0, Math.min(...next, ...(failed > 0 ? [now + tryAgainAfter] : [])) - now)
  })

  return { turn }
}
