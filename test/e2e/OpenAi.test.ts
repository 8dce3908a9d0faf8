/** The official `openai` package, knowing nothing of us but an address and a key. */
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person
let client: OpenAI

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
  client = new OpenAI({ apiKey: await service.key(ada), baseURL: `${service.url}/v1`, maxRetries: 0 })
})

afterAll(() => service.discard())

describe("the openai package", () => {
  it("chats, and the charge can be read back to the nano-USD", async () => {
    const before = await service.balance(ada)
    const answer = await client.chat.completions.create({
      model: "sandbox-small",
      messages: [{ role: "user", content: "one two three" }]
    })
    expect(answer.object).toBe("chat.completion")
    expect(answer.choices[0]?.message.content).toBe("one two three")
    expect(answer.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 })

    // 3 × 0.15 + 3 × 0.60 USD a million.
    const cost = 0.00000225
    const [record] = await service.usage(ada)
    expect(record).toMatchObject({
      usage_type: "inference",
      model: "sandbox-small",
      prompt_tokens: 3,
      completion_tokens: 3,
      total_tokens: 6,
      cost,
      success: true,
      account_id: ada.account_id,
      tenant_id: ada.tenant_id,
      billing_source_kind: "own"
    })
    const [entry] = await service.ledger(ada)
    expect(entry).toMatchObject({
      type: "debit",
      amount: cost,
      reference_id: record.id,
      balance: await service.balance(ada)
    })
    expect(entry).not.toHaveProperty("source")
    expect(Math.round((before - (await service.balance(ada))) * 1e9)).toBe(2250)
  })

  it("streams, and the charge is in the books when the stream ends", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox-large",
      messages: [{ role: "user", content: "alpha beta gamma delta" }],
      stream: true
    })
    let text = ""
    for await (const chunk of stream) {
      expect(chunk.choices).not.toEqual([])
      expect(chunk).not.toHaveProperty("usage")
      text += chunk.choices[0]?.delta.content ?? ""
    }
    expect(text).toBe("alpha beta gamma delta")
    const [record] = await service.usage(ada)
    expect(record).toMatchObject({ model: "sandbox-large", prompt_tokens: 4, completion_tokens: 4, cost: 0.000072 })
  })

  it("shows the usage chunk to who asks for it", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox-small",
      messages: [{ role: "user", content: "a b" }],
      stream: true,
      stream_options: { include_usage: true }
    })
    const chunks = []
    for await (const chunk of stream) chunks.push(chunk)
    for (const chunk of chunks.slice(0, -1)) expect(chunk.usage).toBeNull()
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 2 } })
  })

  it("completes text", async () => {
    const answer = await client.completions.create({ model: "sandbox-small", prompt: "say this" })
    expect(answer.object).toBe("text_completion")
    expect(answer.choices[0]?.text).toContain("say this")
  })

  it("is let through by the preflight that a browser makes before each of its calls", async () => {
    /** The rules of a browser on a page of another origin: every header that is not safelisted is asked for first. */
    const asBrowser: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      const safelisted = new Set(["accept", "accept-language", "content-language"])
      const asked: Array<string> = []
      request.headers.forEach((_, name) => void (safelisted.has(name) || asked.push(name)))
      const preflight = await fetch(request.url, {
        method: "OPTIONS",
        headers: {
          origin: "https://page.example",
          "access-control-request-method": request.method,
          "access-control-request-headers": asked.join(",")
        }
      })
      const allowed = (preflight.headers.get("access-control-allow-headers") ?? "").toLowerCase().split(/, */)
      const refused = asked.filter((name) => !allowed.includes(name))
      if (!preflight.ok || preflight.headers.get("access-control-allow-origin") !== "*" || refused.length > 0)
        throw new TypeError(`the preflight does not allow ${refused.join(", ")}`)
      return fetch(request)
    }
    const inBrowser = new OpenAI({
      apiKey: client.apiKey,
      baseURL: `${service.url}/v1`,
      maxRetries: 0,
      dangerouslyAllowBrowser: true,
      fetch: asBrowser
    })
    const answer = await inBrowser.chat.completions.create({
      model: "sandbox-small",
      messages: [{ role: "user", content: "from a page" }]
    })
    expect(answer.choices[0]?.message.content).toBe("from a page")
    const { data } = await inBrowser.models.list()
    expect(data.length).toBeGreaterThan(1)
  })

  it("lists the models", async () => {
    const models = await client.models.list()
    expect(models.data.map(({ id }) => id)).toEqual([
      "auto",
      "sandbox-small",
      "sandbox-large",
      "sandbox-fraction",
      "sandbox-failover"
    ])
  })

  it("finds one model", async () => {
    const found = await client.models.retrieve("sandbox-large")
    expect(found).toMatchObject({ id: "sandbox-large", object: "model", owned_by: "sandbox" })
    expect(found.created).toBeGreaterThan(0)
    await expect(client.models.retrieve("nobody/nothing")).rejects.toMatchObject({ status: 404 })
  })

  it("hears of a wrong key", async () => {
    const stranger = new OpenAI({ apiKey: `svc-prod-${"0".repeat(64)}`, baseURL: `${service.url}/v1`, maxRetries: 0 })
    await expect(stranger.models.list()).rejects.toMatchObject({ status: 401 })
  })
})
