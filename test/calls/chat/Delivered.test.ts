/** What a vendor delivered is charged, in whatever way its answer ends: each client's protocol over each vendor's. */
import { writeFileSync } from "node:fs"
import { createServer, request } from "node:http"
import type { Server, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { frame } from "../../../src/sandbox/Bedrock.ts"
import { all, eventsIn } from "../../support/Protocols.ts"
import { freePort, freshFolder, start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"
import { answerOf, eventsOf, vendorNames } from "../../support/Vendors.ts"
import type { VendorName } from "../../support/Vendors.ts"

/** A vendor with scripted answers. It counts the requests. */
const scripted = async () => {
  const made = {
    asked: 0,
    answer: (response: ServerResponse): void => void response.writeHead(500).end(),
    url: "",
    server: undefined as unknown as Server
  }
  made.server = createServer((request, response) => {
    request.resume().on("end", () => {
      made.asked++
      made.answer(response)
    })
  })
  await new Promise<void>((resolve) => made.server.listen(0, "127.0.0.1", resolve))
  made.url = `http://127.0.0.1:${(made.server.address() as AddressInfo).port}/v1`
  return made
}

let world: Service
let service: Service
let vendor: Awaited<ReturnType<typeof scripted>>
let spare: typeof vendor
let origin: string

beforeAll(async () => {
  ;[world, vendor, spare] = await Promise.all([start(), scripted(), scripted()])
  const { control, issuer } = await world.sandbox()
  origin = control.replace("/control", "")
  const model = (id: string, upstreams: ReadonlyArray<string>) => ({
    id,
    context_length: 100_000,
    max_output_tokens: 2_000,
    price: { prompt_usd_per_million: "3", completion_usd_per_million: "15" },
    upstreams: upstreams.map((upstream) => ({ upstream }))
  })
  const file = join(freshFolder(), "tollgate.json")
  const entry = { base_url: vendor.url, api_key: "k" }
  writeFileSync(
    file,
    JSON.stringify({
      clients: [{ client_id: "console", name: "Console" }],
      identity: { google: { issuer, audiences: ["sandbox-google"] } },
      registration: { open: true },
      prices: { default_new_credits: 6, default_registration_credits: 0 },
      rate_limits: { sign_in: 1_000 },
      upstreams: {
        ...Object.fromEntries(vendorNames.map((name) => [name, { ...entry, speaks: [name] }])),
        usual: entry,
        slow: { ...entry, total_timeout_seconds: 1 },
        spare: { base_url: spare.url, api_key: "k" }
      },
      tools: {
        speech: [{ id: "vendor", upstream: "usual", models: [{ id: "tts", usd_per_million_characters: "15" }] }]
      },
      models: [
        ...vendorNames.map((name) => model(name, [name, "spare"])),
        model("usual", ["usual", "spare"]),
        model("slow", ["slow"])
      ]
    })
  )
  service = await start({ port: await freePort(), args: ["--config", file] })
})
afterAll(async () => {
  await Promise.all([service?.discard(), world?.discard()])
  for (const one of [vendor, spare]) {
    one?.server.closeAllConnections()
    one?.server.close()
  }
})
beforeEach(() => {
  vendor.asked = spare.asked = 0
})

let people = 0
const person = async (): Promise<{ readonly who: Person; readonly key: string }> => {
  const { issuer } = await world.sandbox()
  const who = await service.signIn(`delivered${people++}@example.com`, {}, { client_id: "console", issuer })
  return { who, key: await service.key(who) }
}

const last = async (who: Person) => (await service.usage(who))[0]
const priced = (prompt: number, completion: number) => Number((prompt * 3e-6 + completion * 15e-6).toFixed(9))

const eventually = async <A>(look: () => Promise<A | undefined>): Promise<A> => {
  for (let i = 0; i < 400; i++) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error("it has not happened")
}

const typeOf = (name: VendorName) => (name === "bedrock" ? "application/vnd.amazon.eventstream" : "text/event-stream")
const streaming = (response: ServerResponse, name: VendorName, events: ReadonlyArray<Buffer | string>) => {
  response.writeHead(200, { "content-type": typeOf(name) })
  for (const event of events) response.write(event)
  return response
}

/** The vendor sends these events. Then it ends its answer, or breaks the connection. */
const sends = (name: VendorName, events: ReadonlyArray<Buffer | string>, ending: "ends" | "breaks") => {
  vendor.answer = (response) => {
    streaming(response, name, events)
    if (ending === "ends") response.end()
    // Node sends the events before it closes the connection.
    else setTimeout(() => response.destroy(), 100)
  }
}

const finishing = /"finish_reason":\s*"|"finishReason"|"message_delta"|messageStop|"response\.completed"/
const after = /"message_stop"|"choices":\[\]|\[DONE\]|metadata/

/** The events before the event that says that the answer has finished, and that event. */
const parted = (events: ReadonlyArray<Buffer>) => {
  const at = events.findIndex((event) => finishing.test(event.toString()))
  if (at === -1) throw new Error("the vendor does not finish")
  expect(events.slice(at + 1).every((event) => after.test(event.toString()))).toBe(true)
  return { before: events.slice(0, at), finish: events[at]! }
}

const text = "alpha beta gamma delta"

describe.each(all)("a client of $name", ({ ask, last: lastType, name, path, textIn }) => {
  const call = (key: string, json: unknown) => service.call(path, { token: key, json })
  const isWhole = (body: string) =>
    lastType === undefined
      ? body.endsWith("data: [DONE]\n\n") && !body.includes('"error"')
      : eventsIn(body).at(-1)!.type === lastType
  const errorIn = (body: string) => eventsIn(body).find((event) => event.error?.code === "upstream_error")

  describe.each(vendorNames)("over an upstream of %s", (vendorName) => {
    const asked = ask(text, { model: vendorName, stream: true })

    it("pays for a stream that ends without having finished, and hears that it is not whole", async () => {
      const { key, who } = await person()
      const { before } = parted(await eventsOf(origin, vendorName, text))
      sends(vendorName, before, "ends")
      const { body } = await call(key, asked)
      expect(text.startsWith(textIn(eventsIn(body)).trim())).toBe(true)
      expect(errorIn(body)?.error.message).toBe("the model's stream ended early")
      const record = await last(who)
      expect(record).toMatchObject({ success: false, error_type: "upstream_error", usage_source: "estimated" })
      expect(record.prompt_tokens).toBeGreaterThan(0)
      expect(record.completion_tokens).toBeGreaterThan(0)
      expect(record.cost).toBe(priced(record.prompt_tokens, record.completion_tokens))
      expect(spare.asked).toBe(0)
    })

    it("pays for a stream that breaks once it has finished, and has all of it", async () => {
      const { key, who } = await person()
      const { before, finish } = parted(await eventsOf(origin, vendorName, text))
      sends(vendorName, [...before, finish], "breaks")
      const { body } = await call(key, asked)
      expect([textIn(eventsIn(body)), isWhole(body)]).toEqual([text, true])
      const record = await last(who)
      expect(record).toMatchObject({ success: true, completion_tokens: 4 })
      expect(record.cost).toBe(priced(record.prompt_tokens, 4))
    })

    it("has a whole answer as a stream, pays what it reports, and no other upstream is asked", async () => {
      const { key, who } = await person()
      const answer = await answerOf(origin, vendorName, text)
      vendor.answer = (response) => response.writeHead(200, { "content-type": "application/json" }).end(answer)
      const { body, headers, status } = await call(key, asked)
      expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"])
      expect([textIn(eventsIn(body)), isWhole(body)]).toEqual([text, true])
      expect(await last(who)).toMatchObject({
        success: true,
        prompt_tokens: 4,
        completion_tokens: 4,
        cost: priced(4, 4)
      })
      expect([vendor.asked, spare.asked]).toEqual([1, 0])
    })

    it("pays for an answer with numbers that are not JSON, whole or streamed", async () => {
      const { key, who } = await person()
      const odd = (json: string) => json.replace("{", '{"odd":[NaN,-Infinity,"NaN"],')
      const answer = odd(await answerOf(origin, vendorName, text))
      vendor.answer = (response) => response.writeHead(200, { "content-type": "application/json" }).end(answer)
      const whole = await call(key, ask(text, { model: vendorName }))
      expect([whole.status, JSON.stringify(whole.body).includes(text)]).toEqual([200, true])
      expect(await last(who)).toMatchObject({ success: true, prompt_tokens: 4, completion_tokens: 4 })

      // Frames of Bedrock have checksums.
      if (vendorName === "bedrock") return
      const events = await eventsOf(origin, vendorName, text)
      sends(
        vendorName,
        events.map((event) => odd(event.toString())),
        "ends"
      )
      await call(key, asked)
      expect(await last(who)).toMatchObject({ success: true, prompt_tokens: 4, completion_tokens: 4 })
      expect(spare.asked).toBe(0)
    })

    it("pays what an answer reports that is no JSON, and no other upstream is asked", async () => {
      const { key, who } = await person()
      const answer = await answerOf(origin, vendorName, text)
      for (const stream of [false, true]) {
        vendor.answer = (response) =>
          response.writeHead(200, { "content-type": "application/json" }).end(`${answer.slice(0, -1)},}`)
        const { status } = await call(key, ask(text, { model: vendorName, stream }))
        expect(status).toBe(500)
        expect(await last(who)).toMatchObject({ success: false, error_type: "upstream_error", cost: priced(4, 4) })
        expect(await service.usage(who)).toHaveLength(stream ? 2 : 1)
      }
      expect(spare.asked).toBe(0)
    })
  })

  it("pays what came of a stream of Bedrock that ends amid a frame", async () => {
    const { key, who } = await person()
    const { before } = parted(await eventsOf(origin, "bedrock", text))
    const cut = Buffer.from(frame("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "more" } })).subarray(
      0,
      20
    )
    sends("bedrock", [...before, cut], "ends")
    await call(key, ask(text, { model: "bedrock", stream: true }))
    const record = await last(who)
    expect(record).toMatchObject({ success: false, error_type: "upstream_error" })
    expect(record.completion_tokens).toBeGreaterThan(0)
  })

  it("pays what came of a stream of Bedrock before a frame that is too long to be read", async () => {
    const { key, who } = await person()
    const { before, finish } = parted(await eventsOf(origin, "bedrock", text))
    const long = frame("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "x".repeat(9 * 1024 * 1024) } })
    const usage = frame("metadata", { usage: { inputTokens: 3, outputTokens: 2_000 } })
    sends("bedrock", [...before, Buffer.from(long), finish, Buffer.from(usage)], "ends")
    await call(key, ask(text, { model: "bedrock", stream: true }))
    const record = await last(who)
    expect(record).toMatchObject({ success: false, error_type: "upstream_error", completion_tokens: 4 })
    expect(record.cost).toBe(priced(record.prompt_tokens, 4))
    expect(spare.asked).toBe(0)
  })

  it("pays nothing for a stream that ends before anything came, and the next upstream is asked", async () => {
    const { key, who } = await person()
    sends("chat", [], "ends")
    expect((await call(key, ask(text, { model: "chat", stream: true }))).status).toBe(500)
    expect(await last(who)).toMatchObject({ success: false, cost: 0, error_type: "upstream_error" })
    expect(spare.asked).toBe(1)
  })

  it("pays for a piece of ten megabytes from Anthropic, of text or of arguments", async () => {
    const { key, who } = await person()
    const long = "x".repeat(10 * 1024 * 1024)
    const event = (body: { readonly type: string; readonly [name: string]: unknown }) =>
      `event: ${body.type}\ndata: ${JSON.stringify(body)}\n\n`
    for (const [content_block, delta] of [
      [
        { type: "text", text: "" },
        { type: "text_delta", text: long }
      ],
      [
        { type: "tool_use", id: "t", name: "f", input: {} },
        { type: "input_json_delta", partial_json: long }
      ]
    ]) {
      for (const usage of [{ output_tokens: 1_500 }, undefined]) {
        const events = [
          { type: "message_start", message: { id: "m", usage: { input_tokens: 7, output_tokens: 1 } } },
          { type: "content_block_start", index: 0, content_block },
          { type: "content_block_delta", index: 0, delta },
          { type: "content_block_stop", index: 0 },
          { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
          { type: "message_stop" }
        ]
        sends("messages", events.map(event), "ends")
        const limit = name === "responses" ? "max_output_tokens" : "max_tokens"
        await call(key, ask(text, { model: "messages", stream: true, [limit]: 2_000 }))
        const completion_tokens = usage === undefined ? 2_000 : 1_500
        expect(await last(who)).toMatchObject({ prompt_tokens: 7, completion_tokens })
      }
    }
  })
})

const chat = (key: string, more: object) =>
  service.call("/v1/chat/completions", {
    token: key,
    json: { model: "usual", stream: true, messages: [{ role: "user", content: "hello there" }], ...more }
  })
const chunk = (body: object) => `data: ${JSON.stringify(body)}\n\n`
const piece = (content: string, more: object = {}) =>
  chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more })

describe("a long whole answer", () => {
  const usage = { prompt_tokens: 30, completion_tokens: 20 }
  const choices = [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }]
  /** vLLM answers with these if they are asked for. */
  const prompt_logprobs = (bytes: number) => `[${'{"1":{"logprob":-1}},'.repeat(Math.ceil(bytes / 21))}null]`
  const answers = (body: string) => {
    vendor.answer = (response) => response.writeHead(200, { "content-type": "application/json" }).end(body)
  }

  it("is handed on whichever of its members is long, unless it is too long, and costs what it reports", async () => {
    for (const [bytes, status] of [
      [3_000_000, 200],
      [70_000_000, 500]
    ] as const) {
      const { key, who } = await person()
      answers(`{"prompt_logprobs":${prompt_logprobs(bytes)},${JSON.stringify({ choices, usage }).slice(1)}`)
      const { body, status: answered } = await chat(key, { stream: false })
      expect([answered, body.choices?.[0].message.content]).toEqual([status, status === 200 ? "hello" : undefined])
      expect(await last(who)).toMatchObject({ success: status === 200, cost: priced(30, 20) })
      expect(spare.asked).toBe(0)
    }
  })

  it("costs what it reports if it is no JSON, whole or where a stream was asked for", async () => {
    for (const stream of [false, true]) {
      const { key, who } = await person()
      const message = { role: "assistant", content: "x".repeat(9_000_000) }
      answers(`${JSON.stringify({ choices: [{ ...choices[0], message }], usage }).slice(0, -1)},}`)
      expect((await chat(key, { stream })).status).toBe(500)
      expect(await last(who)).toMatchObject({ success: false, prompt_tokens: 30, cost: priced(30, 20) })
      expect(spare.asked).toBe(0)
    }
  })
})

describe("a whole answer where a stream was asked for", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 2 }
  const answers = (body: object) => {
    vendor.answer = (response) =>
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body))
  }

  it("shows its usage to a client that asked for it, and has all its choices and calls", async () => {
    const { key, who } = await person()
    const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } }
    const choices = [
      { index: 0, message: { role: "assistant", content: "a" }, finish_reason: "stop" },
      { index: 1, message: { role: "assistant", content: null, tool_calls: [call] }, finish_reason: "tool_calls" }
    ]
    answers({ id: "1", object: "chat.completion", choices, usage })
    for (const include_usage of [false, true]) {
      const { body } = await chat(key, { n: 2, stream_options: { include_usage } })
      expect(body.endsWith("data: [DONE]\n\n")).toBe(true)
      expect(eventsIn(body)).toEqual([
        {
          id: "1",
          object: "chat.completion.chunk",
          choices: [
            { index: 0, delta: { role: "assistant", content: "a" }, finish_reason: "stop" },
            {
              index: 1,
              delta: { role: "assistant", content: null, tool_calls: [{ index: 0, ...call }] },
              finish_reason: "tool_calls"
            }
          ],
          ...(include_usage && { usage })
        }
      ])
      expect(await last(who)).toMatchObject({ success: true, cost: priced(3, 2) })
    }
  })

  it("is one of text completions too", async () => {
    const { key, who } = await person()
    const choices = [{ index: 0, text: "hi", logprobs: null, finish_reason: "stop" }]
    answers({ id: "1", object: "text_completion", choices, usage })
    const json = { model: "usual", prompt: "hello there", stream: true }
    const { body } = await service.call("/v1/completions", { token: key, json })
    expect(eventsIn(body)).toEqual([{ id: "1", object: "text_completion", choices }])
    expect(await last(who)).toMatchObject({ success: true, cost: priced(3, 2) })
  })

  it("is charged what it reports if it is no answer, and no other upstream is asked", async () => {
    const { key, who } = await person()
    answers({ error: { message: "out of memory" }, usage })
    expect((await chat(key, {})).status).toBe(500)
    expect(await last(who)).toMatchObject({ success: false, error_type: "upstream_error", cost: priced(3, 2) })
    expect(spare.asked).toBe(0)
  })

  it("is charged what it reports if it is too long to be handed on", async () => {
    const { key, who } = await person()
    answers({ choices: [{ message: { content: "x".repeat(65 * 1024 * 1024) }, finish_reason: "stop" }], usage })
    expect((await chat(key, {})).status).toBe(500)
    expect(await last(who)).toMatchObject({ success: false, cost: priced(3, 2) })
    expect(spare.asked).toBe(0)
  })
})

describe("a client that leaves a stream", () => {
  const leaves = async (key: string, events: ReadonlyArray<string>) => {
    const before = vendor.asked
    vendor.answer = (response) => void streaming(response, "chat", events)
    const gone = new AbortController()
    const response = await fetch(`${service.url}/v1/chat/completions`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "usual", stream: true, messages: [{ role: "user", content: "hello there" }] })
    })
    expect(vendor.asked).toBe(before + 1)
    await response.body!.getReader().read()
    gone.abort()
  }

  it("pays the larger of what was counted and what was reported, and what it would have paid if the stream has finished", async () => {
    const usage = (completion_tokens: number) => ({ usage: { prompt_tokens: 3, completion_tokens } })
    const finish = chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })
    const pieces = Array.from({ length: 40 }, () => piece("a"))
    const cases = [
      // The vendor counts hidden thoughts.
      { events: [piece("a", usage(700))], completion_tokens: 700, error_type: "client_disconnected" },
      { events: [piece("a", usage(1)), ...pieces], completion_tokens: 41, error_type: "client_disconnected" },
      { events: pieces, completion_tokens: 40, error_type: "client_disconnected" },
      { events: [...pieces, finish, chunk({ choices: [], ...usage(9) })], completion_tokens: 9, error_type: undefined }
    ]
    const left = []
    for (const one of cases) {
      const { key, who } = await person()
      await leaves(key, one.events)
      left.push({ who, ...one })
    }
    for (const { completion_tokens, error_type, who } of left) {
      const record = await eventually(() => last(who))
      expect([record.completion_tokens, record.error_type]).toEqual([completion_tokens, error_type])
      expect(record.cost).toBe(priced(record.prompt_tokens, completion_tokens))
    }
  })
})

describe("a client that takes its answer so slowly that the upstream gives up", () => {
  /** Reads the beginning of the answer, and the rest only after the upstream has reset the connection. Answers what came in all. */
  const stalls = (key: string, path: string, json: object, isReset: Promise<void>) =>
    new Promise<number>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
      const asked = request(service.url + path, { method: "POST", headers }, (response) => {
        let came = 0
        response.on("data", (bytes: Buffer) => (came += bytes.length))
        response.once("data", () => {
          response.pause()
          void isReset.then(() => response.resume())
        })
        response.once("close", () => resolve(came)).on("error", () => {})
      })
      asked.once("error", reject).end(JSON.stringify(json))
    })

  /** Sends this until it is not taken for 10.5 seconds. Then it resets the connection. */
  const gives = (type: string, bytes: Buffer) =>
    new Promise<void>((resolve) => {
      vendor.answer = (response) => {
        response.writeHead(200, { "content-type": type })
        const more = () => {
          while (response.write(bytes));
          const stuck = setTimeout(() => {
            response.socket!.resetAndDestroy()
            resolve()
          }, 10_500)
          response.once("drain", () => {
            clearTimeout(stuck)
            more()
          })
        }
        more()
      }
    })

  it("pays for what came", async () => {
    const pieces = Buffer.from(piece("x".repeat(60_000)))
    const cases = [
      { path: "/v1/chat/completions", json: all[0]!.ask(text, { model: "usual", stream: true, max_tokens: 2_000 }) },
      { path: "/v1/messages", json: all[1]!.ask(text, { model: "chat", stream: true, max_tokens: 2_000 }) },
      { path: "/v1/audio/speech", json: { model: "tts", voice: "alloy", input: text } }
    ]
    const calls = []
    for (const { json, path } of cases) {
      const { key, who } = await person()
      const asked = vendor.asked
      const isReset = path.includes("speech")
        ? gives("audio/mpeg", Buffer.alloc(60_000))
        : gives("text/event-stream", pieces)
      const came = stalls(key, path, json, isReset)
      await eventually(async () => (vendor.asked > asked ? true : undefined))
      calls.push({ came, path, who })
    }
    for (const { came, path, who } of calls) {
      expect(await came).toBeGreaterThan(100_000)
      const record = await eventually(() => last(who))
      expect(record).toMatchObject({ success: false, error_type: "upstream_error" })
      const cost = path.includes("speech")
        ? Number((text.length * 15e-6).toFixed(9))
        : priced(record.prompt_tokens, 2_000)
      expect(record.cost).toBe(cost)
    }
  }, 60_000)
})

describe("an upstream that sends a byte now and then", () => {
  /** Sends this until the connection is closed. */
  const drips = (type: string, bytes: string) => {
    let closed = false
    vendor.answer = (response) => {
      response.writeHead(200, { "content-type": type })
      const timer = setInterval(() => response.write(bytes), 100)
      response.once("close", () => {
        clearInterval(timer)
        closed = true
      })
    }
    return () => closed
  }

  it("is given up after its total timeout: a stream costs what came, and a whole answer nothing", async () => {
    const { key, who } = await person()
    const closed = drips("text/event-stream", piece("a"))
    const { body } = await chat(key, { model: "slow" })
    expect(eventsIn(body).at(-1)!.error.code).toBe("upstream_error")
    const record = await last(who)
    expect(record).toMatchObject({ success: false, error_type: "upstream_error" })
    expect(record.completion_tokens).toBe(body.split('"content":"a"').length - 1)
    expect(record.completion_tokens).toBeGreaterThan(0)
    expect(record.cost).toBe(priced(record.prompt_tokens, record.completion_tokens))
    await eventually(async () => (closed() ? true : undefined))

    const ended = drips("application/json", " ")
    for (const stream of [false, true]) {
      expect((await chat(key, { model: "slow", stream })).status).toBe(500)
      expect(await last(who)).toMatchObject({ success: false, cost: 0, error_type: "upstream_error" })
    }
    await eventually(async () => (ended() ? true : undefined))
  })
})
