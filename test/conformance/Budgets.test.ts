/** Budgets over HTTP: which calls they count, which upstreams they take away, the tokens that they leave, and their headers. */
import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { BudgetTerms } from "../../src/books/ledger/rules/Budget.ts"
import { capabilities } from "../../src/kernel/Capabilities.ts"
import type { Capability } from "../../src/kernel/Capabilities.ts"
import { usd } from "../../src/kernel/Money.ts"
import { FakeVendors } from "../support/FakeVendors.ts"
import { InProcess } from "../support/InProcess.ts"
import { modelOf } from "../support/Routed.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

const failed = { status: 500, body: {} }

let vendors: FakeVendors
let running: InProcess
let service: Service
let who: Person
let people = 0

beforeAll(async () => {
  vendors = await FakeVendors.start()
  const upstream = (name: string) => [name, { base_url: `${vendors.origin}/${name}/v1`, api_key: "k" }] as const
  running = await InProcess.start({
    upstreams: Object.fromEntries(["a", "b", "c"].map(upstream)),
    models: [
      modelOf("one", ["a"]),
      modelOf("two", ["a", "b"]),
      modelOf("first", ["a", "b"], { fallbacks: ["second"] }),
      modelOf("second", ["c"]),
      modelOf("lonely", ["a", "b"], { fallbacks: ["dear"] }),
      modelOf("dear", ["c"], { price: { prompt_usd_per_million: "100", completion_usd_per_million: "200" } })
    ]
  })
  service = running.service
})
afterAll(async () => {
  await running?.stop()
  vendors.close()
})
beforeEach(async () => {
  vendors.forget()
  who = await service.signIn(`budgets${++people}@example.com`)
})

const made: Array<readonly [id: string, tenant: string | undefined]> = []
afterEach(async () => {
  for (const [id, tenant] of made.splice(0)) await running.setBudget(id, null, tenant)
})

/** Of the person's tenant. */
const budget = async (id: string, terms: Partial<BudgetTerms>) => {
  await running.setBudget(id, terms, who.tenant_id)
  made.push([id, who.tenant_id])
}

/** Of the operator, for all tenants. */
const ofOperator = async (id: string, terms: Partial<BudgetTerms>) => {
  await running.setBudget(id, { by_operator: true, ...terms })
  made.push([id, undefined])
}

const chat = (model: string, more: object = {}): Promise<Answer> =>
  service.call("/v1/chat/completions", {
    token: who.token,
    json: { model, messages: [{ role: "user", content: "hello" }], max_tokens: 20, ...more }
  })

const refusal = ({ body, status }: Answer) => [status, body.code, body.details?.budget_id]

// ---- capabilities ---------------------------------------------------------------------------------------------------------

const question = { type: "choice", instructions: "What is it about?", criteria: { one: "one", other: "the rest" } }

const post =
  (path: string, json: object) =>
  ({ token }: Person): Promise<Answer> =>
    service.call(path, { token, json })

const transcribe = async ({ token }: Person): Promise<Answer> => {
  const body = new FormData()
  body.append("file", new File([new Uint8Array(16_000)], "talk.wav", { type: "audio/wav" }))
  body.append("model", "whisper-1")
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${service.url}/v1/audio/transcriptions`, { method: "POST", body, headers })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const calls: Record<Capability, (who: Person) => Promise<Answer>> = {
  chat: post("/v1/chat/completions", { model: "sandbox-small", messages: [{ role: "user", content: "hi" }] }),
  embeddings: post("/v1/embeddings", { model: "sandbox-embedding", input: "one two" }),
  rerank: post("/v1/rerank", { model: "sandbox-rerank", query: "two", documents: ["one", "two"] }),
  decisions: post("/v1/decisions", { state: "one of them", questions: { about: question } }),
  images: post("/v1/images/generations", { prompt: "a hill" }),
  media: post("/v1/tools/media/generate", { model: "sandbox-video", prompt: "a fish" }),
  search: ({ token }) => service.call("/v1/search?query=why", { token }),
  speech: post("/v1/audio/speech", { model: "tts-1", voice: "alloy", input: "hello" }),
  transcription: transcribe,
  email: async (who) =>
    service.call("/v1/email/self/send", {
      token: await service.key(who),
      json: { subject: "A note", body: "to myself" }
    })
}

describe("a budget of a capability", () => {
  it.each(capabilities)("counts %s, and its answers name what is left", async (capability) => {
    await budget("bud_one", { limit: { requests: 3 }, applies_to: { capability } })
    const answer = await calls[capability](who)
    expect([answer.status, answer.headers.get("x-ratelimit-limit-requests")]).toEqual([200, "3"])
    expect(answer.headers.get("x-ratelimit-remaining-requests")).toBe("2")
    // It never renews.
    expect(answer.headers.get("x-ratelimit-reset-requests")).toBeNull()
    expect((await running.budget("bud_one")).requests).toBe(1)
    const other = capabilities[(capabilities.indexOf(capability) + 1) % capabilities.length]!
    const free = await calls[other](who)
    expect([free.status, free.headers.get("x-ratelimit-limit-requests")]).toEqual([200, null])
    await budget("bud_one", { limit: { requests: 1 }, applies_to: { capability } })
    const refused = await calls[capability](who)
    const { code, details } = refused.body.error?.message === undefined ? refused.body : refused.body.error
    expect([refused.status, code, details.budget_id]).toEqual([402, "budget_exceeded", "bud_one"])
  })
})

// ---- ways -----------------------------------------------------------------------------------------------------------------

describe("a budget of a provider that is used up", () => {
  const empty = (provider: string) => ofOperator(`bud_${provider}`, { limit: { usd: 0n }, applies_to: { provider } })

  it("takes the provider away: another one serves, and its budget counts the charge", async () => {
    await empty("a")
    await ofOperator("bud_b", { limit: { usd }, applies_to: { provider: "b" } })
    for (const stream of [false, true]) {
      vendors.forget()
      const answer = await chat("two", { stream })
      expect([answer.status, vendors.order]).toEqual([200, ["b"]])
    }
    const records = await service.usage(who)
    expect(records.map(({ cost, provider }) => [provider, cost])).toEqual([
      ["b", 0.00002],
      ["b", 0.00002]
    ])
    expect(await running.budget("bud_b")).toMatchObject({ spent: 40_000n, reserved: 0n, open: 0 })
    expect(await running.budget("bud_a")).toMatchObject({ spent: 0n, reserved: 0n, requests: 0 })
  })

  it("counts only the provider that served", async () => {
    for (const provider of ["a", "b"])
      await ofOperator(`bud_${provider}`, { limit: { usd, tokens: 100_000 }, applies_to: { provider } })
    vendors.next("a", failed)
    expect((await chat("two")).status).toBe(200)
    expect(await running.budget("bud_a")).toMatchObject({ spent: 0n, reserved: 0n, tokens: 0, tokens_reserved: 0 })
    expect(await running.budget("bud_b")).toMatchObject({ spent: 20_000n, reserved: 0n, tokens: 15 })
  })

  it("refuses the call if no provider is left, and asks none", async () => {
    await empty("a")
    await empty("b")
    expect(refusal(await chat("two"))).toEqual([402, "budget_exceeded", "bud_a"])
    expect(refusal(await chat("one"))).toEqual([402, "budget_exceeded", "bud_a"])
    expect(vendors.order).toEqual([])
    expect(await service.usage(who)).toEqual([])
  })

  it("leaves the fallbacks, and does not ask one whose budget is used up", async () => {
    await empty("a")
    await empty("b")
    const answer = await chat("first")
    expect([answer.status, answer.headers.get("x-fallback-model"), vendors.order]).toEqual([200, "second", ["c"]])
    await budget("bud_second", { limit: { usd: 0n }, applies_to: { model: "second" } })
    expect(refusal(await chat("first"))).toEqual([402, "budget_exceeded", "bud_a"])
    await running.setBudget("bud_b", null)
    vendors.forget()
    vendors.next("b", failed)
    expect((await chat("first")).status).toBe(500)
    expect(vendors.order).toEqual(["b"])
  })

  it("ends a call whose fallback cannot take over", async () => {
    await empty("a")
    await empty("b")
    expect(refusal(await chat("lonely"))).toEqual([402, "budget_exceeded", "bud_a"])
    expect(vendors.order).toEqual([])
    expect(await service.usage(who)).toMatchObject([{ cost: 0, success: false, error_type: "budget_exceeded" }])
  })

  it("takes an upstream of embeddings away", async () => {
    await ofOperator("bud_e", { limit: { usd: 0n }, applies_to: { provider: "sandbox-embeddings-a" } })
    const json = { model: "sandbox-embedding-failover", input: "one two" }
    expect((await service.call("/v1/embeddings", { token: who.token, json })).status).toBe(200)
    expect(await service.usage(who)).toMatchObject([{ provider: "sandbox-embeddings-b", success: true }])
  })
})

// ---- tokens ---------------------------------------------------------------------------------------------------------------

describe("a budget of tokens", () => {
  it("limits the answer to what it leaves, and is never overshot by a vendor that keeps the limit", async () => {
    await budget("bud_t", { limit: { tokens: 500 }, period: "hour" })
    const json = { model: "one", messages: [{ role: "user", content: "hello" }] }
    const bytes = JSON.stringify(json).length
    const ask = () => service.call("/v1/chat/completions", { token: who.token, json })
    vendors.next("a", {
      body: {
        choices: [{ index: 0, message: { role: "assistant", content: "long" }, finish_reason: "length" }],
        usage: { prompt_tokens: 10, completion_tokens: 500 - bytes }
      }
    })
    expect((await ask()).status).toBe(200)
    expect(vendors.asked[0]?.body).toMatchObject({ max_completion_tokens: 500 - bytes })
    const { tokens, tokens_reserved } = await running.budget("bud_t")
    expect([tokens, tokens_reserved]).toEqual([510 - bytes, 0])
    expect(tokens).toBeLessThanOrEqual(500)
    const refused = await ask()
    expect(refusal(refused)).toEqual([429, "rate_limited", "bud_t"])
    expect(refused.body.details).toMatchObject({ unit: "tokens", limit: "500", left: `${bytes - 10}` })
    expect(Object.keys(refused.body.details)).not.toContain("at")
    expect(refused.headers.get("x-ratelimit-remaining-tokens")).toBe(`${bytes - 10}`)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(vendors.order).toEqual(["a"])
  })

  it("leaves a limit that the client asks for, or refuses the call", async () => {
    await budget("bud_t", { limit: { tokens: 500 }, period: "hour" })
    expect((await chat("one", { max_tokens: 100 })).status).toBe(200)
    expect(vendors.asked[0]?.body).toMatchObject({ max_completion_tokens: 100 })
    expect(refusal(await chat("one", { max_tokens: 600 }))).toEqual([429, "rate_limited", "bud_t"])
  })
})

// ---- headers --------------------------------------------------------------------------------------------------------------

describe("the headers of rate limits", () => {
  it("are of the tightest budget, and absent from a replayed answer", async () => {
    await budget("bud_wide", { limit: { requests: 100 }, period: "day" })
    await budget("bud_tight", { limit: { requests: 5 }, period: "minute" })
    const ask = () =>
      service.call("/v1/chat/completions", {
        token: who.token,
        headers: { "idempotency-key": "budgets-0123456789" },
        json: { model: "one", messages: [{ role: "user", content: "hello" }] }
      })
    const first = await ask()
    expect(first.headers.get("x-ratelimit-limit-requests")).toBe("5")
    expect(first.headers.get("x-ratelimit-remaining-requests")).toBe("4")
    expect(first.headers.get("x-ratelimit-reset-requests")).toMatch(/^(1m|\d{1,2}s)$/)
    expect(first.headers.get("x-ratelimit-limit-tokens")).toBeNull()
    const again = await ask()
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, "true"])
    expect(again.headers.get("x-ratelimit-limit-requests")).toBeNull()
  })

  it.each([
    ["fails", { status: 500, body: {} }, 500],
    ["is busy", { status: 429, body: {}, headers: { "retry-after": "7" } }, 429],
    ["refuses the request", { status: 400, body: { error: { message: "no" } } }, 400]
  ])("stand on the answer of a call whose upstream %s", async (_, fault, status) => {
    await budget("bud_f", { limit: { requests: 5, tokens: 100_000 }, period: "hour" })
    vendors.next("a", fault)
    const chatted = await chat("one")
    expect([chatted.status, chatted.headers.get("x-ratelimit-remaining-requests")]).toEqual([status, "4"])
    expect(chatted.headers.get("x-ratelimit-limit-tokens")).toBe("100000")
    vendors.next("a", fault)
    const json = { model: "one", max_tokens: 10, messages: [{ role: "user", content: "hello" }] }
    const sent = await service.call("/v1/messages", { token: who.token, json })
    expect([sent.status, sent.headers.get("anthropic-ratelimit-requests-remaining")]).toEqual([status, "3"])
    expect(sent.headers.get("x-ratelimit-remaining-requests")).toBe("3")
  })

  it("may be read by pages of other origins", async () => {
    await budget("bud_x", { limit: { requests: 5, tokens: 100_000 }, period: "hour" })
    const json = { model: "one", max_tokens: 10, messages: [{ role: "user", content: "hello" }] }
    const { headers } = await service.call("/v1/messages", { token: who.token, json })
    expect([...headers.keys()].filter((name) => name.includes("ratelimit"))).toHaveLength(12)
    expect(headers.get("access-control-expose-headers")).toBe("*")
  })

  it("have the names and the shape of Anthropic's protocol on its routes", async () => {
    await budget("bud_m", { limit: { requests: 1 }, period: "hour" })
    const json = { model: "one", max_tokens: 10, messages: [{ role: "user", content: "hello" }] }
    const ask = () => service.call("/v1/messages", { token: who.token, json })
    const first = await ask()
    expect(first.status).toBe(200)
    expect(first.headers.get("anthropic-ratelimit-requests-limit")).toBe("1")
    expect(first.headers.get("anthropic-ratelimit-requests-remaining")).toBe("0")
    const resets = first.headers.get("anthropic-ratelimit-requests-reset")!
    expect(Date.parse(resets) % 3_600_000).toBe(0)
    const refused = await ask()
    expect([refused.status, refused.body.type, refused.body.error.type]).toEqual([429, "error", "rate_limit_error"])
    expect(refused.body.error.details).toMatchObject({ budget_id: "bud_m", unit: "requests" })
    expect(refused.headers.get("anthropic-ratelimit-requests-remaining")).toBe("0")
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
  })
})

// ---- SDKs -----------------------------------------------------------------------------------------------------------------

describe("a client that backs off by itself", () => {
  /** Holds a call open until a second one has been refused, and gives the statuses of the answers to the second one. */
  const besides = async <A>(second: (fetching: typeof fetch) => Promise<A>) => {
    await budget("bud_c", { limit: { concurrent: 1, requests: 100 }, period: "hour" })
    let letGo = () => {}
    vendors.next("a", { held: new Promise<void>((resolve) => (letGo = resolve)) })
    const first = chat("one")
    await expect.poll(() => vendors.order.length).toBe(1)
    const statuses: Array<number> = []
    const result = await second(async (input, init) => {
      const response = await fetch(input, init)
      statuses.push(response.status)
      letGo()
      await first
      return response
    })
    expect((await first).status).toBe(200)
    return { result, statuses }
  }

  it("is the openai package: it waits, succeeds, and reads what is left", async () => {
    const key = await service.key(who)
    const { result, statuses } = await besides((fetching) =>
      new OpenAI({ apiKey: key, baseURL: `${service.url}/v1`, maxRetries: 3, fetch: fetching }).chat.completions
        .create({ model: "one", max_tokens: 20, messages: [{ role: "user", content: "hello" }] })
        .withResponse()
    )
    expect([result.data.choices[0]?.message.content, statuses]).toEqual(["by a", [429, 200]])
    const { headers } = result.response
    expect(headers.get("x-ratelimit-limit-requests")).toBe("100")
    expect(headers.get("x-ratelimit-remaining-requests")).toBe("98")
    expect(await service.usage(who)).toHaveLength(2)
  })

  it("is the Anthropic SDK, with the names of its own protocol", async () => {
    const key = await service.key(who)
    const { result, statuses } = await besides((fetching) =>
      new Anthropic({ apiKey: key, authToken: null, baseURL: service.url, maxRetries: 3, fetch: fetching }).messages
        .create({ model: "one", max_tokens: 20, messages: [{ role: "user", content: "hello" }] })
        .withResponse()
    )
    expect([result.data.content, statuses]).toMatchObject([[{ type: "text", text: "by a" }], [429, 200]])
    const { headers } = result.response
    expect(headers.get("anthropic-ratelimit-requests-limit")).toBe("100")
    expect(headers.get("anthropic-ratelimit-requests-remaining")).toBe("98")
    expect(await service.usage(who)).toHaveLength(2)
  })
})
