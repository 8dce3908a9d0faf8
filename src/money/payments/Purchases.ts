/**
 * Purchases of credit through a payment processor. Its signed events can arrive late, repeatedly and in any order. The service saves the reported
 * facts, which together determine the amounts in the books. The rows change in the transaction that moves the credit, so each payment is
 * credited once and taken back once.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { Actor } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import * as Loop from "../../kernel/Loop.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { cent } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Paged, PageOf } from "../../kernel/Page.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { BalanceTooLarge, BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { InsufficientRole } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Payments } from "../../upstream/payments/Payments.ts"
import type { Moved, Paid, PaymentMethod } from "../../upstream/payments/Payments.ts"
import * as Booking from "./Booking.ts"
import * as Customers from "./Customers.ts"
import * as Facts from "./Facts.ts"
import type { Movement } from "./Movement.ts"
import type { Owed, Purchase, Waiting } from "./Payment.ts"
import { WebhookSignatureInvalid } from "./Problems.ts"
import type { PaymentsUnconfigured, ProcessorTooOften, ProcessorUnavailable } from "./Problems.ts"

type ProcessorProblem = PaymentsUnconfigured | ProcessorUnavailable | BooksUnavailable

/** Amounts are in nano-USD. `checkout` and `setup` require an owner or admin of the caller's tenant. */
export interface PurchasesContract {
  /** Returns the URL of the processor's page for paying the amount. The amount must be 5 to 10,000 whole credits. */
  readonly checkout: (request: {
    readonly caller: Actor
    readonly amount: Nano
  }) => Effect.Effect<string, InsufficientRole | InvalidRequest | ProcessorTooOften | ProcessorProblem>
  /** Returns the URL of the processor's page for saving a payment method. */
  readonly setup: (request: {
    readonly caller: Actor
  }) => Effect.Effect<string, InsufficientRole | ProcessorTooOften | ProcessorProblem>
  readonly methods: (request: {
    readonly caller: Actor
  }) => Effect.Effect<ReadonlyArray<PaymentMethod>, ProcessorTooOften | ProcessorProblem>
  /** Returns the tenant's customer id at the processor. The first call registers the tenant there. */
  readonly customerOf: (tenant: TenantId) => Effect.Effect<string, ProcessorProblem>
  /** Handles a signed event from the processor. Refunds and disputes for an unknown payment are retained until the payment arrives. */
  readonly receive: (event: {
    readonly text: string
    readonly signature: string
  }) => Effect.Effect<void, WebhookSignatureInvalid | InvalidRequest | PaymentsUnconfigured | BooksUnavailable>
  /**
   * Credits a payment once. Runs `beside` in the same transaction, or alone if the payment was already credited. A payment for an unknown tenant is
   * only logged.
   */
  readonly book: (paid: Paid, beside: ReadonlyArray<Statement>) => Effect.Effect<void, BooksUnavailable>
  /**
   * Credits a payment made outside the processor, once per reference. Returns `false` if the reference was already credited or the tenant does not
   * exist. Runs `beside` in the same transaction.
   */
  readonly bookOffline: (
    payment: {
      readonly tenant_id: string
      readonly amount: Nano
      readonly reference: string
      /** The ledger entry's text. Defaults to a text about purchased credits. */
      readonly description?: string | undefined
    },
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<boolean, BooksUnavailable | BalanceTooLarge>
  /** Finds booked payments by id, or by reference if they were made outside the processor. */
  readonly payments: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<BookedPayment>>
  /** Reads a page of a tenant's payments with their refunds and disputes, newest first. */
  readonly page: (tenant: TenantId, page: PageOf) => Effect.Effect<Paged<Purchase>>
  /** Lists refunded or disputed amounts that the balances cannot cover yet. */
  readonly owed: Effect.Effect<ReadonlyArray<Owed>>
  /** Lists refunds and disputes for unknown payments. */
  readonly waiting: Effect.Effect<ReadonlyArray<Waiting>>
  /** The job that takes back amounts left due by an earlier version of the service, or records them as owed. `layerJobs` runs it. */
  readonly job: Loop.Job
}

/** A credited payment. An offline payment's id is its reference. */
export interface BookedPayment {
  readonly id: string
  readonly tenant_id: TenantId
  readonly kind: "checkout" | "auto_reload" | "offline"
  readonly amount: Nano
  readonly created_at: number
}

export class Purchases extends Context.Tag("tollgate/payments/Purchases")<Purchases, PurchasesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Purchases, make))
  static readonly layerJobs = Loop.layer(Purchases, ({ job }) => [job])
}

/** The interval at which the job looks for payments written by nodes of an earlier version. */
const jobPause = Duration.hours(1)

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const ledger = yield* Ledger
  const facts = Facts.make(sql)
  const customers = yield* Customers.make({ sql, writer, tenants: yield* Tenants, processor: yield* Payments })
  const booking = Booking.make({ writer, ledger, facts })

  const receive: PurchasesContract["receive"] = Effect.fn("Purchases.receive")(function* ({ signature, text }) {
    const port = yield* customers.port
    const event = yield* port.event(text, signature, yield* Clock.currentTimeMillis)
    switch (event?._tag) {
      case undefined:
        return yield* new WebhookSignatureInvalid()
      case "Unreadable": {
        const { field, rule } = event
        const what = field === "" ? "the body of the webhook" : field
        return yield* new InvalidRequest({ message: `${what}: ${rule}`, field, rule })
      }
      case "Paid":
        return yield* booking.book(event.paid, [])
      case "Moved":
        return yield* booking.applyMovements(event.payment_id, event.moved.map(movementOf))
      case "Other":
        return
    }
  })

  const { checkout, customerOf, methods, setup } = customers
  const follow = Effect.flatMap(
    facts.unfollowed,
    Effect.forEach((id) => booking.applyMovements(id, []), { discard: true })
  )
  const { book, bookOffline } = booking
  const { owed, page, payments, waiting } = facts
  return {
    checkout,
    setup,
    methods,
    customerOf,
    receive,
    book,
    bookOffline,
    page,
    payments,
    owed,
    waiting,
    job: { name: "payments", turn: Effect.as(follow, jobPause) }
  } satisfies PurchasesContract
})

const movementOf = ({ cents, id, kind, returned }: Moved): Movement => ({
  id,
  kind,
  amount: BigInt(cents) * cent,
  returned
})
