/** There and back: whatever is said in words that both protocols have is the same after a translation, whole and streamed. */
import { Either, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { answerOf } from "../../src/protocols/conversation/Answer.ts"
import type { Answer, AnswerPart } from "../../src/protocols/conversation/Answer.ts"
import type {
  AssistantPart,
  Conversation,
  Protocol,
  Turn,
  UserPart
} from "../../src/protocols/conversation/Conversation.ts"
import { translations } from "../../src/protocols/Protocols.ts"
import type { Delta } from "../../src/protocols/conversation/Delta.ts"
import type { RequestOptions, StreamOptions } from "../../src/protocols/conversation/Translation.ts"
import { answer, conversation, steps } from "./arbitraries.ts"
import { eventsIn, expectWellFormed, stepsOf, textOf } from "./sse.ts"

const protocols = Object.keys(translations) as ReadonlyArray<Protocol>
const asking: RequestOptions = {
  model: "anthropic.claude-sonnet-4-5",
  limit: undefined,
  limit_field: "max_completion_tokens",
  stream: false
}
const answering: StreamOptions = { id: "x", model: "m", created: 1, request: {}, include_usage: true }

/** The fields that not every protocol has. */
const fields: Readonly<Record<string, ReadonlyArray<Protocol>>> = {
  top_k: ["chat", "messages", "google", "bedrock"],
  seed: ["chat", "google"],
  frequency_penalty: ["chat", "google"],
  presence_penalty: ["chat", "google"],
  user: ["chat", "messages", "responses"],
  parallel_tool_calls: ["chat", "messages", "responses"]
}

/** Without where it stood. */
const placeless = (part: object): object => Object.fromEntries(Object.entries(part).filter(([name]) => name !== "at"))

const joined = (turns: ReadonlyArray<Turn>): ReadonlyArray<object> => {
  const out: Array<{ role: string; parts: Array<object> }> = []
  for (const { parts, role } of turns) {
    if (parts.length === 0) continue
    const last = out.at(-1)
    const bare = (parts as ReadonlyArray<UserPart | AssistantPart>).map((part) =>
      part.type === "tool_result"
        ? { ...placeless(part), content: part.content.map(placeless) }
        : meaning(placeless(part))
    )
    if (last?.role === role) last.parts.push(...bare)
    else out.push({ role, parts: bare })
  }
  return out
}

/** The same whatever the order of members and the spaces are. */
const meaning = (part: object): object =>
  "arguments" in part ? { ...part, arguments: JSON.parse(String(part.arguments)) as unknown } : part

/** What is said, as far as all these protocols have words for it. */
const said = (conversation: Conversation, by: ReadonlyArray<Protocol>): object => {
  const known = Object.fromEntries(
    Object.entries(conversation).filter(([field]) => by.every((protocol) => fields[field]?.includes(protocol) ?? true))
  )
  return {
    ...known,
    names: undefined,
    protocol: undefined,
    model: "",
    stream: false,
    include_usage: true,
    turns: joined(conversation.turns),
    tools: conversation.tools.map((tool) => ({ ...placeless(tool), strict: undefined })),
    // What a protocol does anyway need not be said.
    tool_choice: conversation.tool_choice ?? (conversation.tools.length === 0 ? undefined : { type: "auto" }),
    parallel_tool_calls: known.parallel_tool_calls === false ? false : undefined,
    format: conversation.format?.type === "schema" ? conversation.format.schema : undefined
  }
}

const through = (conversation: Conversation, protocol: Protocol): Either.Either<Conversation, unknown> =>
  translations[protocol].writeRequest(conversation, asking).pipe(
    Either.map((body) => JSON.parse(JSON.stringify(body)) as unknown),
    Either.flatMap((body) => translations[protocol].readRequest(body))
  )

describe("a request", () => {
  for (const one of protocols)
    for (const other of protocols)
      it(`${one} to ${other} and back`, () => {
        fc.assert(
          fc.property(conversation, (asked) => {
            const by = [one, other]
            const without = by.includes("responses") ? { ...asked, stop: [] } : asked
            const there = Either.getOrThrow(through(without, one))
            const back = Either.getOrThrow(through(there, other))
            expect(said(there, by)).toEqual(said(without, by))
            expect(said(back, by)).toEqual(said(without, by))
          }),
          { numRuns: 60 }
        )
      })

  it("is refused where the vendor has no word for what it asks", () => {
    fc.assert(
      fc.property(conversation, (asked) => {
        fc.pre(asked.stop.length > 0)
        expect(Either.flip(through(asked, "responses")).pipe(Either.getOrThrow)).toMatchObject({ field: "stop" })
      }),
      { numRuns: 20 }
    )
  })
})

/** A vendor's parts of a total that are none may be said, or left out. */
const same = ({ parts, usage, ...answer }: Answer): object => ({
  ...answer,
  usage: Object.fromEntries(
    Object.entries(usage ?? {}).map(([name, count]) => [name, count === 0 ? undefined : count])
  ),
  id: undefined,
  model: undefined,
  parts: parts.map(meaning)
})

describe("an answer", () => {
  for (const protocol of protocols) {
    const { readAnswer, reader, writeAnswer, writer } = translations[protocol]
    it(`of ${protocol} is the same, whole and streamed in any pieces`, () => {
      fc.assert(
        fc.property(answer(protocol), fc.integer({ min: 1, max: 9 }), (given, length) => {
          const whole = JSON.parse(JSON.stringify(writeAnswer(given, answering))) as unknown
          expect(same(Either.getOrThrow(readAnswer(whole)))).toEqual(same(given))
          const text = textOf(writer(answering), steps(given, length))
          const deltas = stepsOf(reader(), eventsIn(text))
          expect(same(Either.getOrThrow(answerOf(deltas)))).toEqual(same(given))
          expectWellFormed(deltas)
        }),
        { numRuns: 150 }
      )
    })

    it(`of ${protocol} is read the same where no event is like the one before it`, () => {
      const words = fc.constantFrom(
        "a",
        "content",
        "text",
        "delta",
        '"',
        "\\",
        "\n",
        "é",
        "a text of more than twelve",
        "\u2028",
        "~"
      )
      const pieces = fc.array(fc.oneof(words, fc.string({ minLength: 1, unit: "binary" })), {
        minLength: 1,
        maxLength: 12
      })
      fc.assert(
        fc.property(pieces, pieces, (first, second) => {
          const said = (index: number, texts: ReadonlyArray<string>) =>
            texts.map((text) => ({ type: "piece", index, text }) as const)
          const given: ReadonlyArray<Delta> = [
            { type: "start", id: "x", model: "m", usage: undefined },
            { type: "text_start", index: 0 },
            ...said(0, first),
            { type: "part_end", index: 0 },
            { type: "tool_start", index: 1, id: "call", name: "text", custom: false },
            ...said(1, ["{", ...second.map((text) => JSON.stringify(text)), "}"]),
            { type: "part_end", index: 1 },
            { type: "stop", reason: "tool", sequence: undefined },
            { type: "end" }
          ]
          const events = eventsIn(textOf(writer(answering), given))
          const unlike = events.map(({ data, event }, i) => ({
            event,
            data: data.replace(/^\{/, () => `{"unlike":${i},`)
          }))
          expect(stepsOf(reader(), events)).toEqual(stepsOf(reader(), unlike))
        }),
        { numRuns: 100 }
      )
    })

    for (const client of ["chat", "messages", "responses"] as const)
      it(`of ${protocol} is for ${client} the same whole and streamed, and keeps its thoughts`, () => {
        fc.assert(
          fc.property(answer(protocol), fc.integer({ min: 1, max: 9 }), (given, length) => {
            const { readAnswer, reader: read, writeAnswer, writer: write } = translations[client]
            const whole = JSON.parse(JSON.stringify(writeAnswer(given, answering))) as unknown
            const vendors = stepsOf(reader(), eventsIn(textOf(writer(answering), steps(given, length))))
            const streamed = answerOf(stepsOf(read(), eventsIn(textOf(write(answering), vendors))))
            const seen = same(Either.getOrThrow(streamed))
            expect(seen).toEqual(same(Either.getOrThrow(readAnswer(whole))))
            expect(visible(seen as Answer)).toEqual(visible(given))
          }),
          { numRuns: 60 }
        )
      })
  }
})

/** The texts that a client sees, and what it is charged for. */
const visible = ({ parts, usage }: Answer): object => ({
  thoughts: textsOf(parts, "thinking"),
  texts: textsOf(parts, "text"),
  calls: parts.flatMap((part) => (part.type === "tool_call" ? [[part.id, part.name]] : [])),
  usage: [usage?.prompt_tokens || undefined, usage?.completion_tokens || undefined, usage?.cached_tokens || undefined]
})

const textsOf = (parts: ReadonlyArray<AnswerPart>, type: "thinking" | "text"): string =>
  parts.map((part) => (part.type === type ? part.text : "")).join("")

describe("thoughts", () => {
  it("go back through any client to the vendor that signed them, and to no other", () => {
    for (const vendor of ["messages", "responses", "google"] as const)
      fc.assert(
        fc.property(answer(vendor), (given) => {
          for (const client of ["messages", "responses"] as const) {
            const [asked] = replay(client, given)
            for (const next of ["messages", "responses", "google"] as const) {
              const signatures = given.parts.flatMap((part) =>
                part.type === "thinking" && part.signature !== undefined ? [part.signature] : []
              )
              const body = JSON.stringify(Either.getOrThrow(translations[next].writeRequest(asked!, asking)))
              for (const signature of signatures) expect(body.includes(`"${signature}"`)).toBe(next === vendor)
            }
          }
        }),
        { numRuns: 40 }
      )
  })
})

/** The client's next request, which gives the answer back. */
const replay = (client: "messages" | "responses", given: Answer): ReadonlyArray<Conversation> => {
  const written = translations[client].writeAnswer(given, answering) as Record<string, ReadonlyArray<object>>
  const calls = given.parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []))
  const body =
    client === "messages"
      ? {
          model: "m",
          max_tokens: 100,
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: written.content },
            {
              role: "user",
              content: [
                ...calls.map((tool_use_id) => ({ type: "tool_result", tool_use_id })),
                { type: "text", text: "on" }
              ]
            }
          ]
        }
      : {
          model: "m",
          max_output_tokens: 100,
          input: [
            { role: "user", content: "Hi" },
            ...written.output!,
            ...calls.map((call_id) => ({ type: "function_call_output", call_id, output: "" })),
            { role: "user", content: "on" }
          ]
        }
  return [Either.getOrThrow(translations[client].readRequest(body))]
}
