import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { verifySince } from "../../src/Checks.ts"
import { usd } from "../../src/kernel/Money.ts"
import { audit, beginning } from "../../src/ledger/Audit.ts"
import type { Mark } from "../../src/ledger/Audit.ts"
import * as Verifications from "../../src/ledger/Verifications.ts"
import { Writer } from "../../src/ledger/Writer.ts"
import * as Scene from "../usage/Scene.ts"
import { acme, other } from "../usage/Scene.ts"

const calls = (count: number, cost = 3n) =>
  Effect.forEach(Array.from({ length: count }), (_, i) => Scene.call({ cost: cost * BigInt(i % 3), payer: acme }), {
    discard: true
  })

/** Acme with credit that no double holds, and other without; some calls. */
const books = Effect.gen(function* () {
  yield* Scene.tenant(acme, 999_999_999n * usd + 1n)
  yield* Scene.tenant(other, usd)
  yield* calls(7)
})

const found = (mark: Mark | undefined) =>
  Effect.map(verifySince(mark), ({ findings }) => [...new Set(findings.map(({ check }) => check))])

const change = (statement: string) =>
  Effect.flatMap(SqlClient, (sql) => Effect.zipRight(sql`PRAGMA ignore_check_constraints = ON`, sql.unsafe(statement)))

describe("The audit", () => {
  it.effect("is right while others write, in slices of any size", () =>
    Effect.gen(function* () {
      yield* books
      const context = yield* Effect.context<Writer>()
      for (const size of [1, 2, 5, 4096]) {
        const reports: Array<unknown> = []
        let slices = 0
        const mark = yield* audit(
          beginning,
          (check, row) => void reports.push({ check, ...row }),
          () => (slices++ < 6 ? Effect.orDie(Effect.provide(calls(2), context)) : Effect.void),
          size
        )
        expect(reports).toEqual([])
        // What is left for the last transaction is a slice at most.
        expect(slices * size + size).toBeGreaterThanOrEqual(mark.entry + mark.record)
        const sql = yield* SqlClient
        expect(yield* sql`SELECT MAX(seq) AS record FROM tollgate_usage_records`).toEqual([{ record: mark.record }])
        expect(yield* sql`SELECT MAX(seq) AS entry FROM tollgate_ledger_entries`).toEqual([{ entry: mark.entry }])
      }
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("finds in slices of any size what is off", () =>
    Effect.gen(function* () {
      yield* books
      yield* change("UPDATE tollgate_ledger_entries SET balance = balance + 1 WHERE number = 3")
      yield* change("UPDATE tollgate_usage_records SET number = number + 100 WHERE number = 4")
      for (const size of [1, 3, 4096]) {
        const reports = new Set<string>()
        yield* audit(
          beginning,
          (check) => void reports.add(check),
          () => Effect.void,
          size
        )
        expect([...reports].toSorted()).toEqual([
          "each balance follows from the one before",
          "each giftable part follows from the one before",
          "records are numbered without a gap"
        ])
      }
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("goes on behind a mark, with the accounts and tenants as they were there", () =>
    Effect.gen(function* () {
      yield* books
      const { findings, mark } = yield* verifySince(undefined)
      expect(findings).toEqual([])
      expect(yield* verifySince(mark)).toEqual({ findings: [], mark })
      yield* Scene.crowd(4)
      yield* change("DELETE FROM tollgate_ledger_entries WHERE billing_account_id = 'bil_crowd'")
      yield* change("DELETE FROM tollgate_usage_records WHERE tenant_id = 'ten_crowd'")
      yield* calls(9)
      const next = yield* verifySince(mark)
      expect(next.findings).toEqual([])
      expect(next.mark).toMatchObject({ record: mark.record + 9, revenue: mark.revenue + 27n, world: mark.world })
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect.each([
    [
      "each balance follows from the one before",
      "UPDATE tollgate_ledger_entries SET balance = balance + 1 WHERE seq = (SELECT MAX(seq) FROM tollgate_ledger_entries)"
    ],
    [
      "entries are numbered without a gap",
      "UPDATE tollgate_ledger_entries SET number = number + 1 WHERE seq = (SELECT MAX(seq) FROM tollgate_ledger_entries)"
    ],
    [
      "balance is that of the last entry",
      "UPDATE tollgate_ledger_accounts SET granted = granted + 1 WHERE id = 'bil_acme'"
    ],
    [
      "credit is neither made nor lost",
      "UPDATE tollgate_ledger_accounts SET granted = granted + 1 WHERE id = 'bil_other'"
    ],
    [
      "a cost has one debit",
      "UPDATE tollgate_usage_records SET cost = cost + 1 WHERE seq = (SELECT MAX(seq) FROM tollgate_usage_records)"
    ],
    ["records are numbered without a gap", "DELETE FROM tollgate_usage_records WHERE seq = 8"],
    [
      "reserved is the sum of open reservations",
      "UPDATE tollgate_ledger_accounts SET reserved = 1 WHERE id = 'bil_acme'"
    ]
  ] as const)("behind a mark finds: %s", ([check, statement]) =>
    Effect.gen(function* () {
      yield* books
      const { mark } = yield* verifySince(undefined)
      yield* calls(6)
      yield* change(statement)
      expect(yield* found(mark)).toContain(check)
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("leaves what lies before its mark to an audit of everything", () =>
    Effect.gen(function* () {
      yield* books
      const { mark } = yield* verifySince(undefined)
      yield* calls(3)
      yield* change("UPDATE tollgate_usage_records SET cost = cost + 1 WHERE seq = 2")
      expect(yield* found(mark)).toEqual([])
      expect(yield* found(undefined)).toContain("a cost has one debit")
    }).pipe(Effect.provide(Scene.layer))
  )
})

describe("Verifications", () => {
  const keep = (whole: boolean, findings: number, at: number) =>
    Effect.flatMap(Writer, ({ submit }) =>
      submit({
        postings: [],
        statements: Verifications.keep({
          at,
          whole,
          findings,
          millis: 1,
          mark: { entry: at, record: at, world: -(10n ** 18n), revenue: 2n ** 60n }
        })
      })
    )

  it.effect("the last that held counts, unless one of everything found something since", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const held = Effect.map(Verifications.lastHeld(sql), (one) => one?.at)
      expect(yield* held).toBe(undefined)
      yield* keep(true, 0, 1)
      expect(yield* Verifications.lastHeld(sql)).toEqual({
        at: 1,
        whole: true,
        findings: 0,
        millis: 1,
        mark: { entry: 1, record: 1, world: -(10n ** 18n), revenue: 2n ** 60n }
      })
      yield* keep(false, 0, 2)
      expect(yield* held).toBe(2)
      // What it found lies behind the mark of the one before, and is read again.
      yield* keep(false, 1, 3)
      expect(yield* held).toBe(2)
      yield* keep(true, 1, 4)
      expect(yield* held).toBe(undefined)
      expect(yield* Effect.map(Verifications.last(sql), (one) => one?.at)).toBe(4)
      yield* keep(true, 0, 5)
      yield* Effect.forEach(Array.from({ length: 150 }), (_, i) => keep(false, 1, 6 + i), { discard: true })
      expect(yield* held).toBe(5)
      const [rows] = yield* sql<{ count: number }>`SELECT COUNT(*) AS count FROM tollgate_ledger_verifications`
      expect(rows!.count).toBeLessThan(155)
    }).pipe(Effect.provide(Scene.layer))
  )
})
