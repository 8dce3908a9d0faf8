/**
 * Refunds and disputes that find the credit elsewhere: in open calls and pending transfers, or spent. What is owed is taken from whatever
 * becomes free or arrives, so a story ends with what all its movements come to, in whichever order they were made.
 */
import { Effect, Either, Layer, Logger, ManagedRuntime, Redacted } from "effect"
import { SqlClient } from "@effect/sql/SqlClient"
import fc from "fast-check"
import { Stripe } from "stripe"
import { afterAll, describe, expect, it } from "vitest"
import * as Checks from "../../../src/app/Checks.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { balanceOf, owedOf } from "../../../src/books/ledger/rules/Transaction.ts"
import type { CallOutcome, CreditSource } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { Purchases } from "../../../src/money/payments/Purchases.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { Payments } from "../../../src/upstream/payments/Payments.ts"
import { make } from "../../../src/upstream/payments/Stripe.ts"
import * as TestDatabase from "../../support/database.ts"

const secret = "whsec_debts"
const processor = make({
  secret_key: Redacted.make("sk_debts"),
  webhook_secret: Redacted.make(secret),
  base_url: "http://127.0.0.1:1",
  return_url: "http://127.0.0.1:1"
})
const signer = new Stripe("sk_debts")

const runtime = ManagedRuntime.make(
  Purchases.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(Tenants.layer, Ledger.layer)),
    Layer.provideMerge(Belonging.layer),
    Layer.provide(PriceList.layerNone),
    Layer.provideMerge(Layer.succeed(Payments, processor)),
    Layer.provideMerge(TestDatabase.writer),
    Layer.provideMerge(TestDatabase.sql),
    Layer.provideMerge(Logger.remove(Logger.defaultLogger))
  )
)
afterAll(() => runtime.dispose())

let made = 0
const fresh = (what: string) => `${what}_${++made}`

type Rooms = Purchases | Tenants | Ledger | Writer | SqlClient
const run = <A, E>(effect: Effect.Effect<A, E, Rooms>) => runtime.runPromise(effect)

const person = Effect.gen(function* () {
  const name = fresh("debtor")
  const { home_tenant_id } = yield* Effect.flatMap(Tenants, ({ welcome }) =>
    welcome({ provider: "google", subject: name, email: `${name}@example.com`, email_verified: true, name })
  )
  return home_tenant_id
})

const pay = (tenant_id: TenantId, payment_id: string, cents: number) =>
  Effect.flatMap(Purchases, ({ book }) =>
    book({ payment_id, tenant_id, cents, kind: "checkout", attempt: undefined }, [])
  )

const tell = (type: string, object: object) => {
  const text = JSON.stringify({ id: fresh("evt"), type, data: { object } })
  const signature = signer.webhooks.generateTestHeaderString({ payload: text, secret })
  return Effect.flatMap(Purchases, ({ receive }) => receive({ text, signature }))
}
const refund = (payment_intent: string, id: string, amount: number, status = "succeeded") =>
  tell(status === "failed" ? "refund.failed" : "refund.created", {
    id,
    payment_intent,
    currency: "usd",
    amount,
    status
  })
const dispute = (payment_intent: string, what: "created" | "funds_withdrawn" | "funds_reinstated", amount: number) =>
  tell(`charge.dispute.${what}`, {
    id: `dp_${payment_intent}`,
    payment_intent,
    currency: "usd",
    amount,
    status: what === "funds_reinstated" ? "won" : "needs_response"
  })

const grant = (tenant: TenantId, cents: number, source: CreditSource = "admin") =>
  Effect.flatMap(Ledger, ({ credit }) =>
    credit({ account: billingAccountOf(tenant), amount: nano(cents), source, reference: fresh("grant") })
  )
const nano = (cents: number) => (BigInt(cents) * usd) / 100n

const reserve = (tenant: TenantId, call: string, cents: number) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.reserve({
      call,
      sources: [{ billing_account_id: billingAccountOf(tenant), tenant_id: tenant, kind: "own", why: "own" }],
      least: nano(cents),
      most: nano(cents),
      run: "run",
      facts: {
        account_id: "acc_debts",
        tenant_id: tenant,
        application_id: null,
        usage_type: "inference",
        endpoint: "/v1/chat/completions",
        model: "m",
        provider: "p"
      }
    })
  )
const outcomeOf = (cents: number): CallOutcome => ({
  cost: nano(cents),
  prompt_tokens: 1,
  completion_tokens: 1,
  units: 0,
  success: true,
  error_type: null,
  usage_source: "provider",
  latency_ms: 1
})
const settle = (call: string, cents: number) =>
  Effect.flatMap(Ledger, (ledger) => ledger.settle({ call, outcome: outcomeOf(cents) }))
const send = (from: TenantId, transfer: string, cents: number) =>
  Effect.flatMap(Ledger, ({ escrow }) => escrow({ account: billingAccountOf(from), amount: nano(cents), transfer }))
const end = (from: TenantId, to: TenantId, transfer: string, cents: number) =>
  Effect.flatMap(Ledger, ({ endEscrow }) =>
    endEscrow({
      source: from === to ? "transfer_return" : "transfer_release",
      from: billingAccountOf(from),
      to: billingAccountOf(to),
      amount: nano(cents),
      transfer
    })
  )

/** The stories put amounts into escrow without the room of transfers, whose check finds that. */
const verify = Effect.map(Checks.verify, (findings) =>
  findings.filter(({ check }) => check !== "an entry of a transfer has its transfer")
)

/** Balance and debt in cents, and what the operator sees. */
const standing = (tenant: TenantId) =>
  Effect.gen(function* () {
    const id = billingAccountOf(tenant)
    const account = (yield* Effect.flatMap(Ledger, (ledger) => ledger.accounts([id]))).get(id)!
    const listed = (yield* Effect.flatMap(Purchases, ({ owed }) => owed)).filter(
      ({ tenant_id }) => tenant_id === tenant
    )
    const sum = listed.reduce((all, { owed }) => all + owed, 0n)
    expect(sum).toBe(owedOf(account))
    return { balance: Number(balanceOf(account) / (usd / 100n)), owed: Number(sum / (usd / 100n)) }
  })

describe("credit that was elsewhere when its payment was refunded", () => {
  it("is taken when the open call that held it ends", async () => {
    const seen = await run(
      Effect.gen(function* () {
        const tenant = yield* person
        const pi = fresh("pi")
        const call = fresh("call")
        yield* pay(tenant, pi, 5_000)
        yield* reserve(tenant, call, 5_000)
        yield* refund(pi, fresh("re"), 5_000)
        const open = yield* standing(tenant)
        yield* settle(call, 100)
        return [open, yield* standing(tenant)]
      })
    )
    expect(seen).toEqual([
      { balance: 5_000, owed: 5_000 },
      { balance: 0, owed: 100 }
    ])
  })

  it("is taken when the transfer that held it returns, and until then nothing more can be sent", async () => {
    const seen = await run(
      Effect.gen(function* () {
        const tenant = yield* person
        const [pi, transfer] = [fresh("pi"), fresh("trf")]
        yield* pay(tenant, pi, 5_000)
        yield* send(tenant, transfer, 4_000)
        yield* dispute(pi, "funds_withdrawn", 5_000)
        const pending = yield* standing(tenant)
        const refused = yield* Effect.flip(send(tenant, fresh("trf"), 1))
        yield* end(tenant, tenant, transfer, 4_000)
        return [pending, refused._tag, yield* standing(tenant)]
      })
    )
    expect(seen).toEqual([{ balance: 0, owed: 4_000 }, "InsufficientCredits", { balance: 0, owed: 0 }])
  })

  it("does not reach a recipient before the debt is paid", async () => {
    const seen = await run(
      Effect.gen(function* () {
        const [sender, recipient] = [yield* person, yield* person]
        const [pi, transfer] = [fresh("pi"), fresh("trf")]
        yield* pay(sender, pi, 5_000)
        yield* send(sender, transfer, 4_000)
        yield* refund(pi, fresh("re"), 5_000)
        const refused = yield* Effect.flip(end(sender, recipient, transfer, 4_000))
        const between = [yield* standing(sender), yield* standing(recipient)]
        yield* grant(sender, 4_000)
        yield* end(sender, recipient, transfer, 4_000)
        return [refused._tag, ...between, yield* standing(sender), yield* standing(recipient)]
      })
    )
    expect(seen).toEqual([
      "InsufficientCredits",
      { balance: 0, owed: 4_000 },
      { balance: 0, owed: 0 },
      { balance: 0, owed: 0 },
      { balance: 4_000, owed: 0 }
    ])
  })

  it.each([
    ["a purchase", (tenant: TenantId) => pay(tenant, fresh("pi"), 700)],
    ["a grant", (tenant: TenantId) => grant(tenant, 700)],
    ["a bonus", (tenant: TenantId) => grant(tenant, 700, "registration_bonus")],
    [
      "a transfer",
      (tenant: TenantId) =>
        Effect.gen(function* () {
          const [sender, transfer] = [yield* person, fresh("trf")]
          yield* pay(sender, fresh("pi"), 700)
          yield* send(sender, transfer, 700)
          yield* end(sender, tenant, transfer, 700)
        })
    ]
  ])("is taken from %s that comes later, and what is left can be sent again", async (_, comes) => {
    const seen = await run(
      Effect.gen(function* () {
        const tenant = yield* person
        const [pi, call] = [fresh("pi"), fresh("call")]
        yield* pay(tenant, pi, 1_000)
        yield* reserve(tenant, call, 1_000)
        yield* settle(call, 1_000)
        yield* refund(pi, fresh("re"), 1_000)
        const seen = [yield* standing(tenant)]
        yield* comes(tenant)
        seen.push(yield* standing(tenant))
        yield* comes(tenant)
        seen.push(yield* standing(tenant))
        return seen
      })
    )
    expect(seen).toEqual([
      { balance: 0, owed: 1_000 },
      { balance: 0, owed: 300 },
      { balance: 400, owed: 0 }
    ])
  })

  it("tells listeners the balances before and after, with the debt taken", async () => {
    const heard = await run(
      Effect.scoped(
        Effect.gen(function* () {
          const tenant = yield* person
          const [pi, call] = [fresh("pi"), fresh("call")]
          yield* pay(tenant, pi, 1_000)
          yield* reserve(tenant, call, 900)
          yield* refund(pi, fresh("re"), 1_000)
          const heard: Array<ReadonlyArray<bigint>> = []
          yield* (yield* Writer).watch((account, before, after) => {
            if (account === billingAccountOf(tenant)) heard.push([before, after])
          })
          yield* (yield* Writer).submit({
            postings: [
              {
                _tag: "Settle",
                call,
                payer: billingAccountOf(tenant),
                outcome: outcomeOf(100)
              }
            ],
            statements: []
          })
          yield* grant(tenant, 250)
          return heard
        })
      )
    )
    expect(heard).toEqual([
      [nano(900), 0n],
      [0n, nano(150)]
    ])
  })
})

// ---- stories ----------------------------------------------------------------------------------------------------------------

/** What happens to two people. `who`: which; `n`: a payment, a call or a transfer among those that there are. */
interface Step {
  readonly what: "pay" | "grant" | "refund" | "fail" | "dispute" | "win" | "reserve" | "settle" | "send" | "end"
  readonly who: 0 | 1
  readonly n: number
  readonly cents: number
  readonly returned: boolean
}

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom("pay", "grant", "refund", "fail", "dispute", "win", "reserve", "settle", "send", "end"),
  who: fc.constantFrom(0, 1),
  n: fc.nat(7),
  cents: fc.integer({ min: 1, max: 400 }),
  returned: fc.boolean()
})

const stories = fc.array(fc.array(step, { minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 5 })

interface Paid {
  readonly id: string
  readonly who: 0 | 1
  readonly cents: number
  readonly refunds: Array<{ readonly id: string; readonly cents: number; failed: boolean }>
  disputed: number
  won: boolean
}

const dueOf = ({ cents, disputed, refunds, won }: Paid): number => {
  const refunded = refunds.reduce((sum, one) => sum + (one.failed ? 0 : one.cents), 0)
  return Math.min(cents, refunded + (won ? 0 : disputed))
}

/** Plays a story, lets all that is open end, and answers how both stand, and how they must. */
const played = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const people = [yield* person, yield* person] as const
    const payments: Array<Paid> = []
    const calls = new Map<string, { readonly who: 0 | 1; readonly cents: number }>()
    const transfers = new Map<string, { readonly who: 0 | 1; readonly cents: number }>()
    /** What came less what went, but for what payments have due. */
    const net = [0, 0] as [number, number]
    const nth = <A>(all: Iterable<A>, n: number): A | undefined => {
      const list = [...all]
      return list[n % Math.max(1, list.length)]
    }
    const endCall = (id: string, cost: number) =>
      Effect.gen(function* () {
        const { cents, who } = calls.get(id)!
        calls.delete(id)
        net[who] -= Math.min(cost, cents)
        yield* settle(id, Math.min(cost, cents))
      })
    const endTransfer = (id: string, returned: boolean) =>
      Effect.gen(function* () {
        const { cents, who } = transfers.get(id)!
        const to = returned ? who : who === 0 ? 1 : 0
        const { owed } = yield* standing(people[who])
        const ended = yield* Effect.either(end(people[who], people[to], id, cents))
        // Only a sender who owes nothing passes credit on.
        expect(Either.isRight(ended)).toBe(returned || owed === 0)
        if (Either.isLeft(ended)) return
        transfers.delete(id)
        net[who] -= cents
        net[to] += cents
      })
    for (const { cents, n, returned, what, who } of steps) {
      const paid = nth(payments, n)
      const refunded = nth(paid?.refunds.filter(({ failed }) => !failed) ?? [], n)
      if (what === "pay") {
        const id = fresh("pi")
        payments.push({ id, who, cents, refunds: [], disputed: 0, won: false })
        net[who] += cents
        yield* pay(people[who], id, cents)
      } else if (what === "grant") {
        net[who] += cents
        yield* grant(people[who], cents)
      } else if (what === "refund" && paid !== undefined) {
        const id = fresh("re")
        paid.refunds.push({ id, cents, failed: false })
        yield* refund(paid.id, id, cents)
      } else if (what === "fail" && refunded !== undefined) {
        refunded.failed = true
        yield* refund(paid!.id, refunded.id, refunded.cents, "failed")
      } else if (what === "dispute" && paid !== undefined && paid.disputed === 0) {
        paid.disputed = cents
        yield* dispute(paid.id, "created", cents)
        yield* dispute(paid.id, "funds_withdrawn", cents)
      } else if (what === "win" && paid !== undefined && paid.disputed > 0 && !paid.won) {
        paid.won = true
        yield* dispute(paid.id, "funds_reinstated", paid.disputed)
      } else if (what === "reserve") {
        const id = fresh("call")
        const reserved = yield* Effect.either(reserve(people[who], id, cents))
        if (Either.isRight(reserved)) calls.set(id, { who, cents })
      } else if (what === "settle") {
        const id = nth(calls.keys(), n)
        if (id !== undefined) yield* endCall(id, cents)
      } else if (what === "send") {
        const id = fresh("trf")
        const owed = (yield* standing(people[who])).owed
        const sent = yield* Effect.either(send(people[who], id, cents))
        if (Either.isRight(sent)) {
          expect(owed).toBe(0)
          transfers.set(id, { who, cents })
        }
      } else if (what === "end") {
        const id = nth(transfers.keys(), n)
        if (id !== undefined) yield* endTransfer(id, returned)
      }
    }
    for (const id of calls.keys()) yield* endCall(id, 0)
    for (const id of transfers.keys()) yield* endTransfer(id, true)
    const due = (who: 0 | 1) => payments.reduce((sum, one) => (one.who === who ? sum + dueOf(one) : sum), 0)
    const total = (who: 0 | 1) => net[who] - due(who)
    const must = (who: 0 | 1) => ({ balance: Math.max(0, total(who)), owed: Math.max(0, -total(who)) })
    return {
      found: [yield* standing(people[0]), yield* standing(people[1])],
      expected: [must(0), must(1)]
    }
  })

describe("refunds, disputes, reinstatements, transfers and open calls in any order", () => {
  it("end with the total of the same story without detours", () =>
    fc.assert(
      fc.asyncProperty(stories, async (stories) => {
        // At once, so that a batch of the writer holds movements of several.
        const ends = await run(Effect.forEach(stories, played, { concurrency: "unbounded" }))
        for (const { expected, found } of ends) expect(found).toEqual(expected)
      }),
      { numRuns: 60 * Number(process.env.FC_RUNS ?? 1) }
    ))

  it("leave books that hold", async () => {
    expect(await run(verify)).toEqual([])
  })

  it("are found by the checks where a debt shrinks without its entry, or is not taken", async () => {
    const findings = await run(
      Effect.gen(function* () {
        const tenant = yield* person
        const [pi, call] = [fresh("pi"), fresh("call")]
        yield* pay(tenant, pi, 1_000)
        yield* reserve(tenant, call, 600)
        yield* refund(pi, fresh("re"), 1_000)
        const sql = yield* SqlClient
        const account = billingAccountOf(tenant)
        const write = (debts: string | null) =>
          sql`UPDATE tollgate_ledger_accounts SET debts = ${debts} WHERE id = ${account}`
        const checks = Effect.map(verify, (all) => all.map(({ check, id }) => [check, id]))
        yield* write(JSON.stringify({ [pi]: `${nano(500)}` }))
        const less = yield* checks
        yield* write(null)
        yield* settle(call, 0)
        yield* write(JSON.stringify({ [pi]: `${nano(600)}` }))
        const free = yield* checks
        // The next movement takes it: the books are right again.
        yield* grant(tenant, 1)
        return [less, free, yield* checks, [pi, account]] as const
      })
    )
    const [less, free, after, [pi, account]] = findings
    expect(less).toEqual([["the due amount of a payment is taken back or owed", pi]])
    expect(free).toEqual([["an account that owes has nothing free", account]])
    expect(after).toEqual([])
  })
})

describe("what an earlier version left due", () => {
  it("is taken back as far as it is free, and owed beyond, once the service runs", async () => {
    const seen = await run(
      Effect.gen(function* () {
        const [tenant, other] = [yield* person, yield* person]
        const [pi, call] = [fresh("pi"), fresh("call")]
        yield* pay(tenant, pi, 1_000)
        yield* reserve(tenant, call, 800)
        const sql = yield* SqlClient
        // As an earlier version left it: 2 of 10 USD were taken, and the rest was forgotten.
        yield* Effect.flatMap(Ledger, ({ takeBack }) =>
          takeBack({ account: billingAccountOf(tenant), amount: nano(1_000), reference: pi })
        )
        yield* sql`UPDATE tollgate_payments_payments SET due = ${nano(1_000)}, followed = NULL WHERE id = ${pi}`
        yield* sql`INSERT INTO tollgate_payments_movements (payment_id, id, kind, amount, returned, heard_at)
          VALUES (${pi}, ${`re_${pi}`}, 'refund', ${nano(1_000)}, 0, 1)`
        yield* settle(call, 0)
        const reserved = fresh("call")
        yield* reserve(tenant, reserved, 300)
        expect(yield* verify).toEqual([])
        const { job } = yield* Purchases
        yield* Effect.all([job.turn, job.turn], { concurrency: "unbounded" })
        const seen = [yield* standing(tenant)]
        yield* settle(reserved, 0)
        seen.push(yield* standing(tenant), yield* standing(other))
        expect(yield* verify).toEqual([])
        return seen
      })
    )
    expect(seen).toEqual([
      { balance: 300, owed: 300 },
      { balance: 0, owed: 0 },
      { balance: 0, owed: 0 }
    ])
  })
})
