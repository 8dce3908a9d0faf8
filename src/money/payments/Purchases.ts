/**
 * Purchases of credit at a payment processor. Its signed events may come in any order, late, and more than once: they are kept as
 * facts, and the books are made to follow from all facts of a payment together. A payment is credited once, and what of it is due back
 * is taken once: the rows that say so stand in the transaction that moves the credit.
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
import type { BalanceTooLarge, BooksUnavailable } from "../../books/ledger/Problems.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import { Writer } from "../../books/ledger/Writer.ts"
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
import type { PaymentsUnconfigured, ProcessorUnavailable } from "./Problems.ts"

type ProcessorProblem = PaymentsUnconfigured | ProcessorUnavailable | BooksUnavailable

/** Amounts are nano-USD. Who pays is an owner or admin of their tenant. */
export interface PurchasesContract {
  /** The address of a page of the processor's on which the amount is paid: whole credits, 5 to 10,000. */
  readonly checkout: (request: {
    readonly caller: Actor
    readonly amount: Nano
  }) => Effect.Effect<string, InsufficientRole | InvalidRequest | ProcessorProblem>
  /** The address of a page on which a payment method is stored. */
  readonly setup: (request: { readonly caller: Actor }) => Effect.Effect<string, InsufficientRole | ProcessorProblem>
  /** The stored payment methods of a tenant. */
  readonly methods: (tenant: TenantId) => Effect.Effect<ReadonlyArray<PaymentMethod>, ProcessorProblem>
  /** The processor's id of the tenant. The processor makes one at the first call. */
  readonly customerOf: (tenant: TenantId) => Effect.Effect<string, ProcessorProblem>
  /** Takes in an event of the processor: its text and its signature. Facts of a payment that is not known are kept until it comes. */
  readonly receive: (event: {
    readonly text: string
    readonly signature: string
  }) => Effect.Effect<void, WebhookSignatureInvalid | InvalidRequest | PaymentsUnconfigured | BooksUnavailable>
  /** Credits a payment unless it was credited. `beside` stands in the same transaction, or is done without the credit. */
  readonly book: (paid: Paid, beside: ReadonlyArray<Statement>) => Effect.Effect<void, BooksUnavailable>
  /**
   * Credits a payment that reached the operator another way, once for a reference. Gives `false` if the reference was credited before,
   * or there is no such tenant. `beside` stands in the same transaction.
   */
  readonly bookOffline: (
    payment: {
      readonly tenant_id: string
      readonly amount: Nano
      readonly reference: string
      /** What the ledger says of it; that credits were purchased, unless it is given. */
      readonly description?: string | undefined
    },
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<boolean, BooksUnavailable | BalanceTooLarge>
  /** Payments that were credited, by their own ids or the references of offline ones. */
  readonly payments: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<BookedPayment>>
  /** A page of a tenant's payments, newest first, with what was refunded or disputed of each. */
  readonly page: (tenant: TenantId, page: PageOf) => Effect.Effect<Paged<Purchase>>
  /** Payments of which the balance could not give back so far what was refunded or disputed. */
  readonly owed: Effect.Effect<ReadonlyArray<Owed>>
  /** Payments that are not known, of which refunds or disputes are. */
  readonly waiting: Effect.Effect<ReadonlyArray<Waiting>>
  /** Takes back, or records as owed, what an earlier version of the service left due. `layerJobs` runs it. */
  readonly job: Loop.Job
}

/** A payment that was credited. Of one that was paid another way the id is its reference. */
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

/** How often payments are looked for that a node of an earlier version wrote. */
const jobPause = Duration.hours(1)

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const ledger = yield* Ledger
  const facts = Facts.make(sql)
  const customers = Customers.make({ sql, writer, tenants: yield* Tenants, processor: yield* Payments })
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
        return yield* booking.takeIn(event.payment_id, event.moved.map(movementOf))
      case "Other":
        return
    }
  })

  const { checkout, customerOf, methods, setup } = customers
  const follow = Effect.flatMap(
    facts.unfollowed,
    Effect.forEach((id) => booking.takeIn(id, []), { discard: true })
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
