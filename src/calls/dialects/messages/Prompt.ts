/**
 * Reads a request in Anthropic's Messages protocol and computes the figures that bound its cost. Validates only the fields that clients expect it to
 * validate. All others are sent unchanged.
 *
 * Where the specification is silent:
 * - The bound is computed as for chat (`calls/prompts/Prompt`): a token takes at least one byte of the request. An image of any size counts as
 *   `max_attachment_tokens`, even in a tool result. A text document also counts by its bytes. Any other document, an attachment by URL or id, and a
 *   video count as the complete context.
 */
import { Schema } from "effect"
import type { Either, ParseResult } from "effect"
import { addData, addImage, addImageData, noteFiles, nothingAttached } from "../../prompts/Attachments.ts"
import type { Attached } from "../../prompts/Attachments.ts"
import { inAnyCase } from "../../prompts/Extras.ts"
import { between, byHand, fits, Flag, ModelName, optional, whole } from "../../prompts/Fields.ts"
import { isNonEmptyArray, read } from "../../prompts/Prompt.ts"
import type { Read } from "../../prompts/Prompt.ts"

const isContent = (content: unknown): boolean =>
  typeof content === "string" || (Array.isArray(content) && content.every(isBlock))

const isBlock = (block: unknown): boolean =>
  typeof block === "object" && block !== null && typeof (block as { readonly type?: unknown }).type === "string"

const Content = Schema.Unknown.pipe(
  Schema.filter(isContent, { message: () => "must be a string or an array of content blocks, each with its type" })
)

const Message = Schema.Struct({ role: Schema.String, content: Content })

/** Performs the same checks as the schema `Message`. */
const areMessages = (messages: unknown): boolean =>
  Array.isArray(messages) &&
  messages.length > 0 &&
  messages.every(
    (message: Readonly<Record<string, unknown>> | null | undefined) =>
      typeof message?.role === "string" && isContent(message.content)
  )

const conversation = {
  model: ModelName,
  messages: Schema.Array(Message)
    .pipe(Schema.minItems(1, { message: () => "must contain at least one message" }))
    .annotations({ [byHand]: areMessages })
} as const

const areObjects = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === "object" && one !== null)

const Typed = Schema.Struct({ type: Schema.String })

const options = {
  system: optional(Content.annotations({ [byHand]: isContent })),
  thinking: optional(Typed),
  tool_choice: optional(Typed),
  /** The tools. Those that the vendor runs are priced by the model's `extras`. */
  tools: optional(
    Schema.Array(
      Schema.Struct({ name: Schema.optional(Schema.String), type: Schema.optional(Schema.NullOr(Schema.String)) })
    ).annotations({
      [byHand]: areObjects
    })
  )
} as const

const request = {
  required: { ...conversation, max_tokens: whole(1, 1_000_000_000) },
  optional: {
    ...options,
    metadata: optional(Schema.Struct({ user_id: Schema.optional(Schema.NullOr(Schema.String)) })),
    stop_sequences: optional(Schema.Array(Schema.String)),
    stream: optional(Flag),
    temperature: optional(between(0, 1)),
    top_k: optional(whole(0, 1_000_000_000)),
    top_p: optional(between(0, 1))
  }
} as const

export const MessagesRequest = Schema.extend(
  Schema.Struct(request.required),
  Schema.partial(Schema.Struct(request.optional))
).annotations({ identifier: "MessagesRequest" })
export type MessagesRequest = typeof MessagesRequest.Type

export const CountTokensRequest = Schema.extend(
  Schema.Struct(conversation),
  Schema.partial(Schema.Struct(options))
).annotations({ identifier: "CountTokensRequest" })
export type CountTokensRequest = typeof CountTokensRequest.Type

/** A Messages request. Other fields are sent to the model unchanged. */
export interface MessagesPrompt extends Omit<MessagesRequest, "messages" | "system" | "tools"> {
  readonly messages: ReadonlyArray<MessageParam>
  readonly system?: string | ReadonlyArray<Block> | null | undefined
  readonly tools?: ReadonlyArray<Readonly<Record<string, unknown>>> | null | undefined
  readonly [field: string]: unknown
}

export interface MessageParam {
  readonly role: string
  readonly content: string | ReadonlyArray<Block>
  readonly [field: string]: unknown
}

export interface Block {
  readonly type: string
  readonly [field: string]: unknown
}

export type CountTokensPrompt = Omit<MessagesPrompt, "max_tokens">

// ---- figures that bound the cost ------------------------------------------------------------------------------------------------

/** Blocks of these types contain at most one token per byte. */
const textual: ReadonlySet<string> = new Set([
  "text",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "search_result",
  "server_tool_use",
  "web_search_tool_result"
])

type Source = Readonly<Record<"type" | "data" | "url" | "media_type" | "content", unknown>>

const look = (content: unknown, attached: Attached): void => {
  if (!Array.isArray(content)) return
  for (const block of content as ReadonlyArray<Block>) {
    if (textual.has(block.type)) continue
    noteFiles(attached, block)
    if (block.type === "tool_result") look(block.content, attached)
    else attach(block.type, (block.source ?? {}) as Source, attached)
  }
}

const attach = (type: string, source: Source, attached: Attached): void => {
  const { data, media_type, type: kind } = source
  if (type === "document" && kind === "text") return
  if (type === "document" && kind === "content") return look(source.content, attached)
  const held = kind === "base64" ? data : undefined
  if (type !== "image") addData(attached, held, media_type)
  else if (typeof held === "string") addImageData(attached, media_type, held)
  else addImage(attached, source.url ?? "")
}

/** Returns whether the request refers to a container by its id. */
const isNamed = (container: unknown): boolean =>
  typeof container === "string" ||
  (typeof container === "object" &&
    container !== null &&
    Object.entries(container).some(([name, id]) => inAnyCase(name) === "id" && id !== null))

const attachmentsOf = ({
  container,
  messages,
  system
}: CountTokensRequest & { readonly container?: unknown }): Attached => {
  const attached = nothingAttached()
  if (isNamed(container)) attached.by_id = "container"
  look(system, attached)
  for (const { content } of messages) look(content, attached)
  return attached
}

const reads = (
  fields: Parameters<typeof fits>[0],
  decode: (body: unknown) => Either.Either<CountTokensRequest & Partial<MessagesRequest>, ParseResult.ParseError>
): Read => {
  const fit = fits(fields)
  return (prompt, json) =>
    read(prompt, json, fit, decode, (request, length) => {
      const attached = attachmentsOf(request)
      return {
        bytes: length - attached.bytes,
        attachments: attached.count,
        attached_elsewhere: attached.elsewhere,
        with_tools: isNonEmptyArray(request.tools),
        names_kept: attached.by_id,
        prompts: 1,
        answers: 1,
        // A request to count tokens gets no completion.
        answer_tokens_max: request.max_tokens ?? 0
      }
    })
}

export const readMessages: Read = reads(request, Schema.decodeUnknownEither(MessagesRequest))

export const readCount: Read = reads(
  { required: conversation, optional: options },
  Schema.decodeUnknownEither(CountTokensRequest)
)
