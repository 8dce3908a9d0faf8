/**
 * Validates a chat or text completion request and computes its maximum cost. Only the fields that the specification limits are validated. All others
 * are sent unchanged.
 *
 * Where the specification is silent:
 * - A prompt is bounded by its bytes (a token is at least one byte), plus `max_added_tokens`, plus `max_tool_tokens` if it has tools, but never by
 *   more than the model's context. An image counts as `max_attachment_tokens` instead of its bytes. `Attachments` lists the files that count by their
 *   bytes. A video, most other files, and any attachment by id or URL except an image count as the complete context.
 * - The bound is an upper estimate. If the vendor counts a larger prompt, its count is accepted up to the context.
 * - A token budget reserves this bound, so it may reject a call that would have stayed within the budget.
 * - A token limit above `max_output_tokens` is lowered to it, both for the bound and for the upstream.
 * - The bound uses the most expensive price line that can apply to the request. The line for long prompts counts only if the bound is that long, and
 *   the lines for audio and images only if the prompt has attachments.
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
import { maxPricesOf, acceptsLimit } from "./Model.ts"
import type { Kinds, Model, ModelRoute } from "./Model.ts"
import type { Named } from "./Kept.ts"
import { bytesAToken } from "./Tokens.ts"
import type { MaxTokens } from "./Tokens.ts"

const Stop = Schema.Union(Schema.String, Schema.Array(Schema.String).pipe(Schema.maxItems(4))).annotations({
  message: () => ({ message: "must be a string or at most 4 strings", override: true })
})

const common = {
  frequency_penalty: optional(between(-2, 2)),
  presence_penalty: optional(between(-2, 2)),
  logit_bias: optional(Schema.Record({ key: Schema.String, value: Schema.JsonNumber })),
  max_tokens: optional(whole(1, 1_000_000_000)),
  /** The newer name of `max_tokens`. */
  max_completion_tokens: optional(whole(1, 1_000_000_000)),
  /** The number of completions to generate. The vendor returns the best ones. */
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

/** Returns whether the content is valid for the role. Parts are not validated. Only an assistant's message may have null content. */
const isContent = (role: string, content: unknown): boolean =>
  typeof content === "string" || Array.isArray(content) || (role === "assistant" && (content ?? null) === null)

const Message = Schema.Struct({ role: Schema.String, content: Schema.optional(Schema.Unknown) }).pipe(
  Schema.filter(({ content, role }) =>
    isContent(role, content)
      ? undefined
      : {
          path: ["content"],
          message:
            role === "assistant"
              ? "must be a string, an array of parts, or null"
              : "must be a string or an array of parts"
        }
  )
)

/** Performs the same checks as the schema `Message`. */
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
      .pipe(Schema.minItems(1, { message: () => "must contain at least one message" }))
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

/** A chat completion request. Other fields are sent to the model unchanged. */
export interface ChatPrompt extends Omit<ChatRequest, "messages"> {
  readonly messages: ReadonlyArray<ChatMessage>
  readonly [field: string]: unknown
}

export interface ChatMessage {
  readonly role: string
  /** A string or an array of parts. It can be absent if the assistant called tools. */
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
    ).annotations({
      message: () => ({ message: "must be a string, or an array of strings or tokens", override: true })
    })
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

/** A text completion request. Other fields are sent to the model unchanged. */
export interface TextPrompt extends CompletionRequest {
  readonly [field: string]: unknown
}

/** The request properties that determine its cost. */
export interface Size {
  /** The size of the request without its images, in bytes. */
  readonly bytes: number
  /** The number of images, audio and files. */
  readonly attachments: number
  /** Whether an attachment may fill the model's context. */
  readonly attached_elsewhere: boolean
  /** Whether the request has tools. The vendor may add instructions about tools. */
  readonly with_tools: boolean
  /** The field that refers to a vendor's file, container or audio output by id. */
  readonly names_kept: string | undefined
  readonly prompts: number
  readonly answers: number
  /** The client's completion limit, if it sets one. It applies to each choice. */
  readonly answer_tokens_max: number | undefined
}

/** A validated prompt. */
export interface ValidPrompt extends Size {
  readonly model: string
  /** Whether the client requested the usage chunk at the end of its stream. */
  readonly show_usage: boolean
  readonly body: Readonly<Record<string, unknown>>
  /** The body's received JSON, if available. */
  readonly json: Buffer | undefined
  /** Set if the prompt is long. Its long members are then not in `body`. */
  readonly long?: LongText | undefined
}

/** A long member of a prompt body, as JSON. */
export interface LongMember {
  readonly name: string
  /** The member's JSON, or `undefined` if it is a part of the received JSON. */
  readonly bytes: Uint8Array | undefined
  /** The part's first byte, and the byte after its last. */
  readonly from: number
  readonly to: number
}

/** A long prompt's properties, which another thread has read (`engine/LongPrompts`). */
export interface LongFacts {
  readonly members: ReadonlyArray<LongMember>
  /** The values that the long members request in fields that change the vendor's bill. */
  readonly asked: ReadonlyMap<string, ReadonlyArray<string>>
  /** Whether the prompt contains reasoning that another vendor signed. */
  readonly foreign: boolean
  /** Whether the prompt might request one-hour caching. `hour_field` is the field that does. */
  readonly mentions_an_hour: boolean
  readonly hour_field: string | undefined
  /** Identifies the prompt's conversation, for sticky routing. */
  readonly conversation: string
  /** The ids of stored objects in the prompt (`prompts/Kept`). */
  readonly named: ReadonlyArray<Named>
}

/** A long prompt on the main thread. */
export interface LongText extends LongFacts {
  /** The received JSON. The buffer is replaced when it returns from another thread. */
  json: Buffer
  /** The hash of the received JSON. */
  readonly hash: string
  /** The prompt's translations, by route. */
  readonly translations: Map<ModelRoute, Translation>
}

/** A prompt in an upstream's protocol, as chunks of JSON. `Left` contains the reason why there is none. */
export interface Translation {
  readonly limit: number | undefined
  readonly body: Either.Either<ReadonlyArray<Buffer>, InvalidRequest>
  /** The SHA-256 of these chunks, in hexadecimal, if the upstream requires it. */
  readonly sha256: string | undefined
}

const chatFits = fits(chat)
const completionFits = fits(completion)
const decodeChat = Schema.decodeUnknownEither(ChatRequest)
const decodeCompletion = Schema.decodeUnknownEither(CompletionRequest)

/** Returns the completion limit. If a client sends both fields, the smaller limit applies. */
const limitOf = ({
  max_completion_tokens,
  max_tokens
}: Pick<ChatRequest, "max_tokens" | "max_completion_tokens">): number | undefined => {
  const [one, other] = [max_tokens ?? undefined, max_completion_tokens ?? undefined]
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
}

const choiceCount = ({ best_of, n }: Pick<ChatRequest, "n" | "best_of">): number => Math.max(n ?? 1, best_of ?? 1)

/** Validates a prompt from a client or an embedding program. `json` is its JSON, if available. */
export type Read = (prompt: unknown, json?: Buffer) => Either.Either<ValidPrompt, InvalidRequest>

/** Reads a chat completion request. The length of `json` bounds the prompt's tokens. */
export const readChat: Read = (prompt, json) =>
  read<ChatRequest>(prompt, json, chatFits, decodeChat, (request, length) => {
    const attached = attachmentsOf(request.messages)
    return {
      bytes: length - attached.bytes,
      attachments: attached.count,
      attached_elsewhere: attached.elsewhere,
      with_tools: isNonEmptyArray(request.tools) || isNonEmptyArray((request as ChatPrompt).functions),
      names_kept: attached.by_id,
      prompts: 1,
      answers: choiceCount(request),
      answer_tokens_max: limitOf(request)
    }
  })

/** Returns whether the value is a non-empty array. */
export const isNonEmptyArray = (list: unknown): boolean => Array.isArray(list) && list.length > 0

/** A text completion's default limit, in tokens. */
const defaultCompletionLimit = 16

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
      answers: prompts * choiceCount(request),
      answer_tokens_max: limitOf(request) ?? defaultCompletionLimit
    }
  })

/**
 * Validates a body with hand-written checks. Decodes it with the schema only to describe its defect. `sizeOf` returns the figures that bound the
 * cost.
 */
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
    // This code runs on every call, so it avoids a spread.
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

/** Parts of these types contain at most one token per byte. */
const textual: ReadonlySet<unknown> = new Set(["text", "input_text", "output_text", "refusal", "thinking", "reasoning"])

const isImage = (type: unknown): boolean => type === "image_url" || type === "image" || type === "input_image"

/** Rejects a reference to a vendor's object. The vendor stores all callers' objects under one key, so the service cannot determine the owner. */
export const vendorObjectError = (field: string) =>
  InvalidRequest.of(field, "this model accepts no ids of objects stored by its vendor: send the object in the request")

const attachmentsOf = (messages: ChatRequest["messages"]): Attached => {
  const attached = nothingAttached()
  for (const message of messages) {
    const { audio, content } = message as { readonly audio?: unknown; readonly content?: unknown }
    // The message refers to an earlier audio output by id.
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

/** The number of completion tokens that the payer of a call without a limit must be able to afford. */
export const minCompletionTokens = 16
/** A payer that can afford this many completion tokens is preferred to a payer that can afford only the minimum. */
export const preferredCompletionTokens = 1_024

export interface Bound {
  readonly least: Nano
  readonly enough: Nano
  readonly most: Nano
  /** The tokens in the prompt and all completions. */
  readonly tokens: { readonly least: number; readonly most: number }
}

/** Returns the maximum number of prompt tokens that an upstream accepts. */
const contextOf = (model: Model, prompt: ValidPrompt): number => model.context_length * prompt.prompts

/** Returns the number of prompt tokens to reserve. */
const promptTokensMax = (model: Model, prompt: ValidPrompt): number => {
  const context = contextOf(model, prompt)
  if (prompt.attached_elsewhere) return context
  // Every token takes at least one byte of the request.
  const sent = prompt.bytes + prompt.attachments * model.attachment_tokens_max
  const added = prompt.prompts * model.added_tokens_max + (prompt.with_tools ? model.tool_tokens_max : 0)
  return Math.min(sent + added, context)
}

/** Returns the client's completion limit, capped at the model's limit, or `undefined` if the client sets none. */
export const requestedCompletionTokens = (model: Model, { answer_tokens_max }: ValidPrompt): number | undefined =>
  answer_tokens_max === undefined ? undefined : Math.min(answer_tokens_max, model.output_tokens_max)

const kinds = (hour: boolean) => ({ plain: { attachments: false, hour }, attached: { attachments: true, hour } })
const fiveMinuteKinds = kinds(false)
const oneHourKinds = kinds(true)

const kindsOf = (model: Model, prompt: ValidPrompt): Kinds => {
  const { attached, plain } = mayBeAnHour(model, prompt) ? oneHourKinds : fiveMinuteKinds
  return prompt.attachments > 0 ? attached : plain
}

const maxPricesFor = (model: Model, prompt: ValidPrompt) =>
  maxPricesOf(model, promptTokensMax(model, prompt), kindsOf(model, prompt))

const chargeOf = (model: Model, prompt: ValidPrompt, answer: number): Nano => {
  const dearest = maxPricesFor(model, prompt)
  return charge([
    { units: promptTokensMax(model, prompt), price: dearest.prompt },
    { units: answer * prompt.answers, price: dearest.completion },
    { units: 1, price: model.request_price }
  ])
}

/** Computes a call's bounds. They differ only if the client sets no limit and all upstreams accept one. */
export const boundOf = (model: Model, prompt: ValidPrompt): Bound => {
  const whole = acceptsLimit(model) ? requestedCompletionTokens(model, prompt) : model.output_tokens_max
  if (whole !== undefined) {
    const exact = chargeOf(model, prompt, whole)
    const tokens = tokensWith(model, prompt, whole)
    return { least: exact, enough: exact, most: exact, tokens: { least: tokens, most: tokens } }
  }
  const max = model.output_tokens_max
  const least = Math.min(minCompletionTokens, max)
  return {
    least: chargeOf(model, prompt, least),
    enough: chargeOf(model, prompt, Math.min(preferredCompletionTokens, max)),
    most: chargeOf(model, prompt, max),
    tokens: { least: tokensWith(model, prompt, least), most: tokensWith(model, prompt, max) }
  }
}

/** Returns the number of tokens to reserve for the prompt and completions of this length. */
const tokensWith = (model: Model, prompt: ValidPrompt, answer: number): number =>
  promptTokensMax(model, prompt) + answer * prompt.answers

/** The credit and tokens that a call has reserved. */
export interface Reserved {
  readonly reserved: Nano
  /** The number of tokens that budgets allow, or `undefined` if no budget limits tokens. */
  readonly tokens: number | undefined
}

/** Returns the completion limit to send to the upstream, so that the call fits its reservation. */
export const completionLimitWithin = (model: Model, prompt: ValidPrompt, { reserved, tokens }: Reserved): number => {
  const asked = requestedCompletionTokens(model, prompt)
  if (asked !== undefined) return asked
  const left = reserved - chargeOf(model, prompt, 0)
  const paid = affordable(left > 0n ? left : 0n, maxPricesFor(model, prompt).completion) / prompt.answers
  const admitted =
    tokens === undefined ? model.output_tokens_max : (tokens - promptTokensMax(model, prompt)) / prompt.answers
  // The reservation covers the minimum completion, even if rounding suggests one token less.
  const fewest = Math.min(minCompletionTokens, model.output_tokens_max)
  return Math.max(fewest, Math.floor(Math.min(paid, admitted, model.output_tokens_max)))
}

/** Returns the completion limit if a fallback serves the call, or `undefined` if even the minimum completion could exceed the reservation. */
export const affordableCompletionLimit = (model: Model, prompt: ValidPrompt, within: Reserved): number | undefined => {
  const bound = boundOf(model, prompt)
  return bound.least > within.reserved || (within.tokens !== undefined && bound.tokens.least > within.tokens)
    ? undefined
    : completionLimitWithin(model, prompt, within)
}

/** Returns the maximum token counts that a request can cause if each completion has at most `answer` tokens. */
export const maxTokensOf = (model: Model, prompt: ValidPrompt, answer: number): MaxTokens => ({
  prompt_tokens: promptTokensMax(model, prompt),
  context_tokens: contextOf(model, prompt),
  completion_tokens: answer * prompt.answers,
  kinds: kindsOf(model, prompt)
})

/** Estimates the prompt's tokens from its bytes. */
export const promptTokensEstimate = (model: Model, prompt: ValidPrompt): number =>
  Math.ceil(prompt.bytes / bytesAToken) + prompt.attachments * model.attachment_tokens_max
