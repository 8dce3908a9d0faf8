/**
 * Reads a request in OpenAI's Responses protocol and computes the figures that bound its cost. Validates only the fields that clients expect it to
 * validate. All others are sent unchanged.
 *
 * Where the specification is silent:
 * - The bound is computed as for chat (`calls/prompts/Prompt`): a token takes at least one byte of the request. An image of any size counts as
 *   `max_attachment_tokens`, even in a tool's output. Text and some audio also count by their bytes. Any other file, an attachment by URL or id
 *   (except an image), an earlier response, and a summary in a vendor-specific format count as the complete context.
 */
import { Schema } from "effect"
import { addData, addImage, noteFiles, nothingAttached } from "../../prompts/Attachments.ts"
import type { Attached } from "../../prompts/Attachments.ts"
import { between, byHand, fits, Flag, ModelName, optional, whole } from "../../prompts/Fields.ts"
import { isNonEmptyArray, read } from "../../prompts/Prompt.ts"
import type { Read } from "../../prompts/Prompt.ts"

const isInput = (input: unknown): boolean =>
  typeof input === "string" ||
  (Array.isArray(input) && input.length > 0 && input.every((item) => typeof item === "object" && item !== null))

const Input = Schema.Unknown.pipe(
  Schema.filter(isInput, { message: () => "must be a string or a non-empty array of items" })
).annotations({ [byHand]: isInput })

const areObjects = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one: { readonly type?: unknown } | null) => typeof one?.type === "string")

const Typed = Schema.Struct({ type: Schema.String })

const request = {
  required: { model: ModelName, input: Input },
  optional: {
    instructions: optional(Schema.String),
    max_output_tokens: optional(whole(1, 1_000_000_000)),
    metadata: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
    parallel_tool_calls: optional(Flag),
    /** The request is rejected if the upstream does not store responses. */
    previous_response_id: optional(Schema.String),
    reasoning: optional(Schema.Struct({ effort: Schema.optional(Schema.NullOr(Schema.String)) })),
    store: optional(Flag),
    stream: optional(Flag),
    temperature: optional(between(0, 2)),
    text: optional(Schema.Struct({ format: Schema.optional(Schema.NullOr(Typed)) })),
    tool_choice: optional(Schema.Union(Schema.String, Typed)),
    tools: optional(Schema.Array(Typed).annotations({ [byHand]: areObjects })),
    top_p: optional(between(0, 1)),
    user: optional(Schema.String)
  }
} as const

export const ResponsesRequest = Schema.extend(
  Schema.Struct(request.required),
  Schema.partial(Schema.Struct(request.optional))
).annotations({ identifier: "ResponsesRequest" })
export type ResponsesRequest = typeof ResponsesRequest.Type

/** A message, a tool call or its output, reasoning, or an item defined by the vendor. */
export interface Item {
  readonly type?: string
  readonly [field: string]: unknown
}

/** A Responses request. Other fields are sent to the model unchanged. */
export interface ResponsesPrompt extends Omit<ResponsesRequest, "input"> {
  readonly input: string | ReadonlyArray<Item>
  readonly [field: string]: unknown
}

// ---- figures that bound the cost ------------------------------------------------------------------------------------------------

/** Returns whether the bytes of a part or item bound its tokens. */
const isText = (type: unknown): boolean =>
  typeof type === "string" && /^(?:input_text|output_text|text|summary_text|reasoning_text|refusal)$/.test(type)

/** Returns whether an item refers to content outside the request. */
const isExternal = (type: unknown): boolean =>
  type === "item_reference" || type === "compaction" || type === "context_compaction"

const look = (content: unknown, attached: Attached): void => {
  if (!Array.isArray(content)) return
  for (const part of content as ReadonlyArray<Item | null>) {
    if (typeof part !== "object" || part === null || isText(part.type)) continue
    noteFiles(attached, part)
    attach(part, attached)
  }
}

const attach = (part: Item, attached: Attached): void => {
  const { file_data, file_id, file_url, image_url, input_audio, type } = part
  if (type === "input_image" || type === "computer_screenshot") addImage(attached, image_url ?? "")
  else if (type === "input_audio") addData(attached, (input_audio as Item | null | undefined)?.data)
  else addData(attached, file_id || file_url ? undefined : file_data)
}

const kept = /"(?:file_ids?|vector_store_ids?|container_ids?)":(?!\[\]|null)|"container":"/i

/** Records the files, file stores and containers that the vendor's tools refer to. */
const noteStores = (attached: Attached, tools: unknown): void => {
  if (!Array.isArray(tools)) return
  const names = (tools as ReadonlyArray<Item | null>).some(
    (tool) => tool?.type !== "function" && tool?.type !== "custom" && kept.test(JSON.stringify(tool))
  )
  if (names) attached.by_id ??= "tools"
}

const attachmentsOf = ({ input, previous_response_id, ...others }: ResponsesPrompt): Attached => {
  const attached = nothingAttached()
  attached.elsewhere = (previous_response_id ?? others.conversation ?? others.prompt ?? null) !== null
  noteStores(attached, others.tools)
  if (typeof input === "string") return attached
  for (const item of input) {
    const { content, output, type } = item
    if (!Array.isArray(content)) noteFiles(attached, item)
    if (isExternal(type)) attached.elsewhere = true
    look(content, attached)
    if (Array.isArray(output)) look(output, attached)
    else if (type === "computer_call_output") look([output], attached)
  }
  return attached
}

const fit = fits(request)
const decode = Schema.decodeUnknownEither(ResponsesRequest)

export const readResponses: Read = (prompt, json) =>
  read(prompt, json, fit, decode, (request, length) => {
    const attached = attachmentsOf(request as ResponsesPrompt)
    return {
      bytes: length - attached.bytes,
      attachments: attached.count,
      attached_elsewhere: attached.elsewhere,
      with_tools: isNonEmptyArray(request.tools),
      names_kept: attached.by_id,
      prompts: 1,
      answers: 1,
      answer_tokens_max: request.max_output_tokens ?? undefined
    }
  })
