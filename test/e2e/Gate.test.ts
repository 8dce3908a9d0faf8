/** The gate from outside: what it admits, what it refuses, and what the books say of calls that go wrong. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service

beforeAll(async () => {
  service = await start()
})

afterAll(() => service.discard())

let people = 0
const person = async (): Promise<{ readonly who: Person; readonly key: string }> => {
  const who = await service.signIn(`person${people++}@example.com`)
  return { who, key: await service.key(who) }
}

const chat = (key: string, body: object) =>
  service.call("/v1/chat/completions", {
    token: key,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], ...body }
  })

const upstreamCalls = async (): Promise<number> => (await service.control("/calls?service=chat&limit=10000")).length

/** Reads a streamed answer and leaves after `pieces` of it. */
const leaveAfter = async (key: string, pieces: number, body: object): Promise<string> => {
  const gone = new AbortController()
  const response = await fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    signal: gone.signal,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "sandbox-small", stream: true, ...body })
  })
  const reader = response.body!.getReader()
  let text = ""
  for (let i = 0; i < pieces; i++) text += new TextDecoder().decode((await reader.read()).value)
  gone.abort()
  return text
}

/** Waits for something to become true that nobody announces. */
const eventually = async <A>(look: () => Promise<A | undefined>): Promise<A> => {
  for (let i = 0; i < 400; i++) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error("it did not come to that")
}

describe("admission", () => {
  it("admits exactly 3 of 200 concurrent calls when the balance affords 3", async () => {
    const { key, who } = await person()
    const before = await upstreamCalls()
    // The vendor answers once the service has refused the others: a call that ends gives its reservation back.
    await service.control("/faults", { service: "chat", delay_ms: 10 * 60_000, times: 200 })
    let refused = 0
    const ask = async () => {
      // 32 answers of 4,096 tokens at 15 USD a million: 1.97 each, of a balance of 6.
      const answer = await chat(key, { model: "sandbox-large", n: 32, max_tokens: 4_096 })
      if (answer.status !== 200) refused++
      return answer
    }
    const asked = Promise.all(Array.from({ length: 200 }, ask))
    await vi.waitFor(() => expect(refused).toBe(197), { timeout: 120_000, interval: 50 })
    expect((await upstreamCalls()) - before).toBe(3)
    await service.control("/faults", undefined, "DELETE")
    const answers = await asked
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(3)
    expect(statuses.filter((status) => status === 402)).toHaveLength(197)
    expect(answers.find(({ status }) => status === 402)?.body).toMatchObject({
      error: "insufficient credits",
      code: "insufficient_credits"
    })
    expect((await upstreamCalls()) - before).toBe(3)
    expect(await service.usage(who)).toHaveLength(3)
    // What was set aside is free again.
    expect((await chat(key, { model: "sandbox-large", n: 90, max_tokens: 4_096 })).status).toBe(200)
  })

  it("bounds a call without max_tokens to what the balance affords", async () => {
    const { key, who } = await person()
    expect((await chat(key, {})).status).toBe(200)
    const [call] = await service.control("/calls?service=chat&limit=1")
    expect(call.body.max_tokens).toBeGreaterThanOrEqual(16)
    expect((await service.usage(who))[0]).toMatchObject({ success: true, cost: 0.0000015 })
  })

  it("refuses before any upstream is reached, and leaves no record", async () => {
    const { key, who } = await person()
    const before = await upstreamCalls()
    expect((await chat(key, { model: "sandbox-large", n: 128, max_tokens: 1_000_000_000 })).status).toBe(402)
    expect((await chat(key, { temperature: 3 })).status).toBe(400)
    expect((await chat(key, { model: "no-such-model" })).status).toBe(400)
    expect(await upstreamCalls()).toBe(before)
    expect(await service.usage(who)).toEqual([])
    expect(await service.balance(who)).toBe(6)
  })
})

describe("calls that go wrong", () => {
  it("cost nothing and leave a record when the upstream fails", async () => {
    const { key, who } = await person()
    for (const fault of [{ status: 500 }, { status: 200, body: "not JSON" }, { drop: true }]) {
      await service.control("/faults", { service: "chat", ...fault, times: 1 })
      const answer = await chat(key, {})
      expect(answer.status).toBe(500)
      expect(answer.body).toMatchObject({ code: "upstream_error" })
    }
    expect(await service.balance(who)).toBe(6)
    const records = await service.usage(who)
    expect(records).toHaveLength(3)
    for (const record of records)
      expect(record).toMatchObject({ success: false, cost: 0, error_type: "upstream_error" })
  })

  it("pass on what the upstream says of the request, and its 429 with Retry-After", async () => {
    const { key } = await person()
    const body = { error: { message: "this model has no tools" } }
    await service.control("/faults", { service: "chat", status: 422, body, times: 1 })
    const refused = await chat(key, {})
    expect(refused.status).toBe(400)
    expect(refused.body.error).toBe("this model has no tools")

    await service.control("/faults", { service: "chat", status: 429, headers: { "Retry-After": "7" }, times: 1 })
    const busy = await chat(key, {})
    expect(busy.status).toBe(429)
    expect(busy.headers.get("retry-after")).toBe("7")
  })

  it("never show an upstream's address or key", async () => {
    const { key } = await person()
    await service.control("/faults", { service: "chat", status: 401, body: { error: "bad key sk-upstream" }, times: 1 })
    const answer = await chat(key, {})
    expect(answer.status).toBe(500)
    expect(JSON.stringify(answer.body)).not.toMatch(/127\.0\.0\.1|sk-upstream/)
  })

  it("go on to the next upstream before the first byte", async () => {
    const { key, who } = await person()
    for (const stream of [false, true]) {
      await service.control("/faults", { service: "chat", status: 503, times: 1 })
      const answer = await chat(key, { model: "sandbox-failover", stream })
      expect(answer.status).toBe(200)
      expect((await service.usage(who))[0]).toMatchObject({ provider: "sandbox-b", success: true, cost: 0.0000015 })
    }
  })

  it("end a stream that breaks midway with an error, and charge what usage was reported: none", async () => {
    const { key, who } = await person()
    await service.control("/faults", { service: "chat", drop: true, times: 1 })
    const answer = await chat(key, { stream: true, messages: [{ role: "user", content: "a b c d e f g h" }] })
    expect(answer.status).toBe(200)
    expect(answer.body).toMatch(/data: \{"error":/)
    const [record] = await service.usage(who)
    expect(record).toMatchObject({ success: false, error_type: "upstream_error", cost: 0 })
    expect(await service.balance(who)).toBe(6)
  })
})

describe("a client that hangs up", () => {
  const messages = [{ role: "user", content: Array.from({ length: 30 }, (_, i) => `word${i}`).join(" ") }]

  it("is charged by the upstream's own count, which is read to its end", async () => {
    const { key, who } = await person()
    await service.control("/faults", { service: "chat", chunk_delay_ms: 40, times: 1 })
    await leaveAfter(key, 3, { messages })
    const record = await eventually(async () => (await service.usage(who))[0])
    expect(record).toMatchObject({ success: true, prompt_tokens: 30, completion_tokens: 30, cost: 0.0000225 })
  })

  it("is charged what came, marked, when the upstream takes too long", async () => {
    const { key, who } = await person()
    await service.control("/faults", { service: "chat", chunk_delay_ms: 700, times: 1 })
    await leaveAfter(key, 3, { messages })
    const record = await eventually(async () => (await service.usage(who))[0])
    expect(record.error_type).toBe("client_disconnected")
    expect(record.completion_tokens).toBeGreaterThan(0)
    expect(record.completion_tokens).toBeLessThan(30)
    expect(record.cost).toBeGreaterThan(0)
    const [call] = await service.control("/calls?service=chat&limit=1")
    expect(call.aborted).toBe(true)
  })

  it("does not disturb anybody else while its commit is pending", async () => {
    const { key } = await person()
    const others = Array.from({ length: 50 }, async (_, i) => {
      const gone = new AbortController()
      setTimeout(() => gone.abort(), i % 10)
      await fetch(`${service.url}/v1/chat/completions`, {
        method: "POST",
        signal: gone.signal,
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: "sandbox-small", messages: [{ role: "user", content: "x" }] })
      }).catch(() => undefined)
    })
    await Promise.all(others)
    expect((await chat(key, {})).status).toBe(200)
  })
})
