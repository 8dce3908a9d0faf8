/** Conversations and answers at random, made of what every protocol knows, and of more where one is named. */
import { FastCheck as fc } from "effect"
import type { Answer, AnswerPart } from "../../src/protocols/conversation/Answer.ts"
import type {
  AssistantPart,
  Conversation,
  FieldNames,
  Protocol,
  TextPart,
  Tool,
  Turn,
  UserPart
} from "../../src/protocols/conversation/Conversation.ts"
import type { Delta } from "../../src/protocols/conversation/Delta.ts"
import { homeSigners } from "../../src/protocols/conversation/Thoughts.ts"
import type { Usage } from "../../src/protocols/conversation/Usage.ts"
import { noUsage } from "../../src/protocols/conversation/Usage.ts"

/** A text with whatever is hard to write: quotes, line ends, other scripts. */
const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 })
const name = fc.stringMatching(/^[a-z][a-z_]{0,9}$/)
const id = fc.stringMatching(/^[\w-]{1,30}$/)
const number = fc.integer({ min: 0, max: 100 }).map((hundredths) => hundredths / 100)

/** Arguments of a tool as their JSON. */
const argumentsText = fc
  .dictionary(name, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
  .map((value) => JSON.stringify(value))

const textPart = (value: string): TextPart => ({ type: "text", at: "", text: value, cache: undefined })

const userPart: fc.Arbitrary<UserPart> = fc.oneof(
  text.map(textPart),
  fc.constantFrom("image/png", "image/jpeg").map((media_type): UserPart => ({
    type: "image",
    at: "",
    source: { type: "data", media_type, data: "aGk=" },
    detail: undefined,
    cache: undefined
  }))
)

interface Exchange {
  readonly asked: ReadonlyArray<UserPart>
  readonly said: string | undefined
  readonly calls: ReadonlyArray<{ readonly name: string; readonly arguments: string; readonly result: string }>
}

const exchange: fc.Arbitrary<Exchange> = fc.record({
  asked: fc.array(userPart, { minLength: 1, maxLength: 3 }),
  said: fc.option(text, { nil: undefined }),
  calls: fc.array(fc.record({ name, arguments: argumentsText, result: text }), { maxLength: 3 })
})

/** The turns of an exchange, its calls numbered on from those before it. */
const turnsOf = (exchanges: ReadonlyArray<Exchange>, last: ReadonlyArray<UserPart>): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  let called = 0
  for (const { asked, calls, said } of exchanges) {
    const first = called
    called += calls.length
    const parts: Array<AssistantPart> = [
      ...(said === undefined && calls.length > 0 ? [] : [textPart(said ?? "So.")]),
      ...calls.map((call, index): AssistantPart => ({
        type: "tool_call",
        at: "",
        id: `call_${first + index}`,
        name: call.name,
        arguments: call.arguments,
        custom: false,
        cache: undefined
      }))
    ]
    turns.push({ role: "user", at: "", parts: asked }, { role: "assistant", at: "", parts })
    if (calls.length > 0)
      turns.push({
        role: "user",
        at: "",
        parts: calls.map(({ result }, index): UserPart => ({
          type: "tool_result",
          at: "",
          id: `call_${first + index}`,
          content: [textPart(result)],
          is_error: false,
          cache: undefined
        }))
      })
  }
  return [...turns, { role: "user", at: "", parts: last }]
}

const tool: fc.Arbitrary<Tool> = fc.record({
  type: fc.constant("function" as const),
  at: fc.constant(""),
  name,
  description: fc.option(text, { nil: undefined }),
  parameters: fc.constantFrom(
    { type: "object", properties: {} },
    { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
  ),
  strict: fc.constant(undefined),
  cache: fc.constant(undefined)
})

const names: FieldNames = {
  turns: "turns",
  tools: "tools",
  tool_choice: "tool_choice",
  parallel: "parallel",
  limit: "limit",
  stop: "stop",
  format: "format",
  reasoning: "reasoning"
}

const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })

export const conversation: fc.Arbitrary<Conversation> = fc
  .record({
    system: optional(text),
    exchanges: fc.array(exchange, { maxLength: 3 }),
    last: fc.array(userPart, { minLength: 1, maxLength: 2 }),
    tools: fc.uniqueArray(tool, { selector: (one) => one.name, maxLength: 3 }),
    choice: fc.constantFrom("auto" as const, "any" as const, "tool" as const, undefined),
    limit: fc.integer({ min: 16, max: 100_000 }),
    temperature: optional(number),
    top_p: optional(number),
    top_k: optional(fc.integer({ min: 1, max: 100 })),
    stop: fc.array(text, { maxLength: 2 }),
    seed: optional(fc.integer()),
    penalty: optional(number),
    user: optional(id),
    parallel: optional(fc.boolean()),
    schema: fc.boolean()
  })
  .map((made): Conversation => {
    const turns = turnsOf(made.exchanges, made.last)
    const first = made.tools[0]?.name
    return {
      protocol: "chat",
      names,
      model: "m",
      turns: made.system === undefined ? turns : [{ role: "system", at: "", parts: [textPart(made.system)] }, ...turns],
      tools: made.tools,
      tool_choice:
        made.choice === undefined || first === undefined
          ? undefined
          : made.choice === "tool"
            ? { type: "tool", name: first, custom: false }
            : { type: made.choice },
      parallel_tool_calls: first === undefined ? undefined : made.parallel,
      limit: made.limit,
      temperature: made.temperature,
      top_p: made.top_p,
      top_k: made.top_k,
      stop: made.stop,
      seed: made.seed,
      frequency_penalty: made.penalty,
      presence_penalty: made.penalty,
      format: made.schema
        ? { type: "schema", name: "answer", description: undefined, schema: { type: "object" }, strict: true }
        : undefined,
      reasoning: undefined,
      verbosity: undefined,
      cache: undefined,
      prompt_cache_key: undefined,
      user: made.user,
      safety_identifier: undefined,
      stream: false,
      include_usage: true
    }
  })

const usage: fc.Arbitrary<Usage> = fc
  .tuple(fc.nat(1000), fc.nat(1000), fc.nat(1000), fc.nat(1000))
  .map(([uncached, cached_tokens, completion_tokens, reasoning]) => ({
    ...noUsage,
    prompt_tokens: uncached + cached_tokens,
    completion_tokens: completion_tokens + reasoning,
    cached_tokens,
    reasoning_tokens: reasoning
  }))

/** An answer that a vendor of the protocol gives: what it thought, said and called, in that order. */
export const answer = (protocol: Protocol): fc.Arbitrary<Answer> =>
  fc
    .record({
      thought: optional(fc.record({ text, signature: id.map((letters) => `signed-${letters}`) })),
      said: optional(text),
      calls: fc.uniqueArray(fc.record({ id, name, arguments: argumentsText }), {
        selector: (call) => call.id,
        maxLength: 3
      }),
      stop: fc.constantFrom("end" as const, "length" as const, "refusal" as const),
      usage
    })
    .map(({ calls, said, stop, thought, usage }): Answer => {
      const signature = protocol === "chat" ? undefined : thought?.signature
      const parts: Array<AnswerPart> = []
      if (thought !== undefined)
        parts.push({ type: "thinking", text: thought.text, signature, signer: homeSigners[protocol], redacted: false })
      if (said !== undefined) parts.push({ type: "text", text: said })
      for (const call of calls) parts.push({ type: "tool_call", ...call, custom: false })
      return {
        id: undefined,
        model: undefined,
        parts,
        stop: calls.length > 0 && stop === "end" ? "tool" : stop,
        stop_sequence: undefined,
        usage: protocol === "bedrock" ? { ...usage, reasoning_tokens: undefined } : usage
      }
    })

const piecesOf = (index: number, value: string, length: number): ReadonlyArray<Delta> => {
  const letters = Array.from(value)
  const pieces: Array<Delta> = []
  for (let at = 0; at < letters.length; at += length)
    pieces.push({ type: "piece", index, text: letters.slice(at, at + length).join("") })
  return pieces
}

const callsOf = (answer: Answer) =>
  answer.parts.flatMap((part, index) => (part.type === "tool_call" ? [{ index, part }] : []))

/** The steps of an answer, in pieces of some letters; those of its calls come by turns. */
export const steps = (answer: Answer, length: number): ReadonlyArray<Delta> => {
  const deltas: Array<Delta> = [{ type: "start", id: undefined, model: undefined, usage: undefined }]
  for (const [index, part] of answer.parts.entries()) {
    if (part.type === "tool_call") continue
    if (part.type === "thinking")
      deltas.push({ type: "thinking_start", index, signer: part.signer, redacted: part.redacted })
    else deltas.push({ type: part.type === "text" ? "text_start" : "refusal_start", index })
    deltas.push(...piecesOf(index, part.text, length))
    if (part.type === "thinking" && part.signature !== undefined)
      deltas.push({ type: "signature", index, text: part.signature })
    deltas.push({ type: "part_end", index })
  }
  const calls = callsOf(answer)
  for (const { index, part } of calls)
    deltas.push({ type: "tool_start", index, id: part.id, name: part.name, custom: part.custom })
  const queues = calls.map(({ index, part }) => [...piecesOf(index, part.arguments, length)])
  while (queues.some((queue) => queue.length > 0))
    for (const queue of queues) {
      const piece = queue.shift()
      if (piece !== undefined) deltas.push(piece)
    }
  for (const { index } of calls) deltas.push({ type: "part_end", index })
  if (answer.usage !== undefined) deltas.push({ type: "usage", usage: answer.usage })
  return [...deltas, { type: "stop", reason: answer.stop, sequence: undefined }, { type: "end" }]
}
