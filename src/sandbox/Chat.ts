/**
 * A vendor of chat and text completions in OpenAI's wire format. Its models repeat the prompt and call tools on request (`Echo`). A token is a
 * whitespace-separated word, so tests can predict every completion and its price.
 */
import { Effect } from "effect"
import { isBody, json, jsonBody, Refusal } from "./Outside.ts"
import type { Answer, Body, Make, Received, Route } from "./Outside.ts"
import { countWords, cut, idOf, repeat, replyTo } from "./Echo.ts"
import type { Part, Repetition, Reply } from "./Echo.ts"

/** The vendor's address that also serves the protocols of `Messages` and `Responses`. */
export const newerMount = "/chat-a/v1"
const newerProtocols = ["chat", "text", "messages", "responses"]

const upstreams = { "sandbox-a": newerMount, "sandbox-b": "/chat-b/v1" } as const

/** The maximum number of words in a prompt. */
export const contextLength = 128_000

interface ModelOffer {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly price: { readonly prompt_usd_per_million: string; readonly completion_usd_per_million: string }
  /** The completion limit's field name, which differs by vendor. */
  readonly limit_field: "max_tokens" | "max_completion_tokens"
  readonly upstreams: ReadonlyArray<{
    readonly upstream: keyof typeof upstreams
    readonly cost?: { readonly prompt_usd_per_million: string; readonly completion_usd_per_million: string }
    readonly limit_field?: ModelOffer["limit_field"]
  }>
}

const models: ReadonlyArray<ModelOffer> = [
  {
    id: "sandbox-small",
    name: "Sandbox Small",
    description: "Repeats the prompt, at a low price",
    price: { prompt_usd_per_million: "0.15", completion_usd_per_million: "0.60" },
    limit_field: "max_tokens",
    upstreams: [{ upstream: "sandbox-a" }]
  },
  {
    id: "sandbox-large",
    name: "Sandbox Large",
    description: "Repeats the prompt, at a higher price",
    price: { prompt_usd_per_million: "3", completion_usd_per_million: "15" },
    limit_field: "max_completion_tokens",
    // The cost is shown in the operator's view of costs.
    upstreams: [{ upstream: "sandbox-a", cost: { prompt_usd_per_million: "2.4", completion_usd_per_million: "12" } }]
  },
  {
    id: "sandbox-fraction",
    name: "Sandbox Fraction",
    description: "Repeats the prompt, priced in fractions of a nano-USD per token",
    price: { prompt_usd_per_million: "0.0375", completion_usd_per_million: "0.15" },
    limit_field: "max_tokens",
    upstreams: [{ upstream: "sandbox-a" }]
  },
  {
    id: "sandbox-failover",
    name: "Sandbox Failover",
    description: "Like the small one, with two upstreams",
    price: { prompt_usd_per_million: "0.15", completion_usd_per_million: "0.60" },
    limit_field: "max_tokens",
    upstreams: [{ upstream: "sandbox-a" }, { upstream: "sandbox-b", limit_field: "max_completion_tokens" }]
  }
]

/** Returns the vendor's price for a model, or `undefined` if the vendor does not offer it. */
export const vendorPriceOf = (model: string): ModelOffer["price"] | undefined => {
  const offer = models.find(({ id }) => id === model)
  return offer === undefined ? undefined : (offer.upstreams[0]?.cost ?? offer.price)
}

type Note = (id: string, model: string, usage: ReturnType<typeof usageOf>) => void

export const make: Make = ({ bills, clock, origin }) => {
  const now = () => Math.floor(clock.now() / 1000)
  const note: Note = (id, model, { completion_tokens, prompt_tokens }) =>
    bills.note({ id, at: clock.now(), model, input: prompt_tokens, cached: 0, output: completion_tokens })
  const routes = Object.values(upstreams).flatMap((mount): ReadonlyArray<Route> => [
    { method: "POST", path: `${mount}/chat/completions`, answer: (received) => chat(bodyOf(received), now(), note) },
    { method: "POST", path: `${mount}/completions`, answer: (received) => completion(bodyOf(received), now()) },
    {
      method: "GET",
      path: `${mount}/models`,
      answer: (received) => {
        authorize(received)
        const data = models.map(({ id }) => ({ id, object: "model", created: now(), owned_by: "sandbox" }))
        return json(200, { object: "list", data })
      }
    }
  ])
  return Effect.succeed({
    routes,
    configuration: {
      upstreams: Object.fromEntries(
        Object.entries(upstreams).map(([name, mount]) => [
          name,
          { base_url: origin + mount, api_key: "sandbox", ...(mount === newerMount && { speaks: newerProtocols }) }
        ])
      ),
      models: models.map((model) => ({
        ...model,
        owned_by: "sandbox",
        context_length: contextLength,
        max_output_tokens: 4096
      })),
      auto: "sandbox-small"
    }
  })
}

// ---- the request ------------------------------------------------------------------------------------------------------------

const refuse = (status: number, message: string, param: string | null = null, code: string | null = null): Refusal =>
  new Refusal(json(status, { error: { message, type: "invalid_request_error", param, code } }))

const authorize = ({ headers: { authorization } }: Received): void => {
  if (authorization === undefined || !/^bearer +\S/i.test(authorization)) {
    throw refuse(401, "You didn't provide an API key. Provide it in the Authorization header as Bearer auth.")
  }
}

const bodyOf = (received: Received): Body => {
  authorize(received)
  const body = jsonBody(
    received.body,
    (message) => refuse(400, message),
    "We could not parse the JSON body of your request.",
    "The body of your request must be a JSON object."
  )
  return body
}

const modelOf = ({ model }: Body): string => {
  if (typeof model !== "string" || model === "") throw refuse(400, "you must provide a model parameter", "model")
  return model
}

const wholeOf = (body: Body, name: string, least: number, most: number): number | undefined => {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value
  throw refuse(400, `Invalid '${name}': expected a whole number from ${least} to ${most}.`, name)
}

const tokensLimit = 1_000_000_000

const choicesOf = (body: Body): number => wholeOf(body, "n", 1, 128) ?? 1

const includesUsage = ({ stream_options }: Body): boolean =>
  isBody(stream_options) && stream_options["include_usage"] === true

const withinContext = (tokens: number, param: string): number => {
  if (tokens <= contextLength) return tokens
  throw refuse(
    400,
    `This model's maximum context length is ${contextLength} tokens. However, your prompt has ${tokens} tokens.`,
    param,
    "context_length_exceeded"
  )
}

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  if (content === undefined || content === null) return ""
  if (!Array.isArray(content)) throw refuse(400, "Invalid 'content': expected a string or an array.", "messages")
  return content
    .flatMap((part: unknown) => (isBody(part) && part["type"] === "text" ? [String(part["text"] ?? "")] : []))
    .join("\n")
}

// ---- the response -------------------------------------------------------------------------------------------------------

const usageOf = (prompt_tokens: number, completion_tokens: number) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens
})

/** Builds the vendor's response headers. Its bill lists a call under the same request id. */
const vendorHeaders = (id = idOf("req")): Record<string, string> => ({ "x-request-id": id })

const eventStream = (pieces: Iterable<string>, first: number, headers = vendorHeaders()): Answer => ({
  status: 200,
  headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", ...headers },
  pieces,
  first
})

/** Returns how many events a stream sends before an injected break. */
const firstOf = (opening: number, words: number): number => Math.min(3, opening + words)

/** The fields that all events of a stream share. */
interface Wire {
  readonly head: { readonly id: string; readonly created: number; readonly model: string }
  readonly object: string
  readonly usage: ReturnType<typeof usageOf>
  readonly include_usage: boolean
}

function* events(wire: Wire, choices: Iterable<string>): Generator<string> {
  const { created, id, model } = wire.head
  const before = `data: {"id":"${id}","object":"${wire.object}","created":${created},"model":${JSON.stringify(model)},"choices":[`
  const usage = wire.include_usage ? `,"usage":null` : ""
  for (const choice of choices) yield `${before}${choice}]${usage}}\n\n`
  if (wire.include_usage) yield `${before}],"usage":${JSON.stringify(wire.usage)}}\n\n`
  yield "data: [DONE]\n\n"
}

const chat = (body: Body, created: number, note: Note): Answer => {
  const model = modelOf(body)
  const { messages, stream } = body
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(isBody)) {
    throw refuse(400, "Invalid 'messages': expected a non-empty array of objects.", "messages")
  }
  let prompt_tokens = 0
  let said = ""
  for (const { content, role } of messages) {
    const text = textOf(content)
    prompt_tokens += countWords(text)
    if (role === "user" || role === "tool") said = text
  }
  withinContext(prompt_tokens, "messages")
  const n = choicesOf(body)
  const limit = wholeOf(body, "max_completion_tokens", 1, tokensLimit) ?? wholeOf(body, "max_tokens", 1, tokensLimit)
  const speech = replyTo(said, { limit, tools: namesOf(body), thinks: false })
  const { words } = speech

  const head = { id: idOf("chatcmpl"), created, model }
  const usage = usageOf(prompt_tokens, words * n)
  const request_id = idOf("req")
  const headers = vendorHeaders(request_id)
  note(request_id, model, usage)
  if (stream !== true) {
    const finish_reason = reasons[speech.end]
    const message = messageOf(speech)
    const choices = Array.from({ length: n }, (_, index) => ({ index, message, logprobs: null, finish_reason }))
    return json(200, { ...head, object: "chat.completion", choices, usage, system_fingerprint: null }, headers)
  }
  const wire = { head, object: "chat.completion.chunk", usage, include_usage: includesUsage(body) }
  return eventStream(events(wire, chatDeltas(speech, n)), firstOf(n, words * n), headers)
}

const namesOf = ({ tools }: Body): ReadonlySet<string> =>
  new Set(
    Array.isArray(tools)
      ? tools.flatMap((tool: unknown) =>
          isBody(tool) && isBody(tool["function"]) ? [String(tool["function"]["name"])] : []
        )
      : []
  )

const reasons = { stop: "stop", length: "length", tools: "tool_calls" } as const

type Call = Extract<Part, { readonly type: "call" }>
const isCall = (part: Part): part is Call => part.type === "call"
const saidIn = ({ parts }: Reply): string => parts.map((part) => (isCall(part) ? "" : part.text)).join("")

const callOf = ({ id, input, name }: Call) => ({ id, type: "function", function: { name, arguments: input } })

const messageOf = (speech: Reply) => {
  const content = saidIn(speech)
  const calls = speech.parts.filter(isCall)
  return calls.length === 0
    ? { role: "assistant", content, refusal: null }
    : { role: "assistant", content: content === "" ? null : content, refusal: null, tool_calls: calls.map(callOf) }
}

function* chatDeltas(speech: Reply, n: number): Generator<string> {
  const choice = (index: number, delta: string, reason: string) =>
    `{"index":${index},"delta":${delta},"logprobs":null,"finish_reason":${reason}}`
  for (let i = 0; i < n; i++) yield choice(i, `{"role":"assistant","content":"","refusal":null}`, "null")
  for (const delta of pieces(speech)) for (let i = 0; i < n; i++) yield choice(i, delta, "null")
  for (let i = 0; i < n; i++) yield choice(i, "{}", `"${reasons[speech.end]}"`)
}

/** Yields the deltas of a choice: its words, then the fragments of each tool call's arguments. */
function* pieces(speech: Reply): Generator<string> {
  for (const piece of cut(saidIn(speech))) yield `{"content":${JSON.stringify(piece)}}`
  for (const [index, call] of speech.parts.filter(isCall).entries()) {
    yield JSON.stringify({ tool_calls: [{ index, ...callOf({ ...call, input: "" }) }] })
    for (const piece of cut(call.input)) {
      yield JSON.stringify({ tool_calls: [{ index, function: { arguments: piece } }] })
    }
  }
}

/** Returns the prompts in a completion request. Each token id counts as one word. */
const promptsOf = ({ prompt }: Body): ReadonlyArray<string> => {
  const isTokens = (value: unknown): value is ReadonlyArray<number> =>
    Array.isArray(value) && value.length > 0 && value.every((token) => typeof token === "number")
  if (typeof prompt === "string") return [prompt]
  if (isTokens(prompt)) return [prompt.join(" ")]
  if (Array.isArray(prompt) && prompt.length > 0 && prompt.length <= promptsMax) {
    const texts = prompt.map((one: unknown) =>
      typeof one === "string" ? one : isTokens(one) ? one.join(" ") : undefined
    )
    if (texts.every((text) => text !== undefined)) return texts
  }
  throw refuse(400, "Invalid 'prompt': expected a string, or an array of strings or tokens.", "prompt")
}

const promptsMax = 2_048

const completion = (body: Body, created: number): Answer => {
  const model = modelOf(body)
  const prompts = promptsOf(body)
  let prompt_tokens = 0
  for (const prompt of prompts) prompt_tokens += withinContext(countWords(prompt), "prompt")
  const n = choicesOf(body)
  const best_of = wholeOf(body, "best_of", 1, 128) ?? n
  if (best_of < n)
    throw refuse(400, "You requested that the server return more choices than it will generate.", "best_of")
  const limit = wholeOf(body, "max_tokens", 0, tokensLimit) ?? 16
  const before = (prompt: string) => (body["echo"] === true ? prompt : "")

  let completion_tokens = 0
  const answers = prompts.flatMap((prompt) => {
    const repetition = repeat(prompt, limit)
    completion_tokens += repetition.words * best_of
    return Array.from({ length: n }, () => ({ ...repetition, echo: before(prompt) }))
  })
  const head = { id: idOf("cmpl"), created, model }
  const usage = usageOf(prompt_tokens, completion_tokens)
  if (body["stream"] !== true) {
    const choices = answers.map(({ echo, finish_reason, text }, index) => ({
      text: echo + text,
      index,
      logprobs: null,
      finish_reason
    }))
    return json(200, { ...head, object: "text_completion", choices, usage }, vendorHeaders())
  }
  const wire = { head, object: "text_completion", usage, include_usage: includesUsage(body) }
  return eventStream(events(wire, completionTexts(answers)), firstOf(0, answers[0]?.words ?? 0))
}

function* completionTexts(answers: ReadonlyArray<Repetition & { readonly echo: string }>): Generator<string> {
  const choice = (index: number, text: string, reason: string) =>
    `{"text":${JSON.stringify(text)},"index":${index},"logprobs":null,"finish_reason":${reason}}`
  for (const [index, { echo, finish_reason, text }] of answers.entries()) {
    if (echo !== "") yield choice(index, echo, "null")
    for (const piece of cut(text)) yield choice(index, piece, "null")
    yield choice(index, "", `"${finish_reason}"`)
  }
}
