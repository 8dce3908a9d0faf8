/**
 * What a processor tells of one payment, in every order, each event up to three times, some under a new name, one after the other or all
 * at once: the books end the same. The events are signed and read as those of the processor.
 */
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, Logger, ManagedRuntime, Redacted } from "effect"
import fc from "fast-check"
import { Stripe } from "stripe"
import { afterAll, describe, expect, it } from "vitest"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { BillingAccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Facts from "../../../src/money/payments/Facts.ts"
import { dueOf, merged } from "../../../src/money/payments/Movement.ts"
import type { Movement } from "../../../src/money/payments/Movement.ts"
import { Purchases } from "../../../src/money/payments/Purchases.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import * as Sql from "../../../src/storage/sqlite/Sql.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { Payments } from "../../../src/upstream/payments/Payments.ts"
import { make } from "../../../src/upstream/payments/Stripe.ts"
import * as TestDatabase from "../../support/database.ts"

const secret = "whsec_story"
const processor = make({
  secret_key: Redacted.make("sk_story"),
  webhook_secret: Redacted.make(secret),
  base_url: "http://127.0.0.1:1",
  return_url: "http://127.0.0.1:1"
})

const runtime = ManagedRuntime.make(
  Purchases.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(Tenants.layer, Ledger.layer)),
    Layer.provideMerge(Belonging.layer),
    Layer.provide(PriceList.layerNone),
    Layer.provideMerge(Layer.succeed(Payments, processor)),
    Layer.provideMerge(TestDatabase.writer),
    Layer.provideMerge(TestDatabase.sql),
    // What is kept is logged, and most of it is kept here.
    Layer.provideMerge(Logger.remove(Logger.defaultLogger))
  )
)
afterAll(() => runtime.dispose())

const signer = new Stripe("sk_story")
const sign = (payload: string) => signer.webhooks.generateTestHeaderString({ payload, secret })

let made = 0

/** Delivers an event as often as its number says; from the second time on perhaps under another id. */
interface Delivery {
  readonly event: Told
  readonly as_new: boolean
}

/** An event, of the payment `pi` of the tenant `ten`. */
interface Told {
  readonly type: string
  readonly object: object
}

const completed = (payment_status: string): Told => ({
  type: "checkout.session.completed",
  object: {
    mode: "payment",
    payment_status,
    payment_intent: "pi",
    amount_total: 1_000,
    currency: "usd",
    metadata: { tenant_id: "ten" }
  }
})
const succeeded: Told = {
  type: "payment_intent.succeeded",
  object: {
    id: "pi",
    amount_received: 1_000,
    currency: "usd",
    metadata: { tenant_id: "ten", kind: "checkout" }
  }
}
const total = (amount_refunded: number): Told => ({
  type: "charge.refunded",
  object: { id: "ch", payment_intent: "pi", currency: "usd", amount_refunded }
})
const refund = (type: string, id: string, amount: number, status = "succeeded"): Told => ({
  type,
  object: { id: `${id}_pi`, payment_intent: "pi", currency: "usd", amount, status }
})
const dispute = (what: string, status: string, amount = 1_000): Told => ({
  type: `charge.dispute.${what}`,
  object: { id: "dp_pi", payment_intent: { id: "pi", object: "payment_intent" }, currency: "usd", amount, status }
})

interface Case {
  readonly name: string
  readonly told: ReadonlyArray<Told>
  /** In whole USD, of a payment of 10 on top of 6 that were granted. */
  readonly balance: number
}

const cases: ReadonlyArray<Case> = [
  { name: "a payment", told: [completed("paid"), succeeded], balance: 16 },
  {
    name: "a payment by a method that takes days",
    told: [completed("unpaid"), { ...completed("paid"), type: "checkout.session.async_payment_succeeded" }, succeeded],
    balance: 16
  },
  {
    name: "a payment by such a method that fails",
    told: [completed("unpaid"), { ...completed("unpaid"), type: "checkout.session.async_payment_failed" }],
    balance: 6
  },
  {
    name: "two partial refunds, told as totals",
    told: [completed("paid"), succeeded, total(300), total(700)],
    balance: 9
  },
  {
    name: "two partial refunds, told both ways",
    told: [
      succeeded,
      refund("refund.created", "re_1", 300),
      total(300),
      refund("refund.created", "re_2", 400),
      total(700)
    ],
    balance: 9
  },
  {
    name: "a refund that fails",
    told: [completed("paid"), succeeded, total(1_000), refund("refund.failed", "re_1", 1_000, "failed")],
    balance: 16
  },
  {
    name: "a refund that fails after another one, and is tried again",
    told: [
      succeeded,
      refund("refund.created", "re_1", 400),
      refund("charge.refund.updated", "re_1", 400, "failed"),
      refund("refund.created", "re_2", 500),
      total(500)
    ],
    balance: 11
  },
  {
    name: "an inquiry that comes to nothing",
    told: [succeeded, dispute("created", "warning_needs_response"), dispute("closed", "warning_closed")],
    balance: 16
  },
  {
    name: "a dispute that is lost",
    told: [
      succeeded,
      dispute("created", "needs_response"),
      dispute("funds_withdrawn", "needs_response"),
      dispute("closed", "lost")
    ],
    balance: 6
  },
  {
    name: "a dispute that is won",
    told: [
      completed("paid"),
      succeeded,
      dispute("funds_withdrawn", "needs_response"),
      dispute("funds_reinstated", "won"),
      dispute("closed", "won")
    ],
    balance: 16
  },
  {
    name: "a partial refund, and a dispute over all of it",
    told: [succeeded, total(300), dispute("created", "needs_response"), dispute("funds_withdrawn", "needs_response")],
    balance: 6
  },
  {
    name: "a partial refund, and a dispute that is won",
    told: [succeeded, total(300), dispute("funds_withdrawn", "needs_response"), dispute("funds_reinstated", "won")],
    balance: 13
  }
]

const deliver = (pi: string, tenant: string, { as_new, event }: Delivery) =>
  Effect.suspend(() => {
    const body = JSON.stringify({
      id: as_new ? `evt_${++made}` : `evt_${event.type}`,
      type: event.type,
      data: { object: event.object }
    })
      .replaceAll(/"([a-z]+_[0-9]*_?)?pi"/g, (_, prefix: string | undefined) => `"${prefix ?? ""}${pi}"`)
      .replaceAll('"ten"', JSON.stringify(tenant))
    return Effect.flatMap(Purchases, ({ receive }) => receive({ text: body, signature: sign(body) }))
  })

/** A tenant with 6 granted. */
const tenantOf = (name: string) =>
  Effect.gen(function* () {
    const { submit } = yield* Writer
    const { home_tenant_id } = yield* Effect.flatMap(Tenants, ({ welcome }) =>
      welcome({ provider: "google", subject: name, email: `${name}@example.com`, email_verified: true, name })
    )
    const account = billingAccountOf(home_tenant_id)
    yield* submit({
      postings: [
        { _tag: "Credit", account, amount: 6n * usd, source: "admin", reference: "grant", description: "a grant" }
      ],
      statements: []
    })
    return home_tenant_id
  })

const standing = (tenant: TenantId) =>
  Effect.gen(function* () {
    const account: BillingAccountId = billingAccountOf(tenant)
    const found = (yield* Effect.flatMap(Ledger, (ledger) => ledger.accounts([account]))).get(account)!
    const { owed } = yield* Purchases
    const owes = (yield* owed).filter(({ tenant_id }) => tenant_id === tenant)
    return { giftable: found.giftable, granted: found.granted, owes }
  })

const plays = (told: ReadonlyArray<Told>) =>
  fc.record({
    deliveries: fc
      .tuple(
        ...told.map((event) =>
          fc
            .array(fc.boolean(), { minLength: 1, maxLength: 3 })
            .map((names) => names.map((as_new): Delivery => ({ event, as_new })))
        )
      )
      .chain((all) => {
        const flat = all.flat()
        return fc.shuffledSubarray(flat, { minLength: flat.length, maxLength: flat.length })
      }),
    at_once: fc.boolean()
  })

describe("what is told of a payment", () => {
  it.each(cases)("in whichever order and however often: $name", ({ balance, told }) =>
    fc.assert(
      fc.asyncProperty(plays(told), async ({ at_once, deliveries }) => {
        const name = `payer${++made}`
        const after = await runtime.runPromise(
          Effect.gen(function* () {
            const tenant = yield* tenantOf(name)
            yield* Effect.all(
              deliveries.map((one) => deliver(`pi_${name}`, tenant, one)),
              { concurrency: at_once ? "unbounded" : 1, discard: true }
            )
            return yield* standing(tenant)
          })
        )
        expect(after).toEqual({ giftable: BigInt(balance - 6) * usd, granted: 6n * usd, owes: [] })
      }),
      { numRuns: 60 * Number(process.env.FC_RUNS ?? 1) }
    )
  )

  it("leaves books that hold", async () => {
    expect(await runtime.runPromise(verify)).toEqual([])
  })

  it("is kept where the payment is not known, and listed until it comes", async () => {
    const [tenant, waiting, after] = await runtime.runPromise(
      Effect.gen(function* () {
        const { waiting } = yield* Purchases
        const tenant = yield* tenantOf("early")
        const tell = (event: Told) => deliver("pi_early", tenant, { event, as_new: true })
        yield* tell(total(400))
        yield* tell(dispute("funds_withdrawn", "needs_response", 100))
        const before = yield* waiting
        yield* tell(succeeded)
        return [tenant, before, { ...(yield* standing(tenant)), waiting: yield* waiting }] as const
      })
    )
    expect(tenant).toBeDefined()
    expect(waiting).toMatchObject([{ payment_id: "pi_early", movements: 2 }])
    expect(after).toEqual({ giftable: 5n * usd, granted: 6n * usd, owes: [], waiting: [] })
  })

  it("what was spent is owed, and no longer once it is given back", async () => {
    const owes = await runtime.runPromise(
      Effect.gen(function* () {
        const tenant = yield* tenantOf("spender")
        const { submit } = yield* Writer
        const tell = (event: Told) => deliver("pi_spender", tenant, { event, as_new: true })
        const look = Effect.map(standing(tenant), ({ giftable, granted, owes }) => [
          giftable + granted,
          owes.map(({ owed }) => owed)
        ])
        yield* tell(succeeded)
        yield* submit({
          postings: [
            {
              _tag: "Escrow",
              account: billingAccountOf(tenant),
              amount: 9n * usd,
              transfer: "trf_spender",
              description: "sent"
            }
          ],
          statements: []
        })
        const seen = [yield* look]
        for (const event of [
          dispute("funds_withdrawn", "needs_response"),
          total(500),
          dispute("funds_reinstated", "won")
        ]) {
          yield* tell(event)
          seen.push(yield* look)
        }
        return seen
      })
    )
    expect(owes).toEqual([
      [7n * usd, []],
      [0n, [3n * usd]],
      [0n, [3n * usd]],
      [2n * usd, []]
    ])
  })
})

describe("what was read of a payment while an event of it was booked", () => {
  it("is not built upon: what is due was read before, its refunds behind", async () => {
    const name = `payer${++made}`
    const outcomes = await runtime.runPromise(
      Effect.gen(function* () {
        const tenant = yield* tenantOf(name)
        const tell = (event: Told) => deliver(`pi_${name}`, tenant, { event, as_new: false })
        const facts = Facts.make(yield* SqlClient)
        const { submit } = yield* Writer
        const outcomeOf = (known: Facts.Known) =>
          submit({ postings: [], statements: [facts.unchanged(`pi_${name}`, known)] }).pipe(
            Effect.as("unchanged"),
            Effect.catchTag("Conflict", () => Effect.succeed("changed"))
          )
        yield* tell(completed("paid"))
        yield* tell(refund("refund.created", "re_1", 300))
        const before = yield* facts.find(`pi_${name}`)
        yield* tell(refund("refund.created", "re_2", 400))
        const after = yield* facts.find(`pi_${name}`)
        return [yield* outcomeOf(after), yield* outcomeOf({ payment: before.payment, movements: after.movements })]
      })
    )
    expect(outcomes).toEqual(["unchanged", "changed"])
  })
})

describe("a database of an earlier version", () => {
  it("keeps what was taken back, and goes on from there", async () => {
    const rows = await Effect.runPromise(
      Effect.gen(function* () {
        const sql = yield* SqlClient
        for (const name of ["0001_ledger", "0010_payments"] as const) yield* Sql.migrations[name]
        yield* sql`INSERT INTO tollgate_payments_payments VALUES ('pi_1', 'ten_a', 'checkout', 100, 30, 5), ('pi_2', 'ten_a', 'checkout', 100, 0, 6)`
        yield* sql`INSERT INTO tollgate_payments_disputes VALUES ('dp_1', 'pi_1', 'ten_a', 50, 0, 7), ('dp_2', 'pi_2', 'ten_a', 100, 1, 8)`
        yield* Sql.migrations["0019_movements"]
        return {
          payments: yield* sql`SELECT id, due FROM tollgate_payments_payments ORDER BY id`,
          movements:
            yield* sql`SELECT payment_id, id, kind, amount, returned FROM tollgate_payments_movements ORDER BY payment_id, id`
        }
      }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" })))
    )
    expect(rows).toEqual({
      payments: [
        { id: "pi_1", due: 80 },
        { id: "pi_2", due: 0 }
      ],
      movements: [
        { payment_id: "pi_1", id: "dp_1", kind: "dispute", amount: 50, returned: 0 },
        { payment_id: "pi_1", id: "pi_1", kind: "total", amount: 30, returned: 0 },
        { payment_id: "pi_2", id: "dp_2", kind: "dispute", amount: 100, returned: 1 }
      ]
    })
  })
})

describe("the sum of what is known", () => {
  const movement: fc.Arbitrary<Movement> = fc.record({
    id: fc.constantFrom("a", "b", "c"),
    kind: fc.constantFrom("refund" as const, "total" as const, "dispute" as const),
    amount: fc.bigInt(0n, 20n),
    returned: fc.boolean()
  })
  /** One id is one thing. */
  const consistent = (all: ReadonlyArray<Movement>) =>
    all.map((one) => ({ ...one, kind: all.find(({ id }) => id === one.id)!.kind }))

  it("does not depend on the order, nor on how often a fact is told", () => {
    fc.assert(
      fc.property(
        fc.array(movement, { maxLength: 6 }).chain((raw) => {
          const all = consistent(raw)
          return fc.tuple(fc.constant(all), fc.shuffledSubarray([...all, ...all], { minLength: 2 * all.length }))
        }),
        fc.bigInt(1n, 40n),
        ([all, again], payment) => {
          const [one, other] = [merged([], all), merged([], again)]
          expect(dueOf(payment, other)).toBe(dueOf(payment, one))
          expect(merged(other, all).every((fact, i) => fact === other[i])).toBe(true)
          expect(dueOf(payment, one)).toBeLessThanOrEqual(payment)
        }
      )
    )
  })
})
