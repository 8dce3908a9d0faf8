/**
 * Ids and arguments of tool calls.
 *
 * Where the specification is silent:
 * - Chat and Responses have arguments as a text, Messages, Google and Bedrock as an object. An empty text is the empty object. A text that
 *   is no JSON of an object is `{ "INVALID_JSON": text }`, as Anthropic's guide for such calls has it, and that object is the text again.
 *   In a stream the pieces of the text pass as they come.
 * - A text written for a client or a vendor is never empty: clients parse it. Empty arguments are `{}` there.
 * - A vendor's id of a call that another vendor would not take (its letters, its length) is replaced by one that follows from it, in the
 *   call and in its result alike. A call without an id has one that follows from the answer's.
 */
import type { JsonObject } from "./Conversation.ts"
import { isDeep, isObject, parsed, written } from "./Json.ts"

const invalid = "INVALID_JSON"

/** The arguments as an object. */
export const inputOf = (argumentsText: string): JsonObject => {
  if (argumentsText.trim() === "") return {}
  const value = parsed(argumentsText)
  return isObject(value) && !isDeep(value) ? value : { [invalid]: argumentsText }
}

/** The arguments as a text; `undefined` where they are nested too deeply. */
export const argumentsOf = (input: unknown): string | undefined => {
  if (input === undefined || input === null) return "{}"
  if (isObject(input) && typeof input[invalid] === "string" && Object.keys(input).length === 1) return input[invalid]
  return written(input)
}

/** FNV-1a of 32 bits, in hexadecimal. */
const digest = (value: string): string => {
  let hash = 0x811c9dc5
  for (let at = 0; at < value.length; at++) hash = Math.imul(hash ^ value.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, "0")
}

/** The id itself where it has only letters, digits, `_` and `-` and is short enough, else one that follows from it. */
export const fittingId = (id: string, lengthMax: number): string =>
  id.length <= lengthMax && /^[\w-]+$/.test(id)
    ? id
    : `${id.slice(0, lengthMax - 9).replaceAll(/[^\w-]/g, "_")}_${digest(id)}`

/** The id of a call in an answer. */
export const callId = (id: string, answer: string, index: number): string =>
  id === "" ? `call_${answer}_${index}` : id

/** The id itself where it is short enough: for vendors that take any letters. */
export const shortId = (id: string, lengthMax: number): string =>
  id.length <= lengthMax ? id : fittingId(id, lengthMax)

/** Arguments as a text that can be parsed where they are none. */
export const argumentsText = (call: { readonly arguments: string; readonly custom: boolean }): string =>
  call.arguments === "" && !call.custom ? "{}" : call.arguments
