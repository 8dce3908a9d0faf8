/** A person's API keys, as the person and the holder of a key see them. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { command, start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
})
afterAll(() => service.discard())

const applications = (): string => `/v1/tenants/${ada.tenant_id}/applications`

/** The key's record with its text, as its making answers it. */
const made = async (key: object): Promise<{ readonly id: string; readonly api_key: string }> => {
  const { body, status } = await service.call(applications(), { token: ada.token, json: { description: "", ...key } })
  expect([status, body.error]).toEqual([201, undefined])
  return body.result
}

const chat = (token: string, model = "sandbox-small"): Promise<Answer> =>
  service.call("/v1/chat/completions", { token, json: { model, messages: [{ role: "user", content: "one two" }] } })

const requestOf = ({ headers }: Answer): string => headers.get("x-request-id")!

describe("a usage record", () => {
  it("names its key and its request, on both lanes", async () => {
    const { api_key, id } = await made({ name: "laptop" })
    const answers = [
      await chat(api_key),
      await service.call("/v1/search?query=owls", { token: api_key }),
      await service.call("/v1/embeddings", { token: api_key, json: { model: "sandbox-embedding", input: "owls" } }),
      // Its path is no exact one, so that the router serves it.
      await service.call("/v1/chat/completions/", {
        token: api_key,
        json: { model: "sandbox-small", messages: [{ role: "user", content: "three" }] }
      }),
      await service.call("/v1/speech", { token: api_key, json: { model: "tts-1", input: "owls", voice: "nova" } })
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    const records = (await service.usage(ada)).toReversed()
    expect(records.map(({ request_id }) => request_id)).toEqual(answers.map(requestOf))
    for (const record of records)
      expect(record).toMatchObject({ application_id: id, application_name: "laptop", tenant_id: ada.tenant_id })
  })

  it("names the request of a call that failed", async () => {
    await service.control("/faults", { service: "chat", times: 1, status: 500 })
    const refused = await chat(ada.token)
    expect([refused.status, refused.body.code]).toEqual([500, "upstream_error"])
    expect((await service.usage(ada))[0]).toMatchObject({ success: false, request_id: requestOf(refused) })
  })

  it("names no key if a person's token called", async () => {
    const answer = await chat(ada.token)
    const [record] = await service.usage(ada)
    expect(record.request_id).toBe(requestOf(answer))
    expect(Object.keys(record).filter((name) => name.startsWith("application_"))).toEqual([])
  })

  it("keeps the key's id when the key is deleted", async () => {
    const { api_key, id } = await made({ name: "short" })
    await chat(api_key)
    await service.call(`${applications()}/${id}`, { token: ada.token, method: "DELETE" })
    const [record] = await service.usage(ada)
    expect(record.application_id).toBe(id)
    expect(record).not.toHaveProperty("application_name")
  })
})

describe("an API key on a route for people", () => {
  const told =
    'Bearer error="invalid_token", error_description="This route is for signed-in people; an API key cannot call it. ' +
    'Send the access token of a sign-in."'

  it.each([
    ["the person's profile", "/v1/me"],
    ["the tenant's keys", "/v1/tenants/<tenant>/applications"],
    ["the tenant's usage", "/v1/tenants/<tenant>/usage"]
  ])("is refused in the specification's words, and a header says why: %s", async (_, path) => {
    const { api_key } = await made({ name: "lost" })
    const at = path.replace("<tenant>", ada.tenant_id)
    const { body, headers, status } = await service.call(at, { token: api_key })
    expect([status, body]).toEqual([401, { error: "invalid or expired token" }])
    expect(headers.get("www-authenticate")).toBe(told)
  })

  it.each(["nonsense", "a.b.c", "sk-prod-0000"])(
    "has a header of its own only as a key of this service: %s",
    async (token) => {
      const { headers, status } = await service.call("/v1/me", { token })
      expect([status, headers.get("www-authenticate")]).toEqual([401, null])
    }
  )
})

const keyOf = async (token: string): Promise<Answer["body"]> => {
  const { body, status } = await service.call("/v1/key", { token })
  expect([status, body.error]).toEqual([200, undefined])
  return body.result
}

describe("GET /v1/key", () => {
  it("shows a key without limits its name and its own usage", async () => {
    const { api_key, id } = await made({ name: "plain" })
    const shown = {
      id,
      name: "plain",
      tenant_id: ada.tenant_id,
      account_id: ada.account_id,
      created_at: expect.any(String)
    }
    const none = { total_requests: 0, total_tokens: 0, total_cost: 0 }
    const key = await keyOf(api_key)
    expect(key).toEqual({ ...shown, key_prefix: expect.any(String), usage: none })
    expect(api_key.startsWith(key.key_prefix)).toBe(true)
    await chat(api_key)
    // Another key's calls and the person's own do not count.
    const other = await made({ name: "other" })
    await chat(other.api_key)
    await chat(ada.token)
    const [, , record] = await service.usage(ada)
    expect((await keyOf(api_key)).usage).toEqual({
      total_requests: 1,
      total_tokens: record.total_tokens,
      total_cost: record.cost
    })
  })

  it("shows limits, what is spent and left of them, and when they renew", async () => {
    const expires_at = "2100-01-01T00:00:00.000Z"
    const { api_key } = await made({
      name: "limited",
      spending_limit_usd: 0.01,
      spending_limit_period: "month",
      allowed_models: ["sandbox-small"],
      expires_at
    })
    await chat(api_key)
    const key = await keyOf(api_key)
    const [{ cost }] = await service.usage(ada)
    expect(cost).toBeGreaterThan(0)
    const now = new Date((await service.call("/v1/sandbox")).body.now ?? Date.now())
    expect(key).toMatchObject({
      spending_limit_usd: 0.01,
      spending_limit_period: "month",
      spent_usd: cost,
      reserved_usd: 0,
      allowed_models: ["sandbox-small"],
      expires_at,
      renews_at: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString()
    })
    expect(key.remaining_usd).toBeCloseTo(0.01 - cost, 9)
  })

  it("does not renew a limit for all time", async () => {
    const { api_key } = await made({ name: "total", spending_limit_usd: 1, spending_limit_period: "total" })
    const key = await keyOf(api_key)
    expect(key).toMatchObject({ spending_limit_period: "total", spent_usd: 0, reserved_usd: 0, remaining_usd: 1 })
    expect(key).not.toHaveProperty("renews_at")
  })

  it("has nothing left when the limit was set below what is spent", async () => {
    const { api_key, id } = await made({ name: "lowered" })
    await chat(api_key)
    await service.call(`${applications()}/${id}`, {
      token: ada.token,
      method: "PATCH",
      json: { spending_limit_usd: 0 }
    })
    expect(await keyOf(api_key)).toMatchObject({ spending_limit_usd: 0, remaining_usd: 0 })
  })

  it("shows the allowance of its tenant, and none where there is none", async () => {
    const grace = await service.signIn("grace@example.com")
    const made = await service.key(grace)
    expect(await keyOf(made)).not.toHaveProperty("allowance")
    const token = (await command(["operator", "--token"], { DATA_DIR: service.folder })).stdout.trim()
    const path = `/v1/operator/tenants/${grace.tenant_id}/allowance`
    const set = await service.call(path, { token, method: "PUT", json: { amount_usd: 20, period: "month" } })
    expect(set.status).toBe(200)
    expect((await keyOf(made)).allowance).toEqual({
      amount_usd: 20,
      period: "month",
      renews_at: set.body.result.renews_at
    })
    expect((await service.call(path, { token, method: "DELETE" })).status).toBe(200)
    expect(await keyOf(made)).not.toHaveProperty("allowance")
  })

  it("is for keys", async () => {
    const { body, status } = await service.call("/v1/key", { token: ada.token })
    expect([status, body]).toEqual([401, { error: "invalid API key format" }])
  })
})

describe("/v1/usage?key=self", () => {
  const usage = (token: string, query: string) => service.call(`/v1/usage${query}`, { token })

  it("sums the calls of the key that asks", async () => {
    const { api_key } = await made({ name: "one of many" })
    const large = await made({ name: "large" })
    await chat(api_key)
    await chat(api_key)
    await service.call("/v1/search?query=owls", { token: api_key })
    await chat(large.api_key, "sandbox-large")
    const { body } = await usage(api_key, "?key=self")
    expect(body).toMatchObject({ total_requests: 3, successful_requests: 3 })
    expect(body.model_breakdown.map(({ model }: { model: string }) => model)).not.toContain("sandbox-large")
    expect(body.endpoint_breakdown).toHaveLength(2)
    expect(body.total_cost).toBe((await keyOf(api_key)).usage.total_cost)
    // Without it, the summary covers the account.
    const all = (await usage(api_key, "")).body
    expect(all.total_requests).toBeGreaterThanOrEqual(4)
    expect(all.model_breakdown.map(({ model }: { model: string }) => model)).toContain("sandbox-large")
  })

  it("sums the calls of the run whose key asks, and of no other run", async () => {
    const { api_key } = await made({ name: "with runs" })
    const run = async (token: string): Promise<string> =>
      (await service.call("/v1/runs", { token, json: { limit: { usd: 1 } } })).body.result.api_key
    const above = await run(api_key)
    const below = await run(above)
    await chat(api_key)
    await chat(above, "sandbox-large")
    await service.call("/v1/search?query=owls", { token: above })
    for (let calls = 0; calls < 4; calls++) await chat(below)
    const { body } = await usage(above, "?key=self")
    expect(body).toMatchObject({ total_requests: 2, successful_requests: 2 })
    expect(body.model_breakdown.map(({ model }: { model: string }) => model)).toContain("sandbox-large")
    expect(body.endpoint_breakdown).toHaveLength(2)
    expect((await usage(below, "?key=self")).body.total_requests).toBe(4)
    expect((await usage(above, "?key=self&end_time=2020-01-01T00:00:00Z")).body.total_requests).toBe(0)
    expect((await usage(await run(api_key), "?key=self")).body).toMatchObject({ total_requests: 0, total_cost: 0 })
    // The key that made them sums its runs' calls too.
    expect((await usage(api_key, "?key=self")).body.total_requests).toBe(7)
  })

  it("keeps to the window", async () => {
    const { api_key } = await made({ name: "window" })
    await chat(api_key)
    const before = await usage(api_key, "?key=self&end_time=2020-01-01T00:00:00Z")
    expect(before.body).toMatchObject({ total_requests: 0, total_cost: 0 })
    const since = await usage(api_key, "?key=self&start_time=2020-01-01T00:00:00Z")
    expect(since.body).toMatchObject({ total_requests: 1 })
  })

  it("is refused to a person's token, and with another value", async () => {
    const { api_key } = await made({ name: "wrong" })
    for (const [token, query] of [
      [ada.token, "?key=self"],
      [api_key, "?key=other"]
    ] as const) {
      const { body, status } = await usage(token, query)
      expect([status, body.code, body.details.field]).toEqual([400, "invalid_request", "key"])
    }
  })
})

describe("allowed_models", () => {
  // A model of every capability, by the names that usage records have.
  const known = [
    "sandbox-small",
    "sandbox-embedding",
    "sandbox-rerank",
    "sandbox-video",
    "tavily",
    "tts-1",
    "whisper-1",
    "email"
  ]

  it("takes the names that usage records have, of every capability", async () => {
    const { api_key } = await made({ name: "several", allowed_models: known })
    expect((await keyOf(api_key)).allowed_models).toEqual(known)
  })

  it("refuses an unknown name, and says which", async () => {
    const { api_key, id } = await made({ name: "changed", allowed_models: ["sandbox-small"] })
    const json = { name: "typo", allowed_models: ["sandbox-small", "sandbox-smal"] }
    for (const [path, method] of [
      [applications(), "POST"],
      [`${applications()}/${id}`, "PATCH"]
    ] as const) {
      const { body, status } = await service.call(path, { token: ada.token, method, json })
      expect([status, body.code, body.details.field]).toEqual([400, "invalid_request", "allowed_models"])
      expect(body.error).toContain('"sandbox-smal"')
    }
    expect(await keyOf(api_key)).toMatchObject({ name: "changed", allowed_models: ["sandbox-small"] })
  })

  it("is checked by the command against the configuration", async () => {
    const config = join(service.folder, "config.json")
    const price = { prompt_usd_per_million: 1, completion_usd_per_million: 2 }
    const model = {
      id: "small",
      context_length: 1_000,
      max_output_tokens: 100,
      price,
      upstreams: [{ upstream: "local" }]
    }
    const upstreams = { local: { base_url: "http://127.0.0.1:9/v1" } }
    writeFileSync(config, JSON.stringify({ upstreams, models: [model] }))
    const create = (models: string, ...more: ReadonlyArray<string>) =>
      command(["key", "create", "--tenant", ada.tenant_id, "--name", "cli", "--models", models, ...more], {
        DATA_DIR: service.folder
      })
    const refused = await create("small,smal", "--config", config)
    expect([refused.code, refused.stdout]).toEqual([1, ""])
    expect(refused.stderr).toContain('"smal"')
    const key = await create("small", "--config", config)
    expect([key.stderr.split(" ")[0], key.code]).toEqual(["created", 0])
  })
})
