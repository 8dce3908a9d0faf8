/** Rollups and team usage of calls with some labels: the sums of these calls, whichever tenant called. */
import { describe, expect, it } from "@effect/vitest"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, TestClock } from "effect"
import { day, parse } from "../../../src/kernel/Moment.ts"
import { dimensionsBy, dimensionsPaid } from "../../../src/money/usage/Filtered.ts"
import type { LabelFilter } from "../../../src/money/usage/Filtered.ts"
import { Sums } from "../../../src/money/usage/Sums.ts"
import type { DataPoint } from "../../../src/money/usage/Usage.ts"
import { isPostgres } from "../../support/database.ts"
import * as Scene from "./Scene.ts"
import { acme, ada, bob, other } from "./Scene.ts"

const layer = Sums.layer.pipe(Layer.provideMerge(Scene.layerOf(13)))
const start = parse("2026-02-27T00:00:00Z")!
const window = { start, end: start + 3 * day }

interface Made {
  readonly at: number
  readonly tenant_id: typeof acme
  readonly payer: typeof acme
  readonly account_id: typeof ada
  readonly cost: bigint
  readonly success: boolean
  readonly tags?: string
  readonly end_user?: string
  readonly run_id?: string
}

const history = Effect.gen(function* () {
  yield* Scene.now("2026-02-26T00:00:00Z")
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
  const made: Array<Made> = []
  for (let i = 0; i < 60; i++) {
    const one: Made = {
      at: start - day + i * 2 * 3_600_000,
      tenant_id: i % 3 === 0 ? other : acme,
      payer: i % 5 === 0 ? other : acme,
      account_id: i % 4 === 0 ? bob : ada,
      cost: BigInt(i * 1_000_000 + 1),
      success: i % 7 !== 0,
      ...(i % 2 === 0 && { tags: `project=p${i % 4}\nteam=x` }),
      ...(i % 6 < 4 && { end_user: "u" }),
      ...(i % 8 === 2 && { run_id: "run_1" })
    }
    yield* TestClock.setTime(one.at)
    yield* Scene.call(one)
    made.push(one)
  }
  return made
})

const filters: ReadonlyArray<readonly [LabelFilter, (call: Made) => boolean]> = [
  [{ tag: "team" }, ({ tags }) => tags !== undefined],
  [{ tag: "project=p2" }, ({ tags }) => tags?.startsWith("project=p2\n") === true],
  [{ tag: "project=p" }, () => false],
  [{ end_user: "u", tag: "team=x" }, ({ end_user, tags }) => end_user === "u" && tags !== undefined],
  [{ run_id: "run_1" }, ({ run_id }) => run_id === "run_1"],
  [{ run_id: "" }, ({ run_id }) => run_id === undefined]
]

// The plan is SQLite's: PostgreSQL makes one by how many rows there are.
it.effect.skipIf(isPostgres)("the dimensions of a run are found by their index, however many the tenant has", () =>
  Effect.gen(function* () {
    yield* history
    const sql = yield* SqlClient
    for (const find of [
      dimensionsBy(sql, acme, { run_id: "run_1" }),
      dimensionsBy(sql, acme, { account_id: ada, run_id: "run_1" }),
      dimensionsPaid(sql, acme, { run_id: "run_1" })
    ]) {
      const { steps } = yield* Scene.scanned<unknown, unknown, never>(find)
      expect(steps).toEqual(["SEARCH tollgate_usage_dimensions USING INDEX tollgate_usage_dimensions_run (run_id=?)"])
    }
  }).pipe(Effect.provide(layer))
)

const months = (at: number): number => Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth())
const days = (at: number): number => Math.floor(at / day) * day

const pointsOf = (calls: ReadonlyArray<Made>, periodOf: (at: number) => number): ReadonlyArray<Partial<DataPoint>> =>
  [...new Set(calls.map(({ at }) => periodOf(at)))]
    .sort((a, b) => a - b)
    .map((timestamp) => {
      const own = calls.filter(({ at }) => periodOf(at) === timestamp)
      return {
        timestamp,
        total_requests: own.length,
        total_tokens: 15 * own.length,
        total_cost: own.reduce((sum, { cost }) => sum + cost, 0n),
        success_count: own.filter(({ success }) => success).length
      }
    })

const inside = ({ at }: Made): boolean => at >= window.start && at < window.end

describe("sums of calls with some labels", () => {
  it.effect("are the rollup of a tenant's calls", () =>
    Effect.gen(function* () {
      const made = yield* history
      const sums = yield* Sums
      for (const [labels, isWanted] of filters) {
        const calls = made.filter((call) => inside(call) && call.tenant_id === acme && isWanted(call))
        const daily = yield* sums.rollup({ tenant_id: acme, rollup: "daily", window, labels })
        expect(daily.data_points).toMatchObject(pointsOf(calls, days))
        expect(daily.data_points.length).toBe(pointsOf(calls, days).length)
        const monthly = yield* sums.rollup({ tenant_id: acme, rollup: "monthly", window, labels })
        expect(monthly.data_points).toMatchObject(pointsOf(calls, months))
        expect(monthly.data_points.length).toBe(pointsOf(calls, months).length)
      }
    }).pipe(Effect.provide(layer))
  )

  it.effect("are what a team's account paid, by member", () =>
    Effect.gen(function* () {
      const made = yield* history
      const sums = yield* Sums
      for (const [labels, isWanted] of filters) {
        const calls = made.filter((call) => inside(call) && call.payer === acme && isWanted(call))
        const of = (account: typeof ada) => calls.filter(({ account_id }) => account_id === account)
        const paid = yield* sums.paid({
          tenant_id: acme,
          rollup: "daily",
          window,
          viewer: bob,
          named: { most: 1 },
          labels
        })
        expect(paid.viewer).toMatchObject(pointsOf(of(bob), days))
        expect(paid.others).toMatchObject(pointsOf(of(ada), days))
        expect(paid.others.length).toBe(pointsOf(of(ada), days).length)
        const costOf = (account: typeof ada) => of(account).reduce((sum, { cost }) => sum + cost, 0n)
        const there = [ada, bob].filter((account) => of(account).length > 0)
        expect(Object.fromEntries(paid.callers.map((one) => [one.account_id, one.totals.total_cost]))).toEqual(
          Object.fromEntries(there.map((account) => [account, costOf(account)]))
        )
        const dearest = there.toSorted((a, b) => (costOf(a) > costOf(b) ? -1 : 1)).slice(0, 1)
        expect([...paid.named.keys()]).toEqual(dearest)
      }
    }).pipe(Effect.provide(layer))
  )
})
