/** Limits of API keys over HTTP: how many calls at once they admit, when a month ends, which models a key may call, and what a client is told. */
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { command, start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

let service: Service
let people = 0

beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

interface Key {
  readonly who: Person
  readonly id: string
  readonly key: string
}

/** A key with these limits, of a person of its own who has 6 USD. */
const limited = async (limits: object): Promise<Key> => {
  const who = await service.signIn(`limited${people++}@example.com`)
  const { body } = await service.call(`/v1/tenants/${who.tenant_id}/applications`, {
    token: who.token,
    json: { name: "limited", ...limits }
  })
  return { who, id: body.result.id, key: body.result.api_key }
}

const change = async ({ id, who }: Key, json: object) =>
  (await service.call(`/v1/tenants/${who.tenant_id}/applications/${id}`, { method: "PATCH", token: who.token, json }))
    .body.result

const shown = async ({ id, who }: Key) => {
  const { spent_usd, reserved_usd } = (
    await service.call(`/v1/tenants/${who.tenant_id}/applications/${id}`, { token: who.token })
  ).body.result
  return { spent_usd, reserved_usd }
}

/** 0.005 USD. */
const search = (key: string) => service.call("/v1/search?query=tides", { token: key })
const chat = (key: string, body: object = {}) =>
  service.call("/v1/chat/completions", {
    token: key,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], max_tokens: 10, ...body }
  })

const reached = (available: number, required?: number) => ({
  error: "insufficient credits",
  code: "insufficient_credits",
  details: {
    available_usd: available,
    ...(required !== undefined && { required_usd: required }),
    reason: "the spending limit of this API key is reached",
    limit_source: "key"
  }
})

const count = (answers: ReadonlyArray<Answer>, status: number) =>
  answers.filter((answer) => answer.status === status).length

describe("a spending limit", () => {
  it("admits exactly 3 of 200 calls at once where it leaves 3", async () => {
    const key = await limited({ spending_limit_usd: 0.017 })
    const answers = await Promise.all(Array.from({ length: 200 }, () => search(key.key)))
    expect([count(answers, 200), count(answers, 402)]).toEqual([3, 197])
    expect(answers.findLast(({ status }) => status === 402)!.body).toEqual(reached(expect.any(Number) as never, 0.005))
    expect(await shown(key)).toEqual({ spent_usd: 0.015, reserved_usd: 0 })
    expect(await service.balance(key.who)).toBe(5.985)
    expect((await search(key.key)).body).toEqual(reached(0.002, 0.005))
    // Another key of the same person has none.
    expect((await search(await service.key(key.who))).status).toBe(200)
  })

  it("holds what open calls have set aside, those of a job too", async () => {
    const key = await limited({ spending_limit_usd: 0.6, spending_limit_period: "month" })
    const video = () =>
      service.call("/v1/tools/media/generate", { token: key.key, json: { model: "sandbox-video", prompt: "waves" } })
    const jobs = await Promise.all(Array.from({ length: 20 }, video))
    expect([count(jobs, 200), count(jobs, 402)]).toEqual([2, 18])
    expect(await shown(key)).toMatchObject({ reserved_usd: expect.any(Number) })
    for (const { body } of jobs.filter(({ status }) => status === 200)) {
      await service.control("/media", { request_id: body.request_id, status: "FAILED" })
      await service.call(`/v1/tools/media/status?request_id=${body.request_id}`, { token: key.key })
    }
    expect(await shown(key)).toEqual({ spent_usd: 0, reserved_usd: 0 })
    expect((await video()).status).toBe(200)
  })

  it("bounds an answer to what it leaves, and gives the rest back", async () => {
    // 16 tokens of an answer at 0.60 USD a million are 0.0000096.
    const key = await limited({ spending_limit_usd: 0.001 })
    const answer = await chat(key.key, { max_tokens: undefined })
    expect(answer.status).toBe(200)
    const [{ body }] = await service.control("/calls?service=chat&limit=1")
    expect(body.max_completion_tokens ?? body.max_tokens).toBeLessThan(1_700)
    const { reserved_usd, spent_usd } = await shown(key)
    expect([spent_usd, reserved_usd]).toEqual([Number(answer.headers.get("x-charge-usd")), 0])
    await change(key, { spending_limit_usd: spent_usd })
    expect((await chat(key.key)).status).toBe(402)
    await change(key, { spending_limit_usd: 1 })
    expect((await chat(key.key)).status).toBe(200)
    await change(key, { spending_limit_usd: 0 })
    expect((await chat(key.key)).body).toMatchObject(reached(0))
    await change(key, { spending_limit_usd: null })
    expect((await chat(key.key)).status).toBe(200)
  })

  it("is looked at before a long body is read", async () => {
    const key = await limited({ spending_limit_usd: 0 })
    const long = await chat(key.key, { messages: [{ role: "user", content: "x".repeat(2_000_000) }] })
    expect([long.status, long.body]).toEqual([402, reached(0)])
  })

  it("is not what a client reads of where the balance leaves too little as well", async () => {
    const key = await limited({ spending_limit_usd: 0.001 })
    await service.control(`/tenants/${key.who.tenant_id}`, { billing_status: "suspended" })
    const { body } = await search(key.key)
    expect(body.details).toEqual({ reason: "the billing account is not active" })
  })

  it("is an error of the openai package like any other", async () => {
    const { key } = await limited({ spending_limit_usd: 0 })
    const client = new OpenAI({ apiKey: key, baseURL: `${service.url}/v1`, maxRetries: 0 })
    const messages = [{ role: "user" as const, content: "hello" }]
    await expect(client.chat.completions.create({ model: "sandbox-small", messages })).rejects.toMatchObject({
      status: 402,
      message: expect.stringContaining("insufficient credits")
    })
  })

  it("holds in Anthropic's protocol, in its shape of an error", async () => {
    const { key } = await limited({ spending_limit_usd: 0 })
    const { body, status } = await service.call("/v1/messages", {
      token: key,
      json: { model: "sandbox-small", max_tokens: 20, messages: [{ role: "user", content: "hello" }] }
    })
    expect([status, body]).toMatchObject([402, { type: "error", error: { message: expect.any(String) } }])
  })
})

describe("a list of models", () => {
  it("is all that the key may call and see, whatever the route; auto is what it becomes", async () => {
    const key = await limited({ allowed_models: ["sandbox-large", "tts-1"] })
    expect((await chat(key.key, { model: "sandbox-large" })).status).toBe(200)
    const refused = await chat(key.key)
    expect([refused.status, refused.body]).toEqual([
      403,
      {
        error: "this API key may not call this model",
        code: "model_not_allowed",
        details: { model: "sandbox-small", allowed_models: ["sandbox-large", "tts-1"] }
      }
    ])
    expect((await search(key.key)).body).toMatchObject({ code: "model_not_allowed" })
    const video = { model: "sandbox-video", prompt: "waves" }
    expect((await service.call("/v1/tools/media/generate", { token: key.key, json: video })).status).toBe(403)
    const speech = { input: "hello", model: "tts-1", voice: "alloy" }
    expect((await service.call("/v1/speech", { token: key.key, json: speech })).status).toBe(200)

    const seen = async () =>
      (await service.call("/v1/models", { token: key.key })).body.data.map(({ id }: { readonly id: string }) => id)
    expect(await seen()).toEqual(["sandbox-large"])
    expect((await service.call("/v1/models/sandbox-large", { token: key.key })).status).toBe(200)
    expect((await service.call("/v1/models/sandbox-small", { token: key.key })).status).toBe(404)
    expect((await chat(key.key, { model: "auto" })).body).toMatchObject({ details: { model: "sandbox-small" } })

    const lists = async () =>
      Promise.all(
        ["embeddings", "rerank", "tools/speech", "tools/transcriptions"].map(async (path) => {
          const { body } = await service.call(`/v1/${path}/models`, { token: key.key })
          return (body.data ?? body.models).map(({ id }: { readonly id: string }) => id)
        })
      )
    // Both providers of speech serve it.
    expect(await lists()).toEqual([[], [], ["tts-1", "tts-1"], []])
    await change(key, { allowed_models: ["sandbox-embedding", "sandbox-rerank", "whisper-1"] })
    expect(await lists()).toEqual([["sandbox-embedding"], ["sandbox-rerank"], [], ["whisper-1", "whisper-1"]])

    await change(key, { allowed_models: ["sandbox-small"] })
    expect((await chat(key.key, { model: "auto" })).status).toBe(200)
    expect(await seen()).toEqual(["auto", "sandbox-small"])
    await change(key, { allowed_models: null })
    expect((await search(key.key)).status).toBe(200)
    expect((await seen()).length).toBeGreaterThan(3)
    for (const list of await lists()) expect(list.length).toBeGreaterThan(1)
  })

  it("holds for the count of tokens, which is free", async () => {
    const { key } = await limited({ allowed_models: ["sandbox-small"] })
    const count = (model: string) =>
      service.call("/v1/messages/count_tokens", {
        token: key,
        json: { model, messages: [{ role: "user", content: "hi" }] }
      })
    const { body, status } = await count("sandbox-large")
    expect([status, body.type, body.error.code]).toEqual([403, "error", "model_not_allowed"])
    for (const model of ["sandbox-small", "auto"]) expect((await count(model)).status).toBe(200)
  })

  it("leaves no record of a call that it refused", async () => {
    const key = await limited({ allowed_models: ["sandbox-large"] })
    await chat(key.key)
    const { body } = await service.call("/v1/usage", { token: key.who.token })
    expect(body.total_requests).toBe(0)
  })
})

describe("an expiry", () => {
  it("ends the key at that instant", async () => {
    const now = Date.parse((await service.call("/v1/sandbox")).headers.get("date")!)
    const key = await limited({ expires_at: new Date(now + 600_000).toISOString() })
    expect((await search(key.key)).status).toBe(200)
    await service.control("/clock", { advance_ms: 600_000 })
    const { body, status } = await search(key.key)
    expect([status, body]).toMatchObject([401, { error: "invalid API key", code: "api_key_expired" }])
  })
})

it("are listed by the command line, with what is spent", async () => {
  const key = await limited({
    spending_limit_usd: 0.5,
    spending_limit_period: "month",
    expires_at: "2100-01-01T00:00:00Z",
    allowed_models: ["tavily", "sandbox-small"]
  })
  await service.key(key.who)
  expect((await chat(key.key)).status).toBe(200)
  const list = async (...flags: ReadonlyArray<string>) =>
    (await command(["key", "list", "--tenant", key.who.tenant_id, ...flags], { DATA_DIR: service.folder })).stdout
  const { keys } = JSON.parse(await list("--json"))
  expect(keys).toMatchObject([
    { name: "test" },
    {
      id: key.id,
      spending_limit_usd: "0.5",
      spending_limit_period: "month",
      spent_usd: "0.0000015",
      reserved_usd: "0",
      expires_at: "2100-01-01T00:00:00.000Z",
      allowed_models: ["tavily", "sandbox-small"]
    }
  ])
  expect(keys[0]).not.toHaveProperty("spending_limit_usd")
  const [head, ...rows] = (await list()).trimEnd().split("\n")
  expect(head).toMatch(/SPENT +LIMIT +EXPIRES +MODELS +TAGS +NAME$/)
  expect(rows.find((row) => row.startsWith(key.id))).toMatch(
    / 0\.0000015 +0\.5 per month +2100-01-01T00:00 +tavily,sandbox-small +limited$/
  )
})

describe("a process that is killed while a limited key calls", () => {
  it("leaves nothing set aside against the limit", async () => {
    const key = await limited({ spending_limit_usd: 0.005 })
    await service.control("/faults", { service: "search", delay_ms: 20_000, times: 1 })
    const cut = search(key.key).catch(() => undefined)
    while ((await shown(key)).reserved_usd === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    expect((await search(key.key)).status).toBe(402)
    await service.end("SIGKILL")
    await cut
    await Tables.lapse(service.folder)
    service = await start({ folder: service.folder })
    expect(await shown(key)).toEqual({ spent_usd: 0, reserved_usd: 0 })
    expect((await search(key.key)).status).toBe(200)
    expect(await shown(key)).toEqual({ spent_usd: 0.005, reserved_usd: 0 })
  })
})

describe("when the month is over", () => {
  it("a monthly limit begins anew, and one of all time does not; the books agree", async () => {
    const [monthly, total] = [
      await limited({ spending_limit_usd: 0.005, spending_limit_period: "month" }),
      await limited({ spending_limit_usd: 0.005 })
    ]
    const both = async () => [(await search(monthly.key)).status, (await search(total.key)).status]
    expect(await both()).toEqual([200, 200])
    expect(await both()).toEqual([402, 402])
    await service.control("/clock", { advance_ms: 32 * 86_400_000 })
    expect(await both()).toEqual([200, 402])
    expect(await both()).toEqual([402, 402])
    const verified = await command(["verify"], { DATA_DIR: service.folder })
    expect(verified.stdout).toContain("every invariant of the books holds")
  })
})
