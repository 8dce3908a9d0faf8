/**
 * Attempts to charge. An attempt is on disk before the processor is asked; it ends in the transaction that credits it or gives it up.
 * Where the outcome is not known, the processor is asked again under the attempt's name, which it charges once. So two nodes that pursue
 * one attempt charge it once; the node that leads takes over those of others when whoever began them has long been answered or is gone.
 */
import { Clock, Effect, Either } from "effect"
import type { Context } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { cent } from "../../kernel/Money.ts"
import type { Waker } from "../../kernel/Loop.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import type { Writer } from "../../books/ledger/Writer.ts"
import type { OutboxContract } from "../../people/mail/Outbox.ts"
import type { NodeContract } from "../../storage/engine/Runs.ts"
import type { PurchasesContract } from "../payments/Purchases.ts"
import type { Payments } from "../../upstream/payments/Payments.ts"
import type { Alerts } from "./Alerts.ts"
import { failuresMax } from "./AutoReload.ts"
import type { StoredSettings } from "./AutoReload.ts"
import type { Attempt, Storage } from "./Storage.ts"
import type { WatchList } from "./WatchList.ts"

/** How long an attempt whose outcome is not known waits to be asked again, in milliseconds; the last repeats. */
const askAgainAfter = [5_000, 30_000, 120_000, 600_000]

/** How old an attempt must be that the node that leads takes over from another, in milliseconds. */
const othersAfter = 120_000

/** An attempt whose outcome is not known yet. */
export interface Open {
  readonly attempt: Attempt
  /** Whether the processor may have been asked. */
  asked: boolean
  tries: number
  /** When it is to be asked; `undefined` while it is. */
  at: number | undefined
  /** When the processor charged. The books may take the charge later. */
  charged_at?: number
}

export type Outcome =
  | { readonly _tag: "Paid" }
  | { readonly _tag: "Declined"; readonly reason: string }
  /** Nobody can tell yet whether the processor charged. */
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
  /** Whether there are other nodes, and one of those leads. */
  readonly node: NodeContract | undefined
}

export const make = (parts: Parts) => {
  const { alerts, balanceOf, node, outbox, processor, purchases, storage, waker, watchList, writer } = parts
  const open = new Map<string, Open>()

  /**
   * Writes an attempt, if there is none and none was lately; gives `undefined` where another was faster. It is open from then on, and
   * to be pursued by the caller.
   */
  const begin = Effect.fnUntraced(function* (
    tenant: TenantId,
    settings: StoredSettings,
    balance: Nano,
    now: number
  ): Effect.fn.Return<Open | undefined, BooksUnavailable> {
    const id = Ids.at("pay", now)
    const { amount, payment_method_id } = settings
    const attempt = { id, tenant_id: tenant, created_at: now, amount, payment_method_id: payment_method_id! }
    const entry: Open = { attempt, asked: false, tries: 0, at: undefined }
    open.set(id, entry)
    const begun = yield* Statements.tryWrite(writer, ...storage.begin(attempt, settings, balance)).pipe(
      Effect.tapErrorTag("BooksUnavailable", ({ maybe_written }) => {
        if (!maybe_written) return Effect.void
        // Should it be on disk, a look finds it.
        watchList.lookAt = now
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

  /** Asks the processor, once. What may have been asked before is looked for first. */
  const ask = Effect.fnUntraced(function* (one: Open): Effect.fn.Return<Outcome, BooksUnavailable> {
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
      // The processor's clock may be another than ours.
      one.charged_at ??= asked ? Math.min(now, Math.max(created_at, charged.right.charged_at ?? now)) : now
      yield* purchases.book(charged.right, storage.paid(attempt, one.charged_at))
      return paid
    }
    const { _tag, reason } = charged.left
    if (_tag === "ProcessorSilent") {
      yield* Effect.annotateLogs(Effect.logWarning("the outcome of a charge is unknown"), { attempt: id, reason })
      return unknown
    }
    yield* declined(attempt, reason)
    return { _tag: "Declined", reason }
  })

  const declined = Effect.fnUntraced(function* (attempt: Attempt, reason: string) {
    const { id, tenant_id } = attempt
    const now = yield* Clock.currentTimeMillis
    const failures = (yield* storage.settings(tenant_id)).failures + 1
    const disables = failures >= failuresMax
    const alert = {
      kind: "auto_reload_failed",
      key: `autoreload/${id}`,
      title: "Auto-reload was switched off",
      text: `Three charges in a row failed (${reason}). Choose another payment method and enable auto-reload again.`
    } as const
    const messages = disables ? yield* alerts.statements(tenant_id, alert, now) : []
    const statements = [...storage.failed(attempt, { disables, failures, reason }, now), ...messages]
    // Where it has ended, another node ended it, which said so.
    if ((yield* Statements.tryWrite(writer, ...statements)) && disables) {
      watchList.watch(tenant_id, yield* storage.settings(tenant_id), yield* balanceOf(tenant_id))
      yield* outbox.wake
    }
  })

  /** Asks once. Where the outcome stays unknown, it is to be asked again later. */
  const pursue = (one: Open): Effect.Effect<Outcome, BooksUnavailable> =>
    ask(one).pipe(
      Effect.tap((outcome) => {
        if (outcome._tag === "Unknown") return
        open.delete(one.attempt.id)
        watchList.attemptEnded(one.attempt.tenant_id)
      }),
      Effect.ensuring(
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          one.asked = true
          // The node that leads asks again.
          if (node?.leads() === false) open.delete(one.attempt.id)
          one.at = now + askAgainAfter[Math.min(one.tries++, askAgainAfter.length - 1)]!
          return waker.wake
        })
      )
    )

  /** Takes over the attempts on disk that nobody pursues: an earlier run began them, or no answer came to their beginning. */
  const takeOver = Effect.gen(function* () {
    const pursued = new Set(open.keys())
    const stored = yield* storage.attempts
    for (const attempt of stored) {
      if (pursued.has(attempt.id) || open.has(attempt.id)) continue
      const at = node === undefined ? 0 : attempt.created_at + othersAfter
      open.set(attempt.id, { attempt, asked: true, tries: 0, at })
    }
    // What another node has ended meanwhile.
    for (const id of pursued)
      if (open.get(id)?.at !== undefined && !stored.some((attempt) => attempt.id === id)) open.delete(id)
  })

  return { open, begin, pursue, takeOver }
}

export type Attempts = ReturnType<typeof make>
