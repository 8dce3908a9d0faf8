/** A charge computed again from its record and the version of its price, whatever was billed apart. */
import { SqlClient } from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer } from "effect"
import { costOf, tokensOf } from "../../../src/calls/prompts/Tokens.ts"
import { linesOf } from "../../../src/calls/prompts/Model.ts"
import type { DetailPrices, Model } from "../../../src/calls/prompts/Model.ts"
import * as Ids from "../../../src/kernel/Ids.ts"
import { fromDecimal } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { detailNames } from "../../../src/kernel/TokenDetails.ts"
import type { CallOutcome } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { PriceVersions } from "../../../src/books/prices/PriceVersions.ts"
import { usageOf } from "../../../src/protocols/chat/Usage.ts"
import { noUsage } from "../../../src/protocols/conversation/Usage.ts"
import { Explanations } from "../../../src/money/usage/Explanations.ts"
import * as Scene from "./Scene.ts"
import { acme } from "./Scene.ts"

const rooms = Layer.provideMerge(Explanations.layer, PriceVersions.layer).pipe(Layer.provideMerge(Scene.layer))

let calls = 0

/** A call that names the version of a price, from its admission to its end. */
const charged = (
  price: string,
  outcome: Pick<CallOutcome, "cost" | "prompt_tokens" | "completion_tokens" | "token_details">
) =>
  Effect.gen(function* () {
    const { submit } = yield* Writer
    const call = `call_explained${++calls}`
    const source = { billing_account_id: Ids.billingAccountOf(acme), tenant_id: acme, kind: "own", why: "own" } as const
    const facts = {
      account_id: Scene.ada,
      tenant_id: acme,
      application_id: null,
      usage_type: "inference",
      endpoint: "chat/completions",
      model: "m",
      provider: "here",
      price
    } as const
    yield* submit({
      postings: [{ _tag: "Reserve", call, sources: [source], least: 0n, most: outcome.cost, run: "run", facts }],
      statements: []
    })
    const units = outcome.prompt_tokens + outcome.completion_tokens
    const rest = { units, success: true, error_type: null, usage_source: "provider", latency_ms: 1 } as const
    yield* submit({ postings: [{ _tag: "Settle", call, outcome: { ...outcome, ...rest } }], statements: [] })
    const { of } = yield* Explanations
    return yield* of({ caller: { tenant_id: acme }, usage_id: Ids.usageOf(call) })
  })

const price = fc.bigInt(0n, 10n ** 13n) as fc.Arbitrary<UnitPrice>
const details = fc.option(fc.dictionary(fc.constantFrom(...detailNames), price) as fc.Arbitrary<DetailPrices>, {
  nil: undefined
})
const models: fc.Arbitrary<Model> = fc
  .record({
    prompt_price: price,
    completion_price: price,
    request_price: price,
    detail_prices: details,
    long_context: fc.option(
      fc
        .tuple(fc.nat(900), price, details)
        .map(([above_prompt_tokens, prompt_price, detail_prices]) => [
          { above_prompt_tokens, prompt_price, detail_prices }
        ]),
      { nil: undefined }
    )
  })
  .map((prices) => ({
    id: "m",
    name: "m",
    description: "",
    owned_by: "system",
    created: 1,
    input_modalities: ["text"],
    output_modalities: ["text"],
    context_length: 1_000,
    output_tokens_max: 1_000,
    attachment_tokens_max: 1,
    added_tokens_max: 0,
    tool_tokens_max: 0,
    extras: [],
    routes: [],
    ...prices
  }))
const figure = fc.nat(1_200)
const usages = fc.record({
  prompt_tokens: figure,
  completion_tokens: figure,
  prompt_tokens_details: fc.record({ cached_tokens: figure, cache_write_tokens: figure, audio_tokens: figure }),
  completion_tokens_details: fc.record({ reasoning_tokens: figure, image_tokens: figure }),
  cache_creation: fc.record({ ephemeral_1h_input_tokens: figure })
})

layer(rooms)("the explanation of a charge", (it) => {
  it.effect("comes to what was charged, and its lines have each token once", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      const versions = yield* PriceVersions
      for (const [model, reported] of fc.sample(fc.tuple(models, usages), 60)) {
        const kinds = { attachments: true, hour: true }
        const most = { prompt_tokens: 1_000, context_tokens: 1_000, completion_tokens: 1_000, kinds }
        const tokens = tokensOf(usageOf(reported) ?? noUsage, () => most, most)
        const cost = costOf(model, tokens)
        const why = yield* charged(yield* versions.of(linesOf(model)), { ...tokens, cost })
        expect([why.computed_usd, why.charged_usd, why.uncollected_usd]).toEqual([cost, cost, 0n])
        const lines = why.price!.lines.filter(({ unit }) => unit !== "request")
        expect(lines.reduce((n, { quantity }) => n + quantity, 0)).toBe(tokens.prompt_tokens + tokens.completion_tokens)
        const sum = why.price!.lines.reduce((all, { amount_usd }) => all + fromDecimal(amount_usd, 18)!, 0n)
        expect((sum + 500_000_000n) / 1_000_000_000n).toBe(cost)
      }
    })
  )

  it.effect("of an earlier version, whose price had two lines and whose record no parts, is the same as it was", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const lines =
        '[{"quantity":"prompt_tokens","unit":"token","price":"3000000000000"},{"quantity":"completion_tokens","unit":"token","price":"15000000000000"}]'
      yield* sql`INSERT INTO tollgate_price_versions (id, lines, first_used_at) VALUES ('earlier', ${lines}, 1)`
      const why = yield* charged("earlier", {
        cost: 45_000n,
        prompt_tokens: 10,
        completion_tokens: 1,
        token_details: undefined
      })
      expect(why.price).toEqual({
        version: "earlier",
        lines: [
          { quantity: 10, unit: "prompt token", unit_price_usd: "0.000003", amount_usd: "0.00003" },
          { quantity: 1, unit: "completion token", unit_price_usd: "0.000015", amount_usd: "0.000015" }
        ]
      })
      expect([why.computed_usd, why.charged_usd]).toEqual([45_000n, 45_000n])
      const [row] = yield* sql`SELECT token_details FROM tollgate_usage_records ORDER BY seq DESC LIMIT 1`
      expect(row).toEqual({ token_details: null })
    })
  )
})
