/** Answers, whole and streamed, from each vendor's protocol into each client's, read by the clients' own SDKs. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { answerOf } from "../../src/protocols/conversation/Answer.ts"
import type { Answer } from "../../src/protocols/conversation/Answer.ts"
import type { Protocol } from "../../src/protocols/conversation/Conversation.ts"
import { translations } from "../../src/protocols/Protocols.ts"
import type { StreamOptions, VendorEvent } from "../../src/protocols/conversation/Translation.ts"
import { answers, errors, streams } from "./answers.ts"
import type { Client } from "./answers.ts"
import { streamed, whole } from "./clients.ts"
import { eventsIn, stepsOf, textOf } from "./sse.ts"

type Json = Readonly<Record<string, unknown>>

const vendors = Object.keys(translations) as ReadonlyArray<Protocol>
const clients: ReadonlyArray<Client> = ["chat", "messages", "responses"]
const options: StreamOptions = { id: "x", model: "asked", created: 7, request: { model: "asked" }, include_usage: true }

const readWhole = (vendor: Protocol, json: unknown): Answer =>
  Either.getOrThrowWith(translations[vendor].readAnswer(json), (failure) => new Error(failure.message))

/** What a client's answer says, without what stands in every answer. */
const saying = (client: Client, answer: Json, fields: Json): Json => {
  const from = client === "chat" ? (answer.choices as ReadonlyArray<Json>)[0]! : answer
  return Object.fromEntries(Object.keys(fields).map((name) => [name, from[name]]))
}

const streamedFor = (client: Client, vendor: Protocol, events: ReadonlyArray<VendorEvent>): string =>
  textOf(translations[client].writer(options), stepsOf(translations[vendor].reader(), events))

/** JSON as it is sent: without what an SDK adds that is not seen. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe("a whole answer", () => {
  for (const { clients: expected, name, vendors: wires } of answers)
    for (const vendor of vendors)
      for (const client of clients)
        it(`${name}: ${vendor} to ${client}`, async () => {
          const written = translations[client].writeAnswer(readWhole(vendor, wires[vendor]), options)
          expect(saying(client, written, expected[client])).toEqual(expected[client])
          const read = await whole[client](written)
          expect(saying(client, plain(read) as Json, expected[client])).toMatchObject(expected[client])
          expect(written.model).toBe("asked")
        })

  it("has the vendor's usage in the client's words", () => {
    const bare = { cached_tokens: 60, prompt_tokens: 100, completion_tokens: 20 }
    for (const vendor of vendors) {
      const { usage } = readWhole(vendor, answers[0]!.vendors[vendor])
      expect(usage).toMatchObject({ ...bare, ...(vendor === "bedrock" ? {} : { reasoning_tokens: 5 }) })
      for (const client of clients)
        expect(translations[client].usageOf(translations[client].writeUsage(usage!))).toMatchObject(bare)
    }
  })
})

describe("a stream", () => {
  const { clients: expected, vendors: wires } = answers[1]!

  for (const vendor of vendors) {
    it(`of ${vendor} is the whole answer`, () => {
      const folded = answerOf(stepsOf(translations[vendor].reader(), streams[vendor]))
      expect(Either.getOrThrow(folded)).toEqual(readWhole(vendor, wires[vendor]))
    })

    for (const client of clients) {
      it(`${vendor} to ${client}: the SDK reads the whole answer`, async () => {
        const text = streamedFor(client, vendor, streams[vendor])
        const read = plain(await streamed[client](text)) as Json
        expect(saying(client, read, expected[client])).toMatchObject(expected[client])
        const usage = translations[client].usageOf(read.usage)
        expect(usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 20, cached_tokens: 60 })
      })

      it(`${vendor} to ${client}: cut at any event, it ends with an error, and the SDK has no answer`, async () => {
        const whole = streamedFor(client, vendor, streams[vendor])
        // A stream is whole once it has its stop reason. The usage that follows may be missing, and so may `message_stop`.
        const { length } = streams[vendor]
        const last = vendor === "chat" ? 9 : vendor === "bedrock" ? 11 : vendor === "messages" ? length - 1 : length
        for (let cut = 0; cut < last; cut++) {
          const text = streamedFor(client, vendor, streams[vendor].slice(0, cut))
          expect(text).not.toBe(whole)
          await expectBroken(client, text, "the upstream's stream was truncated")
        }
      })

      it(`${vendor} to ${client}: an error midway is the client's own error`, async () => {
        const text = streamedFor(client, vendor, [...streams[vendor].slice(0, 3), errors[vendor], ...streams[vendor]])
        await expectBroken(client, text, "too many")
      })
    }
  }
})

const expectBroken = async (client: Client, text: string, message: string): Promise<void> => {
  const events = eventsIn(text).filter(({ data }) => data !== "[DONE]")
  const last = JSON.parse(events.at(-1)!.data) as Json
  if (client === "responses") expect(last).toMatchObject({ response: { status: "failed", error: { message } } })
  else expect(last).toMatchObject({ error: { message } })
  await expect(streamed[client](text)).rejects.toThrow(message)
}

describe("events of Responses", () => {
  it("are numbered, and begin and end as OpenAI's", () => {
    for (const vendor of vendors) {
      const events = eventsIn(streamedFor("responses", vendor, streams[vendor])).map(
        ({ data }) => JSON.parse(data) as Json
      )
      expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
      const types = events.map(({ type }) => String(type).replace(/^response\./, ""))
      expect(types.slice(0, 4)).toEqual(["created", "in_progress", "output_item.added", "content_part.added"])
      expect(types.slice(-3)).toEqual(["function_call_arguments.done", "output_item.done", "completed"])
    }
  })
})

describe("events of Messages", () => {
  it("have one block open at a time", () => {
    for (const vendor of vendors) {
      let open: unknown
      for (const { data } of eventsIn(streamedFor("messages", vendor, streams[vendor]))) {
        const { index, type } = JSON.parse(data) as Json
        if (type === "content_block_start") {
          expect(open).toBeUndefined()
          open = index
        } else if (type === "content_block_delta") expect(index).toBe(open)
        else if (type === "content_block_stop") open = undefined
      }
      expect(open).toBeUndefined()
    }
  })
})
