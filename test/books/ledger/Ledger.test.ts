import { describe, expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { offsetEvery } from "../../../src/books/ledger/rows/RowLinks.ts"
import { entryId, Ledger } from "../../../src/books/ledger/Ledger.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, other } from "../../money/usage/Scene.ts"
import { isPostgres } from "../../support/database.ts"

const account = billingAccountOf(acme)

describe("Ledger", () => {
  it.effect("shows an account as it stands, and none where there is none", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* Scene.tenant(acme, 5n * usd)
      yield* Scene.credit(acme, 2n * usd, "admin")
      yield* Scene.reserve({ cost: usd })
      expect(yield* ledger.accountOfTenant(acme)).toEqual(yield* ledger.account(account))
      expect(Option.getOrThrow(yield* ledger.account(account))).toEqual({
        id: account,
        tenant_id: acme,
        status: "active",
        giftable: 5n * usd,
        granted: 2n * usd,
        held: 0n,
        reserved: usd,
        funded: true,
        entries: 2
      })
      expect(yield* ledger.accountOfTenant(other)).toEqual(Option.none())
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("gives entries newest first, each of an account's own", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme, 5n * usd)
      yield* Scene.tenant(other)
      yield* Scene.now("2026-03-01T11:00:00Z")
      const usage = yield* Scene.call({ cost: 42n })
      const { records, ...page } = yield* ledger.entries(account, { page: 1, per_page: 50 })
      expect(page).toEqual({ page: 1, per_page: 50, total_pages: 1, total_records: 2 })
      expect(records).toEqual([
        {
          billing_account_id: account,
          number: 2,
          type: "debit",
          amount: 42n,
          balance: 5n * usd - 42n,
          giftable: 5n * usd - 42n,
          source: null,
          reference_id: usage,
          description: "chat/completions small",
          at: Date.UTC(2026, 2, 1, 11)
        },
        {
          billing_account_id: account,
          number: 1,
          type: "credit",
          amount: 5n * usd,
          balance: 5n * usd,
          giftable: 5n * usd,
          source: "purchase",
          reference_id: "pay_1",
          description: "purchase",
          at: Date.UTC(2026, 2, 1, 10)
        }
      ])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("pages are ranges of numbers, also across offsets", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* Scene.tenant(acme)
      yield* Effect.repeatN(Scene.credit(acme, 1n), 2 * offsetEvery)
      const numbers = (page: number, per_page: number) =>
        Effect.map(ledger.entries(account, { page, per_page }), ({ records }) => records.map(({ number }) => number))
      expect(yield* numbers(1, 200)).toEqual(Array.from({ length: 130 }, (_, i) => 130 - i))
      expect(yield* numbers(1, 4)).toEqual([130, 129, 128, 127])
      expect(yield* numbers(17, 4)).toEqual([66, 65, 64, 63])
      expect(yield* numbers(33, 4)).toEqual([2, 1])
      expect(yield* numbers(34, 4)).toEqual([])
      expect(yield* numbers(999_999_999_999_999, 200)).toEqual([])
      const { total_pages, total_records } = yield* ledger.entries(account, { page: 9, per_page: 4 })
      expect({ total_pages, total_records }).toEqual({ total_pages: 33, total_records: 130 })
    }).pipe(Effect.provide(Scene.layer))
  )

  // The plan is SQLite's: PostgreSQL makes one by how many rows there are.
  it.effect.skipIf(isPostgres)("finds its rows by index", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* Scene.tenant(acme)
      const { statements, tables } = yield* Scene.scanned(ledger.entries(account, { page: 1, per_page: 10 }))
      expect(statements).toBe(2)
      expect(tables).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it("names entries so that their ids sort as they were made", () => {
    expect(entryId({ billing_account_id: "bil_01h2", number: 7 })).toBe("led_01h2_000000000007")
    const ids = [1, 9, 10, 999, 1000].map((number) => entryId({ billing_account_id: account, number }))
    expect(ids.toSorted()).toEqual(ids)
  })
})
