/** What is remembered of who pays: nothing that was read before a change. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, TestClock, TestContext } from "effect"
import { expect, it } from "vitest"
import { BillingAccounts } from "../../../src/money/billing/BillingAccounts.ts"
import { statement } from "../../../src/books/ledger/rules/Transaction.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { Pooling } from "../../../src/money/pooling/Pooling.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { Sums } from "../../../src/money/usage/Sums.ts"
import * as TestDatabase from "../../support/database.ts"

/** What happens once, between the reading of what members may spend and its use. */
let between: Effect.Effect<void> = Effect.void

const paused = Layer.effect(
  BillingAccounts,
  Effect.map(BillingAccounts, (billing) => ({
    ...billing,
    memberSpend: (...asked: Parameters<typeof billing.memberSpend>) =>
      Effect.tap(billing.memberSpend(...asked), () => {
        const now = between
        between = Effect.void
        return now
      })
  }))
).pipe(Layer.provide(BillingAccounts.layer))

const layer = Pooling.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Sums.layer, paused)),
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer),
  Layer.provide(PriceList.layerNone),
  Layer.provideMerge(TestDatabase.writer),
  Layer.provideMerge(TestDatabase.sql)
)

it("an order that was read before members were barred is used for no later call", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const { submit } = yield* Writer
    const tenants = yield* Tenants
    const { payers } = yield* Pooling
    const { account_id, home_tenant_id: tenant_id } = yield* tenants.welcome({
      provider: "google",
      subject: "ada",
      email: "ada@example.com",
      email_verified: true,
      name: "Ada"
    })
    const asker = { account_id, tenant_id, team_first: false }
    const write = (text: Parameters<typeof statement>[0]) =>
      Effect.orDie(submit({ postings: [], statements: [statement(text)] }))
    yield* write(sql`UPDATE tollgate_tenants_memberships SET role = 'member'`)
    yield* tenants.setPlan(tenant_id, { plan: "team", status: "active" })

    between = Effect.gen(function* () {
      yield* Effect.orDie(tenants.setPlan(tenant_id, { plan: "none", status: "canceled" }))
      // Another credential of the same person, whose order is remembered beside this one.
      expect((yield* payers({ ...asker, team_first: true })).map(({ barred }) => barred)).toEqual([true])
    })
    expect((yield* payers(asker)).map(({ barred }) => barred)).toEqual([undefined])
    expect((yield* payers(asker)).map(({ barred }) => barred)).toEqual([true])
  }).pipe(Effect.provide(layer), Effect.runPromise))

it("an order that says the same when it is read again stays the same object", () =>
  Effect.gen(function* () {
    const tenants = yield* Tenants
    const { payers } = yield* Pooling
    const { account_id, home_tenant_id: tenant_id } = yield* tenants.welcome({
      provider: "google",
      subject: "ada",
      email: "ada@example.com",
      email_verified: true,
      name: "Ada"
    })
    const asker = { account_id, tenant_id, team_first: false }
    const order = yield* payers(asker)
    yield* TestClock.adjust("61 seconds")
    expect((yield* payers(asker)) === order).toBe(true)
    yield* tenants.setPlan(tenant_id, { plan: "team", status: "active" })
    const changed = yield* payers(asker)
    yield* TestClock.adjust("61 seconds")
    expect((yield* payers(asker)) === changed).toBe(true)
  }).pipe(Effect.provide(Layer.provideMerge(layer, TestContext.TestContext)), Effect.runPromise))
