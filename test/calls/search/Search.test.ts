/** Searches as a program asks for them, without HTTP: values, receipts, and refusals by their tags. */
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { SearchProviders } from "../../../src/calls/search/Settings.ts"
import type { SearchProvider } from "../../../src/calls/search/Settings.ts"
import type { SearchQuery } from "../../../src/calls/search/Query.ts"
import { Search } from "../../../src/calls/search/Search.ts"
import { UnknownProvider } from "../../../src/upstream/models/Provider.ts"
import { booksOf, fault, holds, interruptedAtWork, over, person, received } from "../../support/Called.ts"

const price = 5_000_000_000_000_000n as UnitPrice
const cost = 5_000_000n

const tavily: SearchProvider = {
  id: "tavily",
  name: "Tavily",
  description: "",
  vendor: "tavily",
  upstream: "vendor",
  price,
  price_by_depth: { advanced: (2n * price) as UnitPrice }
}

const query: SearchQuery = { query: "why is the sky blue", max_results: 2, include_raw: false, domains: [] }

const room = Search.layer.pipe(Layer.provide(Layer.succeed(SearchProviders, [tavily])))

layer(over(room, "search-tavily"), { excludeTestServices: true })("a search", (it) => {
  it.effect("is a value with its receipt, at the price of its depth", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { search } = yield* Search
      const first = yield* search({ caller, query })
      expect(first.results.map(({ title }) => title)).toEqual(["why is the sky blue (1)", "why is the sky blue (2)"])
      expect([first.query, first.provider]).toEqual([query.query, "tavily"])
      expect(first.receipt).toMatchObject({ charged: cost, balance: usd - cost })
      const { receipt } = yield* search({ caller, query: { ...query, search_depth: "advanced", provider: "tavily" } })
      expect(receipt).toMatchObject({ charged: 2n * cost, balance: usd - 3n * cost })
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - 3n * cost,
        reserved: 0n,
        calls: [
          { id: first.receipt.usage_id, cost, success: true },
          { id: receipt.usage_id, cost: 2n * cost, success: true }
        ],
        findings: []
      })
    })
  )

  it.effect("with an answer that is too long to be parsed fails, and costs what any search costs", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { search } = yield* Search
      yield* fault("search", { body: { results: [], padding: "x".repeat(9 * 1024 * 1024) } })
      const refused = yield* Effect.flip(search({ caller, query }))
      expect(refused._tag).toBe("UpstreamFailed")
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - cost,
        reserved: 0n,
        calls: [{ cost, success: false }],
        findings: []
      })
    })
  )

  it.effect("has its results, and costs its price, though the vendor writes numbers that JSON does not have", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { search } = yield* Search
      yield* fault("search", { status: 200, body: '{"results":[{"url":"https://a.example","score":NaN}]}' })
      const { receipt, results } = yield* search({ caller, query })
      expect([results, receipt.charged]).toEqual([[{ url: "https://a.example", title: "", content: "" }], cost])
    })
  )

  it.effect("that cannot be paid is refused with amounts, and reaches no vendor", () =>
    Effect.gen(function* () {
      const caller = yield* person(cost - 1n)
      const { search } = yield* Search
      const before = (yield* received("search")).length
      const refused = yield* Effect.catchTag(search({ caller, query }), "InsufficientCredits", Effect.succeed)
      const payer = billingAccountOf(caller.tenant_id)
      expect(refused).toMatchObject({ available: cost - 1n, required: cost, payer, reason: "balance" })
      expect(yield* received("search")).toHaveLength(before)
      expect(yield* booksOf(caller)).toMatchObject({ balance: cost - 1n, calls: [], findings: [] })
    })
  )

  it.effect("of a provider that there is not is refused with those that there are", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { search } = yield* Search
      const refused = yield* Effect.flip(search({ caller, query: { ...query, provider: "brave" } }))
      expect(refused).toBeInstanceOf(UnknownProvider)
      expect(refused).toMatchObject({ _tag: "InvalidRequest", provider: "brave", providers: ["tavily"] })
    })
  )

  it.effect("that the vendor refuses, or does not answer, fails and costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { search } = yield* Search
      yield* fault("search", { status: 422, body: { error: { message: "not that", param: "query" } } })
      const rejected = yield* Effect.catchTag(search({ caller, query }), "UpstreamRejected", Effect.succeed)
      expect(rejected).toMatchObject({ field: "query", rule: "not that" })
      yield* fault("search", { status: 429, headers: { "retry-after": "3" } })
      const busy = yield* Effect.catchTag(search({ caller, query }), "UpstreamBusy", Effect.succeed)
      expect(busy).toMatchObject({ retry_after: 3 })
      yield* fault("search", { drop: true })
      expect((yield* Effect.flip(search({ caller, query })))._tag).toBe("UpstreamFailed")
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd,
        reserved: 0n,
        calls: [
          { error_type: "upstream_rejected" },
          { error_type: "upstream_rate_limited" },
          { success: false, cost: 0n }
        ],
        findings: []
      })
    })
  )

  it.effect("whose caller leaves is charged for what the vendor still finds", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { search } = yield* Search
      yield* fault("search", holds)
      const { interrupted } = yield* interruptedAtWork("search", search({ caller, query }))
      expect(interrupted).toBe(true)
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - cost,
        reserved: 0n,
        calls: [{ success: true, cost }],
        findings: []
      })
    })
  )
})
