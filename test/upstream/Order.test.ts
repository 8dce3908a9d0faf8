/** The order of a model's upstreams: what holds for all candidates, and the shares of weights. */
import * as fc from "effect/FastCheck"
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { orderOf, policies } from "../../src/upstream/routing/Order.ts"
import type { Candidate, Question } from "../../src/upstream/routing/Order.ts"

const chanceOf =
  (seed: string) =>
  (upstream: string): number =>
    (createHash("sha256").update(`${seed} ${upstream}`).digest().readUInt32BE(0) + 1) / 2 ** 32

const candidates = fc.uniqueArray(
  fc.record({
    upstream: fc.stringMatching(/^[a-z]{1,4}$/),
    standing: fc.constantFrom("ready" as const, "due" as const, "cooling" as const),
    weight: fc.constantFrom(0, 1, 2, 10),
    cost: fc.option(fc.bigInt(0n, 5n), { nil: undefined }),
    latency_ms: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined })
  }),
  { minLength: 1, maxLength: 6, selector: ({ upstream }) => upstream }
)

const questions = fc
  .record({ candidates, policy: fc.constantFrom(...policies), last: fc.nat(8), seed: fc.string() })
  .map(({ candidates, last, policy, seed }): Question => ({
    candidates,
    policy,
    last: candidates[last]?.upstream,
    chance: chanceOf(seed)
  }))

const isOrdered = <A>(list: ReadonlyArray<A>, compare: (one: A, other: A) => boolean): boolean =>
  list.every((one, i) => i === 0 || compare(list[i - 1]!, one))

describe("the order of upstreams", () => {
  it("has each candidate once, and those that cool down last", () => {
    fc.assert(
      fc.property(questions, (question) => {
        const { places } = orderOf(question)
        expect(places.toSorted((a, b) => a - b)).toEqual(question.candidates.map((_, i) => i))
        const cooling = places.map((place) => question.candidates[place]!.standing === "cooling")
        expect(isOrdered(cooling, (one, other) => !one || other)).toBe(true)
      })
    )
  })

  it("begins with the upstream that last answered the conversation, unless it cools down", () => {
    fc.assert(
      fc.property(questions, (question) => {
        const { places } = orderOf(question)
        const last = question.candidates.find(({ upstream }) => upstream === question.last)
        fc.pre(last !== undefined && last.standing !== "cooling")
        expect(question.candidates[places[0]!]).toBe(last)
      })
    )
  })

  it("follows the rule among those that do not cool down", () => {
    fc.assert(
      fc.property(questions, (asked) => {
        const question = { ...asked, last: undefined }
        const { places } = orderOf(question)
        const open = places.filter((place) => question.candidates[place]!.standing !== "cooling")
        const of = (place: number) => question.candidates[place]!
        const follows: Readonly<Record<Question["policy"], (one: number, other: number) => boolean>> = {
          order: (one, other) => one < other,
          weights: (one, other) => of(one).weight > 0 || of(other).weight === 0,
          cost: (one, other) => of(other).cost === undefined || (of(one).cost ?? 99n) <= of(other).cost!,
          latency: (one, other) => (of(one).latency_ms ?? 0) <= (of(other).latency_ms ?? 0)
        }
        expect(isOrdered(open, follows[question.policy])).toBe(true)
      })
    )
  })

  it("says why the first one is first", () => {
    const of = (...standings: ReadonlyArray<Candidate["standing"]>): Question => ({
      policy: "order",
      candidates: standings.map((standing, i) => ({ upstream: `u${i}`, standing, weight: 1 })),
      chance: chanceOf("")
    })
    expect(orderOf(of("ready")).reason).toBe("only")
    expect(orderOf(of("ready", "ready")).reason).toBe("order")
    expect(orderOf(of("due", "ready")).reason).toBe("probe")
    expect(orderOf(of("cooling", "ready"))).toEqual({ places: [1, 0], reason: "others_cooling" })
    expect(orderOf(of("cooling", "cooling"))).toEqual({ places: [0, 1], reason: "all_cooling" })
    expect(orderOf({ ...of("ready", "ready"), last: "u1" })).toEqual({ places: [1, 0], reason: "conversation" })
    expect(orderOf({ ...of("ready", "ready"), policy: "latency" }).reason).toBe("unmeasured")
    const figures = of("ready", "ready").candidates.map((one, i) => ({
      ...one,
      latency_ms: 9 - i,
      cost: BigInt(9 - i)
    }))
    for (const policy of ["latency", "cost"] as const)
      expect(orderOf({ ...of(), candidates: figures, policy })).toEqual({ places: [1, 0], reason: policy })
  })
})

describe("weights", () => {
  const weights = [7, 2, 1, 0]
  const candidates = weights.map((weight, i): Candidate => ({ upstream: `u${i}`, standing: "ready", weight }))
  const firstOf = (seed: number, among = candidates): string => {
    const { places } = orderOf({ policy: "weights", candidates: among, chance: chanceOf(`${seed}`) })
    return among[places[0]!]!.upstream
  }
  const seeds = Array.from({ length: 10_000 }, (_, seed) => seed)

  it("are the shares of the calls", () => {
    const counts = new Map<string, number>()
    for (const seed of seeds) counts.set(firstOf(seed), (counts.get(firstOf(seed)) ?? 0) + 1)
    const shares = candidates.map(({ upstream }) => (counts.get(upstream) ?? 0) / seeds.length)
    for (const [i, weight] of weights.entries()) expect(Math.abs(shares[i]! - weight / 10)).toBeLessThan(0.02)
    expect(shares[3]).toBe(0)
  })

  it("move only the conversations of an upstream that cools down", () => {
    const without = candidates.map((one): Candidate => (one.upstream === "u0" ? { ...one, standing: "cooling" } : one))
    for (const seed of seeds.slice(0, 1_000)) {
      const before = firstOf(seed)
      if (before !== "u0") expect(firstOf(seed, without)).toBe(before)
    }
  })
})
