/**
 * Converts the ids and arguments of tool calls.
 *
 * Where the specification is silent:
 * - Arguments are a string in Chat and Responses, and an object in Messages, Google and Bedrock. An empty string becomes an empty object. A string
 *   that is not a JSON object becomes `{ "INVALID_JSON": text }`, as Anthropic's guide recommends, and that object becomes the string again. In a
 *   stream, fragments are passed on as they arrive.
 * - Empty arguments in string form become `{}`, because clients parse them.
 * - A call id whose characters or length a vendor does not accept is replaced with a derived id, in the call and in its result. A call without an id
 *   gets an id derived from the response's id.
 */
import type { JsonObject } from "./Conversation.ts"
import { isDeep, isObject, parsed, written } from "./Json.ts"

const invalid = "INVALID_JSON"

export const inputOf = (argumentsText: string): JsonObject => {
  if (argumentsText.trim() === "") return {}
  const value = parsed(argumentsText)
  return isObject(value) && !isDeep(value) ? value : { [invalid]: argumentsText }
}

/** Returns the arguments as a string; `{}` if there are none, `undefined` if they are nested too deeply. */
export const argumentsOf = (input: unknown): string | undefined => {
  if (input === undefined || input === null) return "{}"
  if (isObject(input) && typeof input[invalid] === "string" && Object.keys(input).length === 1) return input[invalid]
  return written(input)
}

/** Computes the 32-bit FNV-1a hash in hexadecimal. */
const digest = (value: string): string => {
  let hash = 0x811c9dc5
  for (let at = 0; at < value.length; at++) hash = Math.imul(hash ^ value.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, "0")
}

/** Returns the id if it is short enough and contains only letters, digits, `_` and `-`, otherwise a derived id. */
export const fittingId = (id: string, lengthMax: number): string =>
  id.length <= lengthMax && /^[\w-]+$/.test(id)
    ? id
    : `${id.slice(0, lengthMax - 9).replaceAll(/[^\w-]/g, "_")}_${digest(id)}`

/** Returns the call's id. Without one, derives it from the response's id and the part's index. */
export const callId = (id: string, answer: string, index: number): string =>
  id === "" ? `call_${answer}_${index}` : id

/** Returns the id if it is short enough, otherwise a derived id, for vendors that accept any characters. */
export const shortId = (id: string, lengthMax: number): string =>
  id.length <= lengthMax ? id : fittingId(id, lengthMax)

/** Returns a call's arguments as a string. Empty JSON arguments become `{}`. */
export const argumentsText = (call: { readonly arguments: string; readonly custom: boolean }): string =>
  call.arguments === "" && !call.custom ? "{}" : call.arguments
