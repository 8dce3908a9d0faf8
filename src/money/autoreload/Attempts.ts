/**
 * Attempts to charge a saved payment method. An attempt is committed before the request to the processor, and ends in the transaction that credits
 * the payment or records the failure. While its outcome is unknown, the service searches for the payment first. If there is none, it repeats the
 * request with the attempt's id. The processor charges each id only once, so two nodes that pursue one attempt still charge once. The leading node
 * takes over other nodes' old attempts.
 */
import { Clock, Effect, Either } from "effect"
import type { Context } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { cent } from "../../kernel/Money.ts"
import type { Waker } from "../../kernel/Loop.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { Writer } from "../../books/ledger/write/Writer.ts"
import type { OutboxContract } from "../../people/mail/Outbox.ts"
import type { NodeContract } from "../../storage/engine/Runs.ts"
import type { PurchasesContract } from "../payments/Purchases.ts"
import type { Payments } from "../../upstream/payments/Payments.ts"
import type { Alerts } from "./Alerts.ts"
import { failuresMax } from "./AutoReload.ts"
import type { StoredSettings } from "./AutoReload.ts"
import type { Attempt, Storage } from "./Storage.ts"
import type { WatchList } from "./WatchList.ts"

/** Pauses in milliseconds between requests for an attempt with an unknown outcome. The last one repeats. */
const retryAfter = [5_000, 30_000, 120_000, 600_000]

/** The age at which the leading node takes over another node's attempt, in milliseconds. */
const othersAfter = 120_000

/** An attempt with an unknown outcome. */
export interface OpenAttempt {
  readonly attempt: Attempt
  /** Whether a request may have reached the processor. */
  asked: boolean
  tries: number
  /** The time of the next request. `undefined` while a request is in progress. */
  at: number | undefined
  /** The time of the processor's charge. The ledger may be credited later. */
  charged_at?: number
}

export type Outcome =
  | { readonly _tag: "Paid" }
  | { readonly _tag: "Declined"; readonly reason: string }
  /** The processor may have charged the payment method. */
  | { readonly _tag: "Unknown" }

const paid: Outcome = { _tag: "Paid" }
const unknown: Outcome = { _tag: "Unknown" }

export interface Parts {
  readonly writer: Writer["Type"]
  readonly storage: Storage
  readonly watchList: WatchList
  readonly alerts: Alerts
  readonly outbox: OutboxContract
  readonly purchases: PurchasesContract
  readonly processor: Context.Tag.Service<typeof Payments>
  readonly balanceOf: (tenant: TenantId) => Effect.Effect<Nano>
  readonly waker: Waker
  /** This node's role in the cluster. `undefined` on a single node. */
  readonly node: NodeContract | undefined
}

interface State extends Parts {
  /** This process's open attempts, by id. */
  readonly open: Map<string, OpenAttempt>
}

export const make = (parts: Parts) => {
  const state: State = { ...parts, open: new Map() }
  return {
    open: state.open,
    /**
     * Writes a new attempt. The caller must pursue it. Returns `undefined` if the settings changed or another attempt began since `settings` was
     * read.
     */
    begin: (tenant: TenantId, settings: StoredSettings, balance: Nano, now: number) =>
      begin(state, tenant, settings, balance, now),
    /** Requests the charge once. If the outcome is still unknown, the job retries later. */
    pursue: (one: OpenAttempt) => pursue(state, one),
    /** Adopts open attempts that this process is not pursuing, and drops attempts that another node has ended. */
    takeOver: takeOver(state)
  }
}

export type Attempts = ReturnType<typeof make>

const begin = Effect.fnUntraced(function* (
  { open, storage, waker, watchList, writer }: State,
  tenant: TenantId,
  settings: StoredSettings,
  balance: Nano,
  now: number
): Effect.fn.Return<OpenAttempt | undefined, BooksUnavailable> {
  const id = Ids.at("pay", now)
  const { amount, payment_method_id } = settings
  const attempt = { id, tenant_id: tenant, created_at: now, amount, payment_method_id: payment_method_id! }
  const entry: OpenAttempt = { attempt, asked: false, tries: 0, at: undefined }
  open.set(id, entry)
  const begun = yield* Statements.tryWrite(writer, ...storage.begin(attempt, settings, balance)).pipe(
    Effect.tapErrorTag("BooksUnavailable", ({ maybe_written }) => {
      if (!maybe_written) return Effect.void
      // If the row was nevertheless written, the next check of open attempts adopts it.
      watchList.checkAt = now
      return waker.wake
    }),
    Effect.onExit((exit) =>
      Effect.sync(() => {
        if (exit._tag === "Failure" || !exit.value) open.delete(id)
      })
    )
  )
  if (!begun) return undefined
  watchList.attemptBegan(tenant)
  return entry
})

const pursue = (state: State, one: OpenAttempt): Effect.Effect<Outcome, BooksUnavailable> => {
  const { node, open, waker, watchList } = state
  return charge(state, one).pipe(
    Effect.tap((outcome) => {
      if (outcome._tag === "Unknown") return
      open.delete(one.attempt.id)
      watchList.attemptEnded(one.attempt.tenant_id)
    }),
    Effect.ensuring(
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        one.asked = true
        // The leading node retries the attempt.
        if (node?.leads() === false) open.delete(one.attempt.id)
        one.at = now + retryAfter[Math.min(one.tries++, retryAfter.length - 1)]!
        return waker.wake
      })
    )
  )
}

/** Requests the charge from the processor. If an earlier request may have reached it, searches for that payment first. */
const charge = Effect.fnUntraced(function* (
  state: State,
  one: OpenAttempt
): Effect.fn.Return<Outcome, BooksUnavailable> {
  const { processor, purchases, storage } = state
  const { asked, attempt } = one
  const { amount, created_at, id, payment_method_id: method, tenant_id } = attempt
  if (processor === undefined) return unknown
  const customer = yield* Effect.either(purchases.customerOf(tenant_id))
  if (Either.isLeft(customer)) return customer.left._tag === "BooksUnavailable" ? yield* customer.left : unknown
  const order = { attempt: id, customer: customer.right, tenant_id }
  const charging = processor.charge({ ...order, method, cents: Number(amount / cent) })
  const charged = yield* Effect.either(
    asked
      ? Effect.flatMap(processor.found({ ...order, since: created_at }), (payment) =>
          payment === undefined ? charging : Effect.succeed(payment)
        )
      : charging
  )
  if (Either.isRight(charged)) {
    const now = yield* Clock.currentTimeMillis
    // The processor's clock may differ from the service's.
    one.charged_at ??= asked ? Math.min(now, Math.max(created_at, charged.right.charged_at ?? now)) : now
    yield* purchases.book(charged.right, storage.paid(attempt, one.charged_at))
    return paid
  }
  const { _tag, reason } = charged.left
  if (_tag === "ProcessorSilent") {
    yield* Effect.annotateLogs(Effect.logWarning("the outcome of a charge is unknown"), { attempt: id, reason })
    return unknown
  }
  yield* decline(state, attempt, reason)
  return { _tag: "Declined", reason }
})

/** Ends a declined attempt. The third consecutive failure disables auto-reload. */
const decline = Effect.fnUntraced(function* (state: State, attempt: Attempt, reason: string) {
  const { alerts, balanceOf, outbox, storage, watchList, writer } = state
  const { id, tenant_id } = attempt
  const now = yield* Clock.currentTimeMillis
  const failures = (yield* storage.settings(tenant_id)).failures + 1
  const disables = failures >= failuresMax
  const alert = {
    kind: "auto_reload_failed",
    key: `autoreload/${id}`,
    title: "Auto-reload has been disabled",
    text: `Three charges in a row failed (${reason}). Choose another payment method and enable auto-reload again.`
  } as const
  const messages = disables ? yield* alerts.statements(tenant_id, alert, now) : []
  const statements = [...storage.failed(attempt, { disables, failures, reason }, now), ...messages]
  // If the attempt has already ended, another node ended it and sent the messages.
  if ((yield* Statements.tryWrite(writer, ...statements)) && disables) {
    watchList.watch(tenant_id, yield* storage.settings(tenant_id), yield* balanceOf(tenant_id))
    yield* outbox.wake
  }
})

const takeOver = ({ node, open, storage }: State): Effect.Effect<void> =>
  Effect.gen(function* () {
    const pursued = new Set(open.keys())
    const stored = yield* storage.attempts
    for (const attempt of stored) {
      if (pursued.has(attempt.id) || open.has(attempt.id)) continue
      const at = node === undefined ? 0 : attempt.created_at + othersAfter
      open.set(attempt.id, { attempt, asked: true, tries: 0, at })
    }
    for (const id of pursued)
      if (open.get(id)?.at !== undefined && !stored.some((attempt) => attempt.id === id)) open.delete(id)
  })
