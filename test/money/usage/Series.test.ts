/** Usage as series: the same sums as of the calls themselves, however far the rollups are behind. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Layer, Schema, TestClock } from "effect"
import { day, hour, parse } from "../../../src/kernel/Moment.ts"
import { toDecimal, usd } from "../../../src/kernel/Money.ts"
import { payersOf, seriesOf } from "../../../src/money/usage/Query.ts"
import { Series } from "../../../src/money/usage/Series.ts"
import { amountText, seriesText } from "../../../src/money/usage/SeriesText.ts"
import { seriesBy, UsageSeries } from "../../../src/money/usage/Usage.ts"
import type { SeriesQuery } from "../../../src/money/usage/Usage.ts"
import * as Scene from "./Scene.ts"
import { acme, ada, bob, other } from "./Scene.ts"

const start = parse("2026-02-27T00:00:00Z")!
const window = { start_time: "2026-02-27T00:00:00Z", end_time: "2026-03-03T00:00:00Z" }

const asked = (query: SeriesQuery) =>
  Effect.flatMap(Series, (series) =>
    Effect.flatMap(seriesOf({ ...window, ...query }), (asked) => series.of({ tenant_id: acme, ...asked }))
  )

/** As a client reads it. */
const read = (query: SeriesQuery) =>
  Effect.map(Effect.flatMap(asked(query), seriesText), (text) =>
    Schema.decodeUnknownSync(UsageSeries)(JSON.parse(text))
  )

interface Made {
  readonly at: number
  readonly model: string
  readonly account: string
  readonly endpoint: string
  readonly application: string
  readonly provider: string
  readonly payer: string
  readonly none: string
  readonly end_user: string
  readonly run: string
  readonly "tag:project": string
  readonly cost: bigint
  readonly success: boolean
}

const history = Effect.gen(function* () {
  yield* Scene.now("2026-02-27T00:00:00Z")
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
  const made: Array<Made> = []
  for (let i = 0; i < 60; i++) {
    const at = start + i * 97 * 60_000
    yield* TestClock.setTime(at)
    const call = {
      model: `model-${(i * i) % 5}`,
      account_id: i % 3 === 0 ? bob : ada,
      endpoint: i % 4 === 0 ? "search" : "chat/completions",
      application_id: i % 2 === 0 ? "app_1" : null,
      provider: i % 7 === 0 ? "there" : "here",
      cost: BigInt(i * 10_000_000 + 1),
      success: i % 5 !== 0,
      payer: i % 6 === 1 ? other : acme,
      ...(i % 3 !== 0 && { tags: `a=b\nproject=p=${i % 4}\nz=1` }),
      ...(i % 5 === 1 && { tags: "projects=9\nz=project=3" }),
      ...(i % 4 === 2 && { end_user: `user ${i % 3}` }),
      ...(i % 8 === 3 && { run_id: "run_1" })
    }
    yield* Scene.call(call)
    yield* Scene.call({ tenant_id: other, payer: acme })
    const { account_id: account, application_id: application, ...rest } = call
    const { end_user = "", run_id: run = "", tags = "" } = rest
    const project = tags.startsWith("a=b") ? `p=${i % 4}` : ""
    made.push({ at, account, application: application ?? "", none: "", ...rest, end_user, run, "tag:project": project })
  }
  return made
})

const sum = (calls: ReadonlyArray<Made>) => calls.reduce((total, { cost }) => total + cost, 0n)

const expected = (
  made: ReadonlyArray<Made>,
  by: (typeof seriesBy)[number] | "tag:project",
  width: number,
  buckets: number
) => {
  const keys = [...new Set(made.map((call) => call[by]))]
  const ofKey = (key: string) => made.filter((call) => call[by] === key)
  return keys
    .sort((a, b) => {
      const [x, y] = [sum(ofKey(a)), sum(ofKey(b))]
      return x === y ? ofKey(b).length - ofKey(a).length || (a < b ? -1 : 1) : x > y ? -1 : 1
    })
    .map((key) => {
      const bucket = (i: number) => ofKey(key).filter(({ at }) => Math.floor((at - start) / width) === i)
      const all = Array.from({ length: buckets }, (_, i) => bucket(i))
      return {
        key,
        cost: all.map(sum),
        requests: all.map(({ length }) => length),
        failures: all.map((calls) => calls.filter(({ success }) => !success).length),
        tokens: all.map(({ length }) => 15 * length)
      }
    })
}

describe.each([2, 13, 1_000])("series, where tails are folded from %d records on", (tailMax) => {
  const layer = Series.layer.pipe(Layer.provideMerge(Scene.layerOf(tailMax)))

  it.effect("are the sums of the calls of each bucket, by whatever is asked for", () =>
    Effect.gen(function* () {
      const made = yield* history
      for (const by of [...seriesBy, "tag:project" as const]) {
        for (const grain of ["hour", "day"] as const) {
          const width = grain === "hour" ? hour : day
          const { series, timestamps, total } = yield* read({ by, grain, top: "50" })
          expect(timestamps).toEqual(Array.from({ length: (4 * day) / width }, (_, i) => start + i * width))
          const wanted = expected(made, by, width, timestamps.length)
          expect(series).toMatchObject(wanted)
          expect(series).toHaveLength(wanted.length)
          expect(total.cost).toBe(sum(made))
          expect(total.requests).toBe(60)
          for (const one of series) expect(one.total.cost).toBe(one.cost.reduce((all, cost) => all + cost, 0n))
        }
      }
    }).pipe(Effect.provide(layer))
  )

  it.effect("of a team are the calls that its pool paid, in whichever tenant", () =>
    Effect.gen(function* () {
      const made = yield* history
      const elsewhere = made.map((call): Made => ({
        ...call,
        account: ada,
        application: "",
        cost: usd,
        end_user: "",
        endpoint: "chat/completions",
        model: "small",
        payer: acme,
        provider: "here",
        run: "",
        success: true,
        "tag:project": ""
      }))
      const paid = [...made.filter(({ payer }) => payer === acme), ...elsewhere]
      const series = yield* Series
      const ofTeam = (query: SeriesQuery) =>
        seriesOf({ ...window, ...query }).pipe(
          Effect.flatMap((asked) => series.ofTeam({ tenant_id: acme, ...asked })),
          Effect.flatMap(seriesText),
          Effect.map((text) => Schema.decodeUnknownSync(UsageSeries)(JSON.parse(text)))
        )
      for (const by of ["tag:project", "model", "account", "payer"] as const) {
        const wanted = expected(paid, by, day, 4)
        const found = yield* ofTeam({ by, top: "50" })
        expect(found.series).toMatchObject(wanted)
        expect([found.series.length, found.total.cost]).toEqual([wanted.length, sum(paid)])
      }
      const tagged = yield* ofTeam({ by: "tag:project", tag: "project", top: "1" })
      expect(tagged.series.map(({ key }) => key === null)).toEqual([false, true])
      expect(tagged.total.requests).toBe(paid.filter((call) => call["tag:project"] !== "").length)
    }).pipe(Effect.provide(layer))
  )

  it.effect("have only the calls with a tag, an end user or a run, if it is asked for", () =>
    Effect.gen(function* () {
      const made = yield* history
      const has: ReadonlyArray<readonly [Partial<SeriesQuery>, (call: Made) => boolean]> = [
        [{ tag: "project" }, (call) => call["tag:project"] !== ""],
        [{ tag: "project=p=1" }, (call) => call["tag:project"] === "p=1"],
        [{ tag: "project=p" }, () => false],
        [{ end_user: "user 1" }, (call) => call.end_user === "user 1"],
        [{ end_user: "" }, (call) => call.end_user === ""],
        [{ run: "run_1", tag: "project=p=3" }, (call) => call.run === "run_1" && call["tag:project"] === "p=3"]
      ]
      for (const [query, isWanted] of has) {
        const wanted = expected(made.filter(isWanted), "model", day, 4)
        const { series, total } = yield* read({ group_by: "model", grain: "day", top: "50", ...query })
        expect(series).toMatchObject(wanted)
        expect(series).toHaveLength(wanted.length)
        expect(total.cost).toBe(sum(made.filter(isWanted)))
      }
    }).pipe(Effect.provide(layer))
  )

  it.effect("of an account are by who paid, whichever tenant called", () =>
    Effect.gen(function* () {
      const made = yield* history
      const byOther = made.filter(({ account, payer }) => account === ada && payer === other)
      yield* Scene.call({ payer: other, cost: 7n })
      const query = { ...window, end_time: "2026-03-03T05:00:00Z" }
      const found = yield* Effect.flatMap(Series, (series) =>
        Effect.flatMap(payersOf(query), (asked) => series.byPayer({ account_id: ada, ...asked }))
      )
      const all = yield* Effect.flatMap(Series, (series) =>
        Effect.flatMap(payersOf(query), (asked) => series.byPayer({ account_id: bob, ...asked }))
      )
      expect(found.series.map(({ key }) => key)).toEqual([acme, other])
      expect([found.series[1]!.total.cost, found.series[1]!.total.requests]).toEqual([7n + sum(byOther), 11])
      // Of 60 calls that acme's people made, a third are Bob's; and Ada made as many in the other tenant, which acme paid.
      expect([found.series[0]!.total.requests, all.total.requests]).toEqual([90, 20])
      expect(found.series[0]!.requests.reduce((sum, n) => sum + n, 0)).toBe(90)
      expect(found.grain).toBe("day")
    }).pipe(Effect.provide(layer))
  )

  it.effect("name the dearest, and add up the others", () =>
    Effect.gen(function* () {
      const made = yield* history
      const all = yield* read({ by: "model", top: "50" })
      const two = yield* read({ by: "model", top: "2" })
      expect(two.series.map(({ key }) => key)).toEqual([...all.series.slice(0, 2).map(({ key }) => key), null])
      expect(two.series.reduce((cost, { total }) => cost + total.cost, 0n)).toBe(sum(made))
      expect(two.series[2]!.requests).toEqual(
        two.timestamps.map((_, i) => all.series.slice(2).reduce((n, { requests }) => n + requests[i]!, 0))
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("cover the whole buckets that the window touches, and nothing behind it", () =>
    Effect.gen(function* () {
      yield* history
      const part = yield* read({ grain: "hour", start_time: "2026-02-27T02:30:00Z", end_time: "2026-02-27T04:00:01Z" })
      expect(part.timestamps).toEqual([2, 3, 4].map((i) => start + i * hour))
      // At 97 minutes each: 03:14 and 04:51.
      expect(part.total.requests).toBe(2)
      const none = yield* read({ start_time: "2026-03-02T00:00:00Z", end_time: "2026-03-01T00:00:00Z" })
      expect([none.timestamps, none.series, none.total.requests]).toEqual([[], [], 0])
      const before = yield* read({ start_time: "2020-01-01", end_time: "2020-01-02" })
      expect([before.timestamps.length, before.series]).toEqual([2, []])
    }).pipe(Effect.provide(layer))
  )
})

it("amounts are written as everywhere, whether a double holds them or not", () => {
  const amounts = [
    0n,
    1n,
    10n,
    999_999_999n,
    1_000_000_000n,
    1_500_000_000n,
    123_000_000_456n,
    2n ** 53n - 1n,
    2n ** 53n,
    10n ** 18n
  ]
  for (const amount of amounts) expect(amountText(amount)).toBe(toDecimal(amount))
})

describe("what is refused", () => {
  it.each([
    [{ by: "colour" }, "by"],
    [{ grain: "week" }, "grain"],
    [{ top: "0" }, "top"],
    [{ top: "1.5" }, "top"],
    [{ start_time: "yesterday" }, "start_time"],
    [{ grain: "hour", start_time: "2020-01-01T00:00:00Z" }, "end_time"]
  ])("%j", (query, field) => {
    const refused = seriesOf({ ...window, ...query })
    expect(Either.getLeft(refused)).toMatchObject({ value: { field } })
  })
})
