/** Reads and writes the content parts of chat messages. */
import type {
  AudioPart,
  DocumentPart,
  ImagePart,
  JsonObject,
  RefusalPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  UserPart
} from "../conversation/Conversation.ts"
import { isObject, objectOf, present, text, textOr } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { detailOf, sourceOf, typeByEnding, urlOf } from "../conversation/Media.ts"
import { cacheOf } from "../messages/Blocks.ts"
import { argumentsText, shortId } from "../conversation/ToolCalls.ts"

interface Placed {
  readonly at: string
  readonly part: JsonObject
}

/** Returns the parts of `content`. A string counts as a single text part. */
const placed = (fields: Fields, at: string, content: unknown): ReadonlyArray<Placed> => {
  if (typeof content === "string") return [{ at, part: { type: "text", text: content } }]
  return fields.list(at, content).flatMap((part, index) => {
    const where = `${at}.${index}`
    if (isObject(part)) return [{ at: where, part }]
    fields.refuse(where, "must be an object")
    return []
  })
}

const unknownPart = (fields: Fields, { at, part }: Placed): undefined =>
  fields.refuse(
    at,
    typeof part.type === "string"
      ? `the upstream of this model accepts no ${part.type.slice(0, 60)}`
      : "must be a part with a type"
  )

export const readText = (fields: Fields, { at, part }: Placed): TextPart => {
  if (typeof part.text !== "string") fields.refuse(`${at}.text`, "must be a string")
  return { type: "text", at, text: textOr(part.text, ""), cache: cacheOf(part.cache_control) }
}

const readImage = (fields: Fields, { at, part }: Placed): ImagePart | undefined => {
  const image = isObject(part.image_url) ? part.image_url : { url: part.image_url }
  const source = typeof image.url === "string" ? sourceOf(image.url) : undefined
  if (source === undefined) return fields.refuse(`${at}.image_url.url`, "must be a URL or base64 data")
  return { type: "image", at, source, detail: detailOf(image.detail), cache: cacheOf(part.cache_control) }
}

const readAudio = (fields: Fields, { at, part }: Placed): AudioPart => {
  const audio = objectOf(part.input_audio)
  return {
    type: "audio",
    at,
    data: fields.needed(`${at}.input_audio.data`, audio.data),
    format: fields.needed(`${at}.input_audio.format`, audio.format)
  }
}

const readFile = (fields: Fields, { at, part }: Placed): DocumentPart | undefined => {
  const { file_data, file_id, filename } = objectOf(part.file)
  if (typeof file_data !== "string")
    return fields.refuse(
      `${at}.file`,
      file_id === undefined
        ? "must be a file with file_data"
        : "the upstream of this model cannot use files stored at another vendor"
    )
  const name = text(filename)
  const source = fileSource(file_data, name)
  if (source === undefined) return fields.refuse(`${at}.file.file_data`, "must be base64 data")
  return { type: "document", at, source, name, context: undefined, cache: cacheOf(part.cache_control) }
}

/** Reads a data URI or plain base64. The type of plain base64 is derived from the file name and defaults to PDF. */
export const fileSource = (data: string, name: string | undefined): DocumentPart["source"] | undefined =>
  /^data:/i.test(data)
    ? sourceOf(data)
    : { type: "data", media_type: typeByEnding(name ?? "") ?? "application/pdf", data }

export const readTexts = (fields: Fields, at: string, content: unknown): ReadonlyArray<TextPart> =>
  placed(fields, at, content).flatMap((one) =>
    one.part.type === "text" ? [readText(fields, one)] : (unknownPart(fields, one) ?? [])
  )

export const readUserParts = (fields: Fields, at: string, content: unknown): ReadonlyArray<UserPart> =>
  placed(fields, at, content).flatMap((one): ReadonlyArray<UserPart> => {
    const part = readUserPart(fields, one)
    return part === undefined ? [] : [part]
  })

const readUserPart = (fields: Fields, one: Placed): UserPart | undefined => {
  switch (one.part.type) {
    case "text":
      return readText(fields, one)
    case "image_url":
      return readImage(fields, one)
    case "input_audio":
      return readAudio(fields, one)
    case "file":
      return readFile(fields, one)
    default:
      return unknownPart(fields, one)
  }
}

/** Reads a tool result's parts. OpenAI's protocol allows only text, but some compatible servers also accept images. */
export const readResultParts = (fields: Fields, at: string, content: unknown): ToolResultPart["content"] =>
  placed(fields, at, content).flatMap((one): ToolResultPart["content"] => {
    if (one.part.type === "text") return [readText(fields, one)]
    const part = one.part.type === "image_url" ? readImage(fields, one) : unknownPart(fields, one)
    return part === undefined ? [] : [part]
  })

export const readSaid = (fields: Fields, at: string, content: unknown): ReadonlyArray<TextPart | RefusalPart> =>
  placed(fields, at, content).flatMap((one): ReadonlyArray<TextPart | RefusalPart> => {
    if (one.part.type === "text") return [readText(fields, one)]
    if (one.part.type === "refusal") return [{ type: "refusal", at: one.at, text: textOr(one.part.refusal, "") }]
    return unknownPart(fields, one) ?? []
  })

export const readCall = (fields: Fields, at: string, call: unknown): ToolCallPart | undefined => {
  if (!isObject(call)) return fields.refuse(at, "must be an object")
  const custom = call.type === "custom"
  if (!custom && call.type !== "function" && call.type !== undefined)
    return fields.refuse(`${at}.type`, "must be function or custom")
  const what = objectOf(custom ? call.custom : call.function)
  const where = `${at}.${custom ? "custom" : "function"}`
  return {
    type: "tool_call",
    at,
    id: fields.needed(`${at}.id`, call.id),
    name: fields.needed(`${where}.name`, what.name),
    arguments: fields.text(where, custom ? what.input : what.arguments) ?? "",
    custom,
    cache: undefined
  }
}

/** Writes a document. Plain text becomes a text part, because most servers accept only PDF files. */
const writeDocument = (fields: Fields, { at, context, name, source }: DocumentPart): JsonObject => {
  if (context !== undefined) fields.refuse(`${at}.context`, "the upstream of this model accepts no context for a file")
  if (source.type === "text") return { type: "text", text: source.text }
  if (source.type === "url") {
    fields.refuse(at, "the upstream of this model accepts files as data, not by URL")
    return {}
  }
  return { type: "file", file: present({ filename: name ?? "file", file_data: urlOf(source) }) }
}

type Content = Exclude<UserPart, ToolResultPart>

const writePart = (fields: Fields, part: Content): JsonObject => {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text }
    case "image":
      return { type: "image_url", image_url: present({ url: urlOf(part.source), detail: part.detail }) }
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.format } }
    case "document":
      return writeDocument(fields, part)
  }
}

/** Writes the parts. A single text becomes a plain string. */
export const writeContent = (fields: Fields, parts: ReadonlyArray<Content>): string | ReadonlyArray<JsonObject> => {
  const [first] = parts
  if (parts.length === 1 && first?.type === "text") return first.text
  return parts.map((part) => writePart(fields, part))
}

const idLengthMax = 40

export const writeCall = (part: Pick<ToolCallPart, "id" | "name" | "arguments" | "custom">): JsonObject =>
  part.custom
    ? { id: shortId(part.id, idLengthMax), type: "custom", custom: { name: part.name, input: part.arguments } }
    : {
        id: shortId(part.id, idLengthMax),
        type: "function",
        function: { name: part.name, arguments: argumentsText(part) }
      }

/** Writes a tool result's message. `beside` contains the parts that a tool message cannot contain, for a user message after all results. */
export const writeResult = (
  fields: Fields,
  part: ToolResultPart
): { readonly message: JsonObject; readonly beside: ReadonlyArray<Content> } => {
  const texts = part.content.filter((one) => one.type === "text")
  return {
    message: {
      role: "tool",
      tool_call_id: shortId(part.id, idLengthMax),
      content: texts.length === 0 ? "" : writeContent(fields, texts)
    },
    beside: part.content.filter((one) => one.type !== "text")
  }
}
