import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { verifySince } from "../../../src/app/Checks.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { audit } from "../../../src/books/ledger/audit/Audit.ts"
import { beginning, fastPace } from "../../../src/books/ledger/audit/Checkpoint.ts"
import type { Checkpoint } from "../../../src/books/ledger/audit/Checkpoint.ts"
import * as Verifications from "../../../src/books/ledger/audit/Verifications.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as TestDatabase from "../../support/database.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, other } from "../../money/usage/Scene.ts"

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

const found = (checkpoint: Checkpoint | undefined) =>
  Effect.map(verifySince(checkpoint), ({ findings }) => [...new Set(findings.map(({ check }) => check))])

const change = TestDatabase.unchecked

describe("The audit", () => {
  it.effect("is right while others write, in slices of any size", () =>
    Effect.gen(function* () {
      yield* books
      const context = yield* Effect.context<Writer>()
      for (const size of [1, 2, 5, 4096]) {
        const reports: Array<unknown> = []
        let slices = 0
        const checkpoint = yield* audit(
          beginning,
          (check, row) => void reports.push({ check, ...row }),
          () => (slices++ < 6 ? Effect.orDie(Effect.provide(calls(2), context)) : Effect.void),
          { ...fastPace, slice: size }
        )
        expect(reports).toEqual([])
        const sql = yield* SqlClient
        const [all] = yield* sql<{
          rows: number
        }>`SELECT (SELECT count(*) FROM tollgate_ledger_entries) + (SELECT count(*) FROM tollgate_usage_records) AS rows`
        // What is left for the last transaction is a slice at most.
        expect(slices * size + size).toBeGreaterThanOrEqual(all!.rows)
        expect(yield* sql`SELECT MAX(seq) AS record FROM tollgate_usage_records`).toEqual([
          { record: checkpoint.record }
        ])
        expect(yield* sql`SELECT MAX(seq) AS entry FROM tollgate_ledger_entries`).toEqual([{ entry: checkpoint.entry }])
      }
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("is right while tails are folded between its slices, from one day to the next", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme, 1_000n * usd)
      yield* Scene.tenant(other, 1_000n * usd)
      let made = 0
      // Of several callers in turns, some paid by another, every few hours: each fold moves one tenant's watermark.
      const some = Effect.gen(function* () {
        for (let i = 0; i < 3; i++, made++) {
          yield* Scene.call({
            cost: BigInt(made),
            units: made / 7,
            tenant_id: made % 3 === 0 ? other : acme,
            account_id: made % 2 === 0 ? Scene.ada : Scene.bob,
            model: `model ${made % 5}`,
            payer: acme
          })
          yield* TestClock.adjust("100 minutes")
        }
      })
      yield* Effect.repeatN(some, 8)
      const context = yield* Effect.context<Writer>()
      for (const slice of [1, 10, 4096]) {
        const reports: Array<unknown> = []
        let pauses = 0
        // Also between the portions of a day, and while rollups and offsets are read at the end.
        const pause = Effect.suspend(() =>
          ++pauses % 5 === 0 && pauses < 60 ? Effect.orDie(Effect.provide(some, context)) : Effect.void
        )
        yield* audit(
          beginning,
          (check, row) => void reports.push({ check, ...row }),
          () => Effect.void,
          { slice, pause }
        )
        expect(reports).toEqual([])
        expect(pauses).toBeGreaterThan(20)
      }
    }).pipe(Effect.provide(Scene.layerOf(5)))
  )

  it.effect("finds while others write what is off in a day that is over, and in the present one", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* books
      yield* TestClock.adjust("1 day")
      yield* calls(8)
      yield* change("UPDATE tollgate_usage_by_tenant SET latency_ms = latency_ms + 1")
      const context = yield* Effect.context<Writer>()
      const one = Effect.orDie(Effect.provide(Scene.call({ cost: 1n, payer: acme }), context))
      const reports: Array<string> = []
      let pauses = 0
      yield* audit(
        beginning,
        (check, { id }) => void reports.push(`${check}: ${id.split("/")[1]}`),
        () => Effect.void,
        { slice: 2, pause: Effect.suspend(() => (++pauses < 30 ? one : Effect.void)) }
      )
      expect(reports.toSorted()).toEqual(
        ["2026-03-01", "2026-03-02"].map((day) => `tollgate_usage_by_tenant sums the records: ${Date.parse(day)}`)
      )
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
          { ...fastPace, slice: size }
        )
        expect([...reports].toSorted()).toEqual([
          "each balance follows from the one before",
          "each giftable part follows from the one before",
          "records are numbered without a gap"
        ])
      }
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("goes on behind a checkpoint, with the accounts and tenants as they were there", () =>
    Effect.gen(function* () {
      yield* books
      const { findings, checkpoint } = yield* verifySince(undefined)
      expect(findings).toEqual([])
      expect(yield* verifySince(checkpoint)).toEqual({ findings: [], checkpoint })
      yield* calls(9)
      const next = yield* verifySince(checkpoint)
      expect(next.findings).toEqual([])
      expect(next.checkpoint).toMatchObject({
        record: checkpoint.record + 9,
        revenue: checkpoint.revenue + 27n,
        world: checkpoint.world
      })
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
      "UPDATE tollgate_ledger_amounts SET granted = granted + 1 WHERE account = (SELECT number FROM tollgate_ledger_accounts WHERE id = 'bil_acme')"
    ],
    [
      "credit is neither made nor lost",
      "UPDATE tollgate_ledger_amounts SET granted = granted + 1 WHERE account = (SELECT number FROM tollgate_ledger_accounts WHERE id = 'bil_other')"
    ],
    [
      "a cost has one debit",
      "UPDATE tollgate_usage_records SET cost = cost + 1 WHERE seq = (SELECT MAX(seq) FROM tollgate_usage_records)"
    ],
    ["records are numbered without a gap", "DELETE FROM tollgate_usage_records WHERE seq = 8"],
    [
      "reserved is the sum of open reservations",
      "UPDATE tollgate_ledger_amounts SET reserved = 1 WHERE account = (SELECT number FROM tollgate_ledger_accounts WHERE id = 'bil_acme')"
    ]
  ] as const)("behind a checkpoint finds: %s", ([check, statement]) =>
    Effect.gen(function* () {
      yield* books
      const { checkpoint } = yield* verifySince(undefined)
      yield* calls(6)
      yield* change(statement)
      expect(yield* found(checkpoint)).toContain(check)
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("leaves what lies before its checkpoint to an audit of everything", () =>
    Effect.gen(function* () {
      yield* books
      const { checkpoint } = yield* verifySince(undefined)
      yield* calls(3)
      yield* change("UPDATE tollgate_usage_records SET cost = cost + 1 WHERE seq = 2")
      expect(yield* found(checkpoint)).toEqual([])
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
          checkpoint: { entry: at, record: at, world: -(10n ** 18n), revenue: 2n ** 60n }
        })
      })
    )

  it.effect("the last that held counts, unless one of everything found something since", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const held = Effect.map(Verifications.lastClean(sql), (one) => one?.at)
      expect(yield* held).toBe(undefined)
      yield* keep(true, 0, 1)
      expect(yield* Verifications.lastClean(sql)).toEqual({
        at: 1,
        whole: true,
        findings: 0,
        millis: 1,
        checkpoint: { entry: 1, record: 1, world: -(10n ** 18n), revenue: 2n ** 60n }
      })
      yield* keep(false, 0, 2)
      expect(yield* held).toBe(2)
      // What it found lies behind the checkpoint of the one before, and is read again.
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
