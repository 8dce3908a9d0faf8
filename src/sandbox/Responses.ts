/**
 * A model vendor that uses OpenAI's Responses protocol. It replies with `Echo`, adds reasoning if the request enables it, and caches the instructions
 * of requests with a `prompt_cache_key`. It stores responses unless `store` is false.
 */
import { Effect } from "effect"
import { contextLength, newerMount } from "./Chat.ts"
import { isBody, json, jsonBody, Refusal } from "./Outside.ts"
import type { Answer, Body, Make, Received } from "./Outside.ts"
import { promptCache, countWords, cut, idOf, replyTo } from "./Echo.ts"
import type { CacheUse, Part, Reply } from "./Echo.ts"

const refuse = (status: number, message: string, param: string | null = null, code: string | null = null): Refusal =>
  new Refusal(json(status, { error: { message, type: "invalid_request_error", param, code } }))

interface Memory {
  readonly cached: (text: string) => CacheUse
  /** The conversations of stored responses, by response id. */
  readonly kept: Map<string, string>
}

export const make: Make = ({ clock }) => {
  const memory: Memory = { cached: promptCache(), kept: new Map() }
  return Effect.succeed({
    routes: [
      {
        method: "POST",
        path: `${newerMount}/responses`,
        answer: (received) => response(bodyOf(received), memory, Math.floor(clock.now() / 1000))
      }
    ],
    configuration: {}
  })
}

// ---- the request --------------------------------------------------------------------------------------------------------------

const bodyOf = ({ body, headers: { authorization } }: Received): Body => {
  if (authorization === undefined || !/^bearer +\S/i.test(authorization)) {
    throw refuse(401, "You didn't provide an API key. Provide it in the Authorization header as Bearer auth.")
  }
  const parsed = jsonBody(
    body,
    (message) => refuse(400, message),
    "We could not parse the JSON body of your request.",
    "The body of your request must be a JSON object."
  )
  if (typeof parsed.model !== "string" || parsed.model === "")
    throw refuse(400, "Missing required parameter: 'model'.", "model", "missing_required_parameter")
  return parsed
}

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content
    .filter(isBody)
    .flatMap(({ text }) => (typeof text === "string" ? [text] : []))
    .join("\n")
}

const saidIn = (item: unknown): string => {
  if (!isBody(item)) return ""
  const { content, output } = item
  return textOf(content ?? output)
}

/** Returns the names of the functions and other tools that the client runs. */
const namesOf = (tools: unknown): ReadonlySet<string> =>
  new Set(
    Array.isArray(tools)
      ? tools.filter(isBody).flatMap(({ name, type }) => (typeof name === "string" ? [name] : [String(type)]))
      : []
  )

const inputOf = ({ input }: Body): ReadonlyArray<unknown> => {
  if (typeof input === "string") return [{ role: "user", content: input }]
  if (Array.isArray(input) && input.length > 0) return input
  throw refuse(400, "Missing required parameter: 'input'.", "input", "missing_required_parameter")
}

// ---- the response ---------------------------------------------------------------------------------------------------------

const limitLeast = 16

const response = (body: Body, { cached, kept }: Memory, created_at: number): Answer => {
  const { instructions, max_output_tokens, previous_response_id, prompt_cache_key, reasoning, store, stream, tools } =
    body
  const input = inputOf(body)
  const before = previous_response_id == null ? "" : kept.get(String(previous_response_id))
  if (before === undefined)
    throw refuse(
      400,
      `Previous response with id '${String(previous_response_id)}' not found.`,
      "previous_response_id",
      "previous_response_not_found"
    )
  const told = textOf(instructions)
  const words = countWords(
    [
      before,
      told,
      ...input.map(saidIn),
      ...(Array.isArray(tools) ? tools.map((tool) => JSON.stringify(tool)) : [])
    ].join(" ")
  )
  if (words > contextLength)
    throw refuse(400, "Your input exceeds the context window of this model.", "input", "context_length_exceeded")
  const thinks = isBody(reasoning) && reasoning.effort !== undefined && reasoning.effort !== "none"
  const limit = typeof max_output_tokens === "number" ? max_output_tokens : undefined
  if (limit !== undefined && limit < limitLeast)
    throw refuse(
      400,
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${limitLeast}, but got ${limit} instead.`,
      "max_output_tokens",
      "integer_below_min_value"
    )
  const speech = replyTo(saidIn(input.at(-1)), { limit, tools: namesOf(tools), thinks })
  const { read } = typeof prompt_cache_key === "string" ? cached(`${prompt_cache_key} ${told}`) : { read: 0 }
  const usage = {
    input_tokens: words,
    input_tokens_details: { cached_tokens: Math.max(0, read - 1) },
    output_tokens: speech.words,
    output_tokens_details: { reasoning_tokens: speech.thoughts },
    total_tokens: words + speech.words
  }
  const id = idOf("resp").replace("-", "_")
  if (store !== false) kept.set(id, [before, ...input.map(saidIn), ...speech.parts.map(saying)].join(" "))
  const incomplete = speech.end === "length"
  const head = { id, object: "response", created_at, model: body.model, store: store !== false, ...echoed(body) }
  const output = speech.parts.map(itemOf)
  const whole = {
    ...head,
    status: incomplete ? "incomplete" : "completed",
    error: null,
    incomplete_details: incomplete ? { reason: "max_output_tokens" } : null,
    output,
    usage
  }
  const headers = { "x-request-id": idOf("req") }
  if (stream !== true) return json(200, whole, headers)
  return {
    status: 200,
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", ...headers },
    pieces: events(head, speech, output, whole),
    first: 4
  }
}

const echoed = ({ instructions, max_output_tokens, metadata, previous_response_id, tools }: Body) => ({
  instructions: instructions ?? null,
  max_output_tokens: max_output_tokens ?? null,
  metadata: metadata ?? {},
  previous_response_id: previous_response_id ?? null,
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: "auto",
  tools: tools ?? [],
  top_p: 1
})

const saying = (part: Part): string => (part.type === "call" ? part.input : part.text)

const itemOf = (part: Part): Body => {
  switch (part.type) {
    case "thought":
      return {
        id: idOf("rs").replace("-", "_"),
        type: "reasoning",
        summary: [{ type: "summary_text", text: part.text }]
      }
    case "text":
      return {
        id: idOf("msg").replace("-", "_"),
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: part.text, annotations: [] }]
      }
    case "call":
      return {
        id: idOf("fc").replace("-", "_"),
        type: "function_call",
        status: "completed",
        call_id: part.id.replace("-", "_"),
        name: part.name,
        arguments: part.input
      }
  }
}

/** Returns an item's initial form, and the events up to its end. */
const piecesOf = (
  part: Part,
  item: Body,
  output_index: number
): { readonly begin: Body; readonly between: ReadonlyArray<Body> } => {
  const at = { item_id: item.id, output_index }
  switch (part.type) {
    case "thought": {
      const where = { ...at, summary_index: 0 }
      return {
        begin: { ...item, summary: [] },
        between: [
          { type: "response.reasoning_summary_part.added", ...where, part: { type: "summary_text", text: "" } },
          ...cut(part.text).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...where, delta })),
          { type: "response.reasoning_summary_text.done", ...where, text: part.text },
          { type: "response.reasoning_summary_part.done", ...where, part: { type: "summary_text", text: part.text } }
        ]
      }
    }
    case "text": {
      const where = { ...at, content_index: 0 }
      const written = (text: string) => ({ type: "output_text", text, annotations: [] })
      return {
        begin: { ...item, status: "in_progress", content: [] },
        between: [
          { type: "response.content_part.added", ...where, part: written("") },
          ...cut(part.text).map((delta) => ({ type: "response.output_text.delta", ...where, delta })),
          { type: "response.output_text.done", ...where, text: part.text },
          { type: "response.content_part.done", ...where, part: written(part.text) }
        ]
      }
    }
    case "call":
      return {
        begin: { ...item, status: "in_progress", arguments: "" },
        between: [
          ...cut(part.input).map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta })),
          { type: "response.function_call_arguments.done", ...at, name: part.name, arguments: part.input }
        ]
      }
  }
}

function* events(head: Body, { parts }: Reply, output: ReadonlyArray<Body>, whole: Body): Generator<string> {
  let sequence_number = 0
  const event = ({ type, ...data }: Body): string =>
    `event: ${String(type)}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...data })}\n\n`
  const begun = { ...head, status: "in_progress", error: null, incomplete_details: null, output: [], usage: null }
  yield event({ type: "response.created", response: begun })
  yield event({ type: "response.in_progress", response: begun })
  for (const [output_index, part] of parts.entries()) {
    const item = output[output_index]!
    const { begin, between } = piecesOf(part, item, output_index)
    yield event({ type: "response.output_item.added", output_index, item: begin })
    for (const one of between) yield event(one)
    yield event({ type: "response.output_item.done", output_index, item })
  }
  yield event({ type: whole.status === "completed" ? "response.completed" : "response.incomplete", response: whole })
}
