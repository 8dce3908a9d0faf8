/**
 * Reads and writes the parts of Gemini's contents.
 *
 * Where the specification is silent:
 * - Gemini attaches a signature to the part that follows the reasoning. In the common form, the signature is a separate reasoning part without text,
 *   before a call or after a text.
 * - Gemini 3 requires a signature for a turn's first call. A call without one gets the placeholder from Google's guide.
 * - An image URL must end with an image's extension, because Gemini also reads videos and documents from URLs.
 * - A tool result is `{ "output": text }` or `{ "error": text }`. Its non-text parts follow the results. File names are dropped.
 */
import type {
  AssistantPart,
  DocumentPart,
  ImagePart,
  JsonObject,
  Source,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
  UserPart
} from "../conversation/Conversation.ts"
import { isObject, listOf, objectOf, present, text, textOr, written } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { typeByEnding } from "../conversation/Media.ts"
import { homeSigners, signatureIn, signatureOf } from "../conversation/Thoughts.ts"
import { argumentsOf, inputOf } from "../conversation/ToolCalls.ts"

/** The tool calls without a result so far. In Gemini, a result can identify its call by the tool's name alone. */
export class Calls {
  readonly #open: Array<{ readonly id: string; readonly name: string }> = []
  #count = 0

  begin(id: unknown, name: string): string {
    const known = typeof id === "string" && id !== "" ? id : `call_${this.#count}`
    this.#count++
    this.#open.push({ id: known, name })
    return known
  }

  end(id: unknown, name: string): string | undefined {
    const at = this.#open.findIndex((call) =>
      typeof id === "string" && id !== "" ? call.id === id : call.name === name
    )
    if (at === -1) return undefined
    return this.#open.splice(at, 1)[0]!.id
  }
}

const readData = (at: string, source: Source): UserPart => {
  const media_type = source.type === "data" ? source.media_type : (typeByEnding(source.url) ?? "")
  if (source.type === "data" && media_type.startsWith("audio/"))
    return { type: "audio", at, data: source.data, format: media_type.slice(6) }
  return media_type.startsWith("image/")
    ? { type: "image", at, source, detail: undefined, cache: undefined }
    : { type: "document", at, source, name: undefined, context: undefined, cache: undefined }
}

const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value
  return value === undefined ? [] : [written(value) ?? ""]
}

const readResult = (fields: Fields, at: string, part: JsonObject, calls: Calls): ToolResultPart | undefined => {
  const { id, name, response } = objectOf(part.functionResponse)
  const call = calls.end(id, textOr(name, ""))
  if (call === undefined) return fields.refuse(`${at}.functionResponse`, "must respond to an earlier functionCall")
  const { error, output } = objectOf(response)
  const said = error === undefined ? (output === undefined ? response : output) : error
  return {
    type: "tool_result",
    at,
    id: call,
    content: textsOf(said).map((one) => ({ type: "text", at, text: one, cache: undefined })),
    is_error: error !== undefined,
    cache: undefined
  }
}

export const readUserParts = (
  fields: Fields,
  at: string,
  parts: ReadonlyArray<unknown>,
  calls: Calls
): ReadonlyArray<UserPart> =>
  parts.flatMap((value, index): ReadonlyArray<UserPart> => {
    const where = `${at}.${index}`
    const part = objectOf(value)
    const { data, mimeType } = objectOf(part.inlineData)
    const { fileUri } = objectOf(part.fileData)
    if (typeof part.text === "string") return [{ type: "text", at: where, text: part.text, cache: undefined }]
    if (typeof data === "string" && typeof mimeType === "string")
      return [readData(where, { type: "data", media_type: mimeType, data })]
    if (typeof fileUri === "string") return [readData(where, { type: "url", url: fileUri })]
    const result = isObject(part.functionResponse)
      ? readResult(fields, where, part, calls)
      : fields.refuse(where, "must be text, inlineData, fileData or a functionResponse")
    return result === undefined ? [] : [result]
  })

const thought = (at: string, text: string, value: unknown): ThinkingPart => ({
  type: "thinking",
  at,
  text,
  ...signatureOf(homeSigners.google, value)
})

export const readModelParts = (
  fields: Fields,
  at: string,
  parts: ReadonlyArray<unknown>,
  calls: Calls
): ReadonlyArray<AssistantPart> =>
  parts.flatMap((value, index): ReadonlyArray<AssistantPart> => {
    const where = `${at}.${index}`
    const part = objectOf(value)
    const signed = part.thoughtSignature !== undefined
    if (isObject(part.functionCall)) {
      const name = fields.needed(`${where}.functionCall.name`, part.functionCall.name)
      const call: ToolCallPart = {
        type: "tool_call",
        at: where,
        id: calls.begin(part.functionCall.id, name),
        name,
        arguments: argumentsOf(part.functionCall.args) ?? "{}",
        custom: false,
        cache: undefined
      }
      return signed && part.thoughtSignature !== noSignature
        ? [thought(where, "", part.thoughtSignature), call]
        : [call]
    }
    if (typeof part.text !== "string") {
      fields.refuse(where, "must be text or a functionCall")
      return []
    }
    if (part.thought === true) return [thought(where, part.text, part.thoughtSignature)]
    const said: TextPart = { type: "text", at: where, text: part.text, cache: undefined }
    return signed ? [...(part.text === "" ? [] : [said]), thought(where, "", part.thoughtSignature)] : [said]
  })

const writeSource = (source: Source): JsonObject =>
  source.type === "data"
    ? { inlineData: { mimeType: source.media_type, data: source.data } }
    : { fileData: present({ fileUri: source.url, mimeType: typeByEnding(source.url) }) }

/** Writes an image. Gemini reads any file from a URL and bills videos and books by their length, so only image URLs are sent. */
const writeImage = (fields: Fields, { at, source }: ImagePart): JsonObject => {
  if (source.type === "url" && !isImageAddress(source.url))
    fields.refuse(
      at,
      "the upstream of this model accepts an image as data, or by a URL that ends in .png, .jpg or .webp"
    )
  return writeSource(source)
}

const isImageAddress = (url: string): boolean =>
  URL.canParse(url) &&
  /^https?:$/.test(new URL(url).protocol) &&
  (typeByEnding(new URL(url).pathname) ?? "").startsWith("image/")

const writeContent = (fields: Fields, part: TextPart | ImagePart | DocumentPart): JsonObject => {
  if (part.type === "text") return { text: part.text }
  if (part.type === "image") return writeImage(fields, part)
  if (part.context !== undefined)
    fields.refuse(`${part.at}.context`, "the upstream of this model accepts no context for a file")
  return part.source.type === "text" ? { text: part.source.text } : writeSource(part.source)
}

const writeResult = (fields: Fields, part: ToolResultPart, names: ReadonlyMap<string, string>): JsonObject => {
  const name = names.get(part.id)
  if (name === undefined) fields.refuse(part.at, "no call has this id")
  const texts = part.content.flatMap((one) => (one.type === "text" ? [one.text] : []))
  const said = texts.length === 1 ? texts[0]! : texts
  return {
    functionResponse: { id: part.id, name: name ?? "", response: part.is_error ? { error: said } : { output: said } }
  }
}

/** Writes a user turn's parts: first the tool results, then all other content in order. */
export const writeUserParts = (
  fields: Fields,
  parts: ReadonlyArray<UserPart>,
  names: ReadonlyMap<string, string>
): ReadonlyArray<JsonObject> => {
  const results: Array<JsonObject> = []
  const rest: Array<JsonObject> = []
  for (const part of parts) {
    if (part.type === "tool_result") {
      results.push(writeResult(fields, part, names))
      for (const one of part.content) if (one.type !== "text") rest.push(writeContent(fields, one))
    } else if (part.type === "audio") rest.push({ inlineData: { mimeType: `audio/${part.format}`, data: part.data } })
    else rest.push(writeContent(fields, part))
  }
  return [...results, ...rest]
}

/** Google's documented placeholder for the signature of another model's call. */
const noSignature = "skip_thought_signature_validator"

type ModelPart =
  | { readonly type: "text" | "refusal"; readonly text: string }
  | Pick<ThinkingPart, "type" | "text" | "signature" | "signer" | "redacted">
  | Pick<ToolCallPart, "type" | "id" | "name" | "arguments">

/** Writes the parts of a model turn or a response. `demands` determines whether the first call must have a signature. */
export const writeModelParts = (parts: ReadonlyArray<ModelPart>, demands: boolean): ReadonlyArray<JsonObject> => {
  const out: Array<JsonObject> = []
  let signature: string | undefined
  let signed = false
  const flush = (): void => {
    if (signature !== undefined) out.push({ text: "", thoughtSignature: signature })
    signature = undefined
  }
  for (const part of parts) {
    if (part.type === "thinking") {
      const own = signatureIn(homeSigners.google, part)
      if (part.text !== "") out.push(present({ text: part.text, thought: true, thoughtSignature: own }))
      else if (own !== undefined) {
        flush()
        signature = own
      }
    } else if (part.type === "tool_call") {
      const missing = demands && !signed ? noSignature : undefined
      const { arguments: args, id, name } = part
      out.push(present({ functionCall: { id, name, args: inputOf(args) }, thoughtSignature: signature ?? missing }))
      signature = undefined
      signed = true
    } else {
      flush()
      out.push({ text: part.text })
    }
  }
  flush()
  return out
}

export const partsOf = (content: unknown): ReadonlyArray<unknown> => listOf(objectOf(content).parts)

export const roleOf = (content: unknown): string | undefined => text(objectOf(content).role)
