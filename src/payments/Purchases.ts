/**
 * Purchases of credit: asked for at the processor, credited by its signed word. A payment is credited once however many events tell
 * of it, and an event does what it says once however often it comes; both are rows in the transaction that moves the credit.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { CallerFacts } from "../http/Caller.ts"
import * as Ids from "../kernel/Ids.ts"
import type { TenantId } from "../kernel/Ids.ts"
import { fromRow, usd } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Posting, Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { manages } from "../tenants/Organisation.ts"
import { InsufficientRole } from "../tenants/Problems.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Payments } from "../upstream/Payments.ts"
import type { Paid, PaymentMethod, ProcessorEvent, ProcessorSilent } from "../upstream/Payments.ts"
import type { Owed } from "./Payment.ts"
import { PaymentsUnconfigured, ProcessorUnavailable, WebhookSignatureInvalid } from "./Problems.ts"

type ProcessorProblem = PaymentsUnconfigured | ProcessorUnavailable

export interface Contract {
  /** A page of the processor's on which so many credits are paid. */
  readonly checkout: (
    caller: CallerFacts,
    amount_credits: number
  ) => Effect.Effect<string, InsufficientRole | ProcessorProblem>
  /** A page on which a payment method is stored. */
  readonly setup: (caller: CallerFacts) => Effect.Effect<string, InsufficientRole | ProcessorProblem>
  readonly methods: (tenant: TenantId) => Effect.Effect<ReadonlyArray<PaymentMethod>, ProcessorProblem>
  /** The processor's name for the tenant. */
  readonly customerOf: (tenant: TenantId) => Effect.Effect<string, ProcessorProblem>
  /** Does what a signed event says, once. */
  readonly receive: (
    body: string,
    signature: string
  ) => Effect.Effect<void, WebhookSignatureInvalid | PaymentsUnconfigured>
  /** Credits a payment unless it was; `beside` stands or falls with the credit, or is done without it. */
  readonly book: (paid: Paid, beside: ReadonlyArray<Statement>) => Effect.Effect<void>
  /** A payment that reached the operator another way; `false` if the reference was booked before, or there is no such tenant. */
  readonly bookOffline: (tenant: string, amount: Nano, reference: string) => Effect.Effect<boolean>
  /** Who owes what to the operator: refunds and disputes that the balance could not give back. */
  readonly owed: Effect.Effect<ReadonlyArray<Owed>>
}

export class Purchases extends Context.Tag("tollgate/payments/Purchases")<Purchases, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Purchases, make))
}

const cent = usd / 100n

interface PaymentRow {
  readonly tenant_id: string
  readonly amount: string
  readonly refunded: string
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const tenants = yield* Tenants
  const processor = yield* Payments

  const unavailable = (silent: ProcessorSilent) =>
    Effect.andThen(
      Effect.annotateLogs(Effect.logWarning("the payment processor does not answer"), "reason", silent.reason),
      new ProcessorUnavailable()
    )

  const configured = processor === undefined ? new PaymentsUnconfigured() : Effect.succeed(processor)

  const customerOf: Contract["customerOf"] = Effect.fnUntraced(function* (tenant) {
    const port = yield* configured
    const kept = Effect.map(
      Effect.orDie(
        sql<{ customer_id: string }>`SELECT customer_id FROM tollgate_payments_customers WHERE tenant_id = ${tenant}`
      ),
      ([row]) => row?.customer_id
    )
    const known = yield* kept
    if (known !== undefined) return known
    const name = (yield* tenants.nameOf(tenant)) ?? tenant
    const made = yield* Effect.catchAll(port.customer(tenant, name), unavailable)
    yield* submit(
      [],
      [
        statement(sql`INSERT INTO tollgate_payments_customers (tenant_id, customer_id) VALUES (${tenant}, ${made})
          ON CONFLICT DO NOTHING`)
      ]
    ).pipe(Effect.orDie)
    return (yield* kept) ?? made
  })

  const submit = (postings: ReadonlyArray<Posting>, statements: ReadonlyArray<Statement>) =>
    writer.submit({ postings, statements })

  const mayPay = Effect.fnUntraced(function* ({ account_id, tenant_id }: CallerFacts) {
    const role = yield* tenants.roleOf(account_id, tenant_id)
    if (role === undefined || !manages(role)) return yield* new InsufficientRole()
  })

  const checkout: Contract["checkout"] = Effect.fn("Purchases.checkout")(function* (caller, amount_credits) {
    yield* mayPay(caller)
    const port = yield* configured
    const { tenant_id } = caller
    const customer = yield* customerOf(tenant_id)
    return yield* Effect.catchAll(port.checkout({ customer, tenant_id, cents: amount_credits * 100 }), unavailable)
  })

  const setup: Contract["setup"] = Effect.fn("Purchases.setup")(function* (caller) {
    yield* mayPay(caller)
    const port = yield* configured
    const customer = yield* customerOf(caller.tenant_id)
    return yield* Effect.catchAll(port.setup(customer, caller.tenant_id), unavailable)
  })

  const methods: Contract["methods"] = Effect.fn("Purchases.methods")(function* (tenant) {
    const port = yield* configured
    return yield* Effect.catchAll(port.methods(yield* customerOf(tenant)), unavailable)
  })

  // ---- what the processor says --------------------------------------------------------------------------------------------

  const paymentOf = (id: string) =>
    Effect.map(
      Effect.orDie(
        sql<PaymentRow>`SELECT tenant_id, CAST(amount AS TEXT) AS amount, CAST(refunded AS TEXT) AS refunded
          FROM tollgate_payments_payments WHERE id = ${id}`
      ),
      ([row]) => row
    )

  const book: Contract["book"] = Effect.fn("Purchases.book")(function* (paid, beside) {
    const { cents, kind, payment_id, tenant_id } = paid
    const amount = BigInt(cents) * cent
    const now = yield* Clock.currentTimeMillis
    if ((yield* paymentOf(payment_id)) !== undefined || amount <= 0n) {
      yield* Effect.catchTag(submit([], beside), "Conflict", () => Effect.void).pipe(Effect.orDie)
      return
    }
    const made = submit(
      [
        {
          _tag: "Credit",
          account: Ids.billingAccountOf(tenant_id),
          amount,
          source: "purchase",
          reference: payment_id,
          description: kind === "checkout" ? "credits purchased" : "credits purchased by auto-reload"
        }
      ],
      [
        statement(
          sql`INSERT INTO tollgate_payments_payments (id, tenant_id, kind, amount, refunded, created_at)
            VALUES (${payment_id}, ${tenant_id}, ${kind}, ${amount}, 0, ${now}) ON CONFLICT DO NOTHING RETURNING id`,
          1
        ),
        ...beside
      ]
    )
    yield* made.pipe(
      Effect.asVoid,
      Effect.catchTags({
        // Another event of the same payment was faster, or this event has come before.
        Conflict: () =>
          Effect.flatMap(paymentOf(payment_id), (row) => (row === undefined ? Effect.void : book(paid, beside))),
        AccountMissing: () =>
          Effect.annotateLogs(Effect.logError("a payment is for a tenant that does not exist"), {
            payment_id,
            tenant_id
          })
      }),
      Effect.orDie
    )
  })

  const seen = (event: ProcessorEvent, now: number): Statement =>
    statement(
      sql`INSERT INTO tollgate_payments_events (id, type, received_at) VALUES (${event.id}, ${event.type}, ${now})
        ON CONFLICT DO NOTHING RETURNING id`,
      1
    )

  /** Refunds are told as totals: only what is new of one is taken back. */
  const refund = Effect.fnUntraced(function* (event: Extract<ProcessorEvent, { _tag: "Refunded" }>, now: number) {
    const payment = yield* paymentOf(event.payment_id)
    if (payment === undefined) return yield* unknownPayment(event)
    const total = BigInt(event.cents) * cent
    const before = fromRow(payment.refunded)
    const added = total - before
    yield* once(
      added <= 0n ? [] : [takeBack(payment.tenant_id, added, event.payment_id, "purchase refunded")],
      [
        seen(event, now),
        statement(
          sql`UPDATE tollgate_payments_payments SET refunded = ${added > 0n ? total : before}
            WHERE id = ${event.payment_id} AND refunded = ${before} RETURNING id`,
          1
        )
      ],
      event
    )
  })

  const dispute = Effect.fnUntraced(function* (
    event: Extract<ProcessorEvent, { _tag: "Disputed" | "DisputeWon" }>,
    now: number
  ) {
    const payment = yield* paymentOf(event.payment_id)
    if (payment === undefined) return yield* unknownPayment(event)
    const { dispute_id, payment_id } = event
    const amount = BigInt(event.cents) * cent
    if (event._tag === "Disputed") {
      return yield* once(
        [takeBack(payment.tenant_id, amount, dispute_id, "purchase disputed")],
        [
          seen(event, now),
          statement(
            sql`INSERT INTO tollgate_payments_disputes (id, payment_id, tenant_id, amount, won, created_at)
              VALUES (${dispute_id}, ${payment_id}, ${payment.tenant_id}, ${amount}, 0, ${now})
              ON CONFLICT DO NOTHING RETURNING id`,
            1
          )
        ],
        event
      )
    }
    // What was taken comes back; what could not be taken is no longer owed.
    const [taken] = yield* Effect.orDie(
      sql<{ amount: string }>`SELECT CAST(amount AS TEXT) AS amount FROM tollgate_ledger_entries
        WHERE billing_account_id = ${Ids.billingAccountOf(payment.tenant_id)} AND reference_id = ${dispute_id}
          AND type = 'debit'`
    )
    yield* once(
      taken === undefined
        ? []
        : [
            {
              _tag: "Credit",
              account: Ids.billingAccountOf(payment.tenant_id),
              amount: fromRow(taken.amount),
              source: "purchase",
              reference: dispute_id,
              description: "dispute won"
            }
          ],
      [
        seen(event, now),
        statement(
          sql`UPDATE tollgate_payments_disputes SET won = 1 WHERE id = ${dispute_id} AND won = 0 RETURNING id`,
          1
        )
      ],
      event
    )
  })

  const takeBack = (tenant: string, amount: Nano, reference: string, description: string): Posting => ({
    _tag: "TakeBack",
    account: Ids.billingAccountOf(tenant),
    amount,
    reference,
    description
  })

  /** Whole, unless the event was done before; then there is nothing to do. */
  const once = (postings: ReadonlyArray<Posting>, statements: ReadonlyArray<Statement>, event: ProcessorEvent) =>
    submit(postings, statements).pipe(
      Effect.asVoid,
      Effect.catchTag("Conflict", () => again(event)),
      Effect.orDie
    )

  const isSeen = (event: ProcessorEvent) =>
    Effect.map(
      Effect.orDie(sql`SELECT 1 FROM tollgate_payments_events WHERE id = ${event.id}`),
      (rows) => rows.length > 0
    )

  /** Lost to the same event, which is all right; or to another of the same payment, and then it is looked at anew. */
  const again = (event: ProcessorEvent): Effect.Effect<void> =>
    Effect.flatMap(isSeen(event), (done) => (done || event._tag === "DisputeWon" ? Effect.void : act(event)))

  const unknownPayment = (event: ProcessorEvent) =>
    Effect.annotateLogs(Effect.logError("an event is about a payment that was never booked"), {
      event: event.id,
      type: event.type
    })

  const act = (event: ProcessorEvent): Effect.Effect<void> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      switch (event._tag) {
        case "Paid":
          return yield* book(event.paid, [seen(event, now)])
        case "Refunded":
          return yield* refund(event, now)
        case "Disputed":
        case "DisputeWon":
          return yield* dispute(event, now)
        case "Other":
          return
      }
    })

  const receive: Contract["receive"] = Effect.fn("Purchases.receive")(function* (body, signature) {
    const port = yield* configured
    const now = yield* Clock.currentTimeMillis
    const event = port.event(body, signature, now)
    if (event === undefined) return yield* new WebhookSignatureInvalid()
    if (!(yield* isSeen(event))) yield* act(event)
  })

  const bookOffline: Contract["bookOffline"] = Effect.fn("Purchases.bookOffline")(
    function* (tenant, amount, reference) {
      const now = yield* Clock.currentTimeMillis
      const id = `offline_${reference}`
      return yield* submit(
        [
          {
            _tag: "Credit",
            account: Ids.billingAccountOf(tenant),
            amount,
            source: "purchase",
            reference: id,
            description: `credits purchased (${reference})`
          }
        ],
        [
          statement(
            sql`INSERT INTO tollgate_payments_payments (id, tenant_id, kind, amount, refunded, created_at)
            VALUES (${id}, ${tenant}, 'offline', ${amount}, 0, ${now}) ON CONFLICT DO NOTHING RETURNING id`,
            1
          )
        ]
      ).pipe(
        Effect.as(true),
        Effect.catchAll(() => Effect.succeed(false))
      )
    }
  )

  const owed = Effect.gen(function* () {
    const rows = yield* sql<{ tenant_id: string; payment_id: string; due: string; taken: string }>`
      WITH due AS (
        SELECT tenant_id, id AS payment_id, id AS reference, refunded AS amount FROM tollgate_payments_payments WHERE refunded > 0
        UNION ALL
        SELECT tenant_id, payment_id, id, amount FROM tollgate_payments_disputes WHERE won = 0
      )
      SELECT d.tenant_id, d.payment_id, CAST(d.amount AS TEXT) AS due, CAST(COALESCE((
          SELECT SUM(e.amount) FROM tollgate_ledger_entries e WHERE e.source = 'purchase' AND e.type = 'debit'
            AND e.reference_id = d.reference), 0) AS TEXT) AS taken
      FROM due d`
    return rows
      .map(({ due, payment_id, taken, tenant_id }) => ({ tenant_id, payment_id, owed: fromRow(due) - fromRow(taken) }))
      .filter(({ owed }) => owed > 0n)
  }).pipe(Effect.orDie)

  return { checkout, setup, methods, customerOf, receive, book, bookOffline, owed } satisfies Contract
})
