/** A stream on its way: bytes as they came, but for the usage that was not asked for and the end that waits for the books. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as Relay from "../../src/chat/Relay.ts"
import type { Sink } from "../../src/upstream/Wire.ts"

const event = (body: object, newline = "\n") => `data: ${JSON.stringify(body)}${newline}${newline}`
const piece = (content: string, newline?: string) => event({ choices: [{ delta: { content } }], usage: null }, newline)
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }

/** Sends the pieces through; answers what the client had before the books had it, what it has in the end, and the ending. */
const relayed = async (pieces: ReadonlyArray<string | Buffer>, show_usage = false, cut = false) => {
  let sink: Sink | undefined
  const upstream = {
    status: 200,
    headers: {},
    flow: (to: Sink) => {
      sink = to
    },
    pause: () => {},
    resume: () => {},
    abort: () => {}
  }
  const relay = Relay.make(upstream, { show_usage })
  const had: Array<Buffer> = []
  const over = new Promise((resolve) => relay.body.on("data", (bytes: Buffer) => had.push(bytes)).on("end", resolve))
  for (const bytes of pieces) sink!.data(Buffer.from(bytes as string))
  if (cut) sink!.cut("gone")
  else sink!.end()
  const ending = await Effect.runPromise(relay.ended)
  await new Promise((resolve) => setImmediate(resolve))
  const before = Buffer.concat(had).toString()
  relay.finish(ending)
  await over
  return { before, after: Buffer.concat(had).toString(), ending }
}

const whole = [piece("Hello"), piece(" wörld"), event({ choices: [], usage }), "data: [DONE]\n\n"]

describe("a relayed stream", () => {
  it("is the upstream's bytes, without the usage, and ends after the books have it", async () => {
    const { after, before, ending } = await relayed(whole)
    expect(before).toBe(piece("Hello") + piece(" wörld"))
    expect(after).toBe(`${before}data: [DONE]\n\n`)
    expect(ending).toEqual({ how: "complete", usage, tokens_seen: 2 })
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

  it("may end its lines with carriage returns, and its last event with nothing", async () => {
    const lines = [piece("Hi", "\r\n"), event({ choices: [], usage }, "\r\n"), "data: [DONE]"]
    const { after, ending } = await relayed([lines.join("")])
    expect(after).toBe(`${piece("Hi", "\r\n")}data: [DONE]\n\n`)
    expect(ending).toMatchObject({ how: "complete", usage })
  })

  it("keeps a usage that comes with text", async () => {
    const last = event({ choices: [{ delta: { content: "x" } }], usage })
    const { after, ending } = await relayed([last])
    expect(after).toContain(last)
    expect(ending.usage).toEqual(usage)
  })

  it("is not fooled by words that look like the end or the usage", async () => {
    const tricky = [piece("[DONE]"), piece('say "usage":{} now'), piece('"error": none')]
    const { after, ending } = await relayed([...tricky, "data: [DONE]\n\n"])
    expect(after).toBe(`${tricky.join("")}data: [DONE]\n\n`)
    expect(ending).toMatchObject({ how: "complete", usage: undefined })
  })

  it("that breaks ends with an error, and keeps the usage that it had reported", async () => {
    const { after, ending } = await relayed([piece("a"), event({ choices: [], usage }), 'data: {"cho'], false, true)
    expect(after).toMatch(/^data: .*\n\ndata: \{"error":\{"message":"the model broke off".*\n\ndata: \[DONE\]\n\n$/)
    expect(ending).toMatchObject({ how: "broken", usage })
  })

  it("that says itself that it failed is passed on as it says, and counts as broken", async () => {
    const error = event({ error: { message: "overloaded" } })
    const { after, ending } = await relayed([piece("a"), error])
    expect(after).toBe(`${piece("a")}${error}data: [DONE]\n\n`)
    expect(ending.how).toBe("broken")
  })
})
