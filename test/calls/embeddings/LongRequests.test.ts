/** Long requests of embeddings and reranking: another thread reads them as this one would, and completes their answers. */
import { Effect, Either } from "effect"
import { describe, expect, it } from "vitest"
import { validate, encoded, factsOf } from "../../../src/calls/embeddings/Embedding.ts"
import type { EmbeddingFacts } from "../../../src/calls/embeddings/Embedding.ts"
import * as LongRequests from "../../../src/calls/embeddings/LongRequests.ts"
import type { EmbeddingModel } from "../../../src/calls/embeddings/Settings.ts"
import { spliced } from "../../../src/calls/prompts/Outgoing.ts"
import * as Ranking from "../../../src/calls/rerank/Ranking.ts"
import type { RerankModel } from "../../../src/calls/rerank/Settings.ts"
import { hashOf } from "../../../src/calls/metered/TextHash.ts"
import { parse } from "../../../src/http/transport/Json.ts"
import type { InvalidRequest } from "../../../src/kernel/InvalidRequest.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"

const common = { name: "Small", description: "", owned_by: "system", added_tokens_max: 3, input_tokens_max: 5_000 }
const embedding: EmbeddingModel = {
  ...common,
  id: "small",
  inputs_max: 2_048,
  dimensions: 4,
  shortens: true,
  price: 1n as UnitPrice,
  routes: [{ upstream: "main", model: "m" }]
}
const reranking: RerankModel = {
  ...common,
  id: "small",
  documents_max: 3_000,
  documents_per_search: 100,
  tokens_per_document: 500,
  search_price: 1n as UnitPrice,
  token_price: 1n as UnitPrice,
  routes: [{ upstream: "main", model: "m" }]
}

const word = "the tide, \u00e9\u{1f600} "
const texts = Array.from({ length: 1_000 }, (_, i) => `${i} ${word.repeat(30)}`)
const long = word.repeat(20_000)

type Body = Readonly<Record<string, unknown>>
type Asked = Either.Either<{ readonly request: unknown }, InvalidRequest>

const protocols = {
  embeddings: {
    long: "input",
    valid: [
      { model: "small", input: texts, encoding_format: "base64", dimensions: 2, user: "u", odd: { field: 1 } },
      { model: "small", input: Array.from({ length: 100 }, () => Array.from({ length: 900 }, (_, i) => 100_000 + i)) },
      { model: "small", input: long },
      { model: "small", input: "short", odd: [long], metadata: { a: "b" } }
    ] as ReadonlyArray<Body>,
    wrong: (padding: string) =>
      [
        { input: texts },
        { model: "other", input: texts },
        { model: "small", input: texts, encoding_format: padding },
        { model: "small", input: texts, dimensions: [padding] },
        { model: "small", input: texts, user: [padding] },
        { model: "small", input: texts, service_tier: `flex${padding}` },
        { model: "small", input: texts, tools: [{ type: "web_search", note: padding }] },
        { model: "small", input: [padding, 7] },
        { model: "small", input: ["", padding] },
        { model: "small", input: [[1, 2], Array.from({ length: 5_001 }, () => 1), [padding]] },
        { model: "small", input: Array.from({ length: 2_049 }, () => `a${padding.slice(0, 200)}`) },
        { model: "small", input: [], odd: padding },
        { model: "small", odd: padding },
        [padding],
        padding,
        null
      ] as ReadonlyArray<unknown>,
    here: (value: unknown): Asked => validate([embedding], value),
    there: ({ facts, value }: LongRequests.LongRequest): Asked => validate([embedding], value, facts as EmbeddingFacts),
    factsOf
  },
  rerank: {
    long: "documents",
    valid: [
      { model: "small", query: "tide", documents: texts, top_n: 3, return_documents: true },
      { model: "small", query: long, documents: texts.map((text) => ({ text, more: 1 })) }
    ] as ReadonlyArray<Body>,
    wrong: (padding: string) =>
      [
        { query: "tide", documents: texts },
        { model: "other", query: "tide", documents: texts },
        { model: "small", query: [padding], documents: texts },
        { model: "small", query: "tide", documents: padding },
        { model: "small", query: "tide", documents: [padding, { text: 7 }] },
        { model: "small", query: "tide", documents: Array.from({ length: 3_001 }, () => `a${padding.slice(0, 200)}`) },
        { model: "small", query: "tide", documents: texts, top_n: padding },
        { model: "small", query: "tide", documents: texts, return_documents: padding },
        { model: "small", query: "tide", documents: texts, tools: [{ type: "web_search", note: padding }] },
        [padding]
      ] as ReadonlyArray<unknown>,
    here: (value: unknown): Asked => Ranking.validate([reranking], value),
    there: ({ facts, value }: LongRequests.LongRequest): Asked =>
      Ranking.validate([reranking], value, facts as Ranking.RerankFacts),
    factsOf: Ranking.factsOf
  }
} as const

const readLong = (protocol: "embeddings" | "rerank", json: Buffer) =>
  Effect.runPromise(LongRequests.read(protocol, Buffer.from(json), "acc_1"))

const plain = (asked: Asked) =>
  Either.mapBoth(asked, {
    onLeft: ({ field, message, rule }) => ({ field, message, rule }),
    onRight: (asked) => ({ ...asked, request: undefined })
  })

describe.each(["embeddings", "rerank"] as const)("a long request of %s", (protocol) => {
  const { factsOf, here, long: longMember, there, valid, wrong } = protocols[protocol]

  it.each(valid.map((body, i) => [i, body] as const))(
    "(%i) has the same figures and reaches the upstream",
    async (_, body) => {
      const json = Buffer.from(JSON.stringify(body))
      const request = await readLong(protocol, json)
      expect(request.facts).toEqual(factsOf(body))
      expect(Either.isRight(here(body))).toBe(true)
      expect(plain(there(request))).toEqual(plain(here(body)))
      expect(JSON.stringify(request.value).length).toBeLessThan(70_000)
      const sent = Buffer.concat(spliced({ ...(request.value as Body), model: "m" }, request)).toString()
      expect(JSON.parse(sent)).toEqual({ ...body, model: "m" })
      expect(request.members.map(({ name }) => name)).toContain(longMember)
    }
  )

  it("is refused as a short one is, for each kind of mistake", async () => {
    const [short, longer] = [wrong("x"), wrong("x".repeat(300_000))]
    for (const [i, value] of short.entries()) {
      const request = await readLong(protocol, Buffer.from(JSON.stringify(longer[i])))
      const expected = here(value)
      expect(Either.isLeft(expected)).toBe(true)
      expect(plain(there(request))).toEqual(plain(expected))
    }
  })

  it("that is no JSON, or has too many parts, is refused as a short one is", async () => {
    for (const text of [`{"model":"small","${longMember}":"${long}"`, `[${"[],".repeat(260_000)}1]`]) {
      const bytes = Buffer.from(text)
      const read = await Effect.runPromise(Effect.either(LongRequests.read(protocol, Buffer.from(bytes), "acc_1")))
      expect(read).toEqual(parse(bytes))
    }
  })

  it("names a user with a long name by its hash, as the call's labels do", async () => {
    const body = { ...valid[0], user: long }
    const { members, value } = await readLong(protocol, Buffer.from(JSON.stringify(body)))
    expect((value as Body).user).toBe(hashOf(long))
    expect(members.map(({ name }) => name)).toContain("user")
  })
})

describe("a long answer", () => {
  const completed = async (protocol: "embeddings" | "rerank", answer: object, request?: object) => {
    const body = request && Buffer.from(JSON.stringify(request))
    const bytes = await Effect.runPromise(
      LongRequests.completed(protocol, Buffer.from(JSON.stringify(answer)), body, "acc_1")
    )
    return JSON.parse(bytes!.toString()) as unknown
  }

  it("of embeddings becomes base64 as a short one does", async () => {
    const data = Array.from({ length: 500 }, (_, index) => ({
      object: "embedding",
      index,
      embedding: index === 7 ? "AAAA" : Array.from({ length: 200 }, (_, i) => (i * index) / 997 - 0.5)
    }))
    const answer = { object: "list", data, usage: { prompt_tokens: 3 } }
    expect(await completed("embeddings", answer)).toEqual(encoded(answer))
  })

  it("of reranking gets the documents that the upstream omitted", async () => {
    const documents = texts.map((text, i) => (i % 2 === 0 ? text : { text, more: i }))
    const results = documents.map((_, index) => ({
      index,
      relevance_score: 0.5,
      ...(index % 3 === 0 && { document: { text: `own ${index} ${word.repeat(40)}` } })
    }))
    const answer = { results, usage: { total_tokens: 4 } }
    expect(await completed("rerank", answer, { documents })).toEqual(Ranking.withDocuments(answer, documents))
  })

  it("that the thread cannot read is lost", async () => {
    const lost = LongRequests.completed("rerank", Buffer.from("{"), Buffer.from("{}"), "acc_1")
    expect(await Effect.runPromise(lost)).toBeUndefined()
  })
})
