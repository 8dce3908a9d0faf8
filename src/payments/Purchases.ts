/**
 * Purchases of credit: asked for at the processor, credited by its signed word. Its events may come in any order, late, and more than
 * once: what they tell is kept as facts (`payments/Movement`), and the books are made to follow from all facts together. A payment is
 * credited once, and what of it is due back is taken once; both are rows in the transaction that moves the credit.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { Caller } from "../kernel/Caller.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import * as Ids from "../kernel/Ids.ts"
import type { TenantId } from "../kernel/Ids.ts"
import { day } from "../kernel/Moment.ts"
import { fromRow, usd } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Posting, Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import type { InsufficientRole } from "../tenants/Problems.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Payments } from "../upstream/Payments.ts"
import type { Moved, Paid, PaymentMethod, ProcessorSilent } from "../upstream/Payments.ts"
import { dueOf, merged } from "./Movement.ts"
import type { Movement } from "./Movement.ts"
import type { Owed, Waiting } from "./Payment.ts"
import { PaymentsUnconfigured, ProcessorUnavailable, WebhookSignatureInvalid } from "./Problems.ts"

type ProcessorProblem = PaymentsUnconfigured | ProcessorUnavailable

export interface PurchasesContract {
  /** A page of the processor's on which so many credits are paid. */
  readonly checkout: (
    caller: Caller,
    amount_credits: number
  ) => Effect.Effect<string, InsufficientRole | ProcessorProblem>
  /** A page on which a payment method is stored. */
  readonly setup: (caller: Caller) => Effect.Effect<string, InsufficientRole | ProcessorProblem>
  readonly methods: (tenant: TenantId) => Effect.Effect<ReadonlyArray<PaymentMethod>, ProcessorProblem>
  /** The processor's name for the tenant. */
  readonly customerOf: (tenant: TenantId) => Effect.Effect<string, ProcessorProblem>
  /** Takes in what a signed event says. What it says of a payment that is not known yet is kept until the payment comes. */
  readonly receive: (
    body: string,
    signature: string
  ) => Effect.Effect<void, WebhookSignatureInvalid | InvalidRequest | PaymentsUnconfigured>
  /** Credits a payment unless it was; `beside` stands or falls with the credit, or is done without it. */
  readonly book: (paid: Paid, beside: ReadonlyArray<Statement>) => Effect.Effect<void>
  /** A payment that reached the operator another way; `false` if the reference was booked before, or there is no such tenant. */
  readonly bookOffline: (
    tenant: string,
    amount: Nano,
    reference: string
  ) => Effect.Effect<boolean, BooksUnavailable | "too large">
  /** Who owes what to the operator: refunds and disputes that the balance could not give back. */
  readonly owed: Effect.Effect<ReadonlyArray<Owed>>
  /** What was told of payments that never came. */
  readonly waiting: Effect.Effect<ReadonlyArray<Waiting>>
}

export class Purchases extends Context.Tag("tollgate/payments/Purchases")<Purchases, PurchasesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Purchases, make))
}

const cent = usd / 100n

/** How long, and of how many refunds and disputes, is kept what was told of payments that are not known. */
const waitMax = 90 * day
const waitingMax = 10_000

/** What is known of a payment. `payment` is absent until it was credited. */
interface Standing {
  readonly payment: { readonly tenant_id: string; readonly amount: Nano; readonly due: Nano } | undefined
  readonly movements: ReadonlyArray<Movement>
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

  const customerOf: PurchasesContract["customerOf"] = Effect.fnUntraced(function* (tenant) {
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

  const checkout: PurchasesContract["checkout"] = Effect.fn("Purchases.checkout")(function* (caller, amount_credits) {
    yield* tenants.mayManage(caller)
    const port = yield* configured
    const { tenant_id } = caller
    const customer = yield* customerOf(tenant_id)
    return yield* Effect.catchAll(port.checkout({ customer, tenant_id, cents: amount_credits * 100 }), unavailable)
  })

  const setup: PurchasesContract["setup"] = Effect.fn("Purchases.setup")(function* (caller) {
    yield* tenants.mayManage(caller)
    const port = yield* configured
    const customer = yield* customerOf(caller.tenant_id)
    return yield* Effect.catchAll(port.setup(customer, caller.tenant_id), unavailable)
  })

  const methods: PurchasesContract["methods"] = Effect.fn("Purchases.methods")(function* (tenant) {
    const port = yield* configured
    return yield* Effect.catchAll(port.methods(yield* customerOf(tenant)), unavailable)
  })

  // ---- what the processor says --------------------------------------------------------------------------------------------

  const movementsOf = sql.literal(`SELECT id, kind, CAST(amount AS TEXT) AS amount, returned
    FROM tollgate_payments_movements`)

  const standingOf = Effect.fnUntraced(function* (id: string) {
    const [payment] = yield* sql<{ tenant_id: string; amount: string; due: string }>`
      SELECT tenant_id, CAST(amount AS TEXT) AS amount, CAST(due AS TEXT) AS due
      FROM tollgate_payments_payments WHERE id = ${id}`
    const rows = yield* sql<{ id: string; kind: Movement["kind"]; amount: string; returned: number }>`
      ${movementsOf} WHERE payment_id = ${id} ORDER BY id`
    return {
      payment: payment && { ...payment, amount: fromRow(payment.amount), due: fromRow(payment.due) },
      movements: rows.map((row) => ({ ...row, amount: fromRow(row.amount), returned: row.returned === 1 }))
    } satisfies Standing
  }, Effect.orDie)

  /** Finds its row only if nothing more is known of the payment when the transaction runs. */
  const still = (id: string, { movements, payment }: Standing): Statement => {
    const known = movements.map(({ amount, id, returned }) => `${id} ${amount} ${returned ? 1 : 0}`).join("\n")
    return statement(
      sql`SELECT 1 WHERE (SELECT count(*) FROM tollgate_payments_payments WHERE id = ${id}) = ${payment === undefined ? 0 : 1}
        AND COALESCE((SELECT group_concat(id || ' ' || amount || ' ' || returned, char(10) ORDER BY id)
          FROM tollgate_payments_movements WHERE payment_id = ${id}), '') = ${known}`,
      1
    )
  }

  const book: PurchasesContract["book"] = Effect.fn("Purchases.book")(function* (paid, beside) {
    const { cents, kind, payment_id, tenant_id } = paid
    const amount = BigInt(cents) * cent
    const now = yield* Clock.currentTimeMillis
    const standing = yield* standingOf(payment_id)
    if (standing.payment !== undefined || amount <= 0n) {
      return beside.length === 0 ? undefined : yield* Effect.orDie(submit([], beside))
    }
    const due = dueOf(amount, standing.movements)
    const credit: Posting = {
      _tag: "Credit",
      account: Ids.billingAccountOf(tenant_id),
      amount,
      source: "purchase",
      reference: payment_id,
      description: kind === "checkout" ? "credits purchased" : "credits purchased by auto-reload"
    }
    const made = submit(
      // What was told of it before it came.
      due > 0n ? [credit, takeBack(tenant_id, due, payment_id, "purchase refunded or disputed")] : [credit],
      [
        still(payment_id, standing),
        statement(sql`INSERT INTO tollgate_payments_payments (id, tenant_id, kind, amount, due, created_at)
          VALUES (${payment_id}, ${tenant_id}, ${kind}, ${amount}, ${due}, ${now})`),
        ...beside
      ]
    )
    yield* made.pipe(
      Effect.asVoid,
      Effect.catchTags({
        // Something was faster: another event of the same payment.
        Conflict: () => book(paid, beside),
        AccountMissing: () =>
          Effect.annotateLogs(Effect.logError("a payment is for a tenant that does not exist"), {
            payment_id,
            tenant_id
          })
      }),
      Effect.orDie
    )
  })

  const takeBack = (tenant: string, amount: Nano, reference: string, description: string): Posting => ({
    _tag: "TakeBack",
    account: Ids.billingAccountOf(tenant),
    amount,
    reference,
    description
  })

  /** What was taken back for a payment and not given back since. */
  const takenOf = (payment_id: string) =>
    sql<{ taken: string }>`
      SELECT CAST(${sql.literal(taken("p.id"))} AS TEXT) AS taken FROM tollgate_payments_payments p
      WHERE p.id = ${payment_id}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => fromRow(row?.taken ?? "0"))
    )

  /** Takes in what was told of a payment's refunds and disputes, and makes the books follow. */
  const note = Effect.fn("Purchases.note")(function* (
    payment_id: string,
    told: ReadonlyArray<Movement>
  ): Effect.fn.Return<void> {
    const standing = yield* standingOf(payment_id)
    const { payment } = standing
    const movements = merged(standing.movements, told)
    const news = movements.filter((one) => !standing.movements.includes(one))
    const [first] = news
    if (first === undefined) return
    const now = yield* Clock.currentTimeMillis
    const kept: Array<Statement> = [
      still(payment_id, standing),
      ...news.map(({ amount, id, kind, returned }) =>
        statement(sql`INSERT INTO tollgate_payments_movements (payment_id, id, kind, amount, returned, heard_at)
          VALUES (${payment_id}, ${id}, ${kind}, ${amount}, ${returned ? 1 : 0}, ${now})
          ON CONFLICT (payment_id, id) DO UPDATE SET amount = excluded.amount, returned = excluded.returned`)
      )
    ]
    const follows: Array<Posting> = []
    if (payment === undefined) kept.push(...forgetting(now))
    else {
      const due = dueOf(payment.amount, movements)
      kept.push(statement(sql`UPDATE tollgate_payments_payments SET due = ${due} WHERE id = ${payment_id}`))
      // What could not be taken is no longer owed once less is due; what was taken comes back.
      const back = due < payment.due ? (yield* takenOf(payment_id)) - due : 0n
      const refund = first.kind !== "dispute"
      if (due > payment.due) {
        const words = refund ? "purchase refunded" : "purchase disputed"
        follows.push(takeBack(payment.tenant_id, due - payment.due, first.id, words))
      } else if (back > 0n) {
        follows.push({
          _tag: "Credit",
          account: Ids.billingAccountOf(payment.tenant_id),
          amount: back,
          source: "purchase",
          reference: first.id,
          description: refund ? "refund failed" : "dispute won"
        })
      }
    }
    const done = yield* submit(follows, kept).pipe(
      Effect.as(true),
      Effect.catchTag("Conflict", () => Effect.succeed(false)),
      Effect.orDie
    )
    // Something was faster: it is looked at anew.
    if (!done) return yield* note(payment_id, told)
    if (payment === undefined) {
      yield* Effect.annotateLogs(
        Effect.logWarning("a refund or dispute is of a payment that is not known: it is kept until the payment comes"),
        { payment_id, movement: first.id }
      )
    }
  })

  /** So that payments which are no business of ours do not fill the disk: those of longest ago go first. */
  const forgetting = (now: number): ReadonlyArray<Statement> => {
    const unknown = sql.literal("payment_id NOT IN (SELECT id FROM tollgate_payments_payments)")
    return [
      statement(sql`DELETE FROM tollgate_payments_movements WHERE ${unknown} AND heard_at < ${now - waitMax}`),
      statement(sql`DELETE FROM tollgate_payments_movements WHERE (payment_id, id) IN (
        SELECT payment_id, id FROM tollgate_payments_movements WHERE ${unknown} ORDER BY heard_at DESC LIMIT -1 OFFSET ${waitingMax})`)
    ]
  }

  const receive: PurchasesContract["receive"] = Effect.fn("Purchases.receive")(function* (body, signature) {
    const port = yield* configured
    const event = port.event(body, signature, yield* Clock.currentTimeMillis)
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
        return yield* note(event.payment_id, event.moved.map(movementOf))
      case "Other":
        return
    }
  })

  const bookOffline: PurchasesContract["bookOffline"] = Effect.fn("Purchases.bookOffline")(
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
            sql`INSERT INTO tollgate_payments_payments (id, tenant_id, kind, amount, due, created_at)
            VALUES (${id}, ${tenant}, 'offline', ${amount}, 0, ${now}) ON CONFLICT DO NOTHING RETURNING id`,
            1
          )
        ]
      ).pipe(
        Effect.as(true),
        Effect.catchTags({
          Conflict: () => Effect.succeed(false),
          AccountMissing: () => Effect.succeed(false),
          BalanceTooLarge: () => Effect.fail("too large" as const)
        }),
        Effect.catchAll((refusal) =>
          refusal === "too large" || refusal._tag === "BooksUnavailable" ? Effect.fail(refusal) : Effect.die(refusal)
        )
      )
    }
  )

  const owed = sql<{ tenant_id: string; payment_id: string; owed: string }>`
    SELECT * FROM (SELECT p.tenant_id, p.id AS payment_id, CAST(p.due - ${sql.literal(taken("p.id"))} AS TEXT) AS owed
      FROM tollgate_payments_payments p WHERE p.due > 0) WHERE CAST(owed AS INTEGER) > 0`.pipe(
    Effect.orDie,
    Effect.map((rows) => rows.map((row) => ({ ...row, owed: fromRow(row.owed) })))
  )

  const waiting = sql<{ payment_id: string; movements: number; since: number }>`
    SELECT payment_id, count(*) AS movements, min(heard_at) AS since FROM tollgate_payments_movements
    WHERE payment_id NOT IN (SELECT id FROM tollgate_payments_payments) GROUP BY payment_id ORDER BY since`.pipe(
    Effect.orDie
  )

  return { checkout, setup, methods, customerOf, receive, book, bookOffline, owed, waiting } satisfies PurchasesContract
})

const movementOf = ({ cents, id, kind, returned }: Moved): Movement => ({
  id,
  kind,
  amount: BigInt(cents) * cent,
  returned
})

/** What was taken back for a payment and not given back since, in SQL: its id is the reference of a debit, or that of a movement. */
const taken = (
  payment: string
): string => `(SELECT COALESCE(SUM(CASE e.type WHEN 'debit' THEN e.amount ELSE -e.amount END), 0)
  FROM tollgate_ledger_entries e WHERE e.source = 'purchase' AND (e.type = 'debit' OR e.reference_id <> ${payment})
    AND e.reference_id IN (SELECT ${payment} UNION SELECT id FROM tollgate_payments_movements WHERE payment_id = ${payment}))`
