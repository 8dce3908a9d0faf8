/** Decisions from outside: the answers, the exact price, every status, and what nobody is charged for. */
import {
  AuthenticationError,
  BadRequestError,
  choice,
  noul,
  RateLimitError,
  score,
  TypeSafeClient,
  UnprocessableEntityError
} from "@typesafe-ai/sdk"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`decider${++people}@example.com`)

const question = {
  type: "choice",
  instructions: "What is it about?",
  criteria: { billing: "money", other: "the rest" }
}
const body = (more: object = {}) => ({
  state: "I was charged twice for billing",
  questions: { about: question },
  ...more
})

const decide = (who: Person, json: unknown = body()): Promise<Answer> =>
  service.call("/v1/decisions", { token: who.token, json })

const fault = (more: object) => service.control("/faults", { service: "decisions", times: 1, ...more })

/** Nothing was charged, and the record says why. */
const failedFor = async (who: Person, error_type: string) => {
  expect(await service.balance(who)).toBe(6)
  expect((await service.usage(who))[0]).toMatchObject({
    endpoint: "decisions",
    usage_type: "inference",
    success: false,
    cost: 0,
    error_type
  })
}

describe("a decision", () => {
  it("is answered in the model's words, and costs 42 nano-USD an input token", async () => {
    const who = await person()
    const { body: answer, headers, status } = await decide(who)
    expect(status).toBe(200)
    // State 6 words; the question's 1 + 1 + 1 + 1 + 4 + 1 + 1 + 1 + 1 + 2 words and keys.
    const tokens = answer.usage.input_tokens
    expect(answer).toEqual({
      id: expect.any(String),
      model: "jev-1.13.0",
      provider: "sandbox-decisions",
      answers: {
        about: {
          type: "choice",
          choice: "billing",
          probabilities: { billing: 0.8, other: 0.2 },
          confidence: 0.8
        }
      },
      usage: { input_tokens: tokens, output_tokens: 1, cost: (tokens * 42) / 1e9 }
    })
    expect(Number(headers.get("x-charge-usd"))).toBe(answer.usage.cost)
    expect(await service.balance(who)).toBe(Number((6 - answer.usage.cost).toFixed(9)))
    expect((await service.usage(who))[0]).toMatchObject({
      usage_type: "inference",
      endpoint: "decisions",
      model: "jev-1.13.0",
      prompt_tokens: tokens,
      completion_tokens: 1,
      cost: answer.usage.cost,
      success: true
    })
  })

  it("is asked by the vendor's own library on its own path, with keys too", async () => {
    const who = await person()
    const client = new TypeSafeClient({ apiKey: await service.key(who), baseURL: service.url })
    const { data, response } = await client
      .systemOne({
        state: { document: "I was charged twice. Please fix this ASAP." },
        questions: {
          category: choice("What is this ticket about?", { billing: null, other: null }),
          urgent: noul("Is it urgent?"),
          grave: score({ ask: "How grave is it?" }, ["little", "much"]),
          certain: noul(null, { yes: "It is certain.", no: "It is not." } as never)
        }
      })
      .withResponse()
    expect(data.answers.category.choice).toBe("billing")
    expect(data.answers.urgent.noul).toBeCloseTo(0.9)
    expect(data.answers.grave.score).toBe(1)
    expect(data.model).toBe("jev-1.13.0")
    const [record] = await service.usage(who)
    const cost = (data.usage.input_tokens * 42) / 1e9
    expect(record).toMatchObject({ endpoint: "systemone", usage_type: "inference", cost, success: true })
    expect(Number(response.headers.get("x-charge-usd"))).toBe(cost)
    const why = (await service.call(`/v1/usage/${record.id}/explain`, { token: who.token })).body
    expect(why).toMatchObject({ endpoint: "systemone", charged_usd: cost, computed_usd: cost })
  })

  it("the library makes of every refusal its own error, and tries a 529 again", async () => {
    const who = await person()
    const library = (apiKey: string, maxRetries = 0) =>
      new TypeSafeClient({ apiKey, baseURL: service.url, logLevel: "off", retry: { maxRetries, backoffInitialMs: 1 } })
    const client = library(await service.key(who))
    const asked = { state: "x", questions: { urgent: noul("Is it urgent?") } }
    const refusal = (call: Promise<unknown>) =>
      call.then(
        () => expect.unreachable(),
        (error: unknown) => error
      )
    expect(await refusal(library("svc-prod-none").systemOne(asked))).toBeInstanceOf(AuthenticationError)
    const unknown = await refusal(client.systemOne({ ...asked, model: "other" }))
    expect(unknown).toBeInstanceOf(BadRequestError)
    expect(unknown).toMatchObject({ message: expect.stringMatching(/^400 model: must be one of jev-1.13/) })
    const wrong = await refusal(client.systemOne({ state: "x", questions: { a: noul("") } }))
    expect(wrong).toBeInstanceOf(UnprocessableEntityError)
    expect(wrong).toMatchObject({ message: expect.stringContaining("questions.a.instructions: required") })
    await fault({ status: 429, headers: { "retry-after": "7" }, body: { error: { message: "too many" } } })
    const busy = await refusal(client.systemOne(asked))
    expect(busy).toBeInstanceOf(RateLimitError)
    expect(busy).toMatchObject({ message: "429 too many", retryAfterMs: 7_000 })
    await fault({ status: 529, body: { error: { message: "overloaded" } } })
    expect((await library(await service.key(who), 1).systemOne(asked)).answers.urgent.noul).toBeCloseTo(0.9)
    expect((await service.usage(who)).map(({ error_type }) => error_type)).toEqual([
      undefined,
      "upstream_overloaded",
      "upstream_rate_limited",
      "upstream_rejected"
    ])
    const poor = await person()
    const key = await service.key(poor)
    await service.control(`/tenants/${poor.tenant_id}`, { billing_status: "suspended" })
    expect(await refusal(library(key).systemOne(asked))).toMatchObject({
      status: 402,
      message: "402 insufficient credits"
    })
  })

  it.each(["jev-1.13", "jev-1.13.0", "jev-latest", undefined])("the model may be called %s", async (model) => {
    const answer = await decide(await person(), body({ model }))
    expect([answer.status, answer.body.model]).toEqual([200, "jev-1.13.0"])
  })

  it("passes other types of question and state that is no text", async () => {
    const score = { type: "score", instructions: "How much?", criteria: ["little", "much"] }
    const answer = await decide(await person(), { state: [1, { a: "b" }], questions: { score } })
    expect(answer.body.answers.score.type).toBe("score")
  })
})

describe("what is refused here", () => {
  it.each([
    ["no JSON", "{", 400, "Could not read the request body"],
    ["no object", "[]", 400, "Could not read the request body"],
    ["nothing", "", 400, "Could not read the request body"],
    [
      "more than 1 MiB",
      JSON.stringify(body({ state: "x".repeat(1024 * 1024) })),
      413,
      "The decision request body is too large"
    ]
  ])("%s", async (_, raw, status, error) => {
    const who = await person()
    const answer = await service.call("/v1/decisions", {
      token: who.token,
      method: "POST",
      headers: { "content-type": "application/json" },
      raw
    })
    expect([answer.status, answer.body.error]).toEqual([status, error])
    if (status === 400) expect(answer.body.details).toMatchObject({ field: "", rule: expect.any(String) })
    expect(await service.usage(who)).toEqual([])
  })

  it.each([
    ["state", body({ state: null })],
    ["state", { questions: { about: question } }],
    ["questions", { state: "x" }],
    ["questions", body({ questions: [] })],
    ["model", body({ model: "gpt" })],
    ["model", body({ model: 7 })]
  ])("a bad %s", async (field, json) => {
    const who = await person()
    const answer = await decide(who, json)
    expect([answer.status, answer.body.code, answer.body.details?.field]).toEqual([400, "invalid_request", field])
    expect(await service.usage(who)).toEqual([])
  })

  it("GET is not a method of it", async () => {
    const answer = await service.call("/v1/decisions", { token: (await person()).token })
    expect([answer.status, answer.body.error, answer.headers.get("allow")]).toEqual([405, "Method Not Allowed", "POST"])
  })

  it("needs 0.30, whatever it will cost", async () => {
    const who = await person()
    // Leaves 0.29 of the 6.
    const images = { model: "sandbox-large", max_tokens: 10, messages: [{ role: "user", content: "x" }] }
    expect((await service.call("/v1/chat/completions", { token: who.token, json: images })).status).toBe(200)
    await service.control(`/tenants/${who.tenant_id}`, { billing_status: "suspended" })
    const calls = (await service.control("/calls?service=decisions")).length
    const refused = await decide(who)
    expect([refused.status, refused.body.error]).toEqual([402, "insufficient credits"])
    expect((await service.control("/calls?service=decisions")).length).toBe(calls)
  })

  it("twenty at once are admitted on a balance for twenty", async () => {
    const who = await person()
    // The model answers once the others are refused.
    await fault({ delay_ms: 600_000, times: 30 })
    let refused = 0
    const ask = async () => {
      const answer = await decide(who)
      if (answer.status !== 200) refused++
      return answer
    }
    const asked = Promise.all(Array.from({ length: 30 }, ask))
    await expect.poll(() => refused, { timeout: 60_000 }).toBe(10)
    await service.control("/faults", undefined, "DELETE")
    const answers = await asked
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20)
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(10)
  })

  it("is not in the model list", async () => {
    const { body } = await service.call("/v1/models", { token: (await person()).token })
    expect(JSON.stringify(body)).not.toContain("jev")
  })
})

describe("what the model says", () => {
  it("its 422 passes with its body", async () => {
    const who = await person()
    const answer = await decide(who, body({ questions: { about: { type: "choice", instructions: "x" } } }))
    expect(answer.status).toBe(422)
    expect(answer.body.error.field).toBe("questions.about.criteria")
    await failedFor(who, "upstream_rejected")
  })

  it("its 429 passes with its body and Retry-After", async () => {
    const who = await person()
    await fault({ status: 429, body: { slow: "down" }, headers: { "Retry-After": "7" } })
    const answer = await decide(who)
    expect([answer.status, answer.body, answer.headers.get("retry-after")]).toEqual([429, { slow: "down" }, "7"])
    expect(answer.headers.get("x-charge-usd")).toBe("0")
    await failedFor(who, "upstream_rate_limited")
  })

  it("its 529 passes with its body", async () => {
    const who = await person()
    await fault({ status: 529, body: { over: "loaded" } })
    const answer = await decide(who)
    expect([answer.status, answer.body]).toEqual([529, { over: "loaded" }])
    await failedFor(who, "upstream_overloaded")
  })

  it.each([400, 401, 403, 404, 500, 503])("its %d is a 502, said once", async (status) => {
    const who = await person()
    await service.control("/calls", undefined, "DELETE")
    await fault({ status, body: { secret: "sk-123" } })
    const answer = await decide(who)
    expect([answer.status, answer.body]).toEqual([
      502,
      { error: `The decision model upstream failed with status ${status}` }
    ])
    expect(await service.control("/calls?service=decisions")).toHaveLength(1)
    await failedFor(who, "DecisionUpstreamFailed")
  })

  it("nothing, is a 502 too", async () => {
    const who = await person()
    await fault({ drop: true })
    const answer = await decide(who)
    expect([answer.status, answer.body]).toEqual([502, { error: "The decision model upstream could not be reached" }])
    await failedFor(who, "DecisionUpstreamUnreachable")
  })

  it("nonsense with a 200 is not charged", async () => {
    const who = await person()
    await fault({ status: 200, body: "<html>" })
    expect((await decide(who)).status).toBe(502)
    expect(await service.balance(who)).toBe(6)
  })

  // A token is at least a byte, and the model may put 100,000 around the request.
  const sent = Buffer.byteLength(JSON.stringify(body({ model: "jev-1.13.0" })))
  it.each([
    [{ input_tokens: -5 }, 100_000 + sent],
    [{ input_tokens: 1e15 }, 100_000 + sent],
    [{ input_tokens: 100_001 + sent, output_tokens: 1 }, 100_000 + sent],
    [{ input_tokens: "many" }, 100_000 + sent],
    [{ input_tokens: 1.5 }, 100_000 + sent],
    [{ input_tokens: 3, output_tokens: 1e15 }, 3],
    // Nothing was said.
    [undefined, Math.ceil(sent / 4)],
    [null, Math.ceil(sent / 4)],
    [{ output_tokens: 1 }, Math.ceil(sent / 4)]
  ])("usage of %j is charged as %d tokens, and marked", async (usage, tokens) => {
    const who = await person()
    await fault({ status: 200, body: { answers: {}, model: "jev-1.13.0", usage } })
    const answer = await decide(who)
    expect([answer.status, answer.body.usage.input_tokens]).toEqual([200, tokens])
    expect((await service.usage(who))[0]).toMatchObject({
      prompt_tokens: tokens,
      cost: (tokens * 42) / 1e9,
      usage_source: "estimated",
      success: true
    })
  })

  it("a figure that the request can have caused is believed, zero included", async () => {
    const who = await person()
    for (const input_tokens of [0, 100_000 + sent]) {
      await fault({ status: 200, body: { answers: {}, model: "jev-1.13.0", usage: { input_tokens } } })
      expect((await decide(who)).body.usage.input_tokens).toBe(input_tokens)
      expect((await service.usage(who))[0].usage_source).toBeUndefined()
    }
  })
})

describe("a deployment without a decision model", () => {
  it("answers 503, and meters nothing", async () => {
    const without = await start({ env: { SANDBOX_DECISIONS: "off" } })
    try {
      const who = await without.signIn("nobody@example.com")
      const answer = await without.call("/v1/decisions", { token: who.token, json: body() })
      expect([answer.status, answer.body.code]).toEqual([503, "decisions_unavailable"])
      expect(await without.usage(who)).toEqual([])
    } finally {
      await without.discard()
    }
  })
})

describe("an Idempotency-Key on a metered call", () => {
  const keyed = (who: Person, key: string, json: unknown = body()) =>
    service.call("/v1/decisions", { token: who.token, json, headers: { "idempotency-key": key } })

  it("is answered once, and charged once", async () => {
    const who = await person()
    const first = await keyed(who, "decide-0123456789")
    const again = await keyed(who, "decide-0123456789")
    expect([again.status, again.body]).toEqual([200, first.body])
    expect([first.headers.get("idempotency-replayed"), again.headers.get("idempotency-replayed")]).toEqual([
      null,
      "true"
    ])
    expect(await service.usage(who)).toHaveLength(1)
    const other = await keyed(who, "decide-0123456789", body({ state: "else" }))
    expect([other.status, other.body.code]).toEqual([409, "idempotency_key_reused"])
    const malformed = await keyed(who, "short")
    expect([malformed.status, malformed.body.code]).toEqual([400, "idempotency_key_invalid"])
    expect(malformed.body.details.field).toBe("Idempotency-Key")
  })

  it("answers 409 while the first is in flight", async () => {
    const who = await person()
    await fault({ delay_ms: 600_000 })
    await service.control("/calls", undefined, "DELETE")
    const first = keyed(who, "decide-in-flight-1")
    const heard = async () => (await service.control("/calls?service=decisions")).length
    await expect.poll(heard, { timeout: 60_000 }).toBe(1)
    const second = await keyed(who, "decide-in-flight-1")
    expect([second.status, second.body.code]).toEqual([409, "idempotency_in_flight"])
    await service.control("/faults", undefined, "DELETE")
    expect((await first).status).toBe(200)
    expect((await keyed(who, "decide-in-flight-1")).status).toBe(200)
    expect(await service.usage(who)).toHaveLength(1)
  })

  it("is given back when no provider was reached, and kept when one was", async () => {
    const who = await person()
    await service.control(`/tenants/${who.tenant_id}`, { billing_status: "suspended" })
    expect((await keyed(who, "decide-released-1")).status).toBe(402)
    await service.control(`/tenants/${who.tenant_id}`, { billing_status: "active" })
    expect((await keyed(who, "decide-released-1")).status).toBe(200)
    await fault({ status: 500 })
    expect((await keyed(who, "decide-failed-012")).status).toBe(502)
    expect((await keyed(who, "decide-failed-012")).status).toBe(502)
    expect(await service.usage(who)).toHaveLength(2)
  })

  it("holds for a stream, and after a restart", async () => {
    const mine = await start()
    const who = await mine.signIn("streamer@example.com")
    const ask = (one: Service) =>
      one.call("/v1/chat/completions", {
        token: who.token,
        headers: { "idempotency-key": "stream-0123456789" },
        json: { model: "sandbox-small", stream: true, messages: [{ role: "user", content: "one two three" }] }
      })
    const first = await ask(mine)
    expect(first.body).toContain("data: [DONE]")
    expect((await ask(mine)).body).toBe(first.body)
    await mine.end()
    const again = await start({ folder: mine.folder })
    try {
      const replayed = await ask(again)
      expect(replayed.body).toBe(first.body)
      expect(replayed.headers.get("content-type")).toContain("text/event-stream")
      expect(await again.usage(who)).toHaveLength(1)
    } finally {
      await again.discard()
    }
  })
})

describe("a charge explained", () => {
  it("is computed again from its record and the version of its price", async () => {
    const who = await person()
    const answer = await decide(who)
    const [record] = await service.usage(who)
    const { body: told } = await service.call(`/v1/usage/${record.id}/explain`, { token: await service.key(who) })
    expect(told).toMatchObject({
      usage_id: record.id,
      endpoint: "decisions",
      price: {
        version: expect.stringMatching(/^[0-9a-f]{16}$/),
        lines: [{ quantity: answer.body.usage.input_tokens, unit: "prompt token", unit_price_usd: "0.000000042" }]
      },
      computed_usd: record.cost,
      charged_usd: record.cost,
      reserved_usd: 0.3,
      uncollected_usd: 0,
      payer: { kind: "own", why: "own", tenant_id: who.tenant_id }
    })
    expect(told.summary).toContain("was charged to the caller's own account")
    const stranger = await service.call(`/v1/usage/${record.id}/explain`, { token: (await person()).token })
    expect([stranger.status, stranger.body.code]).toEqual([404, "usage_not_found"])
  })

  it("says that a failed call costs nothing", async () => {
    const who = await person()
    await fault({ status: 500 })
    await decide(who)
    const [record] = await service.usage(who)
    const { body: told } = await service.call(`/v1/usage/${record.id}/explain`, { token: who.token })
    expect(told).toMatchObject({ charged_usd: 0, computed_usd: 0, success: false })
    expect(told.summary).toContain("failed calls cost nothing")
  })
})
