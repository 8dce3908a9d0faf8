/** Reads and writes the content blocks of Messages requests. */
import type {
  AssistantPart,
  CacheMark,
  DocumentPart,
  ImagePart,
  JsonObject,
  TextPart,
  ToolResultPart,
  UserPart
} from "../conversation/Conversation.ts"
import { isObject, present, text, textOr } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { homeSigners, signatureIn, signatureOf } from "../conversation/Thoughts.ts"
import type { Signature } from "../conversation/Thoughts.ts"
import { argumentsOf, fittingId, inputOf } from "../conversation/ToolCalls.ts"

export const cacheOf = (control: unknown): CacheMark | undefined =>
  isObject(control) ? (control.ttl === "1h" ? "1h" : "5m") : undefined

export const cacheControl = (cache: CacheMark | undefined): JsonObject | undefined =>
  cache === undefined ? undefined : cache === "1h" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" }

/** Returns the blocks of `content`. A string counts as a single text block. */
const blocksOf = (
  fields: Fields,
  at: string,
  content: unknown
): ReadonlyArray<{ readonly at: string; readonly block: JsonObject }> => {
  if (typeof content === "string") return [{ at, block: { type: "text", text: content } }]
  return fields.list(at, content).flatMap((block, index) => {
    const where = `${at}.${index}`
    if (isObject(block)) return [{ at: where, block }]
    fields.refuse(where, "must be an object")
    return []
  })
}

const readText = (fields: Fields, at: string, block: JsonObject): TextPart => {
  if (typeof block.text !== "string") fields.refuse(`${at}.text`, "must be a string")
  return { type: "text", at, text: textOr(block.text, ""), cache: cacheOf(block.cache_control) }
}

const readImage = (fields: Fields, at: string, { cache_control, source }: JsonObject): ImagePart | undefined => {
  const cache = cacheOf(cache_control)
  if (isObject(source)) {
    const { data, media_type, type, url } = source
    if (type === "base64" && typeof data === "string" && typeof media_type === "string")
      return { type: "image", at, source: { type: "data", media_type, data }, detail: undefined, cache }
    if (type === "url" && typeof url === "string")
      return { type: "image", at, source: { type: "url", url }, detail: undefined, cache }
  }
  return fields.refuse(`${at}.source`, sourceRule(source))
}

const sourceRule = (source: unknown): string =>
  isObject(source) && source.type === "file"
    ? "the upstream of this model cannot use files stored at another vendor"
    : "must be base64 data with its media type, or a URL"

const readDocument = (fields: Fields, at: string, block: JsonObject): DocumentPart | undefined => {
  const { cache_control, citations, context, source, title } = block
  if (isObject(citations) && citations.enabled === true)
    return fields.refuse(`${at}.citations`, "the upstream of this model returns no citations")
  const part = {
    type: "document",
    at,
    name: text(title),
    context: text(context),
    cache: cacheOf(cache_control)
  } as const
  if (isObject(source)) {
    const { data, media_type, type, url } = source
    if (type === "text" && typeof data === "string") return { ...part, source: { type: "text", text: data } }
    if (type === "base64" && typeof data === "string" && typeof media_type === "string")
      return { ...part, source: { type: "data", media_type, data } }
    if (type === "url" && typeof url === "string") return { ...part, source: { type: "url", url } }
  }
  return fields.refuse(`${at}.source`, sourceRule(source))
}

type Content = TextPart | ImagePart | DocumentPart

const readContent = (fields: Fields, at: string, block: JsonObject): Content | undefined => {
  switch (block.type) {
    case "text":
      return readText(fields, at, block)
    case "image":
      return readImage(fields, at, block)
    case "document":
      return readDocument(fields, at, block)
    default:
      return fields.refuse(
        at,
        typeof block.type === "string"
          ? `the upstream of this model accepts no ${block.type}`
          : "must be a block with a type"
      )
  }
}

const readResult = (fields: Fields, at: string, block: JsonObject): ToolResultPart => ({
  type: "tool_result",
  at,
  id: fields.needed(`${at}.tool_use_id`, block.tool_use_id),
  content: blocksOf(fields, `${at}.content`, block.content).flatMap(
    ({ at, block }) => readContent(fields, at, block) ?? []
  ),
  is_error: fields.flag(`${at}.is_error`, block.is_error) ?? false,
  cache: cacheOf(block.cache_control)
})

export const readTexts = (fields: Fields, at: string, content: unknown): ReadonlyArray<TextPart> =>
  blocksOf(fields, at, content).flatMap(({ at, block }) => {
    if (block.type === "text") return [readText(fields, at, block)]
    fields.refuse(at, "must be a text block")
    return []
  })

export const readUserParts = (fields: Fields, at: string, content: unknown): ReadonlyArray<UserPart> =>
  blocksOf(fields, at, content).flatMap(({ at, block }): ReadonlyArray<UserPart> => {
    const part = block.type === "tool_result" ? readResult(fields, at, block) : readContent(fields, at, block)
    return part === undefined ? [] : [part]
  })

const readAssistantPart = (fields: Fields, at: string, block: JsonObject): AssistantPart | undefined => {
  switch (block.type) {
    case "text":
      return readText(fields, at, block)
    case "thinking":
      return {
        type: "thinking",
        at,
        text: textOr(block.thinking, ""),
        ...signatureOf(homeSigners.messages, block.signature)
      }
    case "redacted_thinking":
      return { type: "thinking", at, text: "", ...signatureOf(homeSigners.messages, block.data), redacted: true }
    case "tool_use":
      return {
        type: "tool_call",
        at,
        id: fields.needed(`${at}.id`, block.id),
        name: fields.needed(`${at}.name`, block.name),
        arguments: argumentsOf(block.input) ?? "{}",
        custom: false,
        cache: cacheOf(block.cache_control)
      }
    default:
      return fields.refuse(
        at,
        typeof block.type === "string"
          ? `the upstream of this model does not support ${block.type} of an assistant`
          : "must be a block with a type"
      )
  }
}

export const readAssistantParts = (fields: Fields, at: string, content: unknown): ReadonlyArray<AssistantPart> =>
  blocksOf(fields, at, content).flatMap(({ at, block }) => readAssistantPart(fields, at, block) ?? [])

const decoded = (base64: string): string => Buffer.from(base64, "base64").toString()

const writeSource = (fields: Fields, { at, source }: DocumentPart): JsonObject | undefined => {
  if (source.type === "text") return { type: "text", media_type: "text/plain", data: source.text }
  if (source.type === "url") return source
  if (source.media_type === "application/pdf")
    return { type: "base64", media_type: source.media_type, data: source.data }
  if (source.media_type.startsWith("text/"))
    return { type: "text", media_type: "text/plain", data: decoded(source.data) }
  return fields.refuse(at, `the upstream of this model accepts PDF and plain text, not ${source.media_type}`)
}

const writeContent = (fields: Fields, part: Content): JsonObject => {
  const cache_control = cacheControl(part.cache)
  switch (part.type) {
    case "text":
      return present({ type: "text", text: part.text, cache_control })
    case "image": {
      const { source } = part
      return present({
        type: "image",
        source: source.type === "url" ? source : { type: "base64", media_type: source.media_type, data: source.data },
        cache_control
      })
    }
    case "document":
      return present({
        type: "document",
        source: writeSource(fields, part),
        title: part.name,
        context: part.context,
        cache_control
      })
  }
}

/** Writes the parts. A single text without a cache breakpoint becomes a plain string. */
export const writeTexts = (fields: Fields, parts: ReadonlyArray<Content>): string | ReadonlyArray<JsonObject> => {
  const [first] = parts
  if (parts.length === 1 && first?.type === "text" && first.cache === undefined) return first.text
  return parts.map((part) => writeContent(fields, part))
}

const idLengthMax = 64

export const writeUserPart = (fields: Fields, part: UserPart): JsonObject => {
  switch (part.type) {
    case "audio":
      fields.refuse(part.at, "the upstream of this model accepts no audio")
      return {}
    case "tool_result":
      return present({
        type: "tool_result",
        tool_use_id: fittingId(part.id, idLengthMax),
        content: part.content.length === 0 ? undefined : writeTexts(fields, part.content),
        is_error: part.is_error || undefined,
        cache_control: cacheControl(part.cache)
      })
    default:
      return writeContent(fields, part)
  }
}

export const writeAssistantPart = (part: AssistantPart): JsonObject => {
  switch (part.type) {
    case "text":
      return present({ type: "text", text: part.text, cache_control: cacheControl(part.cache) })
    case "refusal":
      return { type: "text", text: part.text }
    case "thinking":
      return writeThinking(part)
    case "tool_call":
      return present({
        type: "tool_use",
        id: fittingId(part.id, idLengthMax),
        name: part.name,
        input: inputOf(part.arguments),
        cache_control: cacheControl(part.cache)
      })
  }
}

interface Thought extends Signature {
  readonly text: string
}

export const writeThinking = (part: Thought): JsonObject => {
  const signature = signatureIn(homeSigners.messages, part) ?? ""
  return part.redacted && part.text === ""
    ? { type: "redacted_thinking", data: signature }
    : { type: "thinking", thinking: part.text, signature }
}
