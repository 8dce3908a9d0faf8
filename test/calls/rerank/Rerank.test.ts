/** Reranking as a program asks for it, without HTTP: by searches, by tokens, and by both. */
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { Rerank } from "../../../src/calls/rerank/Rerank.ts"
import { RerankModels } from "../../../src/calls/rerank/Settings.ts"
import type { RerankModel } from "../../../src/calls/rerank/Settings.ts"
import { booksOf, fault, over, person } from "../../support/Called.ts"

const both: RerankModel = {
  id: "both",
  name: "Both",
  description: "",
  owned_by: "system",
  added_tokens_max: 0,
  input_tokens_max: 20,
  documents_max: 10,
  documents_per_search: 2,
  tokens_per_document: 20,
  // 1,000 and 10 nano-USD.
  search_price: 1_000_000_000_000n as UnitPrice,
  token_price: 10_000_000_000n as UnitPrice,
  routes: [{ upstream: "vendor", model: "both" }]
}

const room = Rerank.layer.pipe(Layer.provide(RerankModels.layer([both])))

layer(over(room, "ranking/v1"), { excludeTestServices: true })("reranking", (it) => {
  it.effect("is charged for searches and tokens, each as it is reported", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { rerank } = yield* Rerank
      const request = { model: "both", query: "tide", documents: ["high tide", "low"] }
      const { answer, receipt } = yield* rerank({ caller, request })
      expect(answer.results).toMatchObject([{ index: 0, relevance_score: 1 }, { index: 1 }])
      // Two words and one, and the query's for each.
      expect(receipt.charged).toBe(1_000n + 5n * 10n)
      expect(yield* booksOf(caller)).toMatchObject({
        reserved: 0n,
        calls: [{ cost: 1_050n, units: 1, usage_source: "provider" }],
        findings: []
      })
    })
  )

  it.effect("is estimated where one of them is missing, and bounded by what documents can count", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { rerank } = yield* Rerank
      yield* fault("rerank", { body: { results: [], meta: { billed_units: { search_units: 9 } } } })
      // 44 bytes are three documents, 8 bytes are one: two searches. Tokens: 11 + 1, and 1 + 1.
      const request = { model: "both", query: "tide", documents: ["x".repeat(40), "tide"] }
      const { receipt } = yield* rerank({ caller, request })
      expect(receipt.charged).toBe(2n * 1_000n + 13n * 10n)
      expect((yield* booksOf(caller)).calls).toMatchObject([{ units: 2, usage_source: "estimated" }])
    })
  )

  it.effect("is charged for the tokens that the vendor counted, up to what the model reads of each document", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { rerank } = yield* Rerank
      const charged = Effect.fnUntraced(function* (prompt_tokens: number) {
        yield* fault("rerank", {
          body: { results: [], usage: { prompt_tokens }, meta: { billed_units: { search_units: 1 } } }
        })
        const { receipt } = yield* rerank({
          caller,
          request: { model: "both", query: "tide", documents: ["x", "y".repeat(40)] }
        })
        return [(receipt.charged - 1_000n) / 10n, (yield* booksOf(caller)).calls.at(-1)!.usage_source]
      })
      // The first may have 20 tokens, the other as many as it and the query have bytes.
      expect(yield* charged(5)).toEqual([5n, "provider"])
      expect(yield* charged(20 + 44)).toEqual([64n, "provider"])
      expect(yield* charged(20 + 45)).toEqual([64n, "estimated"])
    })
  )

  it.effect("is handed on, and charged, though the vendor writes numbers that JSON does not have", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { rerank } = yield* Rerank
      yield* fault("rerank", { status: 200, body: '{"results":[{"index":0,"relevance_score":1,"odd":-Infinity}]}' })
      const { bytes, receipt } = yield* rerank({ caller, request: { model: "both", query: "tide", documents: ["x"] } })
      expect(JSON.parse(bytes.toString())).toEqual({ results: [{ index: 0, relevance_score: 1, odd: null }] })
      expect(receipt.charged).toBeGreaterThan(0n)
    })
  )

  it.effect("is no order where a document stands in it twice, and then costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { rerank } = yield* Rerank
      const twice = [0, 0].map((index) => ({ index, relevance_score: 1 }))
      yield* fault("rerank", { body: { results: twice } })
      const request = { model: "both", query: "tide", documents: ["high tide", "low"], return_documents: true }
      expect(yield* Effect.flip(rerank({ caller, request }))).toMatchObject({ _tag: "UpstreamFailed" })
      expect(yield* booksOf(caller)).toMatchObject({ balance: usd, reserved: 0n, findings: [] })
    })
  )
})
