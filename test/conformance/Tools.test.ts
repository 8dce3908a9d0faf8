/** Search, speech, transcription and mail to oneself, from outside: fields, limits, prices, faults. */
import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lettersTo } from "../support/mail.ts"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`tools${++people}@example.com`)
const fault = (name: string, more: object) => service.control("/faults", { service: name, times: 1, ...more })
const left = (cost: number) => Number((6 - cost).toFixed(9))

/** Somebody in a tenant of their own that has only so much. */
const withOnly = async (usd: number): Promise<Person> => {
  const who = await person()
  const made = await service.call("/v1/tenants", { token: who.token, json: { name: "small" } })
  const { client_id } = await service.sandbox()
  const tenant_id = made.body.result.id
  const json = { client_id, grant_type: "refresh_token", refresh_token: who.refresh_token, tenant_id }
  const { access_token } = (await service.call("/v1/auth/token", { json })).body.result
  await service.control("/credit", { tenant_id, amount: usd, source: "purchase" })
  return { ...who, token: access_token, tenant_id }
}

const emptied = async () => {
  const who = await person()
  await service.control(`/tenants/${who.tenant_id}`, { billing_status: "suspended" })
  return who
}

/** What every tool does when its upstream fails: a status for the client, a record, no charge. */
const faults: ReadonlyArray<readonly [name: string, fault: object, status: number, code: string]> = [
  ["its 500", { status: 500, body: { error: "sk-secret" } }, 500, "upstream_error"],
  ["its 401", { status: 401 }, 500, "upstream_error"],
  ["its 422", { status: 422, body: { error: { message: "not that" } } }, 400, "upstream_rejected"],
  ["its 429", { status: 429, headers: { "retry-after": "3" } }, 429, "upstream_rate_limited"],
  ["a dropped connection", { drop: true }, 500, "upstream_error"],
  ["nonsense", { status: 200, body: "<html>" }, 500, "upstream_error"]
]

const failsSo = async (who: Person, answer: Answer, status: number, code: string, endpoint: string) => {
  expect([answer.status, answer.body.code]).toEqual([status, code])
  expect(JSON.stringify(answer.body)).not.toContain("sk-secret")
  if (status === 429) expect(answer.headers.get("retry-after")).toBe("3")
  expect(await service.balance(who)).toBe(6)
  expect((await service.usage(who))[0]).toMatchObject({
    endpoint,
    success: false,
    cost: 0,
    error_type: code,
    usage_type: "tool"
  })
}

describe("web search", () => {
  const search = (who: Person, query: string, path = "/v1/search") =>
    service.call(`${path}?${query}`, { token: who.token })

  it("finds what was asked, at 0.005 a query", async () => {
    const who = await person()
    for (const path of ["/v1/search", "/v1/tools/search"]) {
      const { body, headers, status } = await search(who, "query=two%20words&max_results=3", path)
      expect(status).toBe(200)
      expect(body).toEqual({
        query: "two words",
        provider: "tavily",
        results: [1, 2, 3].map((i) => ({
          title: `two words (${i})`,
          url: `https://example.com/two%20words/${i}`,
          content: `Page ${i} about two words.`
        }))
      })
      expect(headers.get("x-charge-usd")).toBe("0.005")
    }
    expect(await service.balance(who)).toBe(left(0.01))
    expect((await service.usage(who))[0]).toMatchObject({
      endpoint: "search",
      usage_type: "tool",
      units: 1,
      cost: 0.005
    })
  })

  it("takes every field", async () => {
    const who = await person()
    const { body } = await search(
      who,
      "query=x&include_raw=true&search_depth=advanced&domains=a.com,%20b.org&max_results=2"
    )
    expect(body.results).toMatchObject([
      { url: "https://a.com/x/1", raw_content: expect.any(String) },
      { url: "https://b.org/x/2", raw_content: expect.any(String) }
    ])
    const brave = await search(who, "query=x&provider=brave&domains=a.com")
    expect(brave.body).toMatchObject({ provider: "brave", results: expect.any(Array) })
    expect(brave.body.results).toHaveLength(10)
    expect(brave.body.results[0]).toEqual({ title: "x (1)", url: "https://a.com/x/1", content: "Page 1 about x." })
  })

  it.each([
    ["", "query"],
    ["query=", "query"],
    ["query=x&max_results=0", "max_results"],
    ["query=x&max_results=many", "max_results"],
    ["query=x&include_raw=perhaps", "include_raw"],
    ["query=x&provider=nobody", "provider"],
    ["query=x&domains=a%20b", "domains"]
  ])("refuses %j", async (query, field) => {
    const who = await person()
    const answer = await search(who, query)
    expect([answer.status, answer.body.code, answer.body.details.field]).toEqual([400, "invalid_request", field])
    expect(await service.usage(who)).toEqual([])
  })

  it.each([
    ["speech", "character", 0.000015],
    ["transcriptions", "second", 0.0001]
  ])("lists the models of %s with their prices", async (tool, unit, unit_price_usd) => {
    const { token } = await person()
    const { body } = await service.call(`/v1/tools/${tool}/models`, { token })
    expect(body.models[0]).toEqual({
      id: expect.any(String),
      provider: "vendor",
      provider_name: expect.any(String),
      unit,
      unit_price_usd,
      default: true
    })
    expect(body.models.filter((model: { default: boolean }) => model.default)).toHaveLength(1)
    expect((await service.call(`/v1/tools/${tool}/models`)).status).toBe(401)
  })

  it("lists its providers", async () => {
    const { token } = await person()
    expect((await service.call("/v1/search/providers", { token })).body).toEqual({ providers: ["tavily", "brave"] })
    expect((await service.call("/v1/tools/search/providers", { token })).body.providers[0]).toEqual({
      id: "tavily",
      name: "Tavily",
      description: expect.any(String)
    })
    expect((await service.call("/v1/search/providers")).status).toBe(401)
  })

  it("is refused with 402 when nobody can pay", async () => {
    expect((await search(await emptied(), "query=x")).status).toBe(402)
  })

  it.each(faults)("answers %s without a charge", async (_, more, status, code) => {
    const who = await person()
    await fault("search", more)
    await failsSo(who, await search(who, "query=x"), status, code, "search")
  })
})

describe("speech", () => {
  const speak = async (who: Person, json: object, path = "/v1/speech") => {
    const response = await fetch(service.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${who.token}`, "content-type": "application/json" },
      body: JSON.stringify(json)
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const type = response.headers.get("content-type") ?? ""
    return {
      status: response.status,
      headers: response.headers,
      type,
      size: bytes.length,
      body: type.includes("json") ? JSON.parse(bytes.toString()) : undefined
    }
  }
  const asked = (more: object = {}) => ({ input: "hello", model: "tts-1", voice: "nova", ...more })

  it("is made by the provider that clients of OpenAI name, too", async () => {
    const who = await person()
    const answer = await speak(who, asked({ provider: "openai" }))
    expect(answer.status).toBe(200)
    expect((await service.usage(who))[0]).toMatchObject({ provider: "openai", cost: 0.000075 })
  })

  it.each([
    ["mp3", "audio/mpeg"],
    ["opus", "audio/opus"],
    ["aac", "audio/aac"],
    ["flac", "audio/flac"],
    ["wav", "audio/wav"],
    ["pcm", "audio/pcm"],
    [undefined, "audio/mpeg"]
  ])("comes as %s with its content type", async (response_format, type) => {
    const who = await person()
    const answer = await speak(who, asked({ response_format, speed: 1.5 }))
    expect([answer.status, answer.type, answer.size]).toEqual([200, type, 5 * 1024])
    expect(answer.headers.get("x-charge-usd")).toBe("0.000075")
    // 5 characters at 15 a million.
    expect(await service.balance(who)).toBe(left(0.000075))
    expect((await service.usage(who))[0]).toMatchObject({
      endpoint: "speech",
      units: 5,
      cost: 0.000075,
      model: "tts-1"
    })
  })

  it("counts characters as people do, and dearer models at their price", async () => {
    const who = await person()
    expect((await speak(who, asked({ input: "🐟🐟", model: "tts-1-hd" }))).status).toBe(200)
    expect(await service.balance(who)).toBe(left(0.00006))
  })

  it("needs only the text below /v1/tools", async () => {
    const who = await person()
    expect((await speak(who, { input: "hello" }, "/v1/tools/speech")).type).toBe("audio/mpeg")
    expect((await speak(who, { input: "hello" })).status).toBe(400)
  })

  it("is driven by the openai package", async () => {
    const who = await person()
    const client = new OpenAI({
      apiKey: await service.key(who),
      baseURL: `${service.url}/v1`,
      fetch: (url, init) => fetch(String(url).replace("/audio/speech", "/speech"), init)
    })
    const answer = await client.audio.speech.create({ model: "tts-1", voice: "alloy", input: "hello" })
    expect((await answer.arrayBuffer()).byteLength).toBe(5 * 1024)
  })

  it.each([
    [{ input: "" }, "input"],
    [{ input: "x".repeat(4097) }, "input"],
    [{ model: "gpt" }, "model"],
    [{ voice: "robot" }, "voice"],
    [{ response_format: "ogg" }, "response_format"],
    [{ speed: 0.2 }, "speed"],
    [{ speed: 4.1 }, "speed"],
    [{ instructions: "x".repeat(4097) }, "instructions"],
    [{ provider: "nobody" }, "provider"]
  ])("refuses %j", async (more, field) => {
    const who = await person()
    const answer = await speak(who, asked(more))
    expect([answer.status, answer.body.code, answer.body.details.field]).toEqual([400, "invalid_request", field])
  })

  it("takes 4096 characters", async () => {
    expect((await speak(await person(), asked({ input: "🐟".repeat(4096) }))).size).toBe(4096 * 1024)
  })

  it.each(faults.filter(([name]) => name !== "a dropped connection"))(
    "answers %s without a charge",
    async (_, more, status, code) => {
      const who = await person()
      await fault("speech", more)
      const answer = await speak(who, asked())
      await failsSo(who, answer as unknown as Answer, status, code, "speech")
    }
  )

  it("that breaks off midway costs nothing, and is not taken for whole", async () => {
    const who = await person()
    await fault("speech", { drop: true })
    await expect(speak(who, asked({ input: "x".repeat(100) }))).rejects.toThrow()
    for (let i = 0; i < 100 && (await service.usage(who)).length === 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect((await service.usage(who))[0]).toMatchObject({ success: false, cost: 0, error_type: "upstream_error" })
    expect(await service.balance(who)).toBe(6)
  })

  it("that the client leaves is read to its end, and costs the same", async () => {
    const who = await person()
    await fault("speech", { chunk_delay_ms: 20 })
    const gone = new AbortController()
    const response = await fetch(`${service.url}/v1/speech`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${who.token}`, "content-type": "application/json" },
      body: JSON.stringify(asked({ input: "x".repeat(50) }))
    })
    await response.body!.getReader().read()
    gone.abort()
    await expect
      .poll(() => service.usage(who), { timeout: 20_000 })
      .toMatchObject([{ success: true, units: 50, cost: 0.00075 }])
  })
})

describe("transcription", () => {
  const transcribe = (who: Person, bytes: number, fields: Record<string, string> = {}, path = "/v1/transcriptions") => {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    form.set("file", new File([new Uint8Array(bytes)], "talk.mp3", { type: "audio/mpeg" }))
    return post(who, form, path)
  }
  const post = async (who: Person, form: FormData, path = "/v1/transcriptions"): Promise<Answer> => {
    const response = await fetch(service.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${who.token}` },
      body: form
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }

  it("that has no text is charged for the length that it reports", async () => {
    const who = await person()
    for (const [body, cost] of [
      [{ duration: 12.5 }, 0.0013],
      [{ usage: { type: "duration", seconds: 3 } }, 0.0003],
      [{}, 0]
    ] as const) {
      await fault("transcription", { body })
      expect((await transcribe(who, 160_000, { model: "whisper-1" })).status).toBe(500)
      expect((await service.usage(who))[0]).toMatchObject({ success: false, cost, error_type: "upstream_error" })
    }
  })

  it("is heard by the provider that clients of OpenAI name, too", async () => {
    const who = await person()
    const { body, status } = await transcribe(who, 16_000 * 60, { model: "gpt-4o-transcribe", provider: "openai" })
    expect([status, body]).toMatchObject([200, { provider: "openai", duration: 60 }])
    expect(await service.balance(who)).toBe(left(0.006))
  })

  it("costs 0.006 a minute, by the second", async () => {
    const who = await person()
    const { body, status } = await transcribe(who, 16_000 * 90 + 8_000, { model: "whisper-1" })
    expect([status, body]).toEqual([
      200,
      { text: "90.5 seconds of talk.mp3", status: "completed", provider: "vendor", duration: 90.5 }
    ])
    // 91 seconds.
    expect(await service.balance(who)).toBe(left(0.0091))
    expect((await service.usage(who))[0]).toMatchObject({
      endpoint: "transcriptions",
      units: 91,
      cost: 0.0091,
      model: "whisper-1"
    })
  })

  it("takes every field, and answers in an envelope below /v1/tools", async () => {
    const who = await person()
    const fields = {
      model: "vendor-4o-mini-transcribe",
      prompt: "names",
      response_format: "text",
      temperature: "0.5",
      language: "en",
      provider: "vendor"
    }
    const { body } = await transcribe(who, 32_000, fields, "/v1/tools/transcriptions")
    expect(body).toEqual({
      msg: expect.any(String),
      result: { text: "2 seconds of talk.mp3", status: "completed", provider: "vendor", duration: 2 }
    })
  })

  it("is driven by the openai package", async () => {
    const who = await person()
    const client = new OpenAI({
      apiKey: await service.key(who),
      baseURL: `${service.url}/v1`,
      fetch: (url, init) => fetch(String(url).replace("/audio/transcriptions", "/transcriptions"), init)
    })
    const file = await toFile(Buffer.alloc(16_000), "one.wav")
    expect((await client.audio.transcriptions.create({ file, model: "whisper-1" })).text).toBe("1 seconds of one.wav")
  })

  it("a large file passes, a larger one is a 413", async () => {
    const who = await person()
    expect((await transcribe(who, 25 * 1024 * 1024)).status).toBe(200)
    const refused = await transcribe(who, 25 * 1024 * 1024 + 1)
    expect([refused.status, refused.body.code]).toEqual([413, "payload_too_large"])
    const huge = await transcribe(who, 40 * 1024 * 1024)
    expect([huge.status, huge.body.code]).toEqual([413, "payload_too_large"])
    expect(await service.usage(who)).toHaveLength(1)
  })

  it.each([
    ["model", { model: "gpt" }],
    ["temperature", { temperature: "3" }],
    ["temperature", { temperature: "warm" }],
    ["language", { language: "english" }],
    ["response_format", { response_format: "morse" }],
    ["provider", { provider: "nobody" }]
  ])("refuses a bad %s", async (field, fields) => {
    const who = await person()
    const answer = await transcribe(who, 100, fields as Record<string, string>)
    expect([answer.status, answer.body.code, answer.body.details.field]).toEqual([400, "invalid_request", field])
  })

  it("refuses a form without a file, and what is no form", async () => {
    const who = await person()
    const form = new FormData()
    form.set("model", "whisper-1")
    expect((await post(who, form)).body.details.field).toBe("file")
    expect((await transcribe(who, 0)).body.details.field).toBe("file")
    const json = await service.call("/v1/transcriptions", { token: who.token, json: {} })
    expect([json.status, json.body.code]).toEqual([400, "invalid_request"])
    const broken = await service.call("/v1/transcriptions", {
      token: who.token,
      headers: { "content-type": "multipart/form-data; boundary=x" },
      raw: "--x\r\ncontent-disposition: form-data; name"
    })
    expect([broken.status, broken.body.code]).toEqual([400, "invalid_request"])
    for (const { body } of [json, broken]) {
      expect(body.details).toEqual({ field: "", rule: expect.stringMatching(/form/) })
    }
  })

  it("is refused with 402 when nobody can pay", async () => {
    expect((await transcribe(await emptied(), 16_000)).status).toBe(402)
  })

  it.each(faults)("answers %s without a charge", async (_, more, status, code) => {
    const who = await person()
    await fault("transcription", more)
    await failsSo(who, await transcribe(who, 16_000), status, code, "transcriptions")
  })

  it("is admitted only for the longest that its bytes can last, a second for each 1,000", async () => {
    const poor = await withOnly(0.001)
    const calls = (await service.control("/calls?service=transcription")).length
    const { body, status } = await transcribe(poor, 1_600_000)
    expect([status, body]).toMatchObject([
      402,
      { code: "insufficient_credits", details: { available_usd: 0.001, required_usd: 0.16 } }
    ])
    expect((await service.control("/calls?service=transcription")).length).toBe(calls)
    expect((await transcribe(poor, 10_000)).status).toBe(200)
    expect(await service.balance(poor)).toBe(0.0009)
  })

  it.each([
    [-1, 16],
    [16.01, 16],
    [1e12, 16],
    ["long", 16],
    [true, 16],
    [{}, 16],
    // Without a duration, a file that cannot be counted costs an estimate of 30 seconds at least, but never more than its reservation.
    [null, 16]
  ])("a duration of %j is not believed: %d seconds are charged, and estimated", async (duration, seconds) => {
    const who = await person()
    await fault("transcription", { status: 200, body: { text: "x", duration } })
    const { body, headers } = await transcribe(who, 16_000)
    expect(body).toEqual({ text: "x", status: "completed", provider: "vendor" })
    expect(headers.get("x-charge-usd")).toBe(seconds === 16 ? "0.0016" : "0.0001")
    expect((await service.usage(who))[0]).toMatchObject({
      cost: seconds / 10_000,
      units: seconds,
      usage_source: "estimated"
    })
  })

  it.each([
    [16, 16],
    [0, 0],
    ["7.5", 8]
  ])("a duration of %j is believed", async (duration, units) => {
    const who = await person()
    await fault("transcription", { status: 200, body: { text: "x", duration } })
    expect((await transcribe(who, 16_000)).body.duration).toBe(Number(duration))
    const [record] = await service.usage(who)
    expect([record.units, record.cost, record.usage_source]).toEqual([units, units / 10_000, undefined])
  })

  it("happens once for an Idempotency-Key", async () => {
    const who = await person()
    const ask = (bytes: number) => {
      const form = new FormData()
      form.set("file", new File([new Uint8Array(bytes)], "talk.mp3"))
      return fetch(`${service.url}/v1/transcriptions`, {
        method: "POST",
        headers: { authorization: `Bearer ${who.token}`, "idempotency-key": "transcribe-012345" },
        body: form
      })
    }
    const [first, again, other] = [await ask(16_000), await ask(16_000), await ask(16_001)]
    expect([first.status, again.status, other.status]).toEqual([200, 200, 409])
    expect(await service.usage(who)).toHaveLength(1)
  })
})

describe("mail to oneself", () => {
  const send = (token: string, json: object) => service.call("/v1/email/self/send", { token, json })
  const letter = { subject: "A note", body: "to myself" }

  it("reaches the key's account, for 0.001", async () => {
    const who = await person()
    const { body, status } = await send(await service.key(who), letter)
    expect(status).toBe(200)
    expect(body.result).toEqual({ message: `sent to ${who.email}`, message_id: expect.stringContaining("@") })
    for (let i = 0; i < 100 && (await lettersTo(service, who.email)).length === 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(await lettersTo(service, who.email)).toMatchObject([
      { subject: "A note", text: expect.stringContaining("to myself") }
    ])
    expect(await service.balance(who)).toBe(left(0.001))
    expect((await service.usage(who))[0]).toMatchObject({
      endpoint: "email/self/send",
      usage_type: "tool",
      cost: 0.001
    })
  })

  it("is for keys only", async () => {
    const who = await person()
    const answer = await send(who.token, letter)
    expect([answer.status, answer.body.error]).toEqual([401, "invalid API key format"])
  })

  it.each([
    [{ body: "x" }, "subject"],
    [{ subject: "x" }, "body"],
    [{ subject: "a\r\nBcc: b@example.com", body: "x" }, "subject"],
    [{ subject: " ", body: "x" }, "subject"]
  ])("refuses %j", async (json, field) => {
    const key = await service.key(await person())
    const answer = await send(key, json)
    expect([answer.status, answer.body.details.field]).toEqual([400, field])
  })
})
