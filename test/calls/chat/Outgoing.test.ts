import { describe, expect, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"
import { upstreamBodyOf } from "../../../src/calls/prompts/Outgoing.ts"
import type { EndpointName } from "../../../src/calls/prompts/Outgoing.ts"
import { readChat, readCompletion } from "../../../src/calls/prompts/Prompt.ts"

const route = { upstream: "one", model: "vendors-name", limit_field: "max_completion_tokens" } as const

/** What an upstream is sent for this JSON, as bytes and as a value. */
const sentFor = (json: string | Buffer, endpoint: EndpointName = "chat/completions", streams = false) => {
  const bytes = Buffer.from(json)
  const read = endpoint === "completions" ? readCompletion : readChat
  const prompt = Either.getOrThrow(read(JSON.parse(bytes.toString()), bytes))
  const body = upstreamBodyOf(endpoint, streams, route, prompt, 7).toString("utf8")
  return { body, value: JSON.parse(body) as Record<string, unknown> }
}

const long = "a word and another. ".repeat(200)
const said = JSON.stringify(long)

describe("the body that an upstream gets", () => {
  it("has messages of long JSON as they were written, and everything else as for short JSON", () => {
    const messages = `[ {"role": "user", "content": ${said.replace("word", "w\\u006frd")}} ]`
    const { body, value } = sentFor(`{"n":1, "model" : "m", "messages" : ${messages}, "max_tokens": 9, "seed": 3 }`)
    expect(body).toContain(messages)
    expect(value).toEqual({
      n: 1,
      seed: 3,
      model: "vendors-name",
      max_completion_tokens: 7,
      messages: [{ role: "user", content: long }]
    })
  })

  it("has the prompt of a text completion as it was written", () => {
    const { body, value } = sentFor(`{"prompt": ${said} ,"model":"m","stream":true}`, "completions", true)
    expect(body).toContain(` ${said} `)
    expect(value).toEqual({
      prompt: long,
      model: "vendors-name",
      max_tokens: 7,
      stream: true,
      stream_options: { include_usage: true }
    })
  })

  it("is the same value whether its JSON is at hand or not", () => {
    const text = fc.oneof(fc.string(), fc.fullUnicodeString(), fc.constant(long), fc.constant('\\" ] } , : {'))
    const part = fc.record(
      { type: fc.constant("text"), text, "a:b": fc.jsonValue() },
      { requiredKeys: ["type", "text"] }
    )
    const message = fc.record({
      role: text,
      content: fc.oneof(text, fc.array(part)),
      name: text,
      extra: fc.jsonValue()
    })
    const prompt = fc.record({
      model: fc.constant("m"),
      messages: fc.array(message, { minLength: 1 }),
      metadata: fc.jsonValue(),
      user: text,
      stream: fc.boolean()
    })
    fc.assert(
      fc.property(prompt, fc.constantFrom(undefined, 1, "\t"), fc.boolean(), (asked, space, streams) => {
        const padded = { ...asked, padding: long }
        const read = Either.getOrThrow(readChat(padded))
        const anew = JSON.parse(upstreamBodyOf("chat/completions", streams, route, read, 7).toString()) as object
        expect(sentFor(JSON.stringify(padded, null, space), "chat/completions", streams).value).toEqual(anew)
      })
    )
  })

  it("has nothing that one reader of JSON takes for one thing and another for another", () => {
    const message = `{"role":"user","content":${said}}`
    const last = [{ role: "user", content: long }]
    for (const json of [
      `{"model":"m","messages":[{"role":"user","content":"first"}],"messages":[${message}]}`,
      `{"model":"m","messages":[{"role":"user","content":"first"}],"mess\\u0061ges":[${message}]}`,
      `{"model":"m","messages":[{"role":"user","content":"first","content":${said}}]}`,
      `{"model":"m","messages":[{"role":"user","content":"first","c\\u006fntent":${said}}]}`
    ]) {
      const { body, value } = sentFor(json)
      expect(value.messages).toEqual(last)
      expect(body).not.toContain("first")
    }
  })

  it("is UTF-8 whatever came", () => {
    const json = Buffer.from(`{"model":"m","messages":[{"role":"user","content":"\u00e9${long}"}]}`, "latin1")
    expect(sentFor(json).value.messages).toEqual([{ role: "user", content: `\ufffd${long}` }])
  })
})
