/** Reads and writes the input items of Responses requests. */
import type {
  AssistantPart,
  DocumentPart,
  ImagePart,
  JsonObject,
  RefusalPart,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
  UserPart
} from "../conversation/Conversation.ts"
import { fileSource } from "../chat/Parts.ts"
import { isObject, listOf, objectOf, present, text, textOr } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { detailOf, sourceOf, urlOf } from "../conversation/Media.ts"
import { homeSigners, isSignedBy, signatureOf } from "../conversation/Thoughts.ts"
import { argumentsText, shortId } from "../conversation/ToolCalls.ts"
import { nameOf } from "./Namespaces.ts"

type Content = TextPart | ImagePart | DocumentPart

const unknown = (fields: Fields, at: string, type: unknown): undefined =>
  fields.refuse(
    at,
    typeof type === "string"
      ? `the upstream of this model accepts no ${type.slice(0, 60)}`
      : "must be an item with a type"
  )

const otherFiles = "the upstream of this model cannot use files stored at another vendor"

const readImage = (fields: Fields, at: string, { detail, file_id, image_url }: JsonObject): ImagePart | undefined => {
  if (typeof file_id === "string") return fields.refuse(`${at}.file_id`, otherFiles)
  const source = typeof image_url === "string" ? sourceOf(image_url) : undefined
  if (source === undefined) return fields.refuse(`${at}.image_url`, "must be a URL or base64 data")
  return { type: "image", at, source, detail: detailOf(detail), cache: undefined }
}

const readFile = (fields: Fields, at: string, part: JsonObject): DocumentPart | undefined => {
  const { file_data, file_id, file_url, filename } = part
  if (typeof file_id === "string") return fields.refuse(`${at}.file_id`, otherFiles)
  const name = text(filename)
  const document = { type: "document", at, name, context: undefined, cache: undefined } as const
  if (typeof file_url === "string") return { ...document, source: { type: "url", url: file_url } }
  const source = typeof file_data === "string" ? fileSource(file_data, name) : undefined
  return source === undefined ? fields.refuse(`${at}.file_data`, "must be base64 data") : { ...document, source }
}

const readText = (fields: Fields, at: string, part: JsonObject): TextPart => {
  if (typeof part.text !== "string") fields.refuse(`${at}.text`, "must be a string")
  return { type: "text", at, text: textOr(part.text, ""), cache: undefined }
}

/** Reads the parts of `content`. A string counts as a single text part. */
const readParts = <A>(
  fields: Fields,
  at: string,
  content: unknown,
  read: (at: string, part: JsonObject) => A | undefined
): ReadonlyArray<A | TextPart> => {
  if (typeof content === "string") return [{ type: "text", at, text: content, cache: undefined }]
  return fields.list(at, content).flatMap((part, index): ReadonlyArray<A> => {
    const where = `${at}.${index}`
    const one = isObject(part) ? read(where, part) : fields.refuse(where, "must be an object")
    return one === undefined ? [] : [one]
  })
}

const readContent = (fields: Fields, at: string, content: unknown): ReadonlyArray<Content> =>
  readParts(fields, at, content, (where, part): Content | undefined => {
    switch (part.type) {
      case "input_text":
      case "output_text":
      case "text":
        return readText(fields, where, part)
      case "input_image":
        return readImage(fields, where, part)
      case "input_file":
        return readFile(fields, where, part)
      default:
        return unknown(fields, where, part.type)
    }
  })

const readTexts = (fields: Fields, at: string, content: unknown): ReadonlyArray<TextPart> =>
  readParts(fields, at, content, (where, part) =>
    part.type === "input_text" || part.type === "output_text" || part.type === "text"
      ? readText(fields, where, part)
      : unknown(fields, where, part.type)
  )

const readSaid = (fields: Fields, at: string, content: unknown): ReadonlyArray<TextPart | RefusalPart> =>
  readParts(fields, at, content, (where, part): TextPart | RefusalPart | undefined => {
    switch (part.type) {
      case "input_text":
      case "output_text":
      case "text":
        return readText(fields, where, part)
      case "refusal":
        return { type: "refusal", at: where, text: textOr(part.refusal, "") }
      default:
        return unknown(fields, where, part.type)
    }
  })

/** Returns a reasoning item's readable text: its summary or, without a summary, an open model's reasoning. */
export const thoughtText = ({ content, summary }: JsonObject): string => {
  const texts = (list: unknown) => listOf(list).map((one) => textOr(objectOf(one).text, ""))
  const summaries = texts(summary)
  return summaries.length > 0 ? summaries.join("\n\n") : texts(content).join("")
}

const readCall = (fields: Fields, at: string, item: JsonObject): ToolCallPart => {
  const custom = item.type === "custom_tool_call"
  return {
    type: "tool_call",
    at,
    id: fields.needed(`${at}.call_id`, item.call_id),
    name: fields.needed(`${at}.name`, nameOf(item)),
    arguments: fields.text(`${at}.${custom ? "input" : "arguments"}`, custom ? item.input : item.arguments) ?? "",
    custom,
    cache: undefined
  }
}

/** Returns `undefined` for an item that is not the assistant's. */
const readAssistantItem = (fields: Fields, at: string, item: JsonObject): ReadonlyArray<AssistantPart> | undefined => {
  switch (item.type) {
    case "function_call":
    case "custom_tool_call":
      return [readCall(fields, at, item)]
    case "reasoning":
      return [
        { type: "thinking", at, text: thoughtText(item), ...signatureOf(homeSigners.responses, item.encrypted_content) }
      ]
    case "message":
    case undefined:
      return item.role === "assistant" ? readSaid(fields, `${at}.content`, item.content) : undefined
    default:
      return undefined
  }
}

const readOtherItem = (fields: Fields, at: string, item: JsonObject): Turn | undefined => {
  const { role, type } = item
  if (type === "function_call_output" || type === "custom_tool_call_output") {
    const id = fields.needed(`${at}.call_id`, item.call_id)
    const content = readContent(fields, `${at}.output`, item.output)
    const result: ToolResultPart = { type: "tool_result", at, id, content, is_error: false, cache: undefined }
    return { role: "user", at, parts: [result] }
  }
  if (type === "item_reference")
    return fields.refuse(
      at,
      "the upstream of this model stores no items: send complete items, as SDKs do with store false"
    )
  if (type !== "message" && type !== undefined && type !== null)
    return fields.refuse(`${at}.type`, `the upstream of this model does not support ${String(type).slice(0, 60)}`)
  switch (role) {
    case "system":
    case "developer":
      return { role, at, parts: readTexts(fields, `${at}.content`, item.content) }
    case "user":
      return { role, at, parts: readContent(fields, `${at}.content`, item.content) }
    default:
      return fields.refuse(`${at}.role`, "must be system, developer, user or assistant")
  }
}

/** Reads the input's turns. Consecutive assistant items (reasoning, texts and calls) form one turn. */
export const readInput = (fields: Fields, input: unknown): ReadonlyArray<Turn> => {
  if (typeof input === "string")
    return [{ role: "user", at: "input", parts: [{ type: "text", at: "input", text: input, cache: undefined }] }]
  const turns: Array<Turn> = []
  let said: Array<AssistantPart> | undefined
  for (const [index, item] of fields.list("input", input).entries()) {
    const at = `input.${index}`
    if (!isObject(item)) {
      fields.refuse(at, "must be an object")
      continue
    }
    const parts = readAssistantItem(fields, at, item)
    if (parts === undefined) {
      const turn = readOtherItem(fields, at, item)
      if (turn !== undefined) turns.push(turn)
      said = undefined
    } else if (said === undefined) {
      said = [...parts]
      turns.push({ role: "assistant", at, parts: said })
    } else for (const part of parts) said.push(part)
  }
  return turns
}

const writeContentPart = (fields: Fields, part: UserPart): JsonObject => {
  switch (part.type) {
    case "text":
      return { type: "input_text", text: part.text }
    case "image":
      return { type: "input_image", image_url: urlOf(part.source), detail: part.detail ?? "auto" }
    case "document":
      return writeFile(fields, part)
    case "audio":
    case "tool_result":
      fields.refuse(part.at, "the upstream of this model accepts no audio")
      return {}
  }
}

const writeFile = (fields: Fields, { at, context, name, source }: DocumentPart): JsonObject => {
  if (context !== undefined) fields.refuse(`${at}.context`, "the upstream of this model accepts no context for a file")
  if (source.type === "text") return { type: "input_text", text: source.text }
  if (source.type === "url") return { type: "input_file", file_url: source.url }
  return { type: "input_file", filename: name ?? "file", file_data: urlOf(source) }
}

const idLengthMax = 64

/** Writes a tool call's output. A single text becomes a plain string. */
const writeOutput = (fields: Fields, parts: ReadonlyArray<Content>): string | ReadonlyArray<JsonObject> => {
  const [first] = parts
  if (parts.length === 0) return ""
  if (parts.length === 1 && first?.type === "text") return first.text
  return parts.map((part) => writeContentPart(fields, part))
}

const writeResult = (fields: Fields, part: ToolResultPart, custom: boolean): JsonObject => ({
  type: custom ? "custom_tool_call_output" : "function_call_output",
  call_id: shortId(part.id, idLengthMax),
  output: writeOutput(fields, part.content)
})

const writeUser = (
  fields: Fields,
  parts: ReadonlyArray<UserPart>,
  customs: ReadonlySet<string>
): ReadonlyArray<JsonObject> => {
  const results = parts.flatMap((part) =>
    part.type === "tool_result" ? [writeResult(fields, part, customs.has(part.id))] : []
  )
  const said = parts.filter((part) => part.type !== "tool_result")
  if (said.length === 0) return results
  return [...results, { role: "user", content: said.map((part) => writeContentPart(fields, part)) }]
}

const writeCall = (part: ToolCallPart): JsonObject =>
  part.custom
    ? { type: "custom_tool_call", call_id: shortId(part.id, idLengthMax), name: part.name, input: part.arguments }
    : {
        type: "function_call",
        call_id: shortId(part.id, idLengthMax),
        name: part.name,
        arguments: argumentsText(part)
      }

const writeThought = (part: ThinkingPart): JsonObject =>
  present({
    type: "reasoning",
    summary: part.text === "" ? [] : [{ type: "summary_text", text: part.text }],
    encrypted_content: part.signature
  })

/** Writes an assistant turn's items. Consecutive texts and refusals form one message. */
const writeAssistant = (parts: ReadonlyArray<AssistantPart>): ReadonlyArray<JsonObject> => {
  const items: Array<JsonObject> = []
  let content: Array<JsonObject> | undefined
  for (const part of parts) {
    if (part.type === "text" || part.type === "refusal") {
      if (content === undefined) items.push({ role: "assistant", content: (content = []) })
      content.push(
        part.type === "text" ? { type: "output_text", text: part.text } : { type: "refusal", refusal: part.text }
      )
      continue
    }
    if (part.type === "tool_call") items.push(writeCall(part))
    else if (isSignedBy(homeSigners.responses, part)) items.push(writeThought(part))
    else continue
    content = undefined
  }
  return items
}

export const writeInput = (fields: Fields, turns: ReadonlyArray<Turn>): ReadonlyArray<JsonObject> => {
  const customs = new Set(
    turns.flatMap((turn) =>
      turn.role === "assistant" ? turn.parts.flatMap((part) => (isCustom(part) ? [part.id] : [])) : []
    )
  )
  return turns.flatMap((turn): ReadonlyArray<JsonObject> => {
    if (turn.parts.length === 0) return []
    if (turn.role === "assistant") return writeAssistant(turn.parts)
    if (turn.role === "user") return writeUser(fields, turn.parts, customs)
    return [{ role: turn.role, content: turn.parts.map((part) => writeContentPart(fields, part)) }]
  })
}

const isCustom = (part: AssistantPart): part is ToolCallPart => part.type === "tool_call" && part.custom
