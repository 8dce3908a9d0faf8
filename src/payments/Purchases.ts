/**
 * Purchases of credit at a payment processor. Its signed events may come in any order, late, and more than once: they are kept as
 * facts, and the books are made to follow from all facts of a payment together. A payment is credited once, and what of it is due back
 * is taken once: the rows that say so stand in the transaction that moves the credit.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { Actor } from "../kernel/Caller.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import * as Ids from "../kernel/Ids.ts"
import type { TenantId } from "../kernel/Ids.ts"
import { usd } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { BalanceTooLarge, BooksUnavailable } from "../ledger/Problems.ts"
import * as Statements from "../ledger/Statements.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Posting, Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import type { InsufficientRole } from "../tenants/Problems.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Payments } from "../upstream/Payments.ts"
import type { Moved, Paid, PaymentMethod, ProcessorSilent } from "../upstream/Payments.ts"
import * as Facts from "./Facts.ts"
import { dueOf, merged } from "./Movement.ts"
import type { Movement } from "./Movement.ts"
import { creditRule, isCreditAmount } from "./Payment.ts"
import type { Owed, Waiting } from "./Payment.ts"
import { PaymentsUnconfigured, ProcessorUnavailable, WebhookSignatureInvalid } from "./Problems.ts"

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
   * or there is no such tenant.
   */
  readonly bookOffline: (payment: {
    readonly tenant_id: string
    readonly amount: Nano
    readonly reference: string
  }) => Effect.Effect<boolean, BooksUnavailable | BalanceTooLarge>
  /** Payments of which the balance could not give back what was refunded or disputed. */
  readonly owed: Effect.Effect<ReadonlyArray<Owed>>
  /** Payments that are not known, of which refunds or disputes are. */
  readonly waiting: Effect.Effect<ReadonlyArray<Waiting>>
}

export class Purchases extends Context.Tag("tollgate/payments/Purchases")<Purchases, PurchasesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Purchases, make))
}

const cent = usd / 100n

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const ledger = yield* Ledger
  const tenants = yield* Tenants
  const processor = yield* Payments
  const facts = Facts.make(sql, ledger)

  // ---- at the processor ---------------------------------------------------------------------------------------------------

  const unavailable = (silent: ProcessorSilent) =>
    Effect.andThen(
      Effect.annotateLogs(Effect.logWarning("the payment processor does not answer"), "reason", silent.reason),
      new ProcessorUnavailable()
    )

  const configured = processor === undefined ? new PaymentsUnconfigured() : Effect.succeed(processor)

  const customerOf: PurchasesContract["customerOf"] = Effect.fnUntraced(function* (tenant) {
    const port = yield* configured
    const stored = Effect.map(
      Effect.orDie(
        sql<{ customer_id: string }>`SELECT customer_id FROM tollgate_payments_customers WHERE tenant_id = ${tenant}`
      ),
      ([row]) => row?.customer_id
    )
    const known = yield* stored
    if (known !== undefined) return known
    const name = (yield* tenants.nameOf(tenant)) ?? tenant
    const made = yield* Effect.catchAll(port.customer(tenant, name), unavailable)
    const insert =
      statement(sql`INSERT INTO tollgate_payments_customers (tenant_id, customer_id) VALUES (${tenant}, ${made})
      ON CONFLICT DO NOTHING`)
    yield* Statements.write(writer, insert)
    return (yield* stored) ?? made
  })

  const checkout: PurchasesContract["checkout"] = Effect.fn("Purchases.checkout")(function* ({ amount, caller }) {
    yield* tenants.mayManage(caller)
    if (!isCreditAmount(amount)) return yield* InvalidRequest.of("amount_credits", creditRule)
    const port = yield* configured
    const { tenant_id } = caller
    const customer = yield* customerOf(tenant_id)
    return yield* Effect.catchAll(port.checkout({ customer, tenant_id, cents: Number(amount / cent) }), unavailable)
  })

  const setup: PurchasesContract["setup"] = Effect.fn("Purchases.setup")(function* ({ caller }) {
    yield* tenants.mayManage(caller)
    const port = yield* configured
    const customer = yield* customerOf(caller.tenant_id)
    return yield* Effect.catchAll(port.setup(customer, caller.tenant_id), unavailable)
  })

  const methods: PurchasesContract["methods"] = Effect.fn("Purchases.methods")(function* (tenant) {
    const port = yield* configured
    return yield* Effect.catchAll(port.methods(yield* customerOf(tenant)), unavailable)
  })

  // ---- in the books -------------------------------------------------------------------------------------------------------

  const book: PurchasesContract["book"] = Effect.fn("Purchases.book")(function* (paid, beside) {
    const { cents, kind, payment_id, tenant_id } = paid
    const amount = BigInt(cents) * cent
    const now = yield* Clock.currentTimeMillis
    const known = yield* facts.find(payment_id)
    if (known.payment !== undefined || amount <= 0n) {
      if (beside.length === 0) return
      return yield* Statements.write(writer, ...beside)
    }
    const due = dueOf(amount, known.movements)
    const credit = {
      _tag: "Credit",
      account: Ids.billingAccountOf(tenant_id),
      amount,
      source: "purchase",
      reference: payment_id,
      description: kind === "checkout" ? "credits purchased" : "credits purchased by auto-reload"
    } as const
    const made = writer.submit({
      // Refunds and disputes that came before the payment.
      postings: due > 0n ? [credit, takeBack(tenant_id, due, payment_id, "purchase refunded or disputed")] : [credit],
      statements: [
        facts.unchanged(payment_id, known),
        facts.addPayment({ id: payment_id, tenant_id, kind, amount, due, created_at: now }),
        ...beside
      ]
    })
    yield* made.pipe(
      Effect.asVoid,
      Effect.catchTags({
        // Another event of the same payment was faster.
        Conflict: () => book(paid, beside),
        AccountMissing: () =>
          Effect.annotateLogs(Effect.logError("a payment is for a tenant that does not exist"), {
            payment_id,
            tenant_id
          }),
        BalanceTooLarge: Effect.die
      })
    )
  })

  /** Takes in refunds and disputes of a payment, and makes the books follow. */
  const takeIn = Effect.fn("Purchases.takeIn")(function* (
    payment_id: string,
    received: ReadonlyArray<Movement>
  ): Effect.fn.Return<void, BooksUnavailable> {
    const known = yield* facts.find(payment_id)
    const { payment } = known
    const movements = merged(known.movements, received)
    const news = movements.filter((one) => !known.movements.includes(one))
    const [first] = news
    if (first === undefined) return
    const now = yield* Clock.currentTimeMillis
    const due = payment === undefined ? 0n : dueOf(payment.amount, movements)
    const postings = payment === undefined ? [] : yield* followed(payment_id, payment, due, first)
    const statements = [
      facts.unchanged(payment_id, known),
      ...news.map((movement) => facts.putMovement(payment_id, movement, now)),
      ...(payment === undefined ? facts.forget(now) : [facts.setDue(payment_id, due)])
    ]
    const done = yield* writer.submit({ postings, statements }).pipe(
      Effect.as(true),
      Effect.catchTags({
        Conflict: () => Effect.succeed(false),
        AccountMissing: Effect.die,
        BalanceTooLarge: Effect.die
      })
    )
    // Another event of the same payment was faster.
    if (!done) return yield* takeIn(payment_id, received)
    if (payment === undefined) {
      yield* Effect.annotateLogs(
        Effect.logWarning("a refund or dispute is of a payment that is not known: it is kept until the payment comes"),
        { payment_id, movement: first.id }
      )
    }
  })

  /** The postings that follow where `due` of a payment is to be taken back from now on. */
  const followed = Effect.fnUntraced(function* (
    payment_id: string,
    payment: NonNullable<Facts.Known["payment"]>,
    due: Nano,
    { id, kind }: Movement
  ): Effect.fn.Return<ReadonlyArray<Extract<Posting, { readonly _tag: "Credit" | "TakeBack" }>>> {
    const isRefund = kind !== "dispute"
    if (due > payment.due) {
      return [takeBack(payment.tenant_id, due - payment.due, id, isRefund ? "purchase refunded" : "purchase disputed")]
    }
    if (due === payment.due) return []
    // What could not be taken is no longer owed once less is due; what was taken comes back.
    const back = (yield* facts.takenBack([payment_id])).get(payment_id)! - due
    if (back <= 0n) return []
    return [
      {
        _tag: "Credit",
        account: Ids.billingAccountOf(payment.tenant_id),
        amount: back,
        source: "purchase",
        reference: id,
        description: isRefund ? "refund failed" : "dispute won"
      }
    ]
  })

  const receive: PurchasesContract["receive"] = Effect.fn("Purchases.receive")(function* ({ signature, text }) {
    const port = yield* configured
    const event = port.event(text, signature, yield* Clock.currentTimeMillis)
    switch (event?._tag) {
      case undefined:
        return yield* new WebhookSignatureInvalid()
      case "Unreadable": {
        const { field, rule } = event
        const what = field === "" ? "the body of the webhook" : field
        return yield* new InvalidRequest({ message: `${what}: ${rule}`, field, rule })
      }
      case "Paid":
        return yield* book(event.paid, [])
      case "Moved":
        return yield* takeIn(event.payment_id, event.moved.map(movementOf))
      case "Other":
        return
    }
  })

  const bookOffline: PurchasesContract["bookOffline"] = Effect.fn("Purchases.bookOffline")(function* (payment) {
    const { amount, reference, tenant_id } = payment
    const created_at = yield* Clock.currentTimeMillis
    const id = `offline_${reference}`
    const credit = {
      account: Ids.billingAccountOf(tenant_id),
      amount,
      source: "purchase",
      reference: id,
      description: `credits purchased (${reference})`
    } as const
    return yield* ledger
      .credit(credit, [facts.addPayment({ id, tenant_id, kind: "offline", amount, due: 0n, created_at })])
      .pipe(
        Effect.as(true),
        Effect.catchTags({ Conflict: () => Effect.succeed(false), AccountMissing: () => Effect.succeed(false) })
      )
  })

  const { owed, waiting } = facts
  return { checkout, setup, methods, customerOf, receive, book, bookOffline, owed, waiting } satisfies PurchasesContract
})

const takeBack = (tenant: string, amount: Nano, reference: string, description: string) =>
  ({ _tag: "TakeBack", account: Ids.billingAccountOf(tenant), amount, reference, description }) as const

const movementOf = ({ cents, id, kind, returned }: Moved): Movement => ({
  id,
  kind,
  amount: BigInt(cents) * cent,
  returned
})
