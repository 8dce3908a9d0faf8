/** Whatever JSON comes, from a client or a vendor, there is a value or a reason: nothing throws, and no stream loses its form. */
import { Either, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import type { Protocol } from "../../src/protocols/conversation/Conversation.ts"
import { isDeep } from "../../src/protocols/conversation/Json.ts"
import { translations } from "../../src/protocols/Protocols.ts"
import type { RequestOptions, StreamOptions, VendorEvent } from "../../src/protocols/conversation/Translation.ts"
import { answers, errors, streams } from "./answers.ts"
import { expectWellFormed, stepsOf, textOf } from "./sse.ts"
import { requests } from "./wires.ts"

const protocols = Object.keys(translations) as ReadonlyArray<Protocol>
const asking: RequestOptions = { model: "m", limit: 10, limit_field: "max_tokens", stream: true }
const answering: StreamOptions = { id: "x", model: "m", created: 1, request: {}, include_usage: true }

/** Names that mean something somewhere, and values of all kinds. */
const words = [
  "text",
  "content",
  "type",
  "role",
  "tool_use",
  "index",
  "id",
  "parts",
  "functionCall",
  "refusal",
  "error"
]
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.dictionary(fc.constantFrom(...words, "__proto__"), fc.jsonValue({ maxDepth: 2 })),
  fc.constantFrom(
    null,
    -1,
    Number.POSITIVE_INFINITY,
    "",
    "data:",
    "data:image/png;base64,",
    "data:,x",
    "openai:",
    "google!:x"
  )
)

/** All places in a JSON, as ways to them. */
const placesIn = (value: unknown, way: ReadonlyArray<string> = []): ReadonlyArray<ReadonlyArray<string>> =>
  typeof value !== "object" || value === null
    ? [way]
    : [way, ...Object.entries(value).flatMap(([name, one]) => placesIn(one, [...way, name]))]

/** The same JSON with another value in one place; without the place where there is none. */
const changed = (json: unknown, way: ReadonlyArray<string>, value: unknown): unknown => {
  if (way.length === 0) return value
  const copy = structuredClone(json) as Record<string, unknown>
  let at = copy
  for (const name of way.slice(0, -1)) at = at[name] as Record<string, unknown>
  if (value === undefined && Array.isArray(at)) at.splice(Number(way.at(-1)), 1)
  else if (value === undefined) delete at[way.at(-1)!]
  else at[way.at(-1)!] = value
  return copy
}

/** A JSON in which some place has another value. */
const mutated = (json: unknown): fc.Arbitrary<unknown> =>
  fc
    .tuple(fc.constantFrom(...placesIn(json)), fc.option(anything, { nil: undefined }))
    .map(([way, value]) => changed(json, way, value))

const expectTotal = (protocol: Protocol, body: unknown): void => {
  const read = translations[protocol].readRequest(body)
  if (Either.isLeft(read)) {
    expect(read.left.why).not.toBe("")
    return
  }
  for (const vendor of protocols) {
    const written = translations[vendor].writeRequest(read.right, asking)
    if (Either.isRight(written)) expect(JSON.stringify(written.right)).toBeTypeOf("string")
    else expect(written.left.why).not.toBe("")
  }
}

const expectAnswered = (protocol: Protocol, json: unknown): void => {
  const read = translations[protocol].readAnswer(json)
  if (Either.isLeft(read)) expect(read.left.message).not.toBe("")
  else
    for (const client of protocols)
      expect(JSON.stringify(translations[client].writeAnswer(read.right, answering))).toBeTypeOf("string")
}

const expectStreamed = (protocol: Protocol, events: ReadonlyArray<VendorEvent>): void => {
  const deltas = stepsOf(translations[protocol].reader(), events)
  expectWellFormed(deltas)
  for (const client of protocols) expect(textOf(translations[client].writer(answering), deltas)).toBeTypeOf("string")
}

describe("a request", () => {
  for (const protocol of protocols) {
    it(`of ${protocol} may be any JSON`, () => {
      fc.assert(
        fc.property(anything, (body) => expectTotal(protocol, body)),
        { numRuns: 300 }
      )
    })

    for (const { name, wires } of requests) {
      const wire = wires[protocol]
      if (typeof wire === "string") continue
      it(`of ${protocol}, ${name}, may have anything in any place`, () => {
        fc.assert(
          fc.property(mutated(wire), (body) => expectTotal(protocol, body)),
          { numRuns: 100 }
        )
      })
    }

    it(`of ${protocol} may be nested deeply`, () => {
      const deep = (levels: number) => JSON.parse("[".repeat(levels) + "]".repeat(levels)) as unknown
      const wire = requests[2]!.wires[protocol] as object
      for (const way of placesIn(wire)) expectTotal(protocol, changed(wire, way, deep(5_000)))
      expect(isDeep(deep(5_000))).toBe(true)
    })
  }

  it("of many short messages is read in time that grows with their number", () => {
    const many = 50_000
    const chat = {
      model: "m",
      messages: Array.from({ length: many }, (_, index) => ({ role: "tool", tool_call_id: `c${index}`, content: "" }))
    }
    expectTotal("chat", chat)
    const items = Array.from({ length: many }, () => ({ type: "reasoning", summary: [] }))
    expectTotal("responses", { model: "m", input: items })
    const blocks = Array.from({ length: many }, () => ({ type: "text", text: "a" }))
    expectTotal("messages", { model: "m", max_tokens: 1, messages: [{ role: "user", content: blocks }] })
  })
})

describe("an answer", () => {
  for (const protocol of protocols) {
    it(`of ${protocol} may be any JSON`, () => {
      fc.assert(
        fc.property(anything, (json) => {
          expectAnswered(protocol, json)
          translations[protocol].usageOf(json)
        }),
        { numRuns: 300 }
      )
    })

    it(`of ${protocol} may have anything in any place`, () => {
      for (const { vendors } of answers)
        fc.assert(
          fc.property(mutated(vendors[protocol]), (json) => expectAnswered(protocol, json)),
          { numRuns: 100 }
        )
    })
  }
})

describe("a stream", () => {
  for (const protocol of protocols) {
    const whole = streams[protocol]
    const names = [...whole.map(({ event }) => event), errors[protocol].event]

    it(`of ${protocol} may have any event`, () => {
      const event = fc.record({
        event: fc.constantFrom(...names),
        data: fc.oneof(
          anything.map((value) => JSON.stringify(value)),
          fc.string()
        )
      })
      fc.assert(
        fc.property(fc.array(event, { minLength: 1, maxLength: 5 }), (events) => expectStreamed(protocol, events)),
        {
          numRuns: 300
        }
      )
    })

    it(`of ${protocol} may have anything in any place, its events missing, twice, or in another order`, () => {
      const one = fc.constantFrom(...whole).chain((event) => {
        const json = event.data === "[DONE]" ? "[DONE]" : (JSON.parse(event.data) as unknown)
        return fc.oneof(
          fc.constant(event),
          mutated(json).map((value) => ({ event: event.event, data: JSON.stringify(value) ?? "" }))
        )
      })
      const others = fc.oneof(
        fc.array(one, { maxLength: 8 }),
        fc.shuffledSubarray([...whole, ...whole]),
        fc.tuple(fc.nat(whole.length), one).map(([at, event]) => [...whole.slice(0, at), event, ...whole.slice(at)]),
        fc.tuple(fc.nat(whole.length), one).map(([at, event]) => whole.with(Math.min(at, whole.length - 1), event))
      )
      fc.assert(
        fc.property(others, (events) => expectStreamed(protocol, events)),
        { numRuns: 400 }
      )
    })

    it(`of ${protocol} has said its last word after an error`, () => {
      const reader = translations[protocol].reader()
      const failed = reader.read(errors[protocol])
      expect(failed).toMatchObject([{ type: "failure", failure: { kind: "rate_limit", message: "too many" } }])
      for (const event of whole) expect(reader.read(event)).toEqual([])
      expect(reader.close()).toEqual([])
    })
  }
})
