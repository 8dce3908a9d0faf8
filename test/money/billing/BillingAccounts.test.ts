import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { usd } from "../../../src/kernel/Money.ts"
import { BillingAccount, Credits, LedgerPage } from "../../../src/money/billing/Billing.ts"
import { BillingAccounts } from "../../../src/money/billing/BillingAccounts.ts"
import * as Scene from "../usage/Scene.ts"
import { acme, other } from "../usage/Scene.ts"

const layer = BillingAccounts.layer.pipe(Layer.provideMerge(Scene.layer))

describe("BillingAccounts", () => {
  it.effect("shows the balance, with what calls have set aside still in it", () =>
    Effect.gen(function* () {
      const accounts = yield* BillingAccounts
      yield* Scene.tenant(acme, usd / 10n)
      yield* Scene.credit(acme, usd / 5n, "signup_grant")
      yield* Scene.reserve({ cost: usd / 10n })
      expect(Schema.encodeSync(Credits)(yield* accounts.credits(acme))).toEqual({ balance: 0.3 })
    }).pipe(Effect.provide(layer))
  )

  it.effect("shows the billing account, as long as nobody has set anything", () =>
    Effect.gen(function* () {
      const accounts = yield* BillingAccounts
      const shown = Effect.map(accounts.find(acme), Schema.encodeSync(BillingAccount))
      yield* Scene.open(acme)
      yield* Scene.credit(acme, 6n * usd, "signup_grant")
      expect(yield* shown).toEqual({
        status: "active",
        credits: 6,
        giftable_credits: 0,
        held_credits: 0,
        has_been_funded: false,
        member_spend_effective: false,
        member_spend_source: "default",
        billing_emails: [],
        member_spend_enabled: false
      })
      yield* Scene.credit(acme, 2n * usd, "purchase")
      yield* Scene.call({ cost: 7n * usd })
      expect(yield* shown).toMatchObject({ credits: 1, giftable_credits: 1, has_been_funded: true })
    }).pipe(Effect.provide(layer))
  )

  it.effect("shows the ledger, newest first; a charge has no source", () =>
    Effect.gen(function* () {
      const accounts = yield* BillingAccounts
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.open(acme)
      yield* Scene.credit(acme, 6n * usd, "admin", "note_1")
      const usage = yield* Scene.call({ cost: usd + 1n })
      expect(Schema.encodeSync(LedgerPage)(yield* accounts.ledger({ tenant_id: acme, page: 1, per_page: 1 }))).toEqual({
        page: 1,
        per_page: 1,
        total_pages: 2,
        total_records: 2,
        records: [
          {
            id: "led_acme_000000000002",
            billing_account_id: "bil_acme",
            type: "debit",
            amount: 1.000000001,
            balance: 4.999999999,
            description: "chat/completions small",
            reference_id: usage,
            created_at: "2026-03-01T10:00:00.000Z"
          }
        ]
      })
      const { records } = yield* accounts.ledger({ tenant_id: acme, page: 2, per_page: 1 })
      expect(records).toMatchObject([{ id: "led_acme_000000000001", type: "credit", source: "admin" }])
    }).pipe(Effect.provide(layer))
  )

  it.effect("a tenant without a billing account has none to show", () =>
    Effect.gen(function* () {
      const accounts = yield* BillingAccounts
      for (const look of [
        accounts.credits(other),
        accounts.find(other),
        accounts.ledger({ tenant_id: other, page: 1, per_page: 1 })
      ]) {
        expect((yield* Effect.flip<unknown, { readonly body: unknown }, never>(look)).body).toEqual({
          error: "the tenant has no billing account",
          code: "billing_account_not_found"
        })
      }
    }).pipe(Effect.provide(layer))
  )
})
