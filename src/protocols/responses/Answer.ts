/**
 * Reads and writes complete responses of the Responses protocol. Streams use the same stop reasons and errors.
 *
 * Where the specification is silent:
 * - A refusal without text from the model is `incomplete` with the reason `content_filter`. A response that ends with a stop sequence or a pause is
 *   `completed`.
 * - Items of an unknown type are ignored. Requests with the vendor's tools are rejected.
 * - A response repeats the request's fields unchanged, except those with a constant value, such as `store`. If the request is longer than 256 kB, its
 *   members above 64 kB are not repeated.
 */
import { Either } from "effect"
import type { Answer, AnswerPart } from "../conversation/Answer.ts"
import type { JsonObject } from "../conversation/Conversation.ts"
import type { Failure, FailureKind, StopReason } from "../conversation/Delta.ts"
import { isObject, listOf, objectOf, text, textOr, wordsOr } from "../conversation/Json.ts"
import { stopWith } from "../conversation/Stream.ts"
import { homeSigners, signatureIn } from "../conversation/Thoughts.ts"
import { argumentsText, callId } from "../conversation/ToolCalls.ts"
import type { AnswerOptions } from "../conversation/Translation.ts"
import type { Usage } from "../conversation/Usage.ts"
import { thoughtText } from "./Items.ts"
import { originalName } from "./Namespaces.ts"
import { usageOf, writeUsage } from "./Usage.ts"

/** Returns the stop reason, or `undefined` unless the response is `incomplete`. */
export const readStop = (response: JsonObject): StopReason | undefined => {
  if (response.status !== "incomplete") return undefined
  return objectOf(response.incomplete_details).reason === "content_filter" ? "refusal" : "length"
}

export interface Ending {
  readonly status: "completed" | "incomplete"
  readonly incomplete_details: JsonObject | null
}

const complete: Ending = { status: "completed", incomplete_details: null }

export const writeStop = (reason: StopReason, refused: boolean): Ending => {
  if (reason === "length") return { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
  return reason === "refusal" && !refused
    ? { status: "incomplete", incomplete_details: { reason: "content_filter" } }
    : complete
}

const kinds: ReadonlyMap<unknown, FailureKind> = new Map([
  ["rate_limit_exceeded", "rate_limit"],
  ["server_is_overloaded", "overloaded"],
  ["slow_down", "overloaded"],
  ["invalid_prompt", "invalid_request"],
  ["invalid_request_error", "invalid_request"],
  ["context_length_exceeded", "invalid_request"]
])

/** Reads the failure from an object with `code` or `type`, and `message`. */
export const failureOf = (error: unknown): Failure => {
  const { code, message, type } = objectOf(error)
  return {
    kind: kinds.get(code) ?? kinds.get(type) ?? "vendor",
    message: wordsOr(message, "the upstream sent an error")
  }
}

const codes: Readonly<Record<FailureKind, string>> = {
  overloaded: "server_is_overloaded",
  rate_limit: "rate_limit_exceeded",
  invalid_request: "invalid_prompt",
  vendor: "server_error"
}

export const writeFailure = ({ kind, message }: Failure): JsonObject => ({ code: codes[kind], message })

const readItem = (item: unknown): ReadonlyArray<AnswerPart> => {
  if (!isObject(item)) return []
  switch (item.type) {
    case "message":
      return listOf(item.content).flatMap((part): ReadonlyArray<AnswerPart> => {
        const { refusal, text: said, type } = objectOf(part)
        if (type === "output_text") return [{ type: "text", text: textOr(said, "") }]
        return type === "refusal" ? [{ type, text: textOr(refusal, "") }] : []
      })
    case "reasoning":
      return [
        {
          type: "thinking",
          text: thoughtText(item),
          signature: text(item.encrypted_content),
          signer: homeSigners.responses,
          redacted: false
        }
      ]
    case "function_call":
    case "custom_tool_call": {
      const custom = item.type === "custom_tool_call"
      return [
        {
          type: "tool_call",
          id: textOr(item.call_id, ""),
          name: textOr(item.name, ""),
          arguments: textOr(custom ? item.input : item.arguments, ""),
          custom
        }
      ]
    }
    default:
      return []
  }
}

export const readAnswer = (json: unknown): Either.Either<Answer, Failure> => {
  if (!isObject(json)) return Either.left({ kind: "vendor", message: "the upstream's response is not a JSON object" })
  if (isObject(json.error)) return Either.left(failureOf(json.error))
  const { status } = json
  if (status !== undefined && status !== null && status !== "completed" && status !== "incomplete")
    return Either.left({ kind: "vendor", message: "the upstream's response is not complete" })
  if (!Array.isArray(json.output))
    return Either.left({ kind: "vendor", message: "the upstream's response contains no output" })
  const parts = listOf(json.output).flatMap(readItem)
  return Either.right({
    id: text(json.id),
    model: text(json.model),
    parts,
    stop: stopWith(
      readStop(json),
      parts.some((part) => part.type === "tool_call")
    ),
    stop_sequence: undefined,
    usage: usageOf(json.usage)
  })
}

export const textPart = (value: string): JsonObject => ({
  type: "output_text",
  text: value,
  annotations: [],
  logprobs: []
})

export const refusalPart = (value: string): JsonObject => ({ type: "refusal", refusal: value })

export const messageItem = (id: string, status: string, content: ReadonlyArray<JsonObject>): JsonObject => ({
  id,
  type: "message",
  status,
  role: "assistant",
  content
})

export const thoughtItem = (
  id: string,
  part: Pick<Extract<AnswerPart, { type: "thinking" }>, "text" | "signature" | "signer" | "redacted">
): JsonObject => ({
  id,
  type: "reasoning",
  summary: part.text === "" ? [] : [{ type: "summary_text", text: part.text }],
  encrypted_content: signatureIn(homeSigners.responses, part) ?? null
})

interface CallItem {
  readonly status: string
  readonly call_id: string
  readonly name: string
  readonly arguments: string
  readonly custom: boolean
}

/** Writes a tool call as an item. In `request`, the client's request, the tool can be in a namespace. */
export const callItem = (id: string, call: CallItem, request: JsonObject): JsonObject => {
  const { arguments: written, call_id, custom, status } = call
  const named = originalName(request, call.name)
  return custom
    ? { id, type: "custom_tool_call", status, call_id, ...named, input: written }
    : { id, type: "function_call", status, call_id, ...named, arguments: written }
}

/** Derives an item's id from the response's id and the item's index. */
export const itemId = (kind: "msg" | "rs" | "fc" | "ctc", answer: string, output_index: number): string =>
  `${kind}_${answer}_${output_index}`

/** Writes the output items. Consecutive texts and refusals form one message. */
const writeOutput = (parts: ReadonlyArray<AnswerPart>, { id, request }: AnswerOptions): ReadonlyArray<JsonObject> => {
  const output: Array<JsonObject> = []
  let content: Array<JsonObject> | undefined
  for (const [index, part] of parts.entries()) {
    if (part.type === "text" || part.type === "refusal") {
      if (content === undefined) {
        content = []
        output.push(messageItem(itemId("msg", id, output.length), "completed", content))
      }
      content.push(part.type === "text" ? textPart(part.text) : refusalPart(part.text))
      continue
    }
    content = undefined
    output.push(
      part.type === "thinking"
        ? thoughtItem(itemId("rs", id, output.length), part)
        : callItem(
            itemId(part.custom ? "ctc" : "fc", id, output.length),
            {
              status: "completed",
              call_id: callId(part.id, id, index),
              name: part.name,
              arguments: argumentsText(part),
              custom: part.custom
            },
            request
          )
    )
  }
  return output
}

export const responseOf = (
  { created, id, model, request }: AnswerOptions,
  state: {
    readonly status: string
    readonly incomplete_details: JsonObject | null
    readonly error: JsonObject | null
    readonly output: ReadonlyArray<JsonObject>
    readonly usage: Usage | undefined
  }
): JsonObject => ({
  id: `resp_${id}`,
  object: "response",
  created_at: created,
  status: state.status,
  background: false,
  error: state.error,
  incomplete_details: state.incomplete_details,
  instructions: request.instructions ?? null,
  max_output_tokens: request.max_output_tokens ?? null,
  max_tool_calls: request.max_tool_calls ?? null,
  model,
  output: state.output,
  parallel_tool_calls: request.parallel_tool_calls ?? true,
  previous_response_id: null,
  prompt_cache_key: request.prompt_cache_key ?? null,
  reasoning: request.reasoning ?? { effort: null, summary: null },
  safety_identifier: request.safety_identifier ?? null,
  service_tier: "default",
  store: false,
  temperature: request.temperature ?? 1,
  text: request.text ?? { format: { type: "text" } },
  tool_choice: request.tool_choice ?? "auto",
  tools: request.tools ?? [],
  top_p: request.top_p ?? 1,
  truncation: "disabled",
  usage: state.usage === undefined ? null : writeUsage(state.usage),
  user: request.user ?? null,
  metadata: request.metadata ?? {}
})

export const writeAnswer = (answer: Answer, options: AnswerOptions): JsonObject =>
  responseOf(options, {
    ...writeStop(
      answer.stop,
      answer.parts.some((part) => part.type === "refusal")
    ),
    error: null,
    output: writeOutput(answer.parts, options),
    usage: answer.usage
  })
