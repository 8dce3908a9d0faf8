import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema, TestClock } from "effect"
import { toIso } from "../../../src/kernel/Moment.ts"
import type { Nano } from "../../../src/kernel/Money.ts"
import { rollupOf, summaryOf } from "../../../src/money/usage/Query.ts"
import { Sums } from "../../../src/money/usage/Sums.ts"
import { Rollup, Summary } from "../../../src/money/usage/Usage.ts"
import type { RollupQuery, SummaryQuery } from "../../../src/money/usage/Usage.ts"
import * as Scene from "./Scene.ts"
import { acme, ada, bob, other } from "./Scene.ts"
import { isPostgres } from "../../support/database.ts"

const layer = Sums.layer.pipe(Layer.provideMerge(Scene.layer))

const summary = (query: SummaryQuery = {}, account_id = ada, tenant_id = acme) =>
  Effect.flatMap(Sums, (sums) =>
    Effect.flatMap(summaryOf(query, { application_id: null }), (asked) =>
      sums.summary({ caller: { account_id, tenant_id }, ...asked })
    )
  )

const rollup = (query: RollupQuery, tenant_id = acme) =>
  Effect.flatMap(Sums, (sums) => Effect.flatMap(rollupOf(query), (asked) => sums.rollup({ tenant_id, ...asked })))

describe("the summary", () => {
  it.effect("sums the calls of the caller's account in the credential's tenant", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      yield* Scene.tenant(other)
      yield* Scene.call({ model: "b", cost: 100_000_000n, latency_ms: 100 })
      yield* Scene.call({ model: "a", cost: 200_000_000n, latency_ms: 101, application_id: "app_1" })
      yield* Scene.call({
        model: "c",
        cost: 0n,
        success: false,
        error_type: "x",
        prompt_tokens: 0,
        completion_tokens: 0
      })
      yield* Scene.call({ model: "b", cost: 100_000_000n, usage_type: "tool", endpoint: "search", payer: other })
      yield* Scene.call({ account_id: bob })
      yield* Scene.call({ tenant_id: other, payer: acme })
      expect(Schema.encodeSync(Summary)(yield* summary())).toEqual({
        total_requests: 4,
        successful_requests: 3,
        failed_requests: 1,
        total_tokens: 45,
        prompt_tokens: 30,
        completion_tokens: 15,
        total_cost: 0.4,
        average_latency_ms: 100.25,
        // The dearest first; of two that cost the same, by name.
        model_breakdown: [
          { model: "a", request_count: 1, total_tokens: 15, prompt_tokens: 10, completion_tokens: 5, total_cost: 0.2 },
          { model: "b", request_count: 2, total_tokens: 30, prompt_tokens: 20, completion_tokens: 10, total_cost: 0.2 },
          { model: "c", request_count: 1, total_tokens: 0, prompt_tokens: 0, completion_tokens: 0, total_cost: 0 }
        ],
        endpoint_breakdown: [
          { endpoint: "chat/completions", request_count: 3, total_tokens: 30, total_cost: 0.3 },
          { endpoint: "search", request_count: 1, total_tokens: 15, total_cost: 0.1 }
        ]
      })
    }).pipe(Effect.provide(layer))
  )

  it.effect("is all zeros where there were no calls", () =>
    Effect.gen(function* () {
      const nothing = {
        total_requests: 0,
        successful_requests: 0,
        failed_requests: 0,
        total_tokens: 0,
        prompt_tokens: 0,
        completion_tokens: 0,
        total_cost: 0,
        average_latency_ms: 0,
        model_breakdown: [],
        endpoint_breakdown: []
      }
      expect(Schema.encodeSync(Summary)(yield* summary())).toEqual(nothing)
      yield* Scene.tenant(acme)
      yield* Scene.call()
      expect(Schema.encodeSync(Summary)(yield* summary({}, bob))).toEqual(nothing)
      expect(Schema.encodeSync(Summary)(yield* summary({ start_time: "2026-01-01T00:00:00Z" }))).toEqual(nothing)
    }).pipe(Effect.provide(layer))
  )

  it.effect("is exact to the millisecond in any window", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-02-27T22:10:00.000Z")
      yield* Scene.tenant(acme)
      const made: Array<{ readonly at: number; readonly account: string; readonly cost: Nano }> = []
      for (let i = 0; i < 80; i++) {
        yield* TestClock.adjust(((i * 7919) % 97) * 61_013)
        const account = i % 3 === 0 ? bob : ada
        const at = yield* TestClock.currentTimeMillis
        made.push({ at, account, cost: BigInt(i) })
        yield* Scene.call({ account_id: account, cost: BigInt(i), model: `m${i % 2}` })
      }
      const instants = made.flatMap(({ at }) => [at, at + 1, at - (at % 3_600_000), at - (at % 86_400_000)])
      for (let i = 0; i < 200; i++) {
        const start = i % 7 === 0 ? null : instants[(i * 37) % instants.length]!
        const end = i % 11 === 0 ? null : instants[(i * 53 + 160) % instants.length]!
        const within = made.filter(
          ({ account, at }) => account === ada && (start === null || at >= start) && (end === null || at < end)
        )
        const found = yield* summary({
          ...(start !== null && { start_time: toIso(start) }),
          ...(end !== null && { end_time: toIso(end) })
        })
        expect(found.total_requests).toBe(within.length)
        expect(found.total_cost).toBe(within.reduce((sum, { cost }) => sum + cost, 0n))
        expect(found.model_breakdown.reduce((sum, { request_count }) => sum + request_count, 0)).toBe(within.length)
      }
    }).pipe(Effect.provide(layer))
  )

  // The plan is SQLite's: PostgreSQL makes one by how many rows there are.
  it.effect.skipIf(isPostgres)("finds its rows by index", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      yield* Scene.now("2026-03-09T09:20:00Z")
      yield* Scene.call()
      yield* Scene.now("2026-03-09T10:00:00Z")
      yield* Scene.call()
      const { statements, tables } = yield* Scene.scanned(
        Effect.all([
          summary({ start_time: "2026-03-01T10:10:10Z", end_time: "2026-03-09T09:50:50Z" }),
          rollup({ rollup: "daily", start_date: "2026-03-01", provider: "here" })
        ])
      )
      expect(statements).toBeGreaterThan(4)
      expect(tables).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses times that it cannot read", () =>
    Effect.gen(function* () {
      const refused = (query: SummaryQuery) =>
        Effect.map(Effect.flip(summary(query)), ({ body, status }) => ({ status, body }))
      expect(yield* refused({ start_time: "yesterday" })).toEqual({
        status: 400,
        body: {
          error: "Invalid start_time format",
          details: { field: "start_time", rule: "must be an RFC 3339 date and time" }
        }
      })
      expect(yield* refused({ end_time: "2026-02-30T00:00:00Z" })).toEqual({
        status: 400,
        body: {
          error: "Invalid end_time format",
          details: { field: "end_time", rule: "must be an RFC 3339 date and time" }
        }
      })
      expect(yield* refused({ start_time: "", end_time: "" })).toMatchObject({
        body: { error: "Invalid start_time format" }
      })
    }).pipe(Effect.provide(layer))
  )
})

describe("the rollup", () => {
  const year = Effect.gen(function* () {
    yield* Scene.now("2025-12-31T23:59:59.999Z")
    yield* Scene.tenant(acme)
    yield* Scene.tenant(other)
    yield* Scene.call({ cost: 1n, units: 0.5 })
    yield* Scene.now("2026-01-01T00:00:00Z")
    yield* Scene.call({ cost: 10n, application_id: "app_1", account_id: bob })
    yield* Scene.call({ cost: 0n, success: false, error_type: "x", provider: "there" })
    yield* Scene.now("2026-01-31T12:00:00Z")
    yield* Scene.call({ cost: 100n, usage_type: "tool", payer: other })
    yield* Scene.call({ cost: 5n, tenant_id: other, payer: acme })
    yield* Scene.now("2026-02-01T12:00:00Z")
    yield* Scene.call({ cost: 1000n, usage_type: "tool", application_id: "app_1" })
  })

  const points = (query: RollupQuery) =>
    Effect.map(rollup(query), ({ data_points }) =>
      data_points.map(({ timestamp, total_cost }) => [toIso(timestamp).slice(0, 10), Number(total_cost)])
    )

  it.effect("shows each period that had calls, whoever paid", () =>
    Effect.gen(function* () {
      yield* year
      expect(Schema.encodeSync(Rollup)(yield* rollup({ rollup: "annual" }))).toEqual({
        rollup: "annual",
        start_date: null,
        end_date: null,
        data_points: [
          {
            timestamp: "2025-01-01T00:00:00.000Z",
            total_requests: 1,
            total_tokens: 15,
            prompt_tokens: 10,
            completion_tokens: 5,
            units: 0.5,
            total_cost: 1e-9,
            success_count: 1,
            failure_count: 0
          },
          {
            timestamp: "2026-01-01T00:00:00.000Z",
            total_requests: 4,
            total_tokens: 60,
            prompt_tokens: 40,
            completion_tokens: 20,
            units: 60,
            total_cost: 0.00000111,
            success_count: 3,
            failure_count: 1
          }
        ]
      })
      expect(yield* points({ rollup: "monthly" })).toEqual([
        ["2025-12-01", 1],
        ["2026-01-01", 110],
        ["2026-02-01", 1000]
      ])
      expect(yield* points({ rollup: "daily" })).toEqual([
        ["2025-12-31", 1],
        ["2026-01-01", 10],
        ["2026-01-31", 100],
        ["2026-02-01", 1000]
      ])
      expect((yield* rollup({ rollup: "daily" }, other)).data_points).toHaveLength(1)
    }).pipe(Effect.provide(layer))
  )

  it.effect("counts the whole days that its window touches, and echoes what was asked", () =>
    Effect.gen(function* () {
      yield* year
      const asked = { rollup: "daily", start_date: "2026-01-01T18:00:00+02:00", end_date: "2026-01-31" }
      expect(Schema.encodeSync(Rollup)(yield* rollup(asked))).toMatchObject({
        rollup: "daily",
        start_date: "2026-01-01T16:00:00.000Z",
        end_date: "2026-02-01T00:00:00.000Z"
      })
      expect(yield* points(asked)).toEqual([
        ["2026-01-01", 10],
        ["2026-01-31", 100]
      ])
      expect(yield* points({ ...asked, end_date: "2026-01-31T00:00:00Z" })).toEqual([["2026-01-01", 10]])
      expect(yield* points({ ...asked, end_date: "2026-01-31T00:00:00.001Z" })).toHaveLength(2)
      expect(yield* points({ ...asked, end_date: "2025-01-01" })).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.effect("takes only the calls that the filters let through", () =>
    Effect.gen(function* () {
      yield* year
      expect(yield* points({ rollup: "annual", application_id: "app_1" })).toEqual([["2026-01-01", 1010]])
      expect(yield* points({ rollup: "annual", usage_type: "tool" })).toEqual([["2026-01-01", 1100]])
      expect(yield* points({ rollup: "annual", provider: "there" })).toEqual([["2026-01-01", 0]])
      expect(yield* points({ rollup: "monthly", application_id: "app_1", usage_type: "tool" })).toEqual([
        ["2026-02-01", 1000]
      ])
      expect(yield* points({ rollup: "annual", application_id: "app_none" })).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses what it cannot read", () =>
    Effect.gen(function* () {
      const refused = (query: RollupQuery) =>
        Effect.map(Effect.flip(rollup(query)), ({ body, status }) => ({ status, body }))
      const error = "Invalid rollup value (must be 'daily', 'monthly', or 'annual')"
      for (const query of [{}, { rollup: "" }, { rollup: "Daily" }, { rollup: "weekly", start_date: "x" }]) {
        expect(yield* refused(query)).toMatchObject({ status: 400, body: { error, details: { field: "rollup" } } })
      }
      const details = (query: RollupQuery) =>
        Effect.map(refused({ rollup: "daily", ...query }), ({ body, status }) => [status, body.code, body.details])
      const rule = "must be an RFC 3339 date and time"
      expect(yield* details({ start_date: "x" })).toEqual([400, "invalid_request", { field: "start_date", rule }])
      expect(yield* details({ end_date: "x" })).toEqual([400, "invalid_request", { field: "end_date", rule }])
      expect(yield* details({ usage_type: "x" })).toEqual([
        400,
        "invalid_request",
        { field: "usage_type", rule: "must be inference or tool" }
      ])
    }).pipe(Effect.provide(layer))
  )
})
