/** A stream on its way: bytes as they came, but for the usage that was not asked for and the end that waits for the books. */
import { Effect, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as EventRelay from "../../../src/calls/prompts/EventRelay.ts"
import { reader } from "../../../src/calls/dialects/chat/Relay.ts"
import { noUsage } from "../../../src/protocols/conversation/Usage.ts"
import { tokensIn } from "../../../src/calls/prompts/Tokens.ts"
import type { Sink } from "../../../src/upstream/wire/ByteStream.ts"

const event = (body: object, newline = "\n") => `data: ${JSON.stringify(body)}${newline}${newline}`
const piece = (content: string, newline?: string) => event({ choices: [{ delta: { content } }], usage: null }, newline)
/** The same as the client has it that did not ask for usage. */
const shown = (content: string, newline?: string) => event({ choices: [{ delta: { content } }] }, newline)
const broken = `${event({ error: { message: "the model's stream ended early", type: "upstream_error", code: "upstream_error" } })}data: [DONE]\n\n`
const usage = { prompt_tokens: 3, completion_tokens: 2 }

/** Sends the pieces through; answers what the client had before the books had it, what it has in the end, and the ending. */
const relayed = async (pieces: ReadonlyArray<string | Buffer>, show_usage = false, cut = false) => {
  let sink: Sink | undefined
  const upstream = {
    flow: (to: Sink) => {
      sink = to
    },
    pause: () => {},
    resume: () => {},
    abort: () => {}
  }
  const relay = EventRelay.make(upstream, reader({ show_usage }))
  const had: Array<Buffer> = []
  const over = new Promise((resolve) => relay.body.on("data", (bytes: Buffer) => had.push(bytes)).on("end", resolve))
  for (const bytes of pieces) sink!.data(Buffer.from(bytes as string))
  if (cut) sink!.cut("gone")
  else sink!.end()
  const how = await Effect.runPromise(relay.ended)
  await new Promise((resolve) => setImmediate(resolve))
  const before = Buffer.concat(had).toString()
  relay.finish(how)
  await over
  return { before, after: Buffer.concat(had).toString(), ending: { how, ...relay.report() } }
}

const whole = [piece("Hello"), piece(" wörld"), event({ choices: [], usage }), "data: [DONE]\n\n"]

describe("a relayed stream", () => {
  it("is the upstream's bytes, without the usage, and ends after the books have it", async () => {
    const { after, before, ending } = await relayed(whole)
    expect(before).toBe(shown("Hello") + shown(" wörld"))
    expect(after).toBe(`${before}data: [DONE]\n\n`)
    expect(ending).toEqual({ how: "complete", usage, tokens_counted: 2 })
  })

  it("shows the usage to who asked for it", async () => {
    expect((await relayed(whole, true)).after).toBe(whole.join(""))
  })

  it("is the same however the bytes are cut", async () => {
    const bytes = Buffer.from(whole.join(""))
    const expected = await relayed(whole)
    for (let size = 1; size < 80; size += 3) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size)
      )
      expect(await relayed(pieces)).toEqual(expected)
    }
  })

  it("is the same whether events come one by one or together, and is counted event by event", async () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('"usage":null}\n\n', "[DONE]", "a longer piece of text\\"))
    const named = (...names: ReadonlyArray<string>) => fc.dictionary(fc.constantFrom(...names), text, { maxKeys: 3 })
    const delta = fc.oneof(named("content"), named("content", "reasoning", "reasoning_content", "thinking", "refusal"))
    const chunk = fc.record(
      {
        choices: fc.array(fc.record({ delta, finish_reason: fc.constantFrom(null, "", "stop") }), { maxLength: 2 }),
        text,
        reasoning_details: fc.constant([]),
        error: fc.constant(null),
        usage: fc.constantFrom(null, null, null, usage)
      },
      { requiredKeys: ["choices"] }
    )
    const last = event({ choices: [{ finish_reason: "stop" }] })
    await fc.assert(
      fc.asyncProperty(
        fc.array(chunk, { minLength: 1 }),
        fc.boolean(),
        fc.boolean(),
        async (chunks, carriage, show) => {
          const events = [...chunks.map((chunk) => event(chunk, carriage ? "\r\n" : "\n")), last]
          const together = await relayed([events.join("")], show)
          expect(together).toEqual(await relayed(events, show))
          const tokens_counted = events.reduce((sum, one) => sum + tokensIn(Buffer.from(one).toString("latin1")), 0)
          expect(together.ending.tokens_counted).toBe(tokens_counted)
          if (show) expect(together.before).toBe(events.join(""))
          else expect(together.before).not.toContain('],"usage":')
        }
      )
    )
  })

  it("may end its lines with carriage returns, and its last event with nothing", async () => {
    const lines = [piece("Hi", "\r\n"), event({ choices: [], usage }, "\r\n"), "data: [DONE]"]
    const { after, ending } = await relayed([lines.join("")])
    expect(after).toBe(`${shown("Hi", "\r\n")}data: [DONE]\n\n`)
    expect(ending).toMatchObject({ how: "complete", usage })
  })

  it("takes a usage that comes with text out of it, unless it was asked for", async () => {
    const last = `id: 7\n${event({ choices: [{ delta: { content: "x" }, finish_reason: "stop" }], usage })}`
    const asked = await relayed([piece("a"), last], true)
    expect(asked.after).toBe(`${piece("a")}${last}data: [DONE]\n\n`)
    const hidden = await relayed([piece("a"), last])
    const without = event({ choices: [{ delta: { content: "x" }, finish_reason: "stop" }] })
    expect(hidden.after).toBe(`${shown("a")}id: 7\n${without}data: [DONE]\n\n`)
    for (const { ending } of [asked, hidden]) expect(ending).toEqual({ how: "complete", usage, tokens_counted: 2 })
  })

  it("is whole with a reason to finish or with its end, and broken with neither", async () => {
    const finish = event({ choices: [{ delta: {}, finish_reason: "stop" }] })
    expect((await relayed([piece("a"), finish])).ending.how).toBe("complete")
    expect((await relayed([piece("a"), "data: [DONE]\n\n"])).ending.how).toBe("complete")
    const unfinished = event({ choices: [{ delta: { content: "a" }, finish_reason: "" }] })
    const { after, ending } = await relayed([unfinished, 'data: {"cho'])
    expect(ending.how).toBe("unfinished")
    expect(after).toBe(unfinished + broken)
  })

  it("is not broken by an error that is null", async () => {
    const pieces = [event({ choices: [{ delta: { content: "a" }, finish_reason: "stop" }], error: null })]
    const { after, ending } = await relayed(pieces)
    expect(after).toBe(`${pieces[0]}data: [DONE]\n\n`)
    expect(ending.how).toBe("complete")
  })

  it("passes on an event of any length, and counts what it says", async () => {
    const content = "x".repeat(9 * 1024 * 1024)
    const long = `data: {"choices":[{"delta":{"content":"${content}`
    const { after, ending } = await relayed([long, `"}}]}\n\n`, "data: [DONE]\n\n"])
    expect(after.length).toBe(long.length + '"}}]}\n\ndata: [DONE]\n\n'.length)
    expect(ending).toMatchObject({ how: "complete", tokens_counted: content.length / 4 })
  })

  it("is not fooled by words that look like the end or the usage", async () => {
    const tricky = [piece("[DONE]"), piece('say "usage":{} now'), piece('"error": none')]
    const { after, ending } = await relayed([...tricky, "data: [DONE]\n\n"])
    const seen = [shown("[DONE]"), shown('say "usage":{} now'), shown('"error": none')]
    expect(after).toBe(`${seen.join("")}data: [DONE]\n\n`)
    expect(ending).toMatchObject({ how: "complete", usage: noUsage })
  })

  it("that breaks ends with an error, and keeps the usage that it had reported", async () => {
    const { after, ending } = await relayed([piece("a"), event({ choices: [], usage }), 'data: {"cho'], false, true)
    expect(after).toBe(shown("a") + broken)
    expect(ending).toMatchObject({ how: "broken", usage })
  })

  it("that says itself that it failed ends there, in our words", async () => {
    const error = event({ error: { message: "overloaded" }, usage })
    for (const pieces of [
      [piece("a"), error, piece("b")],
      [piece("a") + error + piece("b"), "data: [DONE]\n\n"]
    ]) {
      const { after, ending } = await relayed(pieces)
      expect(after).toBe(shown("a") + broken)
      expect(ending).toMatchObject({ how: "broken", usage })
    }
  })
})
