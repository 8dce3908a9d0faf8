/** Upstreams that misbehave, as a client of ours sees it: what they are taken at their word for, and what never gets through. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { connect } from "node:net"
import { start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = async (): Promise<{ readonly who: Person; readonly key: string }> => {
  const who = await service.signIn(`upstream${people++}@example.com`)
  return { who, key: await service.key(who) }
}

const chat = (key: string, body: object = {}) =>
  service.call("/v1/chat/completions", {
    token: key,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], ...body }
  })

const fault = (more: object) => service.control("/faults", { service: "chat", times: 1, ...more })

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const event = (body: object) => `data: ${JSON.stringify(body)}\n\n`
const piece = (content: string, finish_reason: string | null = null) =>
  event({ choices: [{ index: 0, delta: { content }, finish_reason }], usage: null })
/** The same as the client has it that did not ask for usage. */
const shown = (content: string, finish_reason: string | null = null) =>
  event({ choices: [{ index: 0, delta: { content }, finish_reason }] })
const done = "data: [DONE]\n\n"
const broken = `${event({ error: { message: "the model's stream ended early", type: "upstream_error", code: "upstream_error" } })}${done}`
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }

/** The next stream is this one. */
const streamOf = (...events: ReadonlyArray<string>) =>
  fault({ status: 200, headers: { "content-type": "text/event-stream" }, body: events.join("") })

const failure = { success: false, cost: 0, error_type: "upstream_error" }

describe("a 200 that is no answer", () => {
  const bodies = [
    { error: { message: "out of memory" } },
    { error: "out of memory", choices: [] },
    { id: "chatcmpl-1", usage: { prompt_tokens: 0, completion_tokens: 0 } },
    { choices: "none" }
  ]

  it("fails the call, which costs nothing", async () => {
    const { key, who } = await person()
    for (const body of bodies) {
      await fault({ status: 200, body })
      const answer = await chat(key)
      expect([answer.status, answer.body.code, answer.body.error]).toEqual([
        500,
        "upstream_error",
        "the model could not answer"
      ])
    }
    expect(await service.balance(who)).toBe(6)
    const records = await service.usage(who)
    expect(records).toHaveLength(bodies.length)
    for (const record of records) expect(record).toMatchObject(failure)
  })

  it("leaves the call to the next upstream, whole or streamed", async () => {
    const { key, who } = await person()
    for (const stream of [false, true]) {
      await fault({ status: 200, body: bodies[0] })
      expect((await chat(key, { model: "sandbox-failover", stream })).status).toBe(200)
      expect((await service.usage(who))[0]).toMatchObject({ provider: "sandbox-b", success: true, cost: 0.0000015 })
    }
  })

  it("is charged what it reports, and then no other upstream is asked", async () => {
    const { key, who } = await person()
    for (const [i, body] of [
      { id: "chatcmpl-1", usage },
      { error: { message: "out of memory" }, usage }
    ].entries()) {
      await fault({ status: 200, body })
      expect(await chat(key, { model: "sandbox-failover" })).toMatchObject({
        status: 500,
        body: { code: "upstream_error" }
      })
      const records = await service.usage(who)
      expect(records).toHaveLength(i + 1)
      expect(records[0]).toMatchObject({
        provider: "sandbox-a",
        success: false,
        error_type: "upstream_error",
        prompt_tokens: 3,
        completion_tokens: 2,
        cost: 0.00000165
      })
    }
  })

  it("is an answer all the same when its error is null", async () => {
    const { key } = await person()
    await fault({ status: 200, body: { error: null, choices: [], usage } })
    expect((await chat(key)).status).toBe(200)
  })

  it("is not streamed when it is no stream", async () => {
    const { key, who } = await person()
    for (const type of ["application/json", "text/html"]) {
      await fault({ status: 200, headers: { "content-type": type }, body: piece("a", "stop") + done })
      const answer = await chat(key, { stream: true })
      expect([answer.status, answer.body.code]).toEqual([500, "upstream_error"])
      expect((await service.usage(who))[0]).toMatchObject(failure)
    }
    expect((await chat(key, { stream: true })).body).toMatch(/data: \[DONE\]\n\n$/)
  })
})

describe("a stream", () => {
  it("that ends without saying that it has finished is not whole, and costs what came of it", async () => {
    const { key, who } = await person()
    await streamOf(piece("a"), piece("b"))
    expect((await chat(key, { stream: true })).body).toBe(shown("a") + shown("b") + broken)
    const record = (await service.usage(who))[0]
    // The prompt is counted too: 0.15 and 0.60 USD a million.
    const cost = Number((record.prompt_tokens * 0.15e-6 + 2 * 0.6e-6).toFixed(9))
    expect(record).toMatchObject({ ...failure, completion_tokens: 2, usage_source: "estimated", cost })
  })

  it("has finished with a reason, or with its last event", async () => {
    const { key, who } = await person()
    for (const [seen, ...events] of [
      [shown("a", "stop"), piece("a", "stop"), event({ choices: [], usage })],
      [shown("a"), piece("a"), event({ choices: [], usage }), done]
    ]) {
      await streamOf(...events)
      expect((await chat(key, { stream: true })).body).toBe(seen + done)
      expect((await service.usage(who))[0]).toMatchObject({ success: true, prompt_tokens: 3, completion_tokens: 2 })
    }
  })

  it("shows a usage among its text to who asked for it only, and is charged by it", async () => {
    const { key, who } = await person()
    const choices = [{ index: 0, delta: { content: "b" }, finish_reason: "stop" }]
    const events = [piece("a"), event({ id: "1", choices, usage }), done]
    for (const [asked, first, last] of [
      [{ stream_options: { include_usage: true } }, piece("a"), events[1]],
      [{}, shown("a"), event({ id: "1", choices })]
    ] as const) {
      await streamOf(...events)
      expect((await chat(key, { stream: true, ...asked })).body).toBe(`${first}${last}${done}`)
      // 3 × 0.15 + 2 × 0.60 USD a million.
      expect((await service.usage(who))[0]).toMatchObject({ success: true, cost: 0.00000165 })
    }
  })

  it("that fails ends in our words, and is charged what it had reported", async () => {
    const { key, who } = await person()
    const error = event({ error: { message: "worker http://10.0.0.7:8000 refused Bearer sk-upstream" } })
    await streamOf(piece("a"), error, piece("b"), done)
    expect((await chat(key, { stream: true })).body).toBe(shown("a") + broken)
    expect((await service.usage(who))[0]).toMatchObject(failure)

    // Its last event may lack the blank line: by then there is no exchange left to abort.
    await streamOf(piece("a"), event({ choices: [], usage }), error.trimEnd())
    expect((await chat(key, { stream: true })).body).toBe(shown("a") + broken)
    expect((await service.usage(who))[0]).toMatchObject({ ...failure, cost: 0.00000165 })
  })
})

describe("streams that are asked for one behind the other on a connection", () => {
  it("are settled when the connection ends, the one that waits for its turn too", async () => {
    const { key, who } = await person()
    const request = (content: string) => {
      const body = JSON.stringify({ model: "sandbox-small", stream: true, messages: [{ role: "user", content }] })
      return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    }
    await service.control("/calls", undefined, "DELETE")
    await fault({ chunk_delay_ms: 100 })
    const socket = connect(service.port, "127.0.0.1")
    // The second is longer than what is kept for a client that does not read.
    socket.write(request("slow ".repeat(10)) + request("long ".repeat(8_000)))
    while ((await service.control("/calls?service=chat")).length < 2) await pause(20)
    // So that the answers have begun.
    await pause(300)
    socket.destroy()
    for (let i = 0; i < 100 && (await service.usage(who)).length < 2; i++) await pause(50)
    expect((await service.usage(who)).map(({ prompt_tokens, success }) => [prompt_tokens, success])).toEqual(
      expect.arrayContaining([
        [10, true],
        [8_000, true]
      ])
    )
  })
})

describe("an upstream's words", () => {
  it("lose its addresses and keys on the way", async () => {
    const { key } = await person()
    const message = "no model at https://10.0.0.7:8000/v1, asked with Bearer abc.def and sk-proj-1234"
    for (const body of [{ error: { message } }, { error: message }, { detail: [{ msg: message }] }]) {
      await fault({ status: 404, body })
      const answer = await chat(key)
      expect([answer.status, answer.body.error]).toEqual([400, "no model at [address] asked with [key] and [key]"])
    }
  })

  it("may say as a date when to come again", async () => {
    const { key } = await person()
    const after = async (value: string) => {
      await fault({ status: 429, headers: { "Retry-After": value } })
      const answer = await chat(key)
      expect(answer.status).toBe(429)
      return answer.headers.get("retry-after")
    }
    const seconds = Number(await after(new Date(Date.now() + 90_000).toUTCString()))
    expect(seconds).toBeGreaterThan(80)
    expect(seconds).toBeLessThanOrEqual(90)
    expect(await after("Sun, 06 Nov 1994 08:49:37 GMT")).toBe("0")
    expect(await after("Sunday, 06-Nov-94 08:49:37 GMT")).toBe("0")
    expect(await after("Sun Nov  6 08:49:37 1994")).toBe("0")
    expect(await after("1.5")).toBe("2")
    expect(await after("soon")).toBeNull()
    expect(await after("-5")).toBeNull()
  })
})

describe("a message", () => {
  it("has content, but for an assistant that called tools", async () => {
    const { key, who } = await person()
    const parts = [{ type: "text", text: "hello" }]
    const asked = (message: object) => chat(key, { messages: [{ role: "user", content: "a" }, message] })
    for (const role of ["user", "system", "tool", "assistant"]) {
      for (const content of ["hello", "", parts]) expect((await asked({ role, content })).status).toBe(200)
    }
    for (const message of [{ role: "assistant" }, { role: "assistant", content: null }]) {
      expect((await asked(message)).status).toBe(200)
    }

    const before = (await service.usage(who)).length
    const refused = async (message: object, rule: string) => {
      const { body, status } = await asked(message)
      expect([status, body]).toEqual([
        400,
        expect.objectContaining({
          code: "invalid_request",
          error: `messages.1.content: ${rule}`,
          details: { field: "messages.1.content", rule }
        })
      ])
    }
    for (const role of ["user", "system", "tool"]) {
      await refused({ role }, "must be a string or an array of parts")
      for (const content of [null, 7, true, { text: "hello" }]) {
        await refused({ role, content }, "must be a string or an array of parts")
      }
    }
    await refused({ role: "assistant", content: 7 }, "must be a string, an array of parts, or null")
    expect(await service.usage(who)).toHaveLength(before)
  })
})
