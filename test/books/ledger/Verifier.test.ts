import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Layer, Logger, TestClock } from "effect"
import { setImmediate } from "node:timers/promises"
import { verifySince } from "../../../src/app/Checks.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { VerifyInterval } from "../../../src/books/ledger/audit/Settings.ts"
import * as Verifications from "../../../src/books/ledger/audit/Verifications.ts"
import type { VerifySince } from "../../../src/books/ledger/audit/Verifications.ts"
import { Verifier } from "../../../src/books/ledger/audit/Verifier.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme } from "../../money/usage/Scene.ts"

const layer = (verify: VerifySince = verifySince) =>
  Verifier.layer(Effect.succeed(verify)).pipe(Layer.provideMerge(Scene.layer))

const books = Effect.zipRight(
  Scene.tenant(acme, usd),
  Effect.forEach(Array.from({ length: 9 }), () => Scene.call({ cost: 7n }), { discard: true })
)

const last = Effect.flatMap(SqlClient, Verifications.last)

/** A verification that reads nothing: from which record each began. */
const watched = () => {
  const records: Array<number | undefined> = []
  const verify: VerifySince = (checkpoint) =>
    Effect.map(
      Effect.flatMap(SqlClient, (sql) =>
        Effect.orDie(
          sql<{ readonly record: number }>`SELECT COALESCE(MAX(seq), 0) AS record FROM tollgate_usage_records`
        )
      ),
      ([row]) => {
        records.push(checkpoint?.record)
        return { findings: [], checkpoint: { entry: 1_000, record: row!.record, world: 0n, revenue: 0n } }
      }
    )
  return { records, verify }
}

describe("The verifier", () => {
  it.live("verifies what came since, quietly, and keeps that it held", () =>
    Effect.gen(function* () {
      yield* books
      const { verify } = yield* Verifier
      expect(yield* verify).toBe(0)
      expect(yield* last).toMatchObject({ whole: false, findings: 0, checkpoint: { record: 9, revenue: 63n } })
      yield* Scene.call({ cost: 1n })
      expect(yield* verify).toBe(0)
      expect(yield* last).toMatchObject({ whole: false, findings: 0, checkpoint: { record: 10, revenue: 64n } })
    }).pipe(Effect.provide(layer()))
  )

  it.live("what it finds is logged as an error, kept for the metrics, and found again", () => {
    const logged: Array<string> = []
    const logger = Logger.make(({ annotations, logLevel, message }) => {
      logged.push(`${logLevel.label} ${String(message)} ${JSON.stringify([...annotations])}`)
    })
    return Effect.gen(function* () {
      yield* books
      const { verify } = yield* Verifier
      expect(yield* verify).toBe(0)
      const sql = yield* SqlClient
      yield* Scene.call({ cost: 1n })
      yield* sql`UPDATE tollgate_usage_records SET cost = 2 WHERE seq = 10`
      expect(yield* verify).toBe(1)
      expect(yield* verify).toBe(1)
      expect(logged).toHaveLength(2)
      expect(logged[0]).toMatch(
        /^ERROR the books are wrong: verify reports 1 findings .*a cost has one debit: usage record/
      )
      expect(yield* last).toMatchObject({ whole: false, findings: 1 })
      const ledger = yield* Ledger
      expect(yield* ledger.totals).toMatchObject({ findings: 1 })
    }).pipe(Effect.provide(Layer.merge(layer(), Logger.replace(Logger.defaultLogger, logger))))
  })

  it.effect("reads nothing where nothing came", () => {
    const { records, verify } = watched()
    return Effect.gen(function* () {
      yield* books
      const verifier = yield* Verifier
      expect(yield* verifier.verify).toBe(0)
      yield* TestClock.adjust("1 hour")
      expect(yield* verifier.verify).toBe(0)
      expect(records).toEqual([0])
      expect(yield* last).toMatchObject({ at: 3_600_000, findings: 0, checkpoint: { record: 9 } })
      yield* Scene.call()
      expect(yield* verifier.verify).toBe(0)
      expect(records).toEqual([0, 9])
    }).pipe(Effect.provide(layer(verify)))
  })

  it.effect("rests while the last verification of everything has findings", () => {
    const { records, verify } = watched()
    return Effect.gen(function* () {
      yield* books
      const { submit } = yield* Writer
      const checkpoint = { entry: 0, record: 0, world: 0n, revenue: 0n }
      const keep = (findings: number) =>
        submit({
          postings: [],
          statements: Verifications.keep({ at: 1, whole: true, findings, millis: 1, checkpoint })
        })
      yield* keep(3)
      const verifier = yield* Verifier
      expect(yield* verifier.verify).toBe(3)
      expect(records).toEqual([])
      yield* keep(0)
      expect(yield* verifier.verify).toBe(0)
      expect(records).toEqual([0])
    }).pipe(Effect.provide(layer(verify)))
  })

  it.effect("turns every interval, from the last verification on, and not at once after the start", () => {
    const { records, verify } = watched()
    return Effect.gen(function* () {
      yield* books
      const turn = Effect.map((yield* Verifier).job.turn, (pause) => Duration.toMinutes(pause!))
      expect(yield* turn).toBe(1)
      yield* TestClock.adjust("1 minute")
      expect(yield* turn).toBe(10)
      expect(records).toEqual([0])
      yield* TestClock.adjust("4 minutes")
      expect(yield* turn).toBe(6)
      // Another process, over the same books.
      const next = Effect.map(Verifier, ({ job }) => job.turn).pipe(Effect.flatten)
      expect(yield* Effect.provide(next, Layer.fresh(Verifier.layer(Effect.succeed(verify))))).toBe(360_000)
    }).pipe(Effect.provide(layer(verify)), Effect.provideService(VerifyInterval, 600_000))
  })

  it.effect("a long verification goes on beside the turns of its loop", () => {
    const { records, verify } = watched()
    const long: VerifySince = (...asked) => Effect.zipRight(Effect.sleep("150 seconds"), verify(...asked))
    return Effect.gen(function* () {
      yield* books
      const { job } = yield* Verifier
      yield* job.turn
      yield* TestClock.adjust("1 minute")
      const others = (yield* TestClock.sleeps()).length
      for (const [wait, pause] of [
        ["1 minute", 0],
        ["1 minute", 0],
        ["30 seconds", 600_000]
      ] as const) {
        const turn = yield* Effect.fork(job.turn)
        // The verification sleeps, and the turn that waits for it: what they read first may take a while.
        while ((yield* TestClock.sleeps()).length < others + 2) yield* Effect.promise(() => setImmediate())
        yield* TestClock.adjust(wait)
        expect(yield* turn).toBe(pause)
      }
      expect(records).toEqual([0])
    }).pipe(Effect.provide(layer(long)), Effect.provideService(VerifyInterval, 600_000))
  })

  it.effect("does nothing where it is switched off", () =>
    Effect.gen(function* () {
      expect(yield* (yield* Verifier).job.turn).toBe(undefined)
    }).pipe(Effect.provide(layer()), Effect.provideService(VerifyInterval, undefined))
  )
})
