/** What vendors are sent and what they are believed, with vendors of every kind behind one deployment. */
import { createServer } from "node:http"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { freePort, freshFolder, start } from "../../support/Service.ts"
import { flac, wave } from "../../support/Sounds.ts"
import type { Person, Service } from "../../support/Service.ts"
import * as Tables from "../../support/tables.ts"

type Body = Record<string, any> // oxlint-disable-line typescript/no-explicit-any -- a test looks into what came, whatever it is

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const said = (message: object, more: object = { usage }) => ({
  id: "1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
  ...more
})
const json = (response: ServerResponse, body: unknown, status = 200) => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(typeof body === "string" ? body : JSON.stringify(body))
}
const event = (body: object) => `data: ${JSON.stringify(body)}\n\n`
const sse = (response: ServerResponse, events: ReadonlyArray<string>) => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.end(events.join(""))
}

/** A vendor that notes what it is sent, and answers as it is told. */
interface Vendor {
  readonly server: Server
  readonly url: string
  readonly received: Array<Body>
  answer: (response: ServerResponse, body: Body, request: IncomingMessage) => void
}
const plainly: Vendor["answer"] = (response, body) => {
  const choices = [{ index: 0, delta: { content: "hi" }, finish_reason: "stop" }]
  if (body.stream === true) sse(response, [event({ choices }), event({ choices: [], usage }), "data: [DONE]\n\n"])
  else json(response, said({ content: "hi" }))
}
const vendor = async (): Promise<Vendor> => {
  const received: Array<Body> = []
  const made: Vendor = {
    server: createServer((request, response) => {
      let text = ""
      request.setEncoding("utf8").on("data", (piece: string) => (text += piece))
      request.on("end", () => {
        const body = JSON.parse(text) as Body
        received.push(body)
        made.answer(response, body, request)
      })
    }),
    get url() {
      return `http://127.0.0.1:${(made.server.address() as AddressInfo).port}/v1`
    },
    received,
    answer: plainly
  }
  await new Promise<void>((resolve) => made.server.listen(0, "127.0.0.1", resolve))
  return made
}

let world: Service
let service: Service
let main: Vendor
let spare: Vendor

beforeAll(async () => {
  ;[world, main, spare] = await Promise.all([start(), vendor(), vendor()])
  const { issuer } = await world.sandbox()
  const model = (id: string, more: object = {}) => ({
    id,
    context_length: 100_000,
    max_output_tokens: 2_000,
    max_attachment_tokens: 500,
    price: { prompt_usd_per_million: "1", completion_usd_per_million: "2" },
    upstreams: [{ upstream: "main" }],
    ...more
  })
  const file = join(freshFolder(), "tollgate.json")
  const configuration = {
    clients: [{ client_id: "console", name: "Console" }],
    identity: { google: { issuer, audiences: ["sandbox-google"] } },
    registration: { open: true },
    prices: { default_new_credits: 6, default_registration_credits: 0 },
    rate_limits: { sign_in: 1_000 },
    upstreams: {
      main: { base_url: main.url, api_key: "k" },
      spare: { base_url: spare.url, api_key: "k" },
      others: { base_url: main.url, api_key: "k", speaks: ["messages", "responses"] },
      keeper: { base_url: main.url, api_key: "k", speaks: ["responses"], keeps_responses: true }
    },
    auto: "acme/newer",
    models: [
      model("acme/newer", {
        name: "Newer",
        owned_by: "acme",
        created: 1_700_000_000,
        input_modalities: ["text", "image"]
      }),
      model("kept", { upstreams: [{ upstream: "keeper" }] }),
      model("files", {
        vendor_files: true,

        upstreams: [{ upstream: "main" }, { upstream: "others" }]
      }),
      ...[false, true].map((vendor_files) =>
        model(vendor_files ? "contained-files" : "contained", {
          vendor_files,
          extras: [{ field: "container", usd_per_request: "0.01" }],
          upstreams: [{ upstream: "others" }]
        })
      ),
      model("older", { limit_field: "max_tokens" }),
      model("boundless", { limit_field: "none" }),
      model("dear", { price: { prompt_usd_per_million: "1000", completion_usd_per_million: "1000" } }),
      model("tooled", { max_tool_tokens: 300 }),
      model("failover", {
        limit_field: "max_tokens",
        upstreams: [{ upstream: "main" }, { upstream: "spare", limit_field: "max_completion_tokens" }]
      }),
      model("rich", {
        max_added_tokens: 50,
        price: { prompt_usd_per_million: "1", completion_usd_per_million: "2", usd_per_request: "0.001" },
        extras: [
          { field: "service_tier", values: ["priority"], price_factor: "2.5" },
          { field: "web_search_options", usd_per_request: "0.01" },
          { field: "tools", values: ["web_search"], usd_per_request: "0.02" }
        ]
      }),
      model("detailed", {
        price: {
          prompt_usd_per_million: "2",
          completion_usd_per_million: "8",
          cached_prompt_usd_per_million: "0.5",
          cache_write_usd_per_million: "2.5",
          cache_write_1h_usd_per_million: "4",
          reasoning_usd_per_million: "6",
          prompt_audio_usd_per_million: "40",
          long_context: [
            { above_prompt_tokens: 300, prompt_usd_per_million: "4", cached_prompt_usd_per_million: "1" },
            { above_prompt_tokens: 600, completion_usd_per_million: "16", reasoning_usd_per_million: "12" }
          ]
        },
        extras: [{ field: "service_tier", values: ["priority"], price_factor: "2" }]
      }),
      model("other-protocols", {
        price: {
          prompt_usd_per_million: "2",
          completion_usd_per_million: "8",
          cached_prompt_usd_per_million: "0.5",
          cache_write_usd_per_million: "2.5",
          cache_write_1h_usd_per_million: "4",
          reasoning_usd_per_million: "6"
        },
        upstreams: [{ upstream: "others" }]
      }),
      ...[["others"], ["main"], ["main", "others"]].map((upstreams) =>
        model(`minutes-by-${upstreams.join("-")}`, {
          price: {
            prompt_usd_per_million: "2",
            completion_usd_per_million: "8",
            cache_write_usd_per_million: "2.5",
            cache_write_1h_usd_per_million: upstreams.length === 2 ? "4" : undefined,
            long_context:
              upstreams.length === 2 ? [{ above_prompt_tokens: 90_000, cache_write_usd_per_million: "5" }] : undefined
          },
          upstreams: upstreams.map((upstream) => ({ upstream }))
        })
      ),
      { catalogue: "openai/gpt-4.1", upstreams: [{ upstream: "main" }] }
    ]
  }
  writeFileSync(file, JSON.stringify(configuration))
  service = await start({ port: await freePort(), args: ["--config", file] })
})
afterAll(async () => {
  await Promise.all([service?.discard(), world?.discard()])
  for (const { server } of [main, spare]) {
    server.closeAllConnections()
    server.close()
  }
})
beforeEach(() => {
  for (const one of [main, spare]) {
    one.received.length = 0
    one.answer = plainly
  }
})

let people = 0
const person = async (): Promise<{ readonly who: Person; readonly key: string }> => {
  const { issuer } = await world.sandbox()
  const who = await service.signIn(`vendors${people++}@example.com`, {}, { client_id: "console", issuer })
  return { who, key: await service.key(who) }
}

const messages = [{ role: "user", content: "hello there" }]
const chat = (key: string, body: object = {}) =>
  service.call("/v1/chat/completions", { token: key, json: { model: "acme/newer", messages, ...body } })
const complete = (key: string, body: object = {}) =>
  service.call("/v1/completions", { token: key, json: { model: "acme/newer", prompt: "hello there", ...body } })

const last = async (who: Person) => (await service.usage(who))[0]
const explained = async (who: Person) =>
  (await service.call(`/v1/usage/${(await last(who)).id}/explain`, { token: who.token })).body

/** Waits for something to become true that nobody announces. */
const eventually = async <A>(look: () => Promise<A | undefined> | A | undefined): Promise<A> => {
  for (let i = 0; i < 400; i++) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error("it did not come to that")
}

const limitsOf = (body: Body | undefined) =>
  Object.fromEntries(Object.entries(body ?? {}).filter(([name]) => /^(max|num)_/.test(name)))

describe("the limit of an answer", () => {
  it("goes to the upstream under one name, the smaller where the client sends two", async () => {
    const { key } = await person()
    const sent = async (ask: typeof chat, body: object) => {
      main.received.length = 0
      expect((await ask(key, body)).status).toBe(200)
      return limitsOf(main.received[0])
    }
    const both = { max_tokens: 7, max_completion_tokens: 5 }
    for (const stream of [false, true]) {
      const newer = { model: "acme/newer", stream }
      expect(await sent(chat, newer)).toEqual({ max_completion_tokens: 2_000 })
      expect(await sent(chat, { ...newer, max_tokens: 7 })).toEqual({ max_completion_tokens: 7 })
      expect(await sent(chat, { ...newer, ...both })).toEqual({ max_completion_tokens: 5 })
      expect(await sent(chat, { ...newer, max_tokens: null, max_completion_tokens: 9 })).toEqual({
        max_completion_tokens: 9
      })
      // The model's own limit is the largest.
      expect(await sent(chat, { ...newer, max_tokens: 3_700_000 })).toEqual({ max_completion_tokens: 2_000 })
      expect(await sent(complete, { ...newer, max_tokens: 3_700_000 })).toEqual({ max_tokens: 2_000 })
      const older = { model: "older", stream }
      expect(await sent(chat, older)).toEqual({ max_tokens: 2_000 })
      expect(await sent(chat, { ...older, max_completion_tokens: 7 })).toEqual({ max_tokens: 7 })
      expect(await sent(chat, { ...older, max_tokens: 4, max_completion_tokens: 5 })).toEqual({ max_tokens: 4 })
      expect(await sent(chat, { model: "boundless", stream, ...both })).toEqual({})
      for (const model of ["acme/newer", "older"]) {
        expect(await sent(complete, { model, stream })).toEqual({ max_tokens: 16 })
        expect(await sent(complete, { model, stream, ...both })).toEqual({ max_tokens: 5 })
      }
      expect(await sent(complete, { model: "boundless", stream, max_tokens: 5 })).toEqual({})
    }
  })

  it("has the name that each upstream of a model knows", async () => {
    const { key } = await person()
    main.answer = (response) => json(response, { error: { message: "busy" } }, 503)
    expect((await chat(key, { model: "failover", max_tokens: 9 })).status).toBe(200)
    expect(limitsOf(main.received[0])).toEqual({ max_tokens: 9 })
    expect(limitsOf(spare.received[0])).toEqual({ max_completion_tokens: 9 })
  })

  it("is set aside for every answer that is made, and is the model's own where it takes none", async () => {
    const { key, who } = await person()
    const reserved = async (ask: typeof chat, body: object) => {
      expect((await ask(key, body)).status).toBe(200)
      const bytes = JSON.stringify({
        model: "acme/newer",
        ...(ask === chat ? { messages } : { prompt: "hello there" }),
        ...body
      }).length
      // What is set aside for answers, in tokens: the prompt costs 1 USD a million, its bytes at the most.
      return Math.round(((await explained(who)).reserved_usd * 1e6 - bytes) / 2)
    }
    expect(await reserved(chat, { max_tokens: 10 })).toBe(10)
    expect(await reserved(chat, { max_tokens: 10, n: 3 })).toBe(30)
    expect(await reserved(chat, { max_tokens: 3_700_000, n: 2 })).toBe(4_000)
    expect(await reserved(chat, { max_tokens: 10, n: 3, best_of: 5 })).toBe(50)
    expect(await reserved(chat, { model: "boundless", max_tokens: 10, n: 2 })).toBe(4_000)
    expect(await reserved(complete, {})).toBe(16)
    expect(await reserved(complete, { prompt: ["a", "b"], n: 2, best_of: 4, max_tokens: 10 })).toBe(80)
  })

  it("holds for a hundred calls at once: nothing is left uncollected", async () => {
    const { key, who } = await person()
    // As vendors do, it makes as many tokens as it is allowed, and knows nothing of any other limit.
    main.answer = (response, body) => {
      const completion_tokens = body.max_tokens ?? 1_000_000
      json(response, {
        id: "1",
        object: "text_completion",
        created: 1,
        model: "m",
        choices: [{ text: "x", index: 0, finish_reason: "length" }],
        usage: { prompt_tokens: 2, completion_tokens }
      })
    }
    const answers = await Promise.all(Array.from({ length: 100 }, () => complete(key)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const records = await service.usage(who)
    expect(records).toHaveLength(100)
    for (const record of records) expect(record).toMatchObject({ completion_tokens: 16, cost: 0.000034 })
    for (const record of records) expect(record).not.toHaveProperty("uncollected")
  })

  it("has no third name", async () => {
    const { key, who } = await person()
    for (const field of ["max_output_tokens", "max_new_tokens", "max_tokens_to_sample", "num_predict"]) {
      const { body, status } = await chat(key, { [field]: 5 })
      expect([status, body.code, body.details.field]).toEqual([400, "invalid_request", field])
    }
    expect(await service.usage(who)).toEqual([])
  })
})

describe("a field that changes what the vendor bills", () => {
  const dear: ReadonlyArray<object> = [
    { models: ["acme/newer", "dear"] },
    { fallbacks: ["dear"] },
    { route: "fallback" },
    { provider: { order: ["dear"] } },
    { transforms: ["middle-out"] },
    { service_tier: "priority" },
    { service_tier: "flex" },
    { service_tier: { tier: "priority" } },
    { speed: "fast" },
    { plugins: [{ id: "web" }] },
    { tools: [{ type: "function", function: { name: "f" } }, { type: "web_search" }] },
    { mcp_servers: [{ url: "https://x.example" }] },
    { data_sources: [{ type: "azure_search" }] },
    { web_search_options: {} },
    { search_parameters: { mode: "on" } },
    { enable_search: true },
    { modalities: ["text", "audio"] },
    { prediction: { type: "content", content: "x" } },
    { deferred: true }
  ]

  it("is refused unless the model's configuration names it, before anything is set aside or sent", async () => {
    const { key, who } = await person()
    for (const body of dear) {
      const [field] = Object.keys(body)
      for (const ask of [chat, complete]) {
        const answer = await ask(key, body)
        expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"])
        expect(answer.body.details).toEqual({ field, rule: expect.any(String) })
        expect(answer.body.error).toBe(`${field}: ${answer.body.details.rule}`)
      }
    }
    expect(main.received).toEqual([])
    expect(await service.usage(who)).toEqual([])
  })

  it("is refused by a name that only some upstreams take for it, as is any that bounds the bill", async () => {
    const { key } = await person()
    for (const [field, value, name] of [
      ["Model", "dear", "model"],
      ["max_Tokens", 2_000, "max_tokens"],
      ["Max_Output_Tokens", 2_000, "max_output_tokens"],
      ["N", 5, "n"],
      ["Messages", [], "messages"],
      ["\u017ftream", true, "stream"],
      ["Service_Tier", "priority", "service_tier"],
      ["TOOLS", [{ type: "web_search" }], "tools"]
    ] as const) {
      const said = { field, rule: `must be written as ${name}` }
      for (const ask of [chat, complete]) {
        const { body, status } = await ask(key, { [field]: value })
        expect([status, body.details]).toEqual([400, said])
      }
      for (const [path, json] of [
        ["messages", { max_tokens: 20, messages }],
        ["responses", { input: "hello there" }]
      ] as const) {
        const asked = { model: "acme/newer", ...json, [field]: value }
        const { body, status } = await service.call(`/v1/${path}`, { token: key, json: asked })
        expect([status, body.error.message]).toEqual([400, `${field}: must be written as ${name}`])
      }
    }
    const tool = { type: "function", function: { name: "f" }, Type: "web_search" }
    expect((await chat(key, { tools: [tool] })).body.details?.field).toBe("tools")
    expect(main.received).toEqual([])
  })

  it("passes where it asks for nothing, as clients send it; and so does every field that is unknown here", async () => {
    const { key } = await person()
    const plain = {
      service_tier: "auto",
      store: false,
      metadata: { a: "b" },
      plugins: [],
      models: null,
      web_search_options: null,
      enable_search: false,
      modalities: ["text"],
      tools: [
        { type: "function", function: { name: "f", parameters: {} } },
        { type: "custom", custom: { name: "g" } }
      ],
      reasoning_effort: "low",
      verbosity: "low",
      prompt_cache_key: "k",
      safety_identifier: "s",
      parallel_tool_calls: true,
      something_new: { deep: [1] }
    }
    expect((await chat(key, plain)).status).toBe(200)
    expect(main.received[0]).toMatchObject(plain)
    for (const service_tier of ["default", null]) expect((await chat(key, { service_tier })).status).toBe(200)
  })

  it("is bounded, charged and explained at the price that the configuration puts on it", async () => {
    const { key, who } = await person()
    const cost = async (body: object) => {
      const answer = await chat(key, { model: "rich", max_tokens: 10, ...body })
      expect(answer.status).toBe(200)
      const record = await last(who)
      const why = await explained(who)
      expect(record.cost).toBe(Number(answer.headers.get("x-charge-usd")))
      expect([why.computed_usd, why.charged_usd]).toEqual([record.cost, record.cost])
      expect(why.reserved_usd).toBeGreaterThanOrEqual(record.cost)
      expect(main.received.at(-1)).toMatchObject(body)
      return record.cost
    }
    // 3 × 1 + 2 × 2 USD a million, and 0.001 for each request.
    expect(await cost({})).toBe(0.001007)
    expect(await cost({ service_tier: "priority" })).toBe(0.0010175)
    expect(await cost({ web_search_options: {} })).toBe(0.011007)
    expect(await cost({ tools: [{ type: "web_search" }], service_tier: "priority" })).toBe(0.0210175)
    const lines = (await explained(who)).price.lines
    expect(lines).toEqual([
      { quantity: 3, unit: "prompt token", unit_price_usd: "0.0000025", amount_usd: "0.0000075" },
      { quantity: 2, unit: "completion token", unit_price_usd: "0.000005", amount_usd: "0.00001" },
      { quantity: 1, unit: "request", unit_price_usd: "0.021", amount_usd: "0.021" }
    ])
    for (const body of [{ service_tier: "flex" }, { tools: [{ type: "code_interpreter" }] }, { speed: "fast" }]) {
      expect((await chat(key, { model: "rich", ...body })).status).toBe(400)
    }
    // A call that fails costs nothing, its request included.
    main.answer = (response) => json(response, {}, 503)
    expect((await chat(key, { model: "rich" })).status).toBe(500)
    expect((await last(who)).cost).toBe(0)
  })
})

describe("tokens that a vendor bills apart", () => {
  const cached = (cache_control: object) => [
    { role: "user", content: [{ type: "text", text: "x".repeat(2_000), cache_control }] }
  ]
  const long = cached({ type: "ephemeral", ttl: "1h" })
  const details = (prompt_tokens: number) => ({
    usage: {
      prompt_tokens,
      completion_tokens: 100,
      total_tokens: prompt_tokens + 100,
      prompt_tokens_details: {
        cached_tokens: 100,
        cache_write_tokens: 50,
        cache_creation: { ephemeral_1h_input_tokens: 20 }
      },
      completion_tokens_details: { reasoning_tokens: 60 }
    }
  })
  const ask = async (prompt_tokens: number, body: object = {}) => {
    const { key, who } = await person()
    const { usage } = details(prompt_tokens)
    main.answer = (response, { stream }) =>
      stream === true
        ? sse(response, [
            event({ choices: [{ index: 0, delta: { content: "hi" }, finish_reason: "stop" }] }),
            event({ choices: [], usage }),
            "data: [DONE]\n\n"
          ])
        : json(response, said({ content: "hi" }, { usage }))
    expect((await chat(key, { model: "detailed", messages: long, max_tokens: 200, ...body })).status).toBe(200)
    const record = await eventually(() => last(who))
    const why = await explained(who)
    expect([why.computed_usd, why.charged_usd, record.usage_source]).toEqual([record.cost, record.cost, undefined])
    expect(why.reserved_usd).toBeGreaterThanOrEqual(record.cost)
    expect(record.token_details).toEqual({
      cached_tokens: 100,
      cache_write_tokens: 30,
      cache_write_1h_tokens: 20,
      reasoning_tokens: 60
    })
    return { cost: record.cost, lines: why.price.lines as ReadonlyArray<Body> }
  }

  it("are charged by lines of their own, and explained line by line", async () => {
    const { cost, lines } = await ask(250)
    const line = (quantity: number, unit: string, unit_price_usd: string, amount_usd: string) => ({
      quantity,
      unit,
      unit_price_usd,
      amount_usd
    })
    expect(lines).toEqual([
      line(100, "prompt token", "0.000002", "0.0002"),
      line(40, "completion token", "0.000008", "0.00032"),
      line(100, "cached prompt token", "0.0000005", "0.00005"),
      line(30, "cache write token", "0.0000025", "0.000075"),
      line(20, "1-hour cache write token", "0.000004", "0.00008"),
      line(60, "reasoning token", "0.000006", "0.00036")
    ])
    expect(cost).toBe(0.001085)
    expect(await ask(250, { stream: true })).toEqual({ cost, lines })
  })

  it("cost otherwise in a long prompt, and with an extra", async () => {
    const { cost, lines } = await ask(301)
    expect(lines.map(({ above_prompt_tokens: above, unit }) => [unit, above]).filter(([, above]) => above)).toEqual([
      ["prompt token", 300],
      ["cached prompt token", 300]
    ])
    // 151 × 4, 40 × 8, 100 × 1, 30 × 2.5, 20 × 4, 60 × 6
    expect(cost).toBe(0.001539)
    expect((await ask(601)).cost).toBe(0.003419)
    expect((await ask(601, { service_tier: "priority" })).cost).toBe(0.006838)
  })

  it.each([
    [
      "messages",
      { messages: long, max_tokens: 200 },
      {
        type: "message",
        role: "assistant",
        content: [{ type: "text", text: "hi" }],
        stop_reason: "end_turn",
        usage: {
          input_tokens: 100,
          output_tokens: 100,
          cache_read_input_tokens: 100,
          cache_creation_input_tokens: 50,
          cache_creation: { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 20 }
        }
      },
      // 100 × 2, 100 × 0.5, 30 × 2.5, 20 × 4, 100 × 8
      { cost: 0.001205, token_details: { cached_tokens: 100, cache_write_tokens: 30, cache_write_1h_tokens: 20 } }
    ],
    [
      "responses",
      { input: "x".repeat(2_000), max_output_tokens: 200 },
      {
        object: "response",
        status: "completed",
        output: [
          { type: "message", role: "assistant", content: [{ type: "output_text", text: "hi", annotations: [] }] }
        ],
        usage: {
          input_tokens: 250,
          output_tokens: 100,
          total_tokens: 350,
          input_tokens_details: { cached_tokens: 100 },
          output_tokens_details: { reasoning_tokens: 60 }
        }
      },
      // 150 × 2, 100 × 0.5, 40 × 8, 60 × 6
      { cost: 0.00103, token_details: { cached_tokens: 100, reasoning_tokens: 60 } }
    ]
  ])("are charged alike in %s", async (route, asked, answer, expected) => {
    const { key, who } = await person()
    main.answer = (response) => json(response, { id: "1", model: "m", ...answer })
    const answered = await service.call(`/v1/${route}`, { token: key, json: { model: "other-protocols", ...asked } })
    expect([answered.status, answered.body]).toEqual([200, expect.objectContaining({ usage: answer.usage })])
    expect(await last(who)).toMatchObject(expected)
    expect(await explained(who)).toMatchObject({ computed_usd: expected.cost, charged_usd: expected.cost })
  })

  it("are cached for an hour only where the request says so, and bounded by that", async () => {
    const { key, who } = await person()
    const answer = {
      id: "1",
      model: "m",
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "hi" }],
      stop_reason: "end_turn",
      usage: {
        input_tokens: 100,
        output_tokens: 100,
        cache_creation_input_tokens: 50,
        cache_creation: { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 20 }
      }
    }
    main.answer = (response) => json(response, answer)
    const asked = async (messages: unknown, escaped = false) => {
      const body = JSON.stringify({ model: "other-protocols", max_tokens: 200, messages })
      const raw = escaped ? body.replace('"1h"', '"\\u0031h"') : body
      const headers = { "content-type": "application/json" }
      expect((await service.call("/v1/messages", { token: key, raw, headers })).status).toBe(200)
      const { reserved_usd } = await explained(who)
      const { cost, token_details, usage_source } = await last(who)
      return { per_byte: (reserved_usd - 200 * 8e-6) / raw.length, cost, token_details, usage_source }
    }
    const hour = await asked(long)
    // 100 × 2, 30 × 2.5, 20 × 4, 100 × 8
    expect(hour).toMatchObject({
      cost: 0.001155,
      token_details: { cache_write_tokens: 30, cache_write_1h_tokens: 20 },
      usage_source: undefined
    })
    expect(hour.per_byte).toBeCloseTo(4e-6, 12)
    expect((await asked(long, true)).per_byte).toBeCloseTo(4e-6, 12)
    for (const control of [{ type: "ephemeral" }, { type: "ephemeral", ttl: "5m" }]) {
      const minutes = await asked(cached(control))
      expect(minutes.per_byte).toBeCloseTo(2.5e-6, 12)
      // What was not asked for counts as cached for minutes: 100 × 2, 50 × 2.5, 100 × 8
      expect(minutes).toMatchObject({
        cost: 0.001125,
        token_details: { cache_write_tokens: 50 },
        usage_source: "estimated"
      })
    }
  })

  describe("are refused as a cache of an hour that has no price", () => {
    const rule =
      'this model has no price for one-hour caching; request five minutes ("5m") or ask the operator to set cache_write_1h_usd_per_million'
    const hour = { cache_control: { type: "ephemeral", ttl: "1h" } }
    const said = [{ role: "user", content: "hello there" }]
    const called = { type: "tool_use", id: "t", name: "f", input: { ...hour, ttl: "1h" } }
    const result = { type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "1h", ...hour }] }
    const tool = { name: "f", input_schema: { type: "object", properties: hour } }
    const answer = (written: object = {}) => ({
      id: "1",
      model: "m",
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "hi" }],
      stop_reason: "end_turn",
      usage: { input_tokens: 10, output_tokens: 2, ...written }
    })
    const ask = (key: string, body: object, model = "minutes-by-others") =>
      service.call("/v1/messages", { token: key, json: { model, max_tokens: 20, messages: said, ...body } })

    it.each([
      ["cache_control.ttl", hour],
      [
        "system.1.cache_control.ttl",
        {
          system: [
            { type: "text", text: "a" },
            { type: "text", text: "b", ...hour }
          ]
        }
      ],
      ["tools.0.cache_control.ttl", { tools: [{ ...tool, ...hour }] }],
      [
        "messages.2.content.0.content.0.cache_control.ttl",
        {
          messages: [...said, { role: "assistant", content: [called] }, { role: "user", content: [result] }]
        }
      ]
    ])("%s", async (field, body) => {
      const { key, who } = await person()
      const refused = await ask(key, body)
      expect([refused.status, refused.body]).toEqual([
        400,
        {
          type: "error",
          error: {
            type: "invalid_request_error",
            message: `${field}: ${rule}`,
            code: "invalid_request",
            details: { field, rule }
          },
          request_id: expect.any(String)
        }
      ])
      expect([main.received, await service.usage(who)]).toEqual([[], []])
    })

    it("where longer prompts lack it too, and of the upstreams alone by those that would be told", async () => {
      const { key, who } = await person()
      main.answer = (response) => json(response, {}, 503)
      expect((await ask(key, hour, "minutes-by-main-others")).status).toBe(500)
      // The first speaks chat, which has no such mark; the second is not asked.
      expect(main.received.map(({ max_completion_tokens }) => max_completion_tokens)).toEqual([20])
      expect((await ask(key, {}, "minutes-by-main-others")).status).toBe(500)
      expect(main.received).toHaveLength(3)
      expect((await last(who)).cost).toBe(0)
    })

    it("in chat too, on its way to messages and as it came", async () => {
      const { key, who } = await person()
      for (const model of ["minutes-by-others", "minutes-by-main"]) {
        const refused = await chat(key, { model, messages: long })
        const field = "messages.0.content.0.cache_control.ttl"
        expect([refused.status, refused.body.error]).toEqual([400, `${field}: ${rule}`])
      }
      expect([main.received, await service.usage(who)]).toEqual([[], []])
    })

    it("where a gateway takes it for one", async () => {
      const { key } = await person()
      const control = { type: "ephemeral", ttl: "1h" }
      for (const [field, body] of [
        ["Cache_Control.TTL", { Cache_Control: { type: "ephemeral", TTL: "1h" } }],
        ["cacheControl.ttl", { cacheControl: { Type: "ephemeral", ttl: "1h" } }],
        [
          "cache_control_injection_points.0.control.ttl",
          { cache_control_injection_points: [{ location: "message", role: "system", control }] }
        ]
      ] as const) {
        const refused = await chat(key, { model: "minutes-by-main", ...body })
        expect([refused.status, refused.body.error]).toEqual([400, `${field}: ${rule}`])
      }
      expect(main.received).toEqual([])
      // What the client calls so is its own.
      const metadata = { cache_control: "1h", ttl: "1h" }
      expect((await chat(key, { model: "minutes-by-main", metadata })).status).toBe(200)
    })

    it("but not where it is no mark, or stands for an upstream that knows none", async () => {
      const { key } = await person()
      main.answer = (response) => json(response, answer())
      const unmarked = {
        messages: [
          { role: "user", content: "1h" },
          { role: "assistant", content: [called] },
          { role: "user", content: [{ ...result, content: [{ type: "text", text: "1h" }] }] }
        ],
        tools: [tool],
        cache_control: { type: "ephemeral", ttl: "5m" }
      }
      expect((await ask(key, unmarked)).status).toBe(200)
      main.answer = plainly
      expect((await ask(key, hour, "minutes-by-main")).status).toBe(200)
      expect(JSON.stringify(main.received.at(-1))).not.toContain("1h")
    })

    it("and where a vendor writes for an hour unasked, that is charged as minutes, and logged", async () => {
      const { key, who } = await person()
      const written = {
        cache_creation_input_tokens: 50,
        cache_creation: { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 20 }
      }
      main.answer = (response) => json(response, answer(written))
      const logged = () =>
        service.stderr.concat(service.stdout).join("").split("one-hour caching that was not requested").length
      const before = logged()
      expect((await ask(key, { system: "x".repeat(500) })).status).toBe(200)
      // 10 × 2, 50 × 2.5, 2 × 8
      expect(await last(who)).toMatchObject({
        cost: 0.000161,
        token_details: { cache_write_tokens: 50 },
        usage_source: "estimated"
      })
      expect(await eventually(() => (logged() > before ? true : undefined))).toBe(true)
    })
  })

  it("stand in the model list under the names that clients read", async () => {
    const { key } = await person()
    const response = await fetch(`${service.url}/v1/models/detailed`, { headers: { authorization: `Bearer ${key}` } })
    expect(((await response.json()) as Body).pricing).toEqual({
      prompt: "0.000002",
      completion: "0.000008",
      request: "0",
      input_cache_read: "0.0000005",
      input_cache_write: "0.0000025",
      input_cache_write_1h: "0.000004",
      internal_reasoning: "0.000006",
      audio: "0.00004",
      long_context: [
        { above_prompt_tokens: 300, prompt: "0.000004", input_cache_read: "0.000001" },
        { above_prompt_tokens: 600, completion: "0.000016", internal_reasoning: "0.000012" }
      ]
    })
  })
})

describe("a model of the catalogue", () => {
  it("is served by its limits and prices, under the vendor's own name", async () => {
    const { key, who } = await person()
    expect((await chat(key, { model: "openai/gpt-4.1", max_tokens: 20 })).status).toBe(200)
    expect(main.received.at(-1)).toMatchObject({ model: "gpt-4.1" })
    const response = await fetch(`${service.url}/v1/models/openai/gpt-4.1`, {
      headers: { authorization: `Bearer ${key}` }
    })
    const { context_length, name, pricing } = (await response.json()) as Body
    expect([name, context_length > 1_000_000]).toEqual(["GPT-4.1", true])
    const { price, charged_usd } = await explained(who)
    expect(price.lines.map(({ unit_price_usd }: Body) => unit_price_usd)).toEqual([pricing.prompt, pricing.completion])
    expect(charged_usd).toBeCloseTo(
      usage.prompt_tokens * pricing.prompt + usage.completion_tokens * pricing.completion,
      9
    )
  })
})

describe("the figures of a provider", () => {
  /** The prompt's bytes, and the limit that was sent. */
  const asked = { max_tokens: 10, n: 2 }
  const bytes = JSON.stringify({ model: "acme/newer", messages, ...asked }).length

  const charged = async (reported: string, stream: boolean) => {
    const { key, who } = await person()
    const text = `{"id":"1","choices":[{"index":0,"message":{"content":"some words, sixteen"},"delta":{},"finish_reason":"stop"}],"usage":${reported}}`
    main.answer = (response) =>
      stream ? sse(response, [`data: ${text}\n\n`, "data: [DONE]\n\n"]) : json(response, text)
    const answer = await chat(key, { ...asked, ...(stream && { stream }) })
    expect(answer.status).toBe(200)
    const record = await eventually(() => last(who))
    expect(await service.balance(who)).toBe(Math.round((6 - record.cost) * 1e9) / 1e9)
    return [record.prompt_tokens, record.completion_tokens, record.usage_source]
  }
  const estimate = Math.ceil(bytes / 4)

  it("are believed up to the context and the limit that was sent, and count as that beyond", async () => {
    expect(await charged('{"prompt_tokens":7,"completion_tokens":20}', false)).toEqual([7, 20, undefined])
    expect(await charged('{"prompt_tokens":0,"completion_tokens":0}', false)).toEqual([0, 0, undefined])
    for (const prompt of [bytes, bytes + 1, 100_000])
      expect(await charged(`{"prompt_tokens":${prompt},"completion_tokens":1}`, false)).toEqual([prompt, 1, undefined])
    expect(await charged('{"prompt_tokens":100001,"completion_tokens":1}', false)).toEqual([100_000, 1, "estimated"])
    expect(await charged('{"prompt_tokens":7,"completion_tokens":21}', false)).toEqual([7, 20, "estimated"])
    expect(await charged('{"prompt_tokens":1000000000,"completion_tokens":1000000000}', false)).toEqual([
      100_000,
      20,
      "estimated"
    ])
    expect(await charged('{"prompt_tokens":1e999,"completion_tokens":2}', false)).toEqual([100_000, 2, "estimated"])
  })

  it("are counted by what came where they are no figures", async () => {
    for (const [reported, seen] of [
      ['{"prompt_tokens":-5,"completion_tokens":2}', [estimate, 2]],
      ['{"prompt_tokens":3,"completion_tokens":-2}', [3, 5]],
      ['{"prompt_tokens":"3","completion_tokens":2.5}', [estimate, 5]],
      ['{"prompt_tokens":3}', [3, 5]],
      ['{"total_tokens":5}', [estimate, 5]],
      ["[]", [estimate, 5]],
      ["null", [estimate, 5]]
    ] as const) {
      expect([reported, ...(await charged(reported, false))]).toEqual([reported, ...seen, "estimated"])
    }
  })

  it("are the same of a stream", async () => {
    expect(await charged('{"prompt_tokens":48169,"completion_tokens":2}', true)).toEqual([48_169, 2, undefined])
    expect(await charged('{"prompt_tokens":1000000000,"completion_tokens":21}', true)).toEqual([
      100_000,
      20,
      "estimated"
    ])
    expect(await charged('{"prompt_tokens":3,"completion_tokens":2}', true)).toEqual([3, 2, undefined])
  })

  it("take what the balance has where they are more than what was set aside; the rest is uncollected", async () => {
    const { key, who } = await person()
    const usage = (prompt_tokens: number) => {
      main.answer = (response) =>
        json(response, said({ content: "x" }, { usage: { prompt_tokens, completion_tokens: 1 } }))
    }
    const plain = JSON.stringify({ model: "rich", messages }).length
    usage(99_999)
    await chat(key, { model: "rich", max_tokens: 1 })
    expect(await last(who)).toMatchObject({ prompt_tokens: 99_999, completion_tokens: 1, cost: 0.101001 })
    expect((await explained(who)).reserved_usd).toBeLessThan(0.0012 + plain / 1e6)
    // A token costs a thousandth of a dollar.
    await chat(key, { model: "dear", max_tokens: 1 })
    expect(await last(who)).toMatchObject({ prompt_tokens: 99_999, cost: 5.898999, uncollected: 94.101001 })
    expect(await service.balance(who)).toBe(0)
  })

  it("have room in what is set aside for words about tools", async () => {
    const { key, who } = await person()
    const tools = [{ type: "function", function: { name: "look", parameters: {} } }]
    const body = { model: "tooled", messages, max_tokens: 1, tools }
    expect((await chat(key, body)).status).toBe(200)
    const bytes = JSON.stringify({ ...body }).length
    expect((await explained(who)).reserved_usd).toBeCloseTo((bytes + 300 + 2) / 1e6, 9)
  })
})

describe("an answer without usage", () => {
  const tool = { id: "c", type: "function", function: { name: "weather", arguments: '{"city":"Lisbon","unit":"C"}' } }

  it("is counted whatever it consists of", async () => {
    const { key, who } = await person()
    const counted = async (message: object) => {
      main.answer = (response) => json(response, JSON.stringify(said(message, {}), null, 2))
      expect((await chat(key)).status).toBe(200)
      const record = await last(who)
      expect(record.usage_source).toBe("estimated")
      return record.completion_tokens
    }
    const text = "x".repeat(40)
    expect(await counted({ content: "" })).toBe(0)
    expect(await counted({ content: null })).toBe(0)
    expect(await counted({ content: text })).toBe(10)
    expect(await counted({ content: text, reasoning_content: text })).toBe(20)
    expect(await counted({ content: text, reasoning: text, reasoning_content: text })).toBe(20)
    expect(await counted({ content: null, refusal: text })).toBe(10)
    // Seven letters of a name; 28 characters of arguments, each of 8 quotes escaped.
    expect(await counted({ content: null, tool_calls: [tool] })).toBe(1 + 9)
    expect(await counted({ content: null, audio: { id: "a", data: "QUJD".repeat(100), transcript: text } })).toBe(10)
    expect(await counted({ content: [{ type: "text", text }] })).toBe(10)
  })

  it("is counted in a stream, in whatever spacing its JSON has", async () => {
    const { key, who } = await person()
    const counted = async (...deltas: ReadonlyArray<object>) => {
      const events = deltas.map((delta) => {
        const choices = [{ index: 0, delta, finish_reason: null }]
        return `data: ${JSON.stringify({ choices }, null, 1).replaceAll("\n", "")}\n\n`
      })
      main.answer = (response) => sse(response, [...events, "data: [DONE]\n\n"])
      expect((await chat(key, { stream: true })).status).toBe(200)
      return (await last(who)).completion_tokens
    }
    expect(await counted({ content: "one" }, { content: " two" })).toBe(2)
    expect(await counted({ reasoning_content: "hm" }, { reasoning: "so" }, { content: "one" })).toBe(3)
    expect(
      await counted({ content: "", reasoning: "hm", reasoning_details: [{ type: "reasoning.text", text: "hm" }] })
    ).toBe(1)
    expect(await counted({ tool_calls: [{ index: 0, function: { name: "f", arguments: "" } }] })).toBe(1)
    expect(await counted({ tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] }, { refusal: "no" })).toBe(2)
    expect(await counted({ audio: { transcript: "hello" } })).toBe(1)
  })

  it("costs its prompt with what is attached to it", async () => {
    const { key, who } = await person()
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(20_000)}` } }
    main.answer = (response) => json(response, said({ content: "x" }, {}))
    expect((await chat(key, { messages: [{ role: "user", content: [image, image] }] })).status).toBe(200)
    const { prompt_tokens } = await last(who)
    expect(prompt_tokens).toBeGreaterThanOrEqual(1_000)
    expect(prompt_tokens).toBeLessThan(1_200)
  })
})

describe("what is attached to a prompt", () => {
  it("is bounded as an image, by its bytes, or by all that the model can read", async () => {
    const { key, who } = await person()
    const bound = async (...content: ReadonlyArray<object>) => {
      expect((await chat(key, { max_tokens: 1, messages: [{ role: "user", content }] })).status).toBe(200)
      return Math.round((await explained(who)).reserved_usd * 1e6) - 2
    }
    const data = "A".repeat(8_000)
    const plain = await bound({ type: "text", text: "x" })
    expect(plain).toBeLessThan(200)
    expect(await bound({ type: "refusal", refusal: "x" })).toBeLessThan(200)
    for (const image_url of [{ url: `data:image/png;base64,${data}` }, { url: "https://x.example/a.png" }]) {
      const image = await bound({ type: "image_url", image_url })
      expect(image).toBeGreaterThanOrEqual(500)
      expect(image).toBeLessThan(700)
    }
    const text = Buffer.from("words ".repeat(1_000)).toString("base64")
    for (const part of [
      { type: "input_audio", input_audio: { data: wave({ bytes: 6_000 }).toString("base64"), format: "wav" } },
      { type: "file", file: { filename: "a.txt", file_data: text } },
      { type: "image_url", image_url: { url: `data:text/plain;base64,${text}` } }
    ]) {
      const file = await bound(part)
      expect(file).toBeGreaterThanOrEqual(8_000)
      expect(file).toBeLessThan(9_000)
    }
    for (const part of [
      { type: "file", file: { filename: "a.pdf", file_data: data } },
      { type: "image_url", image_url: { url: `data:application/pdf;base64,${data}` } },
      { type: "input_audio", input_audio: { data: flac({ frames: 500 }).toString("base64"), format: "wav" } },
      { type: "file", file: {} },
      { type: "video_url", video_url: { url: "https://x.example/a.mp4" } }
    ]) {
      expect(await bound(part)).toBe(100_000)
    }
    const earlier = [...messages, { role: "assistant", audio: { id: "audio_1" } }, ...messages]
    expect((await chat(key, { model: "files", max_tokens: 1, messages: earlier })).status).toBe(200)
    expect((await explained(who)).reserved_usd).toBe(0.100002)
  })
})

describe("a file that the vendor keeps", () => {
  it("is named by its id in no protocol, unless the model's configuration allows it", async () => {
    const { key } = await person()
    const user = (...content: ReadonlyArray<object>) => [{ role: "user", content }]
    const asked: ReadonlyArray<readonly [path: string, body: object]> = [
      ["chat/completions", { messages: user({ type: "file", file: { file_id: "file-1" } }) }],
      ["chat/completions", { messages: user({ type: "file", file: { File_ID: "file-1" } }) }],
      ["chat/completions", { messages: user({ type: "image_file", image_file: { file_id: "file-1" } }) }],
      [
        "messages",
        { max_tokens: 9, messages: user({ type: "document", source: { type: "file", file_id: "file_1" } }) }
      ],
      ["messages", { max_tokens: 9, messages: user({ type: "image", source: { type: "file", file_id: "file_1" } }) }],
      ["messages", { max_tokens: 9, messages: user({ type: "container_upload", file_id: "file_1" }) }],
      [
        "messages",
        {
          max_tokens: 9,
          messages: user({
            type: "tool_result",
            tool_use_id: "t",
            content: [{ type: "image", source: { type: "file", file_id: "file_1" } }]
          })
        }
      ],
      ["messages/count_tokens", { messages: user({ type: "image", source: { type: "file", file_id: "file_1" } }) }],
      ["responses", { input: user({ type: "input_file", file_id: "file-1" }) }],
      ["responses", { input: user({ type: "input_image", file_id: "file-1" }) }],
      [
        "responses",
        { input: [{ type: "function_call_output", call_id: "c", output: [{ type: "input_file", file_id: "file-1" }] }] }
      ],
      [
        "responses",
        {
          input: [{ type: "computer_call_output", call_id: "c", output: { type: "computer_screenshot", file_id: "f" } }]
        }
      ]
    ]
    for (const [path, body] of asked) {
      const { body: answer, status } = await service.call(`/v1/${path}`, {
        token: key,
        json: { ...body, model: path.startsWith("chat") ? "acme/newer" : "kept" }
      })
      expect([path, body, status, JSON.stringify(answer).includes("file_id")]).toEqual([path, body, 400, true])
    }
    expect(main.received).toEqual([])
    const [, file] = asked[0]!
    expect((await service.call("/v1/chat/completions", { token: key, json: { ...file, model: "files" } })).status).toBe(
      200
    )
  })
})

describe("a spoken answer or a container that the vendor keeps", () => {
  it("is named by its id only if the model's configuration allows it, since it may be another account's", async () => {
    const { key } = await person()
    const spoken = [...messages, { role: "assistant", audio: { id: "audio_1" } }, ...messages]
    const asked: ReadonlyArray<readonly [path: string, body: object, field: string]> = [
      ["chat/completions", { messages: spoken }, "audio"],
      ["messages", { max_tokens: 9, messages, container: "container_1" }, "container"],
      ["messages", { max_tokens: 9, messages, container: { id: "container_1" } }, "container"],
      ["messages", { max_tokens: 9, messages, container: { Id: "container_1", skills: [] } }, "container"]
    ]
    const ask = (path: string, body: object, model: string) =>
      service.call(`/v1/${path}`, { token: key, json: { ...body, model } })
    for (const [path, body, field] of asked) {
      const { body: answer, status } = await ask(path, body, path === "messages" ? "contained" : "acme/newer")
      expect([path, body, status, JSON.stringify(answer).includes(`"${field}"`)]).toEqual([path, body, 400, true])
    }
    expect(main.received).toEqual([])
    expect((await ask("chat/completions", { messages: spoken }, "files")).status).toBe(200)
    main.answer = (response) =>
      json(response, {
        type: "message",
        content: [],
        stop_reason: "end_turn",
        usage: { input_tokens: 3, output_tokens: 2 }
      })
    const fresh = { max_tokens: 9, messages, container: { skills: [] } }
    expect((await ask("messages", fresh, "contained")).status).toBe(200)
    expect((await ask("messages", { ...fresh, container: "container_1" }, "contained-files")).status).toBe(200)
  })
})

describe("what a vendor keeps of responses", () => {
  let answers = 0
  /** Answers with ids of its own; a stream that is not to end breaks off behind its first item. */
  const keeping =
    (ends = true): Vendor["answer"] =>
    (response, body) => {
      const n = ++answers
      const item = {
        id: `msg_${n}`,
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "hi" }]
      }
      const whole = {
        id: `resp_${n}`,
        object: "response",
        status: "completed",
        conversation: { id: `conv_${n}` },
        output: [{ id: `rs_${n}`, type: "reasoning", summary: [] }, item],
        usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
      }
      if (body.stream !== true) return json(response, whole)
      const begun = {
        ...whole,
        status: "in_progress",
        output: [],
        usage: { input_tokens: 3, output_tokens: 0, total_tokens: 3 }
      }
      sse(response, [
        event({ type: "response.created", response: begun }),
        event({ type: "response.output_item.added", item: whole.output[0] }),
        event({ type: "response.output_item.done", item: whole.output[0] }),
        ...(ends ? [event({ type: "response.completed", response: whole })] : [])
      ])
    }
  const respond = (token: string, body: object = {}) =>
    service.call("/v1/responses", { token, json: { model: "kept", input: "hello", ...body } })
  const namings = (n: number) => [
    { previous_response_id: `resp_${n}` },
    { conversation: `conv_${n}` },
    { conversation: { id: `conv_${n}` } },
    { input: [{ type: "item_reference", id: `msg_${n}` }] },
    { input: [{ id: `msg_${n}` }] },
    {
      input: [
        { type: "reasoning", Id: `rs_${n}`, summary: [] },
        { role: "user", content: "go on" }
      ]
    }
  ]

  it.each([false, true])(
    "belongs to the tenant and account that were handed its ids (streamed: %s)",
    async (stream) => {
      main.answer = keeping()
      const [ada, bob] = [await person(), await person()]
      expect((await respond(ada.key, { stream })).status).toBe(200)
      const n = answers
      const { body } = await service.call("/v1/tenants", { token: ada.who.token, json: { name: "team" } })
      const refreshed = await service.call("/v1/auth/token", {
        json: {
          client_id: "console",
          grant_type: "refresh_token",
          refresh_token: ada.who.refresh_token,
          tenant_id: body.result.id
        }
      })
      const elsewhere = refreshed.body.result.access_token as string
      const before = main.received.length
      for (const naming of namings(n)) {
        for (const other of [bob.key, elsewhere]) {
          const refused = await respond(other, { ...naming, stream })
          expect([naming, refused.status, refused.body.error.code]).toEqual([naming, 404, "not_found"])
          expect(refused.body.error.param).toMatch(/^(previous_response_id|conversation|input\[0\]\.[iI]d)$/)
        }
        // A body this long is read on another thread.
        const long = await respond(bob.key, { instructions: "x".repeat(300_000), ...naming, stream })
        expect([naming, long.status, long.body.error.code]).toEqual([naming, 404, "not_found"])
      }
      expect(main.received).toHaveLength(before)
      for (const naming of namings(n)) expect([naming, (await respond(ada.key, naming)).status]).toEqual([naming, 200])
      expect(main.received).toHaveLength(before + namings(n).length)
      const long = { instructions: "x".repeat(300_000), previous_response_id: `resp_${n}` }
      expect((await respond(ada.key, long)).status).toBe(200)
      expect((await respond(ada.key, { previous_response_id: "resp_0" })).status).toBe(404)
    }
  )

  it("is handed out by a stream that broke off too, as far as it came", async () => {
    main.answer = keeping(false)
    const ada = await person()
    expect((await respond(ada.key, { stream: true })).body).toContain("response.created")
    const n = answers
    main.answer = keeping()
    expect((await respond(ada.key, { previous_response_id: `resp_${n}` })).status).toBe(200)
    expect((await respond(ada.key, { input: [{ type: "item_reference", id: `rs_${n}` }] })).status).toBe(200)
    expect((await respond(ada.key, { input: [{ type: "item_reference", id: `msg_${n}` }] })).status).toBe(404)
  })
})

describe("stream_options", () => {
  it("reach the upstream with include_usage beside them, and no chunk shows a usage that nobody asked for", async () => {
    const { key, who } = await person()
    const choice = { index: 0, delta: { content: "é" }, finish_reason: null }
    const events = [
      // As several vendors write it, each with its own spacing and place.
      `data: {"id":"1","choices":[${JSON.stringify(choice)}],"usage":null}\n\n`,
      `data: {"usage": null, "id": "2", "choices": [{"delta": {"content": "\\"usage\\":null, 1.10"}, "usage": 1}], "x": 1.10}\n\n`,
      `event: chunk\ndata: {"id":"3","usage" : {"prompt_tokens":3,"completion_tokens":1},"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n`,
      `data: {"id":"4","choices":[],"usage":${JSON.stringify(usage)}}\n\n`,
      "data: [DONE]\n\n"
    ]
    main.answer = (response) => sse(response, events)
    const hidden = await chat(key, { stream: true, stream_options: { include_obfuscation: false } })
    expect(main.received[0]!.stream_options).toEqual({ include_obfuscation: false, include_usage: true })
    expect(hidden.body).toBe(
      [
        `data: {"id":"1","choices":[${JSON.stringify(choice)}]}\n\n`,
        `data: { "id": "2", "choices": [{"delta": {"content": "\\"usage\\":null, 1.10"}, "usage": 1}], "x": 1.10}\n\n`,
        `event: chunk\ndata: {"id":"3","choices":[{"delta":{},"finish_reason":"stop"}]}\n\n`,
        "data: [DONE]\n\n"
      ].join("")
    )
    expect(await last(who)).toMatchObject({ prompt_tokens: 3, completion_tokens: 2 })
    const shown = await chat(key, { stream: true, stream_options: { include_usage: true } })
    expect(shown.body).toBe(events.join(""))
    await chat(key, { stream: true, stream_options: null })
    expect(main.received.at(-1)!.stream_options).toEqual({ include_usage: true })
    // Without a stream they are the client's own business.
    main.answer = plainly
    await chat(key, {})
    expect(main.received.at(-1)).not.toHaveProperty("stream_options")
  })
})

describe("an answer that is too long to be handed on", () => {
  /** Begins with an answer of 65 MiB. */
  const long = (more: string) => (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.write('{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"')
    for (let i = 0; i < 65; i++) response.write(Buffer.alloc(1024 * 1024, "x"))
    response.end(`"},"finish_reason":"stop"}]${more}}`)
  }

  it("is charged by the usage at its end, and no other upstream is asked", async () => {
    const { key, who } = await person()
    main.answer = long(`,"usage":${JSON.stringify(usage)}`)
    const asked = { model: "failover", max_tokens: 50, messages }
    const { body, status } = await service.call("/v1/chat/completions", { token: key, json: asked })
    expect([status, body.code]).toEqual([500, "upstream_error"])
    expect(await service.usage(who)).toMatchObject([
      { success: false, prompt_tokens: 3, completion_tokens: 2, error_type: "upstream_error" }
    ])
    expect((await last(who)).cost).toBeGreaterThan(0)
    expect(spare.received).toEqual([])
  })

  it("is charged what was counted where it reports nothing, at most its limit", async () => {
    const { key, who } = await person()
    main.answer = long("")
    const asked = { model: "failover", max_tokens: 50, messages }
    expect((await service.call("/v1/chat/completions", { token: key, json: asked })).status).toBe(500)
    expect(await service.usage(who)).toMatchObject([{ completion_tokens: 50, usage_source: "estimated" }])
    expect(spare.received).toEqual([])
  })
})

describe("a document that lies elsewhere", () => {
  it("is charged at the bound where its stream is left early, and no usage came", async () => {
    const { key, who } = await person()
    const document = { type: "video_url", video_url: { url: "https://x.example/a.mp4" } }
    const gone = new AbortController()
    main.answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(event({ choices: [{ index: 0, delta: { content: "hi" } }] }))
    }
    const answer = await fetch(`${service.url}/v1/chat/completions`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "failover",
        stream: true,
        max_tokens: 20,
        messages: [{ role: "user", content: [document] }]
      })
    })
    await answer.body!.getReader().read()
    gone.abort()
    const model = (await service.call("/v1/models", { token: key })).body.data.find(
      ({ id }: { readonly id: string }) => id === "failover"
    )
    expect(await eventually(() => last(who))).toMatchObject({
      prompt_tokens: model.context_length,
      completion_tokens: 1,
      usage_source: "estimated",
      error_type: "client_disconnected"
    })
  })
})

describe("a client that has left", () => {
  /** Asks, and leaves once the first upstream has been asked. */
  const leaves = async (key: string, body: object, headers: Record<string, string> = {}) => {
    const gone = new AbortController()
    const asked = fetch(`${service.url}/v1/chat/completions`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: "failover", messages, ...body })
    }).catch(() => undefined)
    await eventually(() => main.received[0])
    gone.abort()
    await asked
  }

  it("is asked no further upstream for, and pays nothing for the one that failed", async () => {
    for (const stream of [false, true]) {
      const { key, who } = await person()
      main.received.length = 0
      let fail: (() => void) | undefined
      main.answer = (response) => (fail = () => json(response, { error: "down" }, 503))
      await leaves(key, { stream })
      // The service hears of it on its next turn; an upstream that fails after that is the last.
      await new Promise((resolve) => setTimeout(resolve, 200))
      fail!()
      const record = await eventually(() => last(who))
      expect(record).toMatchObject({ success: false, cost: 0, error_type: "client_disconnected" })
      expect(spare.received).toEqual([])
      expect(await service.balance(who)).toBe(6)
    }
  })

  it("finds what came when it comes again with its Idempotency-Key", async () => {
    const { key, who } = await person()
    const headers = { "idempotency-key": "left-0123456789abcdef" }
    const again = (headers: Record<string, string>) =>
      service.call("/v1/chat/completions", { token: key, headers, json: { model: "failover", messages } })
    /** Until the first call's answer is stored. */
    const stored = async (headers: Record<string, string>) =>
      eventually(async () => {
        const answer = await again(headers)
        return answer.status === 409 ? undefined : answer
      })

    main.received.length = 0
    let answer: (() => void) | undefined
    main.answer = (response) => (answer = () => plainly(response, {}, undefined as never))
    await leaves(key, {}, headers)
    await new Promise((resolve) => setTimeout(resolve, 200))
    answer!()
    const came = await stored(headers)
    expect([came.status, came.headers.get("idempotency-replayed")]).toEqual([200, "true"])
    expect(main.received).toHaveLength(1)
    expect(await last(who)).toMatchObject({ success: true, prompt_tokens: 3 })

    const failing = { "idempotency-key": "left-fedcba9876543210" }
    main.received.length = 0
    main.answer = (response) => (answer = () => json(response, { error: "down" }, 503))
    await leaves(key, {}, failing)
    await new Promise((resolve) => setTimeout(resolve, 200))
    answer!()
    const nothing = await stored(failing)
    expect([nothing.status, nothing.body]).toEqual([
      499,
      { error: "the client disconnected before the response", code: "client_disconnected" }
    ])
    expect([main.received.length, spare.received]).toEqual([1, []])
    expect(await last(who)).toMatchObject({ success: false, cost: 0, error_type: "client_disconnected" })
  })

  it("before its stream begins is read on for to the end, however long that is", async () => {
    for (const headers of [{}, { "idempotency-key": "left-stream-0123456789" }]) {
      for (const has_head of [false, true]) {
        const { key, who } = await person()
        main.received.length = 0
        const choices = [{ index: 0, delta: { content: "x".repeat(400_000) }, finish_reason: "stop" }]
        let answer: (() => void) | undefined
        main.answer = (response) => {
          if (has_head) response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
          const events = [event({ choices }), event({ choices: [], usage }), "data: [DONE]\n\n"]
          answer = () => (has_head ? response.end(events.join("")) : sse(response, events))
        }
        await leaves(key, { stream: true }, headers)
        await new Promise((resolve) => setTimeout(resolve, 200))
        answer!()
        expect(await eventually(() => last(who))).toMatchObject({
          success: true,
          prompt_tokens: 3,
          completion_tokens: 2
        })
        expect(spare.received).toEqual([])
      }
    }
  })

  it("is asked no further upstream for where its stream breaks before anything of it came, and pays what that reported", async () => {
    for (const headers of [{}, { "idempotency-key": "left-broken-0123456789" }]) {
      for (const reported of [false, true]) {
        const { key, who } = await person()
        main.received.length = 0
        let fail: (() => void) | undefined
        main.answer = (response) => {
          response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
          fail = () => response.end(reported ? event({ error: { message: "down" }, choices: [], usage }) : undefined)
        }
        await leaves(key, { stream: true }, headers)
        await new Promise((resolve) => setTimeout(resolve, 200))
        fail!()
        expect(await eventually(() => last(who))).toMatchObject(
          reported
            ? { success: false, prompt_tokens: 3, completion_tokens: 2, error_type: "upstream_error" }
            : { success: false, cost: 0, error_type: "client_disconnected" }
        )
        expect(spare.received).toEqual([])
      }
    }
  })

  it.each<[string, Record<string, string>]>([
    ["", {}],
    [", and its Idempotency-Key is as good as new", { "idempotency-key": "left-before-0123456789" }]
  ])("before any upstream was asked costs nothing, and none is asked%s", async (_, headers) => {
    const { key, who } = await person()
    // The books are held for a moment, and with them the admission, while the client leaves.
    const release = await Tables.hold(service.folder)
    const gone = new AbortController()
    const asked = fetch(`${service.url}/v1/chat/completions`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: "failover", messages })
    }).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 200))
    gone.abort()
    await asked
    await new Promise((resolve) => setTimeout(resolve, 100))
    await release()
    const record = await eventually(() => last(who))
    expect(record).toMatchObject({ success: false, cost: 0, error_type: "client_disconnected" })
    expect([...main.received, ...spare.received]).toEqual([])
    expect(await service.balance(who)).toBe(6)
    const call = { token: key, headers, json: { model: "failover", messages } }
    const again = await eventually(async () => {
      const answer = await service.call("/v1/chat/completions", call)
      return answer.status === 409 ? undefined : answer
    })
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, null])
  })

  it("is read on for ten seconds once its stream has begun, and otherwise to the end; it pays for its prompt, and no other upstream is asked", async () => {
    const people = await Promise.all([person(), person(), person()])
    let aborted = 0
    const answers: Array<() => void> = []
    for (const [i, { key }] of people.entries()) {
      main.received.length = 0
      main.answer = (response) => {
        response.once("close", () => response.writableFinished || aborted++)
        // The last of them has the head of a stream, and nothing of it.
        if (i === 2) response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
        else
          answers.push(() =>
            i === 0 ? sse(response, ["data: [DONE]\n\n"]) : plainly(response, {}, undefined as never)
          )
      }
      await leaves(key, { stream: i !== 1 })
    }
    const left = { success: true, usage_source: "estimated", error_type: "client_disconnected", completion_tokens: 0 }
    const begun = await eventually(() => last(people[2]!.who))
    expect(begun).toMatchObject(left)
    expect(begun.prompt_tokens).toBeGreaterThan(0)
    expect(begun.cost).toBeGreaterThan(0)
    expect([aborted, await last(people[0]!.who), await last(people[1]!.who)]).toEqual([1, undefined, undefined])
    for (const answer of answers) answer()
    expect(await eventually(() => last(people[0]!.who))).toMatchObject({
      success: true,
      prompt_tokens: begun.prompt_tokens,
      usage_source: "estimated"
    })
    expect(await eventually(() => last(people[1]!.who))).toMatchObject({
      success: true,
      prompt_tokens: 3,
      completion_tokens: 2
    })
    expect(spare.received).toEqual([])
  })
})

describe("the models", () => {
  it("are listed as clients expect them", async () => {
    const { key } = await person()
    const { body } = await service.call("/v1/models", { token: key })
    const newer = {
      id: "acme/newer",
      object: "model",
      created: 1_700_000_000,
      owned_by: "acme",
      name: "Newer",
      description: "",
      context_length: 100_000,
      architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
      top_provider: { context_length: 100_000, max_completion_tokens: 2_000 },
      pricing: { prompt: "0.000001", completion: "0.000002", request: "0" },
      protocols: ["chat", "text", "messages", "responses"],
      native_protocols: ["chat", "text"]
    }
    expect(body.data[1]).toEqual(newer)
    expect(body.data[0]).toEqual({
      ...newer,
      id: "auto",
      name: "Auto",
      description: expect.any(String),
      pricing: { prompt: "-1", completion: "-1", request: "-1" }
    })
    expect(body.data.find(({ id }: { id: string }) => id === "other-protocols")).toMatchObject({
      protocols: ["chat", "messages", "responses"],
      native_protocols: ["messages", "responses"]
    })
    const rich = body.data.find(({ id }: { id: string }) => id === "rich")
    expect(rich).toMatchObject({
      owned_by: "system",
      pricing: { request: "0.001" },
      extras: [
        { field: "service_tier", values: ["priority"], price_factor: "2.5", request: "0" },
        { field: "web_search_options", price_factor: "1", request: "0.01" },
        { field: "tools", values: ["web_search"], price_factor: "1", request: "0.02" }
      ]
    })
    expect(rich.created).toBeGreaterThan(1_700_000_000)
    for (const row of body.data) {
      const { body: one, status } = await service.call(`/v1/models/${encodeURIComponent(row.id)}`, { token: key })
      expect([status, one]).toEqual([200, row])
      expect((await service.call(`/v1/models/${row.id}`, { token: key })).body).toEqual(row)
    }
  })

  it("are found one by one, by the real client too; others are 404", async () => {
    const { key, who } = await person()
    const client = new OpenAI({ apiKey: key, baseURL: `${service.url}/v1`, maxRetries: 0 })
    expect(await client.models.retrieve("acme/newer")).toMatchObject({ id: "acme/newer", owned_by: "acme" })
    await expect(client.models.retrieve("acme/none")).rejects.toMatchObject({ status: 404 })
    for (const path of ["none", "acme/none", "a/b/c", "acme%2Fnone"]) {
      const { body, status } = await service.call(`/v1/models/${path}`, { token: who.token })
      expect([status, body.code]).toEqual([404, "model_not_found"])
    }
    for (const path of ["/v1/models", "/v1/models/older", "/v1/models/acme/newer"]) {
      expect((await service.call(path)).status).toBe(401)
      const posted = await service.call(path, { token: key, json: {} })
      expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET"])
    }
    expect((await service.call("/v1/models/", { token: key })).body.object).toBe("list")
  })
})
