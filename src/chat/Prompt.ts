/**
 * What a chat or completion request asks for: validated where the specification sets limits, otherwise passed on as it came.
 * And the most that it can cost.
 */
import { Either, ParseResult, Schema } from "effect"
import { InvalidRequest } from "../http/Problems.ts"
import type { Nano } from "../kernel/Money.ts"
import { affordable, charge } from "../kernel/Price.ts"
import type { Model } from "./Model.ts"

const between = (least: number, most: number) =>
  Schema.JsonNumber.pipe(Schema.between(least, most, { message: () => `a number from ${least} to ${most}` }))

const whole = (least: number, most: number) =>
  Schema.Int.pipe(
    Schema.between(least, most, { message: () => `a whole number from ${least} to ${most}` })
  ).annotations({ message: () => ({ message: `a whole number from ${least} to ${most}`, override: true }) })

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.NullOr(schema)

const Stop = Schema.Union(Schema.String, Schema.Array(Schema.String).pipe(Schema.maxItems(4))).annotations({
  message: () => ({ message: "a string or up to 4 strings", override: true })
})

const common = {
  frequency_penalty: optional(between(-2, 2)),
  presence_penalty: optional(between(-2, 2)),
  logit_bias: optional(Schema.Record({ key: Schema.String, value: Schema.JsonNumber })),
  max_tokens: optional(whole(1, 1_000_000_000)),
  n: optional(whole(1, 128)),
  seed: optional(Schema.Int),
  stop: optional(Stop),
  stream: optional(Schema.Boolean),
  stream_options: optional(Schema.Struct({ include_usage: Schema.optional(Schema.NullOr(Schema.Boolean)) })),
  temperature: optional(between(0, 2)),
  top_p: optional(between(0, 1)),
  user: optional(Schema.String)
} as const

/** What the parts are is between client and upstream. Only an assistant may have said nothing: it called tools instead. */
const isContent = (role: string, content: unknown): boolean =>
  typeof content === "string" || Array.isArray(content) || (role === "assistant" && (content ?? null) === null)

const Message = Schema.Struct({ role: Schema.String, content: Schema.optional(Schema.Unknown) }).pipe(
  Schema.filter(({ content, role }) =>
    isContent(role, content)
      ? undefined
      : {
          path: ["content"],
          message: role === "assistant" ? "a string, an array of parts, or null" : "a string or an array of parts"
        }
  )
)

/** Whether these are messages as `Message` says. It is asked of every call, and by hand the whole check takes half as long. */
const areMessages = (messages: unknown): boolean =>
  Array.isArray(messages) &&
  messages.length > 0 &&
  messages.every(
    (message: Readonly<Record<string, unknown>> | null | undefined) =>
      typeof message?.role === "string" && isContent(message.role, message.content)
  )

const chat = {
  required: {
    model: Schema.NonEmptyString,
    messages: Schema.Array(Message).pipe(Schema.minItems(1, { message: () => "at least one message" }))
  },
  optional: {
    ...common,
    logprobs: optional(Schema.Boolean),
    top_logprobs: optional(whole(0, 20)),
    /** The newer name of `max_tokens`. */
    max_completion_tokens: optional(whole(1, 1_000_000_000)),
    response_format: optional(Schema.Struct({ type: Schema.String })),
    tools: optional(Schema.Array(Schema.Struct({ type: Schema.String }))),
    tool_choice: optional(Schema.Union(Schema.String, Schema.Struct({ type: Schema.String }))),
    parallel_tool_calls: optional(Schema.Boolean)
  }
} as const

export const ChatRequest = Schema.extend(
  Schema.Struct(chat.required),
  Schema.partial(Schema.Struct(chat.optional))
).annotations({ identifier: "ChatRequest" })
export type ChatRequest = typeof ChatRequest.Type

const completion = {
  required: {
    model: Schema.NonEmptyString,
    prompt: Schema.Union(
      Schema.String,
      Schema.Array(Schema.String),
      Schema.Array(Schema.Int),
      Schema.Array(Schema.Array(Schema.Int))
    ).annotations({ message: () => ({ message: "a string, or an array of strings or tokens", override: true }) })
  },
  optional: {
    ...common,
    best_of: optional(whole(1, 128)),
    echo: optional(Schema.Boolean),
    logprobs: optional(whole(0, 5)),
    suffix: optional(Schema.String)
  }
} as const

export const CompletionRequest = Schema.extend(
  Schema.Struct(completion.required),
  Schema.partial(Schema.Struct(completion.optional))
).annotations({ identifier: "CompletionRequest" })
export type CompletionRequest = typeof CompletionRequest.Type

/**
 * Whether a body fits, asked field by field and only of those that are there: a tenth of the cost of decoding it whole, which
 * is left for the bodies that do not fit and must be told why.
 */
const fits = (
  fields: {
    readonly required: Readonly<Record<string, Schema.Schema.AnyNoContext>>
    readonly optional: Readonly<Record<string, Schema.Schema.AnyNoContext>>
  },
  byHand: Readonly<Record<string, (value: unknown) => boolean>> = {}
) => {
  const required = Object.entries(fields.required).map(
    ([name, schema]) => [name, byHand[name] ?? Schema.is(schema)] as const
  )
  const optional = new Map(Object.entries(fields.optional).map(([name, schema]) => [name, Schema.is(schema)] as const))
  return (body: unknown): boolean => {
    if (typeof body !== "object" || body === null) return false
    const value = body as Readonly<Record<string, unknown>>
    for (const [name, is] of required) if (!is(value[name])) return false
    for (const name in value) {
      const is = optional.get(name)
      if (is !== undefined && !is(value[name])) return false
    }
    return true
  }
}

/** What the cost of a request depends on. */
interface Size {
  /** An upper bound of the prompt's tokens, attachments aside. A token is at least a byte of the request. */
  readonly prompt_tokens_max: number
  readonly attachments: number
  /** How many answers are generated. */
  readonly answers: number
  /** What the client allows each answer, `undefined` where it sets no limit. */
  readonly answer_tokens_max: number | undefined
}

/** A validated request: what the gate and the relay need of it, and the body to pass on. */
export interface Prompt extends Size {
  readonly model: string
  readonly stream: boolean
  /** Whether the client wants the usage chunk at the end of its stream. */
  readonly show_usage: boolean
  readonly body: Readonly<Record<string, unknown>>
}

const chatFits = fits(chat, { messages: areMessages })
const completionFits = fits(completion)
const decodeChat = Schema.decodeUnknownEither(ChatRequest)
const decodeCompletion = Schema.decodeUnknownEither(CompletionRequest)

/** Reads the body of `POST /v1/chat/completions`. */
export const readChat = (bytes: Buffer): Either.Either<Prompt, InvalidRequest> =>
  read<ChatRequest>(bytes, chatFits, decodeChat, (request) => {
    const attached = attachmentsOf(request.messages)
    return {
      prompt_tokens_max: bytes.length - attached.bytes,
      attachments: attached.count,
      answers: request.n ?? 1,
      answer_tokens_max: request.max_completion_tokens ?? request.max_tokens ?? undefined
    }
  })

/** Reads the body of `POST /v1/completions`. */
export const readCompletion = (bytes: Buffer): Either.Either<Prompt, InvalidRequest> =>
  read<CompletionRequest>(bytes, completionFits, decodeCompletion, (request) => {
    const { prompt } = request
    const prompts = typeof prompt === "string" || typeof prompt[0] === "number" ? 1 : Math.max(1, prompt.length)
    return {
      prompt_tokens_max: bytes.length,
      attachments: 0,
      answers: prompts * Math.max(request.n ?? 1, request.best_of ?? 1),
      answer_tokens_max: request.max_tokens ?? 16
    }
  })

const read = <A extends Pick<ChatRequest, "model" | "stream" | "stream_options">>(
  bytes: Buffer,
  fits: (body: unknown) => boolean,
  decode: (body: unknown) => Either.Either<A, ParseResult.ParseError>,
  sizeOf: (request: A) => Size
): Either.Either<Prompt, InvalidRequest> => {
  let body: unknown
  try {
    body = JSON.parse(bytes.toString("utf8"))
  } catch {
    return Either.left(
      new InvalidRequest({ error: "the request body is not JSON", details: { field: "", rule: "JSON" } })
    )
  }
  const request = fits(body) ? Either.right(body as A) : Either.mapLeft(decode(body), invalid)
  return Either.map(request, (request) => {
    const { answer_tokens_max, answers, attachments, prompt_tokens_max } = sizeOf(request)
    // Written out rather than spread, being made for every call.
    return {
      model: request.model,
      stream: request.stream === true,
      show_usage: request.stream_options?.include_usage === true,
      prompt_tokens_max,
      attachments,
      answers,
      answer_tokens_max,
      body: body as Readonly<Record<string, unknown>>
    }
  })
}

const invalid = (error: ParseResult.ParseError): InvalidRequest => {
  const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
  const field = issue?.path.map(String).join(".") ?? ""
  const rule = issue?.message ?? "the documented shape"
  return new InvalidRequest({
    error: `${field === "" ? "the request body" : field}: ${rule}`,
    details: { field, rule }
  })
}

/** Parts whose bytes say nothing of their tokens: data URIs of images, audio, files. */
const attachmentsOf = (messages: ChatRequest["messages"]): { readonly count: number; readonly bytes: number } => {
  let count = 0
  let bytes = 0
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue
    for (const part of content) {
      if (typeof part !== "object" || part === null || part.type === "text") continue
      count++
      const data: unknown = part.image_url?.url ?? part.input_audio?.data ?? part.file?.file_data
      if (typeof data === "string") bytes += data.length
    }
  }
  return { count, bytes }
}

/** The fewest tokens of an answer for which a call without a limit of its own is worth admitting. */
export const answerTokensLeast = 16
/** A payer who affords an answer of so many goes before one who affords only the fewest. */
export const answerTokensEnough = 1_024

export interface Bound {
  readonly least: Nano
  readonly enough: Nano
  readonly most: Nano
}

const promptCharge = (model: Model, prompt: Prompt) => ({
  // An upstream refuses a prompt that is longer than the model's context, so it never costs more than that.
  units: Math.min(prompt.prompt_tokens_max + prompt.attachments * model.attachment_tokens_max, model.context_length),
  price: model.prompt_price
})

/** The most that the call can cost. Without a limit on the answer the model's own applies, or what the balance affords of it. */
export const boundOf = (model: Model, prompt: Prompt): Bound => {
  const withAnswer = (tokens: number) =>
    charge([promptCharge(model, prompt), { units: tokens * prompt.answers, price: model.completion_price }])
  if (prompt.answer_tokens_max !== undefined) {
    const exact = withAnswer(prompt.answer_tokens_max)
    return { least: exact, enough: exact, most: exact }
  }
  return {
    least: withAnswer(Math.min(answerTokensLeast, model.output_tokens_max)),
    enough: withAnswer(Math.min(answerTokensEnough, model.output_tokens_max)),
    most: withAnswer(model.output_tokens_max)
  }
}

/** How long each answer may become within what was set aside. */
export const answerTokensWithin = (model: Model, prompt: Prompt, reserved: Nano): number => {
  const left = reserved - charge([promptCharge(model, prompt)])
  const tokens = affordable(left > 0n ? left : 0n, model.completion_price) / prompt.answers
  return Math.floor(Math.min(tokens, model.output_tokens_max))
}
