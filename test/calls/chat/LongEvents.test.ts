/** Events that are too long to be kept: their bytes pass as they come, and what they report is read all the same. */
import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import * as Relay from "../../../src/calls/dialects/chat/Relay.ts"
import * as EventRelay from "../../../src/calls/prompts/EventRelay.ts"
import type { Reader } from "../../../src/calls/prompts/EventRelay.ts"
import { broken } from "../../../src/calls/dialects/chat/Relay.ts"
import { pairOf, readerOf } from "../../../src/calls/engine/Translated.ts"
import * as MessagesRelay from "../../../src/calls/dialects/messages/Relay.ts"
import * as ResponsesRelay from "../../../src/calls/dialects/responses/Relay.ts"
import type { Sink } from "../../../src/upstream/wire/ByteStream.ts"

/** Sends the bytes through in packets; answers what the client had before the books had it, what it has in the end, and the report. */
const relayed = async (reader: Reader, events: ReadonlyArray<string>, cut = false, packet = 65_521) => {
  let sink: Sink | undefined
  let aborted = false
  const upstream = {
    flow: (to: Sink) => {
      sink = to
    },
    pause: () => {},
    resume: () => {},
    abort: () => {
      aborted = true
    }
  }
  const relay = EventRelay.make(upstream, reader)
  const had: Array<Buffer> = []
  const over = new Promise((resolve) => relay.body.on("data", (bytes: Buffer) => had.push(bytes)).on("end", resolve))
  const bytes = Buffer.from(events.join(""))
  for (let at = 0; at < bytes.length; at += packet) sink!.data(bytes.subarray(at, at + packet))
  if (cut) sink!.cut("gone")
  else sink!.end()
  const how = await Effect.runPromise(relay.ended)
  await new Promise((resolve) => setImmediate(resolve))
  const before = Buffer.concat(had).toString()
  relay.finish(how)
  await over
  return { how, before, after: Buffer.concat(had).toString(), aborted, ...relay.report() }
}

/** Ten megabytes of what a vendor repeats beside an answer. */
const logprobs = Array.from({ length: 40_000 }, (_, i) => ({
  token: `"t${i}"}\\`,
  logprob: -0.25,
  usage: { input_tokens: 1, output_tokens: 1 },
  top_logprobs: [{ token: "wörld", logprob: -0.25, bytes: [119, 195, 182, 114] }].concat(
    Array.from({ length: 3 }, (_, k) => ({ token: `n${k}`, logprob: -9.125, bytes: [1, 2] }) as never)
  )
}))
const long = 8 * 1024 * 1024

const event = (body: { readonly type?: string }, name = body.type) =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(body)}\n\n`

const responses = (usage: unknown, all = logprobs) => [
  event({ type: "response.created", response: { id: "resp_1", usage: null } } as never),
  event({ type: "response.output_item.added", output_index: 0, item: { type: "message", content: [] } } as never),
  event({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "Hello wörld" } as never),
  event({
    type: "response.output_text.done",
    output_index: 0,
    content_index: 0,
    text: "Hello wörld",
    logprobs: all
  } as never),
  event({
    type: "response.completed",
    sequence_number: 4,
    response: {
      id: "resp_1",
      status: "completed",
      output: [{ type: "message", content: [{ type: "output_text", text: "Hello wörld", logprobs: all }] }],
      usage,
      metadata: { a: "b" }
    }
  } as never)
]
const used = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 3 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 18
}
const report = { prompt_tokens: 11, completion_tokens: 7, cached_tokens: 3, reasoning_tokens: 2 }

describe("an event that is too long to be kept", () => {
  it("is the last of responses: its usage is read, and it is not complete before the books have the charge", async () => {
    const events = responses(used)
    expect(events.at(-1)!.length).toBeGreaterThan(long)
    const seen = await relayed(ResponsesRelay.reader(false), events)
    expect(seen).toMatchObject({ how: "complete", usage: report, aborted: false })
    expect(seen.after === events.join("")).toBe(true)
    expect(seen.after.startsWith(seen.before)).toBe(true)
    // A client takes an event for one once a blank line ends it.
    expect(seen.before.split("\n\n")).toHaveLength(events.length)
    expect(seen.after.split("\n\n")).toHaveLength(events.length + 1)
  })

  it("counts what was generated once where it reports nothing", async () => {
    const seen = await relayed(ResponsesRelay.reader(false), responses(null))
    // A piece of twelve bytes is a token.
    expect(seen).toMatchObject({ how: "complete", tokens_counted: 1 })
    expect(seen.usage.prompt_tokens).toBeUndefined()
  })

  it("says that the answer of a chat has finished, and what it used", async () => {
    const content = "wörld ".repeat(2 * 1024 * 1024)
    const usage = { prompt_tokens: 3, completion_tokens: 2 }
    const chunk = { choices: [{ index: 0, delta: { content }, logprobs, finish_reason: "stop" }], usage }
    const seen = await relayed(Relay.reader({ show_usage: true }), [event(chunk as never)])
    expect(seen).toMatchObject({ how: "complete", usage })
    expect(seen.tokens_counted).toBe(Math.round(Buffer.byteLength(content) / 4))
    expect(seen.after === `${event(chunk as never)}data: [DONE]\n\n`).toBe(true)
  })

  it("may lack its blank line at the end, and have carriage returns", async () => {
    const [usage, finish_reason] = [{ prompt_tokens: 3, completion_tokens: 2 }, "stop"]
    const chunk = JSON.stringify({ usage, choices: [{ delta: {}, logprobs: { content: logprobs }, finish_reason }] })
    const bare = await relayed(Relay.reader({ show_usage: true }), [`data: ${chunk}`])
    expect(bare).toMatchObject({ how: "complete", usage })
    expect(bare.after === `data: ${chunk}\n\ndata: [DONE]\n\n`).toBe(true)
    const returns = await relayed(Relay.reader({ show_usage: true }), [
      `data: ${chunk}\r\n\r\n`,
      "data: [DONE]\r\n\r\n"
    ])
    expect(returns).toMatchObject({ how: "complete", usage })
    expect(returns.after === `data: ${chunk}\r\n\r\ndata: [DONE]\n\n`).toBe(true)
  })

  it("is broken where it is cut, and the words of that are an event of their own", async () => {
    const chunk = event({ choices: [{ delta: { content: "a" }, logprobs }] } as never)
    const seen = await relayed(Relay.reader({ show_usage: false }), [chunk.slice(0, long + 1_000)], true)
    expect(seen.how).toBe("broken")
    expect(seen.after.endsWith(`\n\n${broken()}`)).toBe(true)
  })

  it("counts as far as it has come for a client that leaves amid it", async () => {
    let sink: Sink | undefined
    const pass = () => {}
    const upstream = { flow: (to: Sink) => void (sink = to), pause: pass, resume: pass, abort: pass }
    const relay = EventRelay.make(upstream, Relay.reader({ show_usage: false }))
    sink!.data(Buffer.from(`data: {"choices":[{"delta":{"content":"${"x".repeat(10_000_000)}`))
    expect(relay.report().tokens_counted).toBe(2_500_000)
  })

  it("ends the stream where it says that the answer failed", async () => {
    const failing = event({ choices: [{ delta: {}, logprobs }], error: { message: "out of memory" } } as never)
    const seen = await relayed(Relay.reader({ show_usage: false }), [failing, event({ choices: [] } as never)])
    expect(seen).toMatchObject({ how: "broken", aborted: true })
    expect(seen.after.endsWith(`\n\n${broken()}`)).toBe(true)
  })

  it("is a piece of messages, whose usage comes behind it", async () => {
    const text = "x".repeat(long + 1_000_007)
    const events = [
      event({ type: "message_start", message: { usage: { input_tokens: 11, output_tokens: 1 } } } as never),
      event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } } as never),
      event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } } as never),
      event({ type: "message_stop" })
    ]
    const seen = await relayed(MessagesRelay.reader(), events)
    expect(seen).toMatchObject({ how: "complete", usage: { prompt_tokens: 11, completion_tokens: 7 } })
    expect(seen.tokens_counted).toBe(Math.round(text.length / 4))
    expect(seen.after === events.join("")).toBe(true)
  })
})

describe("an event that comes in many packets", () => {
  const text = (length: number) => event({ type: "response.output_text.delta", delta: "x".repeat(length) } as never)
  const completed = event({ type: "response.completed", response: { status: "completed", usage: used } } as never)

  it("is copied and searched once, whatever its length", async () => {
    for (const length of [900_000, 3_000_000]) {
      const events = [text(length), completed]
      const concat = vi.spyOn(Buffer, "concat")
      const search = vi.spyOn(Buffer.prototype, "lastIndexOf")
      const seen = await relayed(ResponsesRelay.reader(false), events, false, 1_000)
      const copied = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0)
      const contexts = search.mock.contexts as ReadonlyArray<Buffer>
      const searched = contexts.reduce((sum, bytes) => sum + bytes.length, 0)
      concat.mockRestore()
      search.mockRestore()
      expect(seen).toMatchObject({ how: "complete", usage: report })
      expect(seen.after === events.join("")).toBe(true)
      // All that came is copied once more at the end of this test.
      expect(copied / length).toBeLessThan(5)
      expect(searched / length).toBeLessThan(5)
    }
  })

  it("is not parsed if it is longer than a megabyte and passes unchanged", async () => {
    const parse = vi.spyOn(JSON, "parse")
    const seen = await relayed(ResponsesRelay.reader(false), responses(used, logprobs.slice(0, 10_000)))
    const longest = Math.max(...parse.mock.calls.map(([json]) => json.length))
    parse.mockRestore()
    expect(seen.usage).toMatchObject(report)
    expect(longest).toBeLessThan(100_000)
  })

  it("is the same wherever it is cut, with either line end", async () => {
    for (const end of ["\n", "\r\n"]) {
      const events = [text(20), text(1), completed].map((one) => one.replaceAll("\n", end))
      for (let packet = 1; packet < 40; packet++) {
        const seen = await relayed(ResponsesRelay.reader(false), events, false, packet)
        expect([packet, seen.how, seen.after, seen.tokens_counted]).toEqual([packet, "complete", events.join(""), 6])
      }
    }
  })
})

const translated = (client: "chat" | "messages", vendor: "responses" | "google" | "chat") =>
  readerOf(pairOf(client, vendor)!, broken, {
    id: "1",
    model: "m",
    created: 0,
    request: {},
    include_usage: false
  })

describe("an event that is too long to be translated", () => {
  it("repeats an answer that has been translated: the client has all of it", async () => {
    const seen = await relayed(translated("chat", "responses"), responses(used))
    expect(seen).toMatchObject({ how: "complete", usage: report, aborted: false })
    expect(seen.after).toContain("Hello wörld")
    expect(seen.after).toContain('"finish_reason":"stop"')
    expect(seen.after.endsWith("data: [DONE]\n\n")).toBe(true)
  })

  it("has a piece of the answer: it is charged as reported, and the client hears that its answer is not whole", async () => {
    const text = "x".repeat(long + 1_000_000)
    const usageMetadata = { promptTokenCount: 11, candidatesTokenCount: 7 }
    const seen = await relayed(translated("chat", "google"), [
      event({ candidates: [{ content: { parts: [{ text: "Hello" }] } }] } as never),
      event({ candidates: [{ content: { parts: [{ text }] } }] } as never),
      event({ candidates: [{ content: { parts: [{ text: "!" }] }, finishReason: "STOP" }], usageMetadata } as never)
    ])
    expect(seen).toMatchObject({ how: "complete", usage: { prompt_tokens: 11, completion_tokens: 7 }, aborted: false })
    expect(seen.tokens_counted).toBe(1 + Math.round(text.length / 4) + 1)
    expect(seen.after).toContain("Hello")
    expect(seen.after).not.toContain("!")
    expect(seen.after.endsWith(broken())).toBe(true)
  })
})
