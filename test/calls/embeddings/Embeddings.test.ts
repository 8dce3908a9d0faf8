/** Embeddings as a program asks for them, without HTTP: values, receipts, what a request can cost, and refusals by their tags. */
import { expect, layer } from "@effect/vitest"
import { Either, Effect, Layer } from "effect"
import * as fc from "fast-check"
import { validate } from "../../../src/calls/embeddings/Embedding.ts"
import { Embeddings } from "../../../src/calls/embeddings/Embeddings.ts"
import { EmbeddingModels } from "../../../src/calls/embeddings/Settings.ts"
import type { EmbeddingModel } from "../../../src/calls/embeddings/Settings.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { UnknownModel } from "../../../src/upstream/models/Provider.ts"
import { booksOf, fault, over, person, received } from "../../support/Called.ts"

const model: EmbeddingModel = {
  id: "small",
  name: "Small",
  description: "",
  owned_by: "system",
  added_tokens_max: 2,
  input_tokens_max: 100,
  inputs_max: 10,
  dimensions: 8,
  shortens: false,
  // 1,000 nano-USD a token.
  price: 1_000_000_000_000n as UnitPrice,
  routes: [{ upstream: "vendor", model: "large-there" }]
}
const token = 1_000n

const room = Embeddings.layer.pipe(Layer.provide(EmbeddingModels.layer([model])))

layer(over(room, "embeddings-a/v1"), { excludeTestServices: true })("embeddings", (it) => {
  it.effect("are a value with its receipt, of the upstream's own model", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { embed, least } = yield* Embeddings
      expect(least).toBe(token)
      const input = ["one two", "three"]
      const { answer, bytes, receipt } = yield* embed({ caller, request: { model: "small", input } })
      expect(JSON.parse(bytes.toString())).toEqual(answer)
      expect(answer).toMatchObject({ model: "large-there", data: [{ index: 0 }, { index: 1 }] })
      expect(receipt.charged).toBe(3n * token)
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - 3n * token,
        reserved: 0n,
        calls: [{ cost: 3n * token, usage_source: "provider", success: true }],
        findings: []
      })
    })
  )

  it.effect("that cannot be paid are refused with amounts, and reach nobody", () =>
    Effect.gen(function* () {
      // Seven bytes and five, and two tokens more of each.
      const caller = yield* person(16n * token - 1n)
      const { embed } = yield* Embeddings
      const before = (yield* received("embeddings")).length
      const request = { model: "small", input: ["one two", "three"] }
      const payer = billingAccountOf(caller.tenant_id)
      expect(yield* Effect.flip(embed({ caller, request }))).toMatchObject({
        _tag: "InsufficientCredits",
        required: 16n * token,
        payer
      })
      const unknown = yield* Effect.flip(embed({ caller, request: { ...request, model: "x" } }))
      expect(unknown).toBeInstanceOf(UnknownModel)
      expect(unknown).toMatchObject({ _tag: "InvalidRequest", models: ["small"] })
      expect(yield* received("embeddings")).toHaveLength(before)
      yield* fault("embeddings", { status: 429, headers: { "retry-after": "3" } })
      const short = { caller, request: { model: "small", input: "a" } }
      expect(yield* Effect.flip(embed(short))).toMatchObject({ _tag: "UpstreamBusy", retry_after: 3 })
      expect(yield* booksOf(caller)).toMatchObject({ reserved: 0n, findings: [] })
    })
  )

  it.effect("cost what an answer reports that is no JSON", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { embed } = yield* Embeddings
      const body = '{"data":[{"index":0,"embedding":[1,]}],"usage":{"prompt_tokens":2,"total_tokens":2}}'
      yield* fault("embeddings", { status: 200, body })
      const request = { model: "small", input: "one two" }
      expect((yield* Effect.flip(embed({ caller, request })))._tag).toBe("UpstreamFailed")
      const calls = [{ success: false, error_type: "upstream_error", cost: 2n * token }]
      expect(yield* booksOf(caller)).toMatchObject({ calls, reserved: 0n, findings: [] })
    })
  )

  it.effect("have null for numbers that JSON does not have, and NaN as base64", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { embed } = yield* Embeddings
      const nan = Buffer.alloc(4)
      nan.writeFloatLE(Number.NaN)
      for (const [encoding_format, embedding] of [
        ["float", [null]],
        ["base64", nan.toString("base64")]
      ] as const) {
        const body = '{"data":[{"index":0,"embedding":[NaN]}],"usage":{"prompt_tokens":2,"total_tokens":2}}'
        yield* fault("embeddings", { status: 200, body })
        const { answer, bytes, receipt } = yield* embed({
          caller,
          request: { model: "small", input: "one two", encoding_format }
        })
        expect(answer.data).toEqual([{ index: 0, embedding }])
        expect(JSON.parse(bytes.toString())).toEqual(answer)
        expect(receipt.charged).toBe(2n * token)
      }
    })
  )

  it("cost no more than is set aside, whatever they are", () => {
    const input = fc.oneof(
      fc.string({ unit: "binary", minLength: 1 }),
      fc.array(fc.string({ unit: "binary", minLength: 1 }), { minLength: 1, maxLength: 10 }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 100 }),
      fc.array(fc.array(fc.nat(), { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 10 })
    )
    fc.assert(
      fc.property(input, (input) => {
        const asked = Either.getOrThrow(validate([model], { model: "small", input }))
        expect(asked.estimate).toBeLessThanOrEqual(asked.most)
        expect(asked.most).toBeLessThanOrEqual(asked.inputs * model.input_tokens_max)
        const isList = Array.isArray(input) && typeof input[0] !== "number"
        expect(asked.inputs).toBe(isList ? input.length : 1)
      })
    )
  })

  it.each([
    ["Model", "model"],
    ["INPUT", "input"],
    ["\u017fpeed", "speed"]
  ])("are refused with %s, which some upstreams take for %s", (field, name) => {
    const asked = validate([model], { model: "small", input: "a", [field]: "b" })
    expect(Either.flip(asked)).toMatchObject(Either.right({ field, rule: `must be written as ${name}` }))
  })
})
