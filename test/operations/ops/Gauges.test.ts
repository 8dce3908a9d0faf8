/** The gauges of the books in `/metrics`, and the cost of reading them. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { accountsTable } from "../../../src/books/ledger/rows/Rows.ts"
import * as Ids from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Gauges from "../../../src/operations/ops/Gauges.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, other } from "../../money/usage/Scene.ts"
import { isPostgres } from "../../support/database.ts"

describe("the gauges", () => {
  it.effect("sum reservations and escrow", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme)
      yield* Scene.tenant(other)
      expect(yield* Gauges.read).toEqual({
        reserved_usd: 0,
        escrowed_usd: 0,
        open_calls: 0,
        oldest_unsettled_seconds: 0,
        seconds_since_verified: Infinity,
        findings: 0
      })
      yield* Scene.reserve()
      yield* Effect.flatMap(Writer, ({ submit }) =>
        submit({
          postings: [
            {
              _tag: "Escrow",
              account: Ids.billingAccountOf(other),
              amount: 3n * usd,
              transfer: "trf_1",
              description: "x"
            }
          ],
          statements: []
        })
      )
      yield* Scene.now("2026-03-01T10:00:30Z")
      const sql = yield* SqlClient
      const [truth] = yield* sql<{ reserved: number; held: number }>`
        SELECT SUM(reserved) / 1e9 AS reserved, SUM(held) / 1e9 AS held FROM ${sql.literal(accountsTable)}`
      expect(truth!.reserved).toBeGreaterThan(0)
      expect(yield* Gauges.read).toEqual({
        reserved_usd: truth!.reserved,
        escrowed_usd: truth!.held,
        open_calls: 1,
        oldest_unsettled_seconds: 30,
        seconds_since_verified: Infinity,
        findings: 0
      })
    }).pipe(Effect.provide(Scene.layer))
  )

  // SQLite's plan is stable; PostgreSQL chooses one by the number of rows.
  it.effect.skipIf(isPostgres)("do not look at all accounts", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const plan = yield* sql<{ detail: string }>`EXPLAIN QUERY PLAN
        SELECT SUM(held) FROM tollgate_ledger_accounts WHERE held > 0`
      expect(plan.map(({ detail }) => detail)).toEqual([
        expect.stringContaining("USING COVERING INDEX tollgate_ledger_accounts_held")
      ])
      const { statements } = yield* Scene.scanned(Gauges.read)
      expect(statements).toBe(4)
    }).pipe(Effect.provide(Scene.layer))
  )
})
