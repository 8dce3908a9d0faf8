/** The operator's log of calls that were refused, that failed, or that went on to another upstream; and who may read `/metrics`. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { freshFolder, start } from "../../support/Service.ts"
import type { Answer, Person, Service } from "../../support/Service.ts"

const content = "nobody-may-read-this"

let service: Service
let ada: Person
beforeAll(async () => {
  service = await start({ env: { LOG_LEVEL: "info" } })
  ada = await service.signIn("ada@example.com")
})
afterAll(() => service.discard())

const keyWith = async (limits: object): Promise<{ readonly id: string; readonly api_key: string }> =>
  (
    await service.call(`/v1/tenants/${ada.tenant_id}/applications`, {
      token: ada.token,
      json: { name: "logged", ...limits }
    })
  ).body.result

const chat = (token: string, model: string): Promise<Answer> =>
  service.call("/v1/chat/completions", { token, json: { model, messages: [{ role: "user", content }] } })

/** The facts of the line about the request of this answer. */
const lineOf = (message: string, { headers }: Answer): Promise<Record<string, unknown>> =>
  vi.waitFor(() => {
    const lines = service.stderr
      .join("")
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
    const found = lines
      .map((line) => JSON.parse(line) as { readonly message: unknown; readonly annotations: Record<string, unknown> })
      .find((one) => one.message === message && one.annotations["request_id"] === headers.get("x-request-id"))
    if (found === undefined) throw new Error(`there is no line "${message}" among ${service.stderr.join("")}`)
    return found.annotations
  }, 20_000)

const milliseconds = expect.any(Number)

describe("the log", () => {
  it("has a line for a call that is refused", async () => {
    const narrow = await keyWith({ allowed_models: ["sandbox-small"] })
    const forbidden = await chat(narrow.api_key, "sandbox-large")
    expect(forbidden.status).toBe(403)
    const who = { tenant: ada.tenant_id, key: narrow.id, model: "sandbox-large", upstream: expect.any(String) }
    expect(await lineOf("a call was refused", forbidden)).toMatchObject({
      ...who,
      status: 403,
      code: "model_not_allowed",
      milliseconds
    })
    const empty = await keyWith({ spending_limit_usd: 0 })
    const poor = await chat(empty.api_key, "sandbox-small")
    expect(poor.status).toBe(402)
    expect(await lineOf("a call was refused", poor)).toMatchObject({ key: empty.id, status: 402, milliseconds })
  })

  it("has a line for a call that moves to its next upstream", async () => {
    const { api_key, id } = await keyWith({})
    await service.control("/faults", { service: "chat", times: 1, status: 429 })
    const answer = await chat(api_key, "sandbox-failover")
    expect(answer.status).toBe(200)
    expect(await lineOf("a call moves to its next upstream", answer)).toMatchObject({
      tenant: ada.tenant_id,
      key: id,
      model: "sandbox-failover",
      upstream: expect.any(String),
      status: 429,
      code: "upstream_rate_limited",
      milliseconds
    })
  })

  it("has a line for a call that failed, also without a key", async () => {
    await service.control("/faults", { service: "chat", times: 1, status: 500 })
    const answer = await chat(ada.token, "sandbox-small")
    expect(answer.body.code).toBe("upstream_error")
    const line = await lineOf("a call failed", answer)
    expect(line).toMatchObject({ tenant: ada.tenant_id, status: answer.status, code: "upstream_error", milliseconds })
    expect(line).not.toHaveProperty("key")
  })

  it("has a line for a call that was refused before the gate, in either lane", async () => {
    const { api_key, id } = await keyWith({})
    const who = { tenant: ada.tenant_id, key: id, milliseconds }
    const route = "POST /v1/chat/completions"
    for (const path of ["/v1/chat/completions", "/v1/chat/completions/"]) {
      const post = (token: string, json: object) => service.call(path, { token, json })
      const stranger = await post("svc-prod-unknown", { model: content })
      expect(stranger.status).toBe(401)
      const line = await lineOf("a call was refused", stranger)
      expect(line).toMatchObject({ route, status: 401, milliseconds })
      expect(Object.keys(line)).not.toContain("tenant")
      const wrong = await post(api_key, { model: "sandbox-small", messages: content })
      expect(await lineOf("a call was refused", wrong)).toMatchObject({ ...who, route, status: 400 })
      const unknown = await post(api_key, { model: content, messages: [{ role: "user", content }] })
      expect(unknown.status).toBeGreaterThanOrEqual(400)
      expect(await lineOf("a call was refused", unknown)).toMatchObject({ ...who, route, status: unknown.status })
    }
    const search = await service.call("/v1/search", { token: ada.token })
    const line = await lineOf("a call was refused", search)
    expect(line).toMatchObject({ route: "GET /v1/search", tenant: ada.tenant_id, status: 400, milliseconds })
    expect(line).not.toHaveProperty("key")
    const long = await service.call("/v1/embeddings", { token: api_key, raw: "x".repeat(64 * 1024 * 1024) })
    expect(long.status).toBe(413)
    expect(await lineOf("a call was refused", long)).toMatchObject({ ...who, status: 413 })
  })

  it("has one line for each refused call, and none for other routes", async () => {
    const narrow = await keyWith({ allowed_models: ["sandbox-small"] })
    const forbidden = await chat(narrow.api_key, "sandbox-large")
    const empty = await keyWith({ spending_limit_usd: 0 })
    const poor = await chat(empty.api_key, "sandbox-small")
    await service.control("/faults", { service: "chat", times: 1, status: 500 })
    const failed = await chat(ada.token, "sandbox-small")
    const profile = await service.call("/v1/me", { token: "unknown" })
    expect([forbidden.status, poor.status, profile.status]).toEqual([403, 402, 401])
    // Lines are in the order of requests, so those of earlier ones are there.
    await lineOf("a call was refused", await chat("svc-prod-unknown", "sandbox-small"))
    const lines = service.stderr.join("").split("\n")
    const linesOf = ({ headers }: Answer) =>
      lines.filter((line) => line.includes('"a call ') && line.includes(headers.get("x-request-id")!)).length
    expect([forbidden, poor, failed, profile].map(linesOf)).toEqual([1, 1, 1, 0])
  })

  it("has nothing of a call's content, and no credential", () => {
    const log = service.stderr.join("")
    expect(log).toContain("a call failed")
    expect(log).not.toContain(content)
    expect(log).not.toContain("svc-prod-")
    expect(log).not.toContain(ada.token)
  })
})

describe("/metrics", () => {
  it("takes the token of the configuration, and nothing else", async () => {
    const folder = freshFolder()
    const config = join(folder, "config.json")
    writeFileSync(config, JSON.stringify({ metrics: { token_env: "METRICS_TOKEN" } }))
    const closed = await start({ folder, args: ["--config", config], env: { METRICS_TOKEN: "a-token-of-prometheus" } })
    try {
      const metrics = (token?: string) => closed.call("/metrics", token === undefined ? {} : { token })
      const [none, wrong, right] = [await metrics(), await metrics("another"), await metrics("a-token-of-prometheus")]
      expect([none.status, none.body]).toEqual([401, { error: "missing Authorization header" }])
      expect([wrong.status, wrong.body]).toEqual([401, { error: "invalid or expired token" }])
      expect([right.status, typeof right.body]).toEqual([200, "string"])
      expect(right.body).toContain("tollgate_requests_total")
      expect((await closed.call("/healthz")).status).toBe(200)
    } finally {
      await closed.discard()
    }
  })

  it("takes so many guesses of an address a minute, and the right token all the same", async () => {
    const folder = freshFolder()
    const config = join(folder, "config.json")
    const rate_limits = { metrics: 3, token: 1 }
    writeFileSync(config, JSON.stringify({ metrics: { token_env: "METRICS_TOKEN" }, rate_limits }))
    const closed = await start({ folder, args: ["--config", config], env: { METRICS_TOKEN: "a-token-of-prometheus" } })
    try {
      // A minute may begin in between, once.
      const guesses: Array<number> = []
      for (let i = 0; i < 8; i++) guesses.push((await closed.call("/metrics", { token: `guess-${i}` })).status)
      expect(guesses.slice(0, 3)).toEqual([401, 401, 401])
      expect(guesses).toContain(429)
      expect((await closed.call("/metrics", { token: "a-token-of-prometheus" })).status).toBe(200)
      expect((await closed.call("/metrics")).status).toBe(401)
    } finally {
      await closed.discard()
    }
  })

  it("is open without one", async () => {
    expect((await service.call("/metrics")).status).toBe(200)
  })
})
