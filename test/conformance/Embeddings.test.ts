/** Embeddings and reranking from outside: each field, exact prices, figures that are not believed, failover, keys. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { head, line } from "../http/Edge.ts"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`vector${++people}@example.com`)
const fault = (of: string, more: object) => service.control("/faults", { service: of, times: 1, ...more })
const calls = (of: string) => service.control(`/calls?service=${of}`)
const left = (cost: number) => Number((6 - cost).toFixed(9))

/** What a refusal says, in the shape that OpenAI's clients parse. */
const said = ({ body: { error }, status }: Answer) => {
  expect(error).toMatchObject({ message: expect.any(String), type: expect.any(String) })
  expect(error.param).toBe(error.details?.field || null)
  return [status, error.code, error.details?.field]
}

/** The same in the service's own shape. */
const saidPlainly = ({ body, status }: Answer) => [status, body.code, body.details?.field]

const small = "sandbox-embedding"
const embed = ({ token }: Person, more: object = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("/v1/embeddings", { token, headers, json: { model: small, input: "one two three", ...more } })

const documents = ["the harbour opens at nine", "high tide is at noon", "the tide is in"]
const rerank = ({ token }: Person, more: object = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("/v1/rerank", {
    token,
    headers,
    json: { model: "sandbox-rerank", query: "high tide", documents, ...more }
  })

/** The newest record and its explanation say what was charged. */
const recorded = async (who: Person, expected: object) => {
  const [record] = await service.usage(who)
  expect(record).toMatchObject({ usage_type: "inference", ...expected })
  const why = (await service.call(`/v1/usage/${record.id}/explain`, { token: who.token })).body
  expect(why).toMatchObject({ endpoint: record.endpoint, charged_usd: record.cost, computed_usd: record.cost })
  return why
}

const untouched = async (who: Person) => {
  expect(await service.usage(who)).toEqual([])
  expect(await service.balance(who)).toBe(6)
}

describe("embeddings", () => {
  it.each([
    ["a text", "one two three", 1, 3],
    ["texts", ["one two", "three"], 2, 3],
    ["tokens", [5, 6, 7, 8], 1, 4],
    ["lists of tokens", [[5, 6], [7], [8, 9]], 3, 5]
  ])("of %s cost 0.02 a million tokens", async (_, input, count, tokens) => {
    const who = await person()
    const { body, headers, status } = await embed(who, { input })
    const cost = (tokens * 2) / 1e8
    expect([status, headers.get("x-charge-usd")]).toEqual([200, cost.toFixed(8).replace(/0+$/, "")])
    expect(body).toMatchObject({ object: "list", model: small, usage: { prompt_tokens: tokens, total_tokens: tokens } })
    expect(
      body.data.map(({ embedding, index }: { embedding: Array<number>; index: number }) => [index, embedding.length])
    ).toEqual(Array.from({ length: count }, (_, i) => [i, 256]))
    const counts = { endpoint: "embeddings", model: small, prompt_tokens: tokens, units: tokens, cost }
    const why = await recorded(who, { ...counts, provider: "sandbox-embeddings-a", success: true })
    expect(why.price.lines).toEqual([
      { quantity: tokens, unit: "prompt token", unit_price_usd: "0.00000002", amount_usd: expect.any(String) }
    ])
    expect(await service.balance(who)).toBe(left(cost))
  })

  it("come as base64 too, and shorter", async () => {
    const who = await person()
    const numbers = (await embed(who, { dimensions: 16 })).body.data[0].embedding as Array<number>
    const text = (await embed(who, { dimensions: 16, encoding_format: "base64", user: "somebody" })).body.data[0]
      .embedding
    const bytes = Buffer.from(text, "base64")
    expect(numbers).toHaveLength(16)
    expect(numbers.map((_, i) => bytes.readFloatLE(4 * i))).toEqual(numbers)
  })

  it("are base64 for who asks for that, though an upstream knows only numbers", async () => {
    const who = await person()
    await fault("embeddings", { body: { data: [{ index: 0, embedding: [0.5, -2] }], usage: { prompt_tokens: 3 } } })
    const { body } = await embed(who, { encoding_format: "base64" })
    const bytes = Buffer.from(body.data[0].embedding, "base64")
    expect([bytes.length, bytes.readFloatLE(0), bytes.readFloatLE(4)]).toEqual([8, 0.5, -2])
  })

  it("reach the upstream as they were asked for, and its answer comes as it was sent", async () => {
    const who = await person()
    const answer = { data: [{ embedding: "AAAA", extra: 1 }], usage: { total_tokens: 2 }, more: [1e-7] }
    await fault("embeddings", { body: answer })
    const { body } = await embed(who, { input_type: "query", encoding_format: "base64" })
    expect(body).toEqual(answer)
    expect((await calls("embeddings"))[0].body).toEqual({
      model: small,
      input: "one two three",
      input_type: "query",
      encoding_format: "base64"
    })
    expect((await service.usage(who))[0]).toMatchObject({ prompt_tokens: 2, cost: 4e-8 })
  })

  it.each([
    [{ model: undefined }, "model"],
    [{ model: 5 }, "model"],
    [{ model: "sandbox-small" }, "model"],
    [{ input: undefined }, "input"],
    [{ input: "" }, "input"],
    [{ input: [] }, "input"],
    [{ input: [""] }, "input"],
    [{ input: ["a", 5] }, "input"],
    [{ input: [5, "a"] }, "input"],
    [{ input: [1.5] }, "input"],
    [{ input: [[-1]] }, "input"],
    [{ input: [[]] }, "input"],
    [{ input: { text: "x" } }, "input"],
    [{ input: [{ type: "image_url" }] }, "input"],
    [{ input: Array.from({ length: 8193 }, () => 1) }, "input"],
    [{ input: Array.from({ length: 2049 }, () => "x") }, "input"],
    [{ encoding_format: "int8" }, "encoding_format"],
    [{ dimensions: 0 }, "dimensions"],
    [{ dimensions: 257 }, "dimensions"],
    [{ dimensions: "8" }, "dimensions"],
    [{ user: 5 }, "user"],
    [{ provider: { order: ["x"] } }, "provider"],
    [{ service_tier: "priority" }, "service_tier"]
  ])("refuse %j", async (more, field) => {
    const who = await person()
    expect(said(await embed(who, more))).toEqual([400, "invalid_request", field])
    await untouched(who)
  })

  it("refuse what is no request", async () => {
    const who = await person()
    for (const raw of ["", "{", "[]", "null", '"x"']) {
      const answer = await service.call("/v1/embeddings", {
        token: who.token,
        raw,
        method: "POST",
        headers: { "content-type": "application/json" }
      })
      expect(said(answer)).toEqual([400, "invalid_request", ""])
    }
    const many = { model: small, input: Array.from({ length: 2_000 }, () => Array.from({ length: 200 }, () => 1)) }
    expect(said(await embed(who, many))).toEqual([400, "invalid_request", ""])
    expect(said(await embed(who, { input: "x".repeat(9 * 1024 * 1024) })).slice(0, 2)).toEqual([
      413,
      "payload_too_large"
    ])
    await untouched(who)
  })

  it.each([
    // "one two three" has 13 bytes; the model reads up to 8,192 tokens.
    [{ prompt_tokens: 14 }, 14, undefined],
    [{ prompt_tokens: 8_192 }, 8_192, undefined],
    [{ prompt_tokens: 8_192 + 1 }, 8_192, "estimated"],
    [{ prompt_tokens: 1e12, total_tokens: 3 }, 8_192, "estimated"],
    [{ prompt_tokens: -1 }, 4, "estimated"],
    [{ prompt_tokens: 2.5 }, 4, "estimated"],
    [{ prompt_tokens: "3" }, 4, "estimated"],
    [{}, 4, "estimated"],
    [undefined, 4, "estimated"],
    [{ prompt_tokens: 0 }, 0, undefined],
    [{ prompt_tokens: 13 }, 13, undefined],
    [{ total_tokens: 5 }, 5, undefined]
  ])("whose usage is %j are charged %d tokens", async (usage, tokens, usage_source) => {
    const who = await person()
    await fault("embeddings", { body: { data: [{ embedding: [1] }], usage } })
    expect((await embed(who)).status).toBe(200)
    const [record] = await service.usage(who)
    expect([record.prompt_tokens, record.usage_source]).toEqual([tokens, usage_source])
    await recorded(who, { cost: Number((tokens * 2e-8).toFixed(9)) })
  })

  it("of tokens without usage cost as many as there are", async () => {
    const who = await person()
    await fault("embeddings", { body: { data: [{ embedding: [1] }, { embedding: [1] }] } })
    await embed(who, { input: [[1, 2, 3], [4]] })
    await recorded(who, { prompt_tokens: 4, usage_source: "estimated" })
  })

  it.each([
    ["its 500", { status: 500 }, 500, "upstream_error"],
    ["its 401", { status: 401, body: { error: "sk-secret" } }, 500, "upstream_error"],
    ["its 400", { status: 400, body: { error: { message: "not that", param: "input" } } }, 400, "upstream_rejected"],
    ["its 429", { status: 429, headers: { "retry-after": "3" } }, 429, "upstream_rate_limited"],
    ["a dropped connection", { drop: true }, 500, "upstream_error"],
    ["nonsense", { body: "<html>" }, 500, "upstream_error"],
    ["too few embeddings", { body: { data: [] } }, 500, "upstream_error"],
    ["no embeddings", { body: { data: [{ index: 0 }] } }, 500, "upstream_error"]
  ])("cost nothing after %s", async (_, more, status, code) => {
    const who = await person()
    await fault("embeddings", more)
    const answer = await embed(who)
    expect(said(answer).slice(0, 2)).toEqual([status, code])
    expect(JSON.stringify(answer.body)).not.toContain("sk-secret")
    await recorded(who, { success: false, cost: 0, error_type: code })
    expect(await service.balance(who)).toBe(6)
  })

  it("that are of no use are charged by what they report", async () => {
    const who = await person()
    await fault("embeddings", { body: { data: [], usage: { prompt_tokens: 3, total_tokens: 3 } } })
    expect(said(await embed(who)).slice(0, 2)).toEqual([500, "upstream_error"])
    await recorded(who, { success: false, cost: 6e-8, error_type: "upstream_error" })
    expect(await service.usage(who)).toHaveLength(1)
  })

  it("come from the next upstream where one fails, and are charged once", async () => {
    const who = await person()
    for (const more of [{ status: 503 }, { drop: true }, { body: { data: 5 } }, { status: 429 }]) {
      await fault("embeddings", more)
      expect((await embed(who, { model: "sandbox-embedding-failover" })).status).toBe(200)
      await recorded(who, { provider: "sandbox-embeddings-b", success: true, cost: 6e-8 })
    }
    expect(await service.usage(who)).toHaveLength(4)
    await fault("embeddings", { status: 422, body: { error: { message: "no" } } })
    expect((await embed(who, { model: "sandbox-embedding-failover" })).status).toBe(400)
  })

  it("are made once for an Idempotency-Key", async () => {
    const who = await person()
    const key = { "idempotency-key": "embedded-once-012345" }
    const [first, again, other] = [
      await embed(who, {}, key),
      await embed(who, {}, key),
      await embed(who, { input: "x" }, key)
    ]
    expect([again.body, again.headers.get("idempotency-replayed")]).toEqual([first.body, "true"])
    expect(said(other).slice(0, 2)).toEqual([409, "idempotency_key_reused"])
    expect(await service.usage(who)).toHaveLength(1)
  })

  it("are refused without credit or credential", async () => {
    const who = await person()
    const before = (await calls("embeddings")).length
    expect((await service.call("/v1/embeddings", { json: {} })).status).toBe(401)
    await service.control(`/tenants/${who.tenant_id}`, { billing_status: "suspended" })
    expect(said(await embed(who)).slice(0, 2)).toEqual([402, "insufficient_credits"])
    expect((await calls("embeddings")).length).toBe(before)
    expect(await service.usage(who)).toEqual([])
  })

  it("of a client that leaves are charged all the same", async () => {
    const who = await person()
    await fault("embeddings", { delay_ms: 600_000 })
    const connection = await line(service.port)
    const json = JSON.stringify({ model: small, input: "one two three" })
    const request = head("/v1/embeddings", "Content-Type: application/json", `Content-Length: ${json.length}`)
    const before = (await calls("embeddings")).length
    connection.write(request.replace("Bearer x", `Bearer ${who.token}`) + json)
    await expect.poll(async () => (await calls("embeddings")).length, { timeout: 60_000 }).toBe(before + 1)
    connection.socket.destroy()
    await service.control("/faults", undefined, "DELETE")
    await expect
      .poll(() => service.usage(who), { timeout: 60_000 })
      .toMatchObject([{ endpoint: "embeddings", cost: 6e-8 }])
  })

  it("have models of their own, which are none to chat with", async () => {
    const who = await person()
    const { body } = await service.call("/v1/embeddings/models", { token: who.token })
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([small, `${small}-large`, `${small}-failover`])
    expect(body.data[0]).toMatchObject({ context_length: 8192, dimensions: 256, pricing: { prompt: "0.00000002" } })
    const chat = (await service.call("/v1/models", { token: who.token })).body.data
    expect(chat.some(({ id }: { id: string }) => id.includes("embedding"))).toBe(false)
  })
})

describe("reranking", () => {
  it("costs 0.002 a search of up to 100 documents", async () => {
    const who = await person()
    const { body, headers, status } = await rerank(who, { top_n: 2, return_documents: true })
    expect([status, headers.get("x-charge-usd")]).toEqual([200, "0.002"])
    expect(body.results).toEqual([
      { index: 1, relevance_score: 1, document: { text: documents[1] } },
      { index: 2, relevance_score: 0.5, document: { text: documents[2] } }
    ])
    await recorded(who, { endpoint: "rerank", model: "sandbox-rerank", units: 1, cost: 0.002, success: true })
    const asked = { model: "sandbox-rerank", query: "high tide", documents, top_n: 2, return_documents: true }
    const second = await service.call("/v2/rerank", { token: who.token, json: asked })
    expect([second.status, second.body.results]).toEqual([200, body.results])
    const many = { documents: Array.from({ length: 150 }, (_, i) => ({ text: `tide ${i}` })) }
    expect((await rerank(who, many)).body.results).toHaveLength(150)
    await recorded(who, { units: 2, cost: 0.004 })
    expect(await service.balance(who)).toBe(left(0.008))
  })

  it("costs tokens, of a model that is priced by them", async () => {
    const who = await person()
    const { body } = await rerank(who, { model: "sandbox-rerank-tokens" })
    // 5 + 5 + 4 words, and the query's two for each document.
    expect(body.usage.total_tokens).toBe(20)
    const why = await recorded(who, { units: 20, prompt_tokens: 20, cost: 0.000001 })
    expect(why.price.lines).toMatchObject([{ quantity: 20, unit: "prompt token" }])
  })

  it.each([
    [{ model: "sandbox-embedding" }, "model"],
    [{ model: null }, "model"],
    [{ query: "" }, "query"],
    [{ query: { text: "x" } }, "query"],
    [{ documents: undefined }, "documents"],
    [{ documents: [] }, "documents"],
    [{ documents: "x" }, "documents"],
    [{ documents: ["x", 5] }, "documents.1"],
    [{ documents: [{ title: "x" }] }, "documents.0"],
    [{ documents: Array.from({ length: 1001 }, () => "x") }, "documents"],
    [{ top_n: 0 }, "top_n"],
    [{ top_n: 1.5 }, "top_n"],
    [{ return_documents: "yes" }, "return_documents"],
    [{ provider: "x" }, "provider"]
  ])("refuses %j", async (more, field) => {
    const who = await person()
    expect(saidPlainly(await rerank(who, more))).toEqual([400, "invalid_request", field])
    await untouched(who)
  })

  it.each([
    [1, 0.002, undefined],
    [0, 0, undefined],
    [2, 0.002, "estimated"],
    [-1, 0.002, "estimated"],
    [undefined, 0.002, "estimated"]
  ])("that reports %s searches costs %s", async (search_units, cost, usage_source) => {
    const who = await person()
    await fault("rerank", { body: { results: [], meta: { billed_units: { search_units } } } })
    expect((await rerank(who)).status).toBe(200)
    await recorded(who, { cost })
    expect((await service.usage(who))[0].usage_source).toBe(usage_source)
  })

  it("is believed to search more where documents are long", async () => {
    const who = await person()
    await fault("rerank", { body: { results: [], meta: { billed_units: { search_units: 3 } } } })
    // 25 times 5,000 bytes are at most 25 times 11 documents.
    expect((await rerank(who, { documents: Array.from({ length: 25 }, () => "x".repeat(5_000)) })).status).toBe(200)
    await recorded(who, { cost: 0.006, units: 3 })
  })

  it("adds the documents that an upstream leaves out", async () => {
    const who = await person()
    await fault("rerank", { body: { results: [{ index: 2, relevance_score: 0.25 }], usage: { total_tokens: 5 } } })
    expect((await rerank(who, { return_documents: true })).body).toEqual({
      results: [{ index: 2, relevance_score: 0.25, document: { text: documents[2] } }],
      usage: { total_tokens: 5 }
    })
  })

  it.each([
    ["its 422", { status: 422, body: { message: "not that" } }, 400, "upstream_rejected"],
    ["its 503", { status: 503 }, 500, "upstream_error"],
    ["a document that was not sent", { body: { results: [{ index: 3, relevance_score: 1 }] } }, 500, "upstream_error"],
    ["no results", { body: { data: [] } }, 500, "upstream_error"]
  ])("costs nothing after %s", async (_, more, status, code) => {
    const who = await person()
    await fault("rerank", more)
    expect(saidPlainly(await rerank(who)).slice(0, 2)).toEqual([status, code])
    await recorded(who, { success: false, cost: 0, error_type: code })
  })

  it("happens once for an Idempotency-Key, and not without credit", async () => {
    const who = await person()
    const key = { "idempotency-key": "reranked-once-012345" }
    const [first, again] = [await rerank(who, {}, key), await rerank(who, {}, key)]
    expect([again.body, await service.usage(who)]).toMatchObject([first.body, [{ endpoint: "rerank" }]])
    await service.control(`/tenants/${who.tenant_id}`, { billing_status: "suspended" })
    expect(saidPlainly(await rerank(who)).slice(0, 2)).toEqual([402, "insufficient_credits"])
  })

  it("has models of its own", async () => {
    const { token } = await person()
    expect((await service.call("/v1/rerank/models", { token })).body.data).toMatchObject([
      { id: "sandbox-rerank", pricing: { prompt: "0", search: "0.002" } },
      { id: "sandbox-rerank-tokens", pricing: { prompt: "0.00000005", search: "0" } }
    ])
  })
})
