/**
 * A request for a chat or text completion, and the most that it can cost. It is validated where the specification sets limits, and
 * otherwise passed on unchanged.
 *
 * Where the specification is silent:
 * - The bound of a prompt is the sum of its bytes (a token is at least one byte), `max_added_tokens`, and `max_tool_tokens` if it has tools,
 *   but at most the model's context. An image counts `max_attachment_tokens` instead of its bytes; `Attachments` says which files count
 *   their bytes too. A film, most other files, and anything attached by id or address except an image count the whole context.
 * - The bound is an upper estimate. If a vendor counts more tokens in a prompt, it is believed up to the context.
 * - A limit for the answer above `max_output_tokens` is lowered to it, for the bound and for the upstream.
 * - Each token of the bound is priced by the most expensive line that can apply to the request: the line for cache writes, the line for
 *   long prompts if the bound is that long, the lines for audio or images if something is attached.
 */
import { Either, Schema } from "effect"
import type { ParseResult } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Nano } from "../../kernel/Money.ts"
import { affordable, charge } from "../../kernel/Price.ts"
import { addData, addImage, noteFiles, nothingAttached } from "./Attachments.ts"
import type { Attached } from "./Attachments.ts"
import { mayBeAnHour } from "./CacheHour.ts"
import { between, byHand, fits, Flag, ModelName, optional, whole } from "./Fields.ts"
import { dearestOf, takesLimit } from "./Model.ts"
import type { Kinds, Model } from "./Model.ts"
import { bytesAToken } from "./Tokens.ts"
import type { Most } from "./Tokens.ts"

const Stop = Schema.Union(Schema.String, Schema.Array(Schema.String).pipe(Schema.maxItems(4))).annotations({
  message: () => ({ message: "a string or up to 4 strings", override: true })
})

const common = {
  frequency_penalty: optional(between(-2, 2)),
  presence_penalty: optional(between(-2, 2)),
  logit_bias: optional(Schema.Record({ key: Schema.String, value: Schema.JsonNumber })),
  max_tokens: optional(whole(1, 1_000_000_000)),
  /** The newer name of `max_tokens`. */
  max_completion_tokens: optional(whole(1, 1_000_000_000)),
  /** Answers that are generated for each that is given. */
  best_of: optional(whole(1, 128)),
  n: optional(whole(1, 128)),
  seed: optional(Schema.Int),
  stop: optional(Stop),
  stream: optional(Flag),
  stream_options: optional(Schema.Struct({ include_usage: Schema.optional(Schema.NullOr(Schema.Boolean)) })),
  temperature: optional(between(0, 2)),
  top_p: optional(between(0, 1)),
  user: optional(Schema.String)
} as const

/** The content of the parts is between client and upstream. Only an assistant may have said nothing: it called tools instead. */
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

/** Whether these are messages as `Message` says. */
const areMessages = (messages: unknown): boolean =>
  Array.isArray(messages) &&
  messages.length > 0 &&
  messages.every(
    (message: Readonly<Record<string, unknown>> | null | undefined) =>
      typeof message?.role === "string" && isContent(message.role, message.content)
  )

const chat = {
  required: {
    model: ModelName,
    messages: Schema.Array(Message)
      .pipe(Schema.minItems(1, { message: () => "at least one message" }))
      .annotations({ [byHand]: areMessages })
  },
  optional: {
    ...common,
    logprobs: optional(Schema.Boolean),
    top_logprobs: optional(whole(0, 20)),
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

/** A request for a chat completion; fields that are not named here reach the model unchanged. */
export interface ChatPrompt extends Omit<ChatRequest, "messages"> {
  readonly messages: ReadonlyArray<ChatMessage>
  readonly [field: string]: unknown
}

export interface ChatMessage {
  readonly role: string
  /** A text or a list of parts; an assistant that called tools may have none. */
  readonly content?: unknown
  readonly [field: string]: unknown
}

const completion = {
  required: {
    model: ModelName,
    prompt: Schema.Union(
      Schema.String,
      Schema.Array(Schema.String),
      Schema.Array(Schema.Int),
      Schema.Array(Schema.Array(Schema.Int))
    ).annotations({ message: () => ({ message: "a string, or an array of strings or tokens", override: true }) })
  },
  optional: {
    ...common,
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

/** A request for a text completion; fields that are not named here reach the model unchanged. */
export interface TextPrompt extends CompletionRequest {
  readonly [field: string]: unknown
}

/** The parts of a request that its cost depends on. */
export interface Size {
  /** The bytes of the request, without those of its images. */
  readonly bytes: number
  /** Images and other parts whose bytes say nothing of their tokens. */
  readonly attachments: number
  /** Something is attached by its name or address: it may be as long as the model can read. */
  readonly attached_elsewhere: boolean
  /** The client offers tools. The vendor may add its own words about them. */
  readonly with_tools: boolean
  /** The field that names by its id what the vendor keeps: a file, a container, a spoken answer. */
  readonly names_kept: string | undefined
  readonly prompts: number
  /** How many answers are generated. */
  readonly answers: number
  /** The client's limit for each answer, `undefined` if it sets none. */
  readonly answer_tokens_max: number | undefined
}

/** A validated prompt: what the gate and the relay need of it, and the body to pass on. */
export interface ValidPrompt extends Size {
  readonly model: string
  /** Whether the client wants the usage chunk at the end of its stream. */
  readonly show_usage: boolean
  readonly body: Readonly<Record<string, unknown>>
  /** Its JSON text, unchanged. */
  readonly json: Buffer | undefined
}

const chatFits = fits(chat)
const completionFits = fits(completion)
const decodeChat = Schema.decodeUnknownEither(ChatRequest)
const decodeCompletion = Schema.decodeUnknownEither(CompletionRequest)

/** The limit of each answer: where a client sends both names, the smaller. */
const limitOf = ({
  max_completion_tokens,
  max_tokens
}: Pick<ChatRequest, "max_tokens" | "max_completion_tokens">): number | undefined => {
  const [one, other] = [max_tokens ?? undefined, max_completion_tokens ?? undefined]
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
}

const answersOf = ({ best_of, n }: Pick<ChatRequest, "n" | "best_of">): number => Math.max(n ?? 1, best_of ?? 1)

/** Reads a prompt from a client, an embedding program or a JSON body, and validates it. */
export type Read = (prompt: unknown, json?: Buffer) => Either.Either<ValidPrompt, InvalidRequest>

/** `json` is the prompt's JSON where it came as such: its length bounds the prompt's tokens. */
export const readChat: Read = (prompt, json) =>
  read<ChatRequest>(prompt, json, chatFits, decodeChat, (request, length) => {
    const attached = attachmentsOf(request.messages)
    return {
      bytes: length - attached.bytes,
      attachments: attached.count,
      attached_elsewhere: attached.elsewhere,
      with_tools: isAny(request.tools) || isAny((request as ChatPrompt).functions),
      names_kept: attached.by_id,
      prompts: 1,
      answers: answersOf(request),
      answer_tokens_max: limitOf(request)
    }
  })

/** Whether a list has anything in it. */
export const isAny = (list: unknown): boolean => Array.isArray(list) && list.length > 0

/** The limit of a text completion whose client sets none. */
const completionTokens = 16

/** The same of a text completion. */
export const readCompletion: Read = (prompt, json) =>
  read<CompletionRequest>(prompt, json, completionFits, decodeCompletion, (request, length) => {
    const { prompt } = request
    const prompts = typeof prompt === "string" || typeof prompt[0] === "number" ? 1 : Math.max(1, prompt.length)
    return {
      bytes: length,
      attachments: 0,
      attached_elsewhere: false,
      with_tools: false,
      names_kept: undefined,
      prompts,
      answers: prompts * answersOf(request),
      answer_tokens_max: limitOf(request) ?? completionTokens
    }
  })

/** The fields are checked by hand, and decoded only to describe a fault. `sizeOf` says what the cost depends on. */
export const read = <A extends Pick<ChatRequest, "model" | "stream_options">>(
  body: unknown,
  json: Buffer | undefined,
  fits: (body: unknown) => boolean,
  decode: (body: unknown) => Either.Either<A, ParseResult.ParseError>,
  sizeOf: (request: A, bytes: number) => Size
): Either.Either<ValidPrompt, InvalidRequest> => {
  const request = fits(body) ? Either.right(body as A) : Either.mapLeft(decode(body), InvalidRequest.ofDecoding)
  return Either.map(request, (request) => {
    const size = sizeOf(request, json?.length ?? Buffer.byteLength(JSON.stringify(body)))
    // Written out rather than spread, being made for every call.
    return {
      model: request.model,
      show_usage: request.stream_options?.include_usage === true,
      bytes: size.bytes,
      attachments: size.attachments,
      attached_elsewhere: size.attached_elsewhere,
      with_tools: size.with_tools,
      names_kept: size.names_kept,
      prompts: size.prompts,
      answers: size.answers,
      answer_tokens_max: size.answer_tokens_max,
      body: body as Readonly<Record<string, unknown>>,
      json
    }
  })
}

/** Parts that are text, so that their bytes bound their tokens. */
const textual: ReadonlySet<unknown> = new Set(["text", "input_text", "output_text", "refusal", "thinking", "reasoning"])

const isImage = (type: unknown): boolean => type === "image_url" || type === "image" || type === "input_image"

/** The vendor keeps files, containers and spoken answers of all callers under one key, so their owner is unknown here. */
export const keptById = (field: string) =>
  InvalidRequest.of(field, "this model takes nothing that its vendor keeps by its id: send it in the request")

/** The attachments of messages. */
const attachmentsOf = (messages: ChatRequest["messages"]): Attached => {
  const attached = nothingAttached()
  for (const message of messages) {
    const { audio, content } = message as { readonly audio?: unknown; readonly content?: unknown }
    // An earlier spoken answer, by its id.
    if (typeof audio === "object" && audio !== null) {
      attached.by_id ??= "audio"
      addData(attached, undefined)
    }
    if (!Array.isArray(content)) continue
    for (const part of content) {
      if (typeof part !== "object" || part === null || textual.has(part.type)) continue
      noteFiles(attached, part)
      if (isImage(part.type)) addImage(attached, part.image_url?.url ?? part.image_url)
      else if (part.type === "input_audio") addData(attached, part.input_audio?.data)
      else addData(attached, part.type === "file" && !part.file?.file_id ? part.file?.file_data : undefined)
    }
  }
  return attached
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

/** The most tokens that an upstream takes: it refuses a prompt that is longer than the model's context. */
const contextOf = (model: Model, prompt: ValidPrompt): number => model.context_length * prompt.prompts

/** How many tokens are set aside for the prompt. */
const promptTokensMax = (model: Model, prompt: ValidPrompt): number => {
  const context = contextOf(model, prompt)
  if (prompt.attached_elsewhere) return context
  // A token is at least a byte of the request.
  const sent = prompt.bytes + prompt.attachments * model.attachment_tokens_max
  const added = prompt.prompts * model.added_tokens_max + (prompt.with_tools ? model.tool_tokens_max : 0)
  return Math.min(sent + added, context)
}

/** The limit of each answer: the client's, and never more than the model's own. `undefined` where the client sets none. */
export const answerTokensAsked = (model: Model, { answer_tokens_max }: ValidPrompt): number | undefined =>
  answer_tokens_max === undefined ? undefined : Math.min(answer_tokens_max, model.output_tokens_max)

const kinds = (hour: boolean) => ({ plain: { attachments: false, hour }, attached: { attachments: true, hour } })
const forMinutes = kinds(false)
const forAnHour = kinds(true)

const kindsOf = (model: Model, prompt: ValidPrompt): Kinds => {
  const { attached, plain } = mayBeAnHour(model, prompt) ? forAnHour : forMinutes
  return prompt.attachments > 0 ? attached : plain
}

const dearestFor = (model: Model, prompt: ValidPrompt) =>
  dearestOf(model, promptTokensMax(model, prompt), kindsOf(model, prompt))

const chargeOf = (model: Model, prompt: ValidPrompt, answer: number): Nano => {
  const dearest = dearestFor(model, prompt)
  return charge([
    { units: promptTokensMax(model, prompt), price: dearest.prompt },
    { units: answer * prompt.answers, price: dearest.completion },
    { units: 1, price: model.request_price }
  ])
}

/** The most that the call can cost. Without a limit on the answer the model's own applies, or what the balance affords of it. */
export const boundOf = (model: Model, prompt: ValidPrompt): Bound => {
  const whole = takesLimit(model) ? answerTokensAsked(model, prompt) : model.output_tokens_max
  if (whole !== undefined) {
    const exact = chargeOf(model, prompt, whole)
    return { least: exact, enough: exact, most: exact }
  }
  const upTo = (tokens: number) => chargeOf(model, prompt, Math.min(tokens, model.output_tokens_max))
  return { least: upTo(answerTokensLeast), enough: upTo(answerTokensEnough), most: upTo(Number.POSITIVE_INFINITY) }
}

/** How long each answer may become within what was set aside: the limit that is sent to the upstream. */
export const answerTokensWithin = (model: Model, prompt: ValidPrompt, reserved: Nano): number => {
  const asked = answerTokensAsked(model, prompt)
  if (asked !== undefined) return asked
  const left = reserved - chargeOf(model, prompt, 0)
  const tokens = affordable(left > 0n ? left : 0n, dearestFor(model, prompt).completion) / prompt.answers
  // The reservation affords the fewest tokens, though a rounded charge may look like one token less.
  const fewest = Math.min(answerTokensLeast, model.output_tokens_max)
  return Math.max(fewest, Math.floor(Math.min(tokens, model.output_tokens_max)))
}

/** The same for another model than the reservation was made for; `undefined` if the call could cost more than that there. */
export const answerTokensAffordable = (model: Model, prompt: ValidPrompt, reserved: Nano): number | undefined =>
  boundOf(model, prompt).least > reserved ? undefined : answerTokensWithin(model, prompt, reserved)

/** The most tokens that the request is expected to cause, and that a vendor is believed, with answers of at most so many tokens each. */
export const mostOf = (model: Model, prompt: ValidPrompt, answer: number): Most => ({
  prompt_tokens: promptTokensMax(model, prompt),
  context_tokens: contextOf(model, prompt),
  completion_tokens: answer * prompt.answers,
  kinds: kindsOf(model, prompt)
})

/** How long the prompt is, as far as its bytes tell. */
export const promptTokensEstimate = (model: Model, prompt: ValidPrompt): number =>
  Math.ceil(prompt.bytes / bytesAToken) + prompt.attachments * model.attachment_tokens_max
