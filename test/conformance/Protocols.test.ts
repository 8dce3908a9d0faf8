/** Messages and Responses as their clients meet them: answers, streams, tools, refusals, charges. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"
import { all, eventsIn, spoken } from "../support/Protocols.ts"
import { eventsOf, failureOf, streamOf } from "../support/Vendors.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = async (claims: object = {}): Promise<{ readonly who: Person; readonly key: string }> => {
  const who = await service.signIn(`protocols${people++}@example.com`, claims)
  return { who, key: await service.key(who) }
}

/** 3 and 15 USD a million tokens. */
const costOf = ({ completion, prompt }: { readonly completion: number; readonly prompt: number }) =>
  Number((prompt * 3e-6 + completion * 15e-6).toFixed(9))

const settled = async (who: Person, count: number) => {
  for (let tries = 0; tries < 300; tries++) {
    const records = await service.usage(who)
    if (records.length >= count) return records
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`no ${count} records`)
}

const namespaced = [{ type: "namespace", name: "web", tools: [{ type: "web_search" }] }]
/** Tools of the vendor of responses, where they are not to be seen at once. */
const hidden: ReadonlyArray<readonly [object, string]> = [
  [{ tools: namespaced }, "tools"],
  [{ input: [{ type: "tool_search_output", tools: namespaced }] }, "input"]
]

describe.each(spoken)("$name", (protocol) => {
  const { ask, callsOf, last, name, path, refusalOf, textIn, textOf, think, tool, usageOf } = protocol
  const call = (key: string, json: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    service.call(path, { token: key, json, headers })
  const fault = (more: object) => service.control("/faults", { service: name, times: 1, ...more })
  const sent = async () => (await service.control(`/calls?service=${name}&limit=1`))[0].body

  it("answers with what the vendor says, and charges what it reports", async () => {
    const { key, who } = await person()
    const { body, headers, status } = await call(key, ask("one two three"))
    expect([status, textOf(body)]).toEqual([200, "one two three"])
    expect(headers.get("x-request-id")).toMatch(/^req_/)
    const cost = costOf(usageOf(body))
    expect(Number(headers.get("x-charge-usd"))).toBe(cost)
    const [record] = await service.usage(who)
    const { completion, prompt } = usageOf(body)
    expect(record).toMatchObject({
      endpoint: name,
      model: "sandbox-large",
      prompt_tokens: prompt,
      completion_tokens: completion,
      cost,
      success: true,
      provider: "sandbox-a"
    })
    const explained = (await service.call(`/v1/usage/${record.id}/explain`, { token: who.token })).body
    expect(explained).toMatchObject({ charged_usd: cost })
    expect(await service.balance(who)).toBeCloseTo(6 - cost, 9)
  })

  it("streams it, and the last event comes after the charge", async () => {
    const { key, who } = await person()
    const { body, headers } = await call(key, ask("alpha beta gamma", { stream: true }))
    expect(headers.get("content-type")).toBe("text/event-stream")
    const events = eventsIn(body)
    expect([textIn(events), events.at(-1)!.type]).toEqual(["alpha beta gamma", last])
    expect((await service.usage(who))[0]).toMatchObject({ success: true, cost: costOf({ prompt: 3, completion: 3 }) })
  })

  it("lets tools be called, several at once, and their results be read", async () => {
    const { key } = await person()
    for (const stream of [false, true]) {
      const text = 'both\ncall look {"at":"a"}\ncall look {"at":"b"}'
      const { body, status } = await call(key, ask(text, { ...tool("look"), stream }))
      expect(status).toBe(200)
      if (stream) expect(eventsIn(body).at(-1)!.type).toBe(last)
      else
        expect(callsOf(body)).toEqual([
          { name: "look", input: { at: "a" } },
          { name: "look", input: { at: "b" } }
        ])
    }
  })

  it("thinks, and thoughts are tokens of the answer", async () => {
    const { key, who } = await person()
    const { body } = await call(key, ask("one two", think))
    expect([textOf(body), usageOf(body).completion]).toEqual(["one two", 6])
    expect((await service.usage(who))[0]).toMatchObject({ completion_tokens: 6 })
  })

  it("passes on what it does not know, its own name of the model, and one limit", async () => {
    const { key } = await person()
    await call(key, ask("hi", { model: "auto", something_new: { deep: [1] } }))
    expect(await sent()).toMatchObject({ model: "sandbox-small", something_new: { deep: [1] } })
    expect((await sent()).stream).toBeUndefined()
  })

  it("refuses in the words and the shape of the protocol", async () => {
    const { key, who } = await person()
    const wrong: ReadonlyArray<readonly [unknown, string]> = [
      [{}, "model"],
      [ask("hi", { model: "nobody" }), "model"],
      [ask("hi", { temperature: 7 }), "temperature"],
      [ask("hi", { tools: "none" }), "tools"],
      [ask("hi", { tools: [{ type: "web_search_20250305", name: "web_search" }] }), "tools"],
      [ask("hi", { service_tier: "priority" }), "service_tier"],
      [ask("hi", { num_predict: 5 }), "num_predict"],
      [name === "messages" ? ask("hi", { max_tokens: undefined }) : ask("hi", { max_tokens: 5 }), "max_tokens"],
      [
        name === "messages" ? ask("hi", { messages: [] }) : ask("hi", { input: [] }),
        name === "messages" ? "messages" : "input"
      ],
      [
        name === "messages" ? ask("hi", { container: "c" }) : ask("hi", { background: true }),
        name === "messages" ? "container" : "background"
      ],
      ...(name === "messages" ? [] : hidden.map(([more, field]) => [ask("hi", more), field] as const))
    ]
    for (const [body, field] of wrong) {
      const answer = await call(key, body)
      const { code, message } = refusalOf(answer.body)
      expect([answer.status, code, message.startsWith(`${field}: `)]).toEqual([400, "invalid_request", true])
    }
    const others: ReadonlyArray<readonly [Promise<Answer>, number, string, string | null]> = [
      [
        service.call(path, { token: key, raw: "{", headers: { "content-type": "application/json" } }),
        400,
        "invalid_request_error",
        "invalid_request"
      ],
      [service.call(path, { json: ask("hi") }), 401, "authentication_error", null],
      [service.call(path, { token: key, method: "GET" }), 405, "invalid_request_error", null],
      [call(key, ask("hi"), { "idempotency-key": "short" }), 400, "invalid_request_error", "idempotency_key_invalid"]
    ]
    for (const [answer, status, type, code] of others) {
      const { body, status: answered } = await answer
      expect([answered, body.error.type, refusalOf(body).code]).toEqual([status, type, code])
      if (name === "messages") expect(body.request_id).toMatch(/^req_/)
    }
    expect(await service.usage(who)).toEqual([])
  })

  it("says what cannot be paid, as a problem of the protocol", async () => {
    const { key } = await person({ email_verified: false })
    const { body, status } = await call(key, ask("hi"))
    const { code } = refusalOf(body)
    expect([status, code, body.error.details.available_usd]).toEqual([402, "insufficient_credits", 0])
    expect(body.error.type).toBe(name === "messages" ? "billing_error" : "insufficient_quota")
  })

  it("passes on an upstream's refusal, and hides its failure", async () => {
    const { key, who } = await person()
    await fault({ status: 400, body: { error: { message: "no such thing", type: "invalid_request_error" } } })
    expect(refusalOf((await call(key, ask("hi"))).body)).toEqual({
      message: "no such thing",
      code: "upstream_rejected"
    })
    await fault({ status: 529, body: { error: { message: "secret" } } })
    expect(refusalOf((await call(key, ask("hi"))).body)).toEqual({
      message: "the model could not answer",
      code: "upstream_error"
    })
    await fault({ status: 429, headers: { "retry-after": "7" }, body: {} })
    const busy = await call(key, ask("hi"))
    expect([busy.status, busy.body.error.type, busy.headers.get("retry-after")]).toEqual([429, "rate_limit_error", "7"])
    await fault({ status: 200, body: { id: "1", choices: [] } })
    expect((await call(key, ask("hi"))).status).toBe(500)
    for (const record of await service.usage(who)) expect(record).toMatchObject({ success: false, cost: 0 })
  })

  it("is cut at any event: the client has what came and the protocol's error, and pays what was reported", async () => {
    const { key, who } = await person()
    const whole = (await call(key, ask("alpha beta", { stream: true }))).body as string
    const events = whole.split(/(?<=\n\n)/)
    const headers = { "content-type": "text/event-stream" }
    for (let cut = 0; cut < events.length; cut++) {
      await fault({ status: 200, headers, body: events.slice(0, cut).join("") || ": \n\n", drop: true })
      const { body } = await call(key, ask("alpha beta", { stream: true }))
      const [record] = await service.usage(who)
      expect(body.startsWith(events.slice(0, cut).join(""))).toBe(true)
      // Messages have finished with the last event but one.
      const isFinished = name === "messages" && cut === events.length - 1
      expect(eventsIn(body).at(-1)).toMatchObject(
        isFinished ? { type: "message_stop" } : { type: "error", error: { code: "upstream_error" } }
      )
      // The first event of messages says what the prompt used, the last but one what the answer did.
      const prompt = name === "messages" && cut > 0 ? 2 : 0
      const completion = isFinished ? 2 : 0
      expect(record).toMatchObject({
        success: isFinished,
        ...(!isFinished && { error_type: "upstream_error" }),
        prompt_tokens: prompt,
        completion_tokens: completion,
        cost: costOf({ prompt, completion })
      })
    }
  })

  it("an error midway ends it there, in our words", async () => {
    const { key } = await person()
    const whole = (await call(key, ask("alpha beta", { stream: true }))).body as string
    const events = whole.split(/(?<=\n\n)/)
    const error = `event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"secret"}}\n\n`
    await fault({
      status: 200,
      headers: { "content-type": "text/event-stream" },
      body: [...events.slice(0, 3), error, ...events.slice(3)].join("")
    })
    const { body } = await call(key, ask("alpha beta", { stream: true }))
    expect(body.startsWith(events.slice(0, 3).join(""))).toBe(true)
    expect(body).not.toContain("secret")
    expect(eventsIn(body).at(-1)).toMatchObject({ error: { message: "the model's stream ended early" } })
  })

  it("is read on for a client that leaves, who pays what came", async () => {
    const { key, who } = await person()
    await fault({ chunk_delay_ms: 30 })
    const gone = new AbortController()
    const response = await fetch(service.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify(ask("a b c d e f g h", { stream: true })),
      signal: gone.signal
    })
    await response.body!.getReader().read()
    gone.abort()
    const [record] = await settled(who, 1)
    expect(record).toMatchObject({ prompt_tokens: 8, completion_tokens: 8, cost: costOf({ prompt: 8, completion: 8 }) })
  })

  it("answers the same key once, whole, streamed or refused", async () => {
    const { key, who } = await person()
    for (const stream of [false, true]) {
      const again = { "idempotency-key": `protocols-${name}-${stream}` }
      const first = await call(key, ask("once", { stream }), again)
      const second = await call(key, ask("once", { stream }), again)
      expect(second.body).toEqual(first.body)
      expect(second.headers.get("idempotency-replayed")).toBe("true")
    }
    expect(await service.usage(who)).toHaveLength(2)
    await fault({ status: 500 })
    const failed = { "idempotency-key": `protocols-${name}-failed` }
    const first = await call(key, ask("once"), failed)
    expect((await call(key, ask("once"), failed)).body).toEqual(first.body)
    expect(refusalOf(first.body).code).toBe("upstream_error")
  })

  it("admits no more than the balance holds, whatever comes at once", async () => {
    const { key, who } = await person({ email_verified: false })
    await service.control("/credit", { tenant_id: who.tenant_id, amount: 0.002, source: "purchase" })
    // Each sets some 0.00075 USD aside for its answer, and costs less.
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(key, ask("hi"))))
    const good = answers.filter(({ status }) => status === 200).length
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 402]))
    expect(await service.balance(who)).toBeCloseTo(0.002 - good * costOf({ prompt: 1, completion: 1 }), 9)
    expect(await service.balance(who)).toBeGreaterThanOrEqual(0)
  })
})

describe("messages", () => {
  const ask = spoken[0]!.ask

  it("takes the credential from x-api-key, there alone", async () => {
    const { key } = await person()
    const headers = { "x-api-key": key }
    expect((await service.call("/v1/messages", { json: ask("hi"), headers })).status).toBe(200)
    expect((await service.call("/v1/messages/count_tokens", { json: ask("hi"), headers })).status).toBe(200)
    for (const path of ["/v1/chat/completions", "/v1/responses"]) {
      expect((await service.call(path, { json: { ...ask("hi"), input: "hi" }, headers })).status).toBe(401)
    }
  })

  it("reads and writes a cache, and the record says how much", async () => {
    const { key, who } = await person()
    const system = [{ type: "text", text: "a long preface", cache_control: { type: "ephemeral" } }]
    for (const details of [{ cache_write_tokens: 3 }, { cached_tokens: 3 }]) {
      const { body } = await service.call("/v1/messages", { token: key, json: ask("hi", { system }) })
      expect(body.usage.input_tokens).toBe(1)
      expect((await service.usage(who))[0]).toMatchObject({ prompt_tokens: 4, token_details: details })
    }
  })

  it("sends preview features on, but those with a price of their own", async () => {
    const { key } = await person()
    const beta = (value: string) =>
      service.call("/v1/messages", { token: key, json: ask("hi"), headers: { "anthropic-beta": value } })
    expect((await beta("claude-code-20250219, interleaved-thinking-2025-05-14")).status).toBe(200)
    expect((await beta("context-1m-2025-08-07")).body.error).toMatchObject({ details: { field: "anthropic-beta" } })
  })

  it("counts tokens by the vendor, or estimates them; for nothing", async () => {
    const { key, who } = await person()
    const count = (more: object = {}) =>
      service.call("/v1/messages/count_tokens", {
        token: key,
        json: { ...ask("one two three", more), max_tokens: undefined }
      })
    expect((await count()).body).toEqual({ input_tokens: 3 })
    await service.control("/faults", { service: "messages", times: 1, status: 500 })
    expect((await count()).body.input_tokens).toBeGreaterThan(10)
    expect((await count({ model: "nobody" })).body.error).toMatchObject({ type: "invalid_request_error" })
    expect(await service.usage(who)).toEqual([])
  })

  it("counts none for an account whose calls are refused, nor without a limit of a minute", async () => {
    const { key, who } = await person()
    const count = () =>
      service.call("/v1/messages/count_tokens", { token: key, json: { ...ask("one two"), max_tokens: undefined } })
    const counted = async () =>
      (await service.control("/calls?service=messages&limit=1000")).filter(({ path }: { path: string }) =>
        path.endsWith("/count_tokens")
      ).length
    for (const status of ["suspended", "closed"]) {
      await service.control(`/tenants/${who.tenant_id}`, { billing_status: status })
      const before = await counted()
      const { body, status: refused } = await count()
      expect([status, refused, body.error.code, body.error.type]).toEqual([
        status,
        402,
        "insufficient_credits",
        "billing_error"
      ])
      expect(await counted()).toBe(before)
    }
    await service.control(`/tenants/${who.tenant_id}`, { billing_status: "active" })
    expect((await count()).status).toBe(200)
    // However the minutes of the clock lie: of so many, one is refused.
    const answers = await Promise.all(Array.from({ length: 601 }, count))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    expect(Number(refused[0]!.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0)
    expect(
      (
        await service.call("/v1/messages/count_tokens", {
          token: (await person()).key,
          json: { ...ask("x"), max_tokens: undefined }
        })
      ).status
    ).toBe(200)
  })
})

describe("responses", () => {
  const ask = spoken[1]!.ask

  it("are not kept: the vendor is told so, and earlier ones cannot be gone on from", async () => {
    const { key } = await person()
    for (const store of [undefined, true, false]) {
      expect((await service.call("/v1/responses", { token: key, json: ask("hi", { store }) })).body.store).toBe(false)
    }
    for (const more of [
      { previous_response_id: "resp_1" },
      { conversation: "conv_1" },
      { input: [{ type: "item_reference", id: "msg_1" }] }
    ]) {
      const { body, status } = await service.call("/v1/responses", { token: key, json: ask("hi", more) })
      expect([status, body.error.param]).toEqual([400, Object.keys(more)[0]])
      expect(body.error.message).toContain("store no responses")
    }
  })

  it("without a limit have the one that the balance affords", async () => {
    const { key } = await person()
    await service.call("/v1/responses", { token: key, json: { model: "sandbox-large", input: "hi" } })
    expect((await service.control("/calls?service=responses&limit=1"))[0].body.max_output_tokens).toBe(4_096)
  })
})

/** Vendors that no client speaks to: what each answers, by its own names. */
const vendors = {
  google: {
    /** What is said, why it ends, and what it used: of the prompt three, of them two from a cache. */
    answer: (text: string, reason: string, usage: object = { cachedContentTokenCount: 2 }) => ({
      candidates: [{ content: { role: "model", parts: [{ text }] }, finishReason: reason }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, ...usage }
    }),
    refused: "SAFETY",
    ended: "STOP",
    absurd: { promptTokenCount: 1e12, candidatesTokenCount: 1e12 },
    imageIn: (body: Body) => body.contents[0].parts[1].inlineData.data,
    limitIn: (body: Body) => body.generationConfig.maxOutputTokens
  },
  bedrock: {
    answer: (text: string, stopReason: string, usage: object = { inputTokens: 1, cacheReadInputTokens: 2 }) => ({
      output: { message: { role: "assistant", content: [{ text }] } },
      stopReason,
      usage: { inputTokens: 3, outputTokens: 1, ...usage }
    }),
    refused: "guardrail_intervened",
    ended: "end_turn",
    absurd: { inputTokens: 1e12, outputTokens: 1e12 },
    imageIn: (body: Body) => body.messages[0].content[1].image.source.bytes,
    limitIn: (body: Body) => body.inferenceConfig.maxTokens
  }
} as const
const vendorNames = ["google", "bedrock"] as const

type Body = Record<string, any> // oxlint-disable-line typescript/no-explicit-any -- a test looks into what came, whatever it is

/** The same of each client. */
const clients = {
  chat: {
    image: (text: string, url: string) => ({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text },
            { type: "image_url", image_url: { url } }
          ]
        }
      ]
    }),
    stopOf: ({ choices }: Body) => choices[0].finish_reason,
    stops: { length: "length", refusal: "content_filter", tools: "tool_calls" },
    cachedOf: ({ usage }: Body) => usage.prompt_tokens_details.cached_tokens
  },
  messages: {
    image: (text: string, url: string) => ({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text },
            { type: "image", source: { type: "base64", media_type: "image/png", data: url.split(",")[1] } }
          ]
        }
      ]
    }),
    stopOf: ({ stop_reason }: Body) => stop_reason,
    stops: { length: "max_tokens", refusal: "refusal", tools: "tool_use" },
    cachedOf: ({ usage }: Body) => usage.cache_read_input_tokens
  },
  responses: {
    image: (text: string, image_url: string) => ({
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text },
            { type: "input_image", image_url }
          ]
        }
      ]
    }),
    stopOf: ({ incomplete_details, status }: Body) => incomplete_details?.reason ?? status,
    stops: { length: "max_output_tokens", refusal: "content_filter", tools: "completed" },
    cachedOf: ({ usage }: Body) => usage.input_tokens_details.cached_tokens
  }
} as const

const pairs = all.flatMap((protocol) => vendorNames.map((vendor) => ({ client: protocol.name, protocol, vendor })))

describe.each(pairs)("$client over $vendor", ({ client, protocol, vendor }) => {
  const { ask, callsOf, path, refusalOf, textIn, textOf, think, tool, usageOf } = protocol
  const { cachedOf, image, stopOf, stops } = clients[client]
  const { absurd, answer, ended, imageIn, limitIn, refused } = vendors[vendor]
  const model = `sandbox-${vendor}`
  const call = (key: string, text: string, more: object = {}): Promise<Answer> =>
    service.call(path, { token: key, json: ask(text, { model, ...more }) })
  const fault = (more: object) => service.control("/faults", { service: vendor, times: 1, ...more })
  const sent = async () => (await service.control(`/calls?service=${vendor}&limit=1`))[0].body
  const last = async (who: Person) => (await service.usage(who))[0]

  it("says what the vendor says, whole and as a stream, at what it counts", async () => {
    const { key, who } = await person()
    const { body, headers, status } = await call(key, "one two three")
    expect([status, textOf(body), usageOf(body)]).toEqual([200, "one two three", { prompt: 3, completion: 3 }])
    const cost = costOf({ prompt: 3, completion: 3 })
    expect(Number(headers.get("x-charge-usd"))).toBe(cost)
    expect(limitIn(await sent())).toBe(50)
    const streamed = await call(key, "one two three", { stream: true })
    expect(textIn(eventsIn(streamed.body))).toBe("one two three")
    for (const record of await service.usage(who))
      expect(record).toMatchObject({
        model,
        provider: model,
        prompt_tokens: 3,
        completion_tokens: 3,
        cost,
        success: true
      })
  })

  it("has tools called, one and several, and reads what they gave", async () => {
    const { key } = await person()
    for (const places of [["a"], ["a", "b"]]) {
      const text = places.map((at) => `call look {"at":"${at}"}`).join("\n")
      const { body } = await call(key, text, tool("look"))
      expect([stopOf(body), callsOf(body)]).toEqual([
        stops.tools,
        places.map((at) => ({ name: "look", input: { at } }))
      ])
      const { body: stream } = await call(key, text, { ...tool("look"), stream: true })
      for (const at of places) expect(stream).toContain(JSON.stringify(JSON.stringify({ at })).slice(1, -1))
    }
  })

  it("sends images on", async () => {
    const { key } = await person()
    const { body, status } = await call(key, "", image("look", "data:image/png;base64,aGk="))
    expect([status, textOf(body), imageIn(await sent())]).toEqual([200, "look", "aGk="])
  })

  it("thinks, and thoughts are tokens of the answer", async () => {
    const { key, who } = await person()
    const { body, status } = await call(key, "one two", { ...think, ...limitOf(client, 3_000) })
    expect([status, textOf(body), usageOf(body).completion]).toEqual([200, "one two", 6])
    expect(await last(who)).toMatchObject({ completion_tokens: 6 })
  })

  it("says why it stopped", async () => {
    const { key } = await person()
    expect(stopOf((await call(key, "one two three", limitOf(client, 2))).body)).toBe(stops.length)
    await fault({ status: 200, body: answer("no", refused) })
    expect(stopOf((await call(key, "hi")).body)).toBe(stops.refusal)
  })

  it("charges cached tokens by their line, and absurd figures as far as the request can have caused them", async () => {
    const { key, who } = await person()
    await fault({ status: 200, body: answer("hi", ended) })
    const { body } = await call(key, "one two three")
    expect([usageOf(body), cachedOf(body)]).toEqual([{ prompt: 3, completion: 1 }, 2])
    expect(await last(who)).toMatchObject({
      prompt_tokens: 3,
      token_details: { cached_tokens: 2 },
      cost: 0.0000186
    })
    await fault({ status: 200, body: answer("hi", ended, absurd) })
    expect((await call(key, "one two three")).status).toBe(200)
    const record = await last(who)
    expect(record).toMatchObject({ completion_tokens: 50, usage_source: "estimated" })
    expect(record.prompt_tokens).toBe(128_000)
  })

  it("is refused and fails as everywhere", async () => {
    const { key } = await person()
    await fault({ status: 400, body: vendor === "google" ? { error: { message: "no" } } : { message: "no" } })
    expect(refusalOf((await call(key, "hi")).body)).toEqual({ message: "no", code: "upstream_rejected" })
    await fault({ status: 400, body: { error: { message: "k", details: [{ reason: "API_KEY_INVALID" }] } } })
    expect((await call(key, "hi")).status).toBe(500)
    for (const wrong of [{}, { candidates: "none", output: { message: 7 } }]) {
      await fault({ status: 200, body: wrong })
      expect((await call(key, "hi")).status).toBe(500)
    }
    const message = "worker https://10.0.0.7:8000 refused Bearer sk-upstream"
    await fault({ status: 200, body: vendor === "google" ? { error: { message } } : { message } })
    expect((await call(key, "hi")).status).toBe(500)
    const log = service.stderr.join("")
    expect(log).toContain("the response is invalid: worker [address] refused [key]")
    expect(log).not.toMatch(/10\.0\.0\.7|sk-upstream/)
    await fault({ status: 200, headers: { "content-type": "application/json" }, body: answer("hi", ended) })
    // A whole answer where a stream was asked for is handed on as one.
    const streamed = await call(key, "hi", { stream: true })
    expect([
      streamed.status,
      eventsIn(streamed.body).some((event) => "error" in event && event.error !== null)
    ]).toEqual([200, false])
    await fault({ delay_ms: 200 })
    expect((await call(key, "slow")).status).toBe(200)
  })

  it("is cut at any event, and broken by an error midway", async () => {
    const { key, who } = await person()
    const { control } = await service.sandbox()
    const events = await eventsOf(control.replace("/control", ""), vendor, "alpha beta")
    const isBroken = ({ body }: Answer) =>
      eventsIn(body).some(
        ({ error }) => error?.code === "upstream_error" && error.message === "the model's stream ended early"
      )
    let spent = 0
    for (let cut = 1; cut < events.length; cut++) {
      for (const some of [events.slice(0, cut), [...events.slice(0, cut), events[cut]!.subarray(0, 9)]]) {
        await fault(streamOf(vendor, some, { drop: true }))
        const answer = await call(key, "alpha beta", { stream: true })
        // An answer of Bedrock has finished with its last event but one; what it cost comes after.
        const isFinished = vendor === "bedrock" && cut === events.length - 1
        expect([cut, isBroken(answer)]).toEqual([cut, !isFinished])
        const record = await last(who)
        expect(record).toMatchObject(
          isFinished ? { success: true } : { success: false, error_type: "upstream_error", cost: 0 }
        )
        spent += record.cost
      }
      await fault(streamOf(vendor, [...events.slice(0, cut), failureOf(vendor), ...events.slice(cut)]))
      const answer = await call(key, "alpha beta", { stream: true })
      expect([cut, isBroken(answer), answer.body.includes("secret")]).toEqual([cut, true, false])
    }
    expect(spent > 0).toBe(vendor === "bedrock")
    expect(await service.balance(who)).toBeCloseTo(6 - spent, 9)
  })
})

const limitOf = (client: keyof typeof clients, limit: number): object =>
  client === "responses" ? { max_output_tokens: limit } : { max_tokens: limit }
