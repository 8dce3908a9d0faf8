/**
 * Reads and writes the content blocks of Bedrock's Converse. A cache breakpoint is a separate block after the block to cache.
 *
 * Where the specification is silent:
 * - Characters that Bedrock does not accept are removed from a document's name. The default name is `document`.
 */
import type {
  AssistantPart,
  CacheMark,
  DocumentPart,
  ImagePart,
  JsonObject,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
  UserPart
} from "../conversation/Conversation.ts"
import { isObject, listOf, objectOf, present, text, textOr, written } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { documentFormat, documentType, imageFormat } from "../conversation/Media.ts"
import { homeSigners, signatureIn, signatureOf } from "../conversation/Thoughts.ts"
import { argumentsOf, fittingId, inputOf } from "../conversation/ToolCalls.ts"

type Content = TextPart | ImagePart | DocumentPart

const cacheOf = (block: unknown): CacheMark | undefined => {
  const { cachePoint } = objectOf(block)
  return isObject(cachePoint) ? (cachePoint.ttl === "1h" ? "1h" : "5m") : undefined
}

/** Returns the blocks other than cache breakpoints, each with its index and the breakpoint that follows it, if any. */
export const markedBlocks = (
  blocks: ReadonlyArray<unknown>
): ReadonlyArray<{ readonly index: number; readonly block: JsonObject; readonly cache: CacheMark | undefined }> =>
  blocks.flatMap((block, index) =>
    cacheOf(block) === undefined ? [{ index, block: objectOf(block), cache: cacheOf(blocks[index + 1]) }] : []
  )

const readContent = (
  fields: Fields,
  at: string,
  block: JsonObject,
  cache: CacheMark | undefined
): Content | undefined => {
  if (typeof block.text === "string") return { type: "text", at, text: block.text, cache }
  if (isObject(block.image)) {
    const { format, source } = block.image
    const data = objectOf(source).bytes
    if (typeof data === "string" && typeof format === "string")
      return {
        type: "image",
        at,
        source: { type: "data", media_type: `image/${format}`, data },
        detail: undefined,
        cache
      }
  }
  if (isObject(block.document)) return readDocument(fields, at, block.document, cache)
  return fields.refuse(at, "must be text, an image, or a document as bytes")
}

const readDocument = (
  fields: Fields,
  at: string,
  { context, format, name, source }: JsonObject,
  cache: CacheMark | undefined
): DocumentPart | undefined => {
  const { bytes, text: said } = objectOf(source)
  const part = { type: "document", at, name: text(name), context: text(context), cache } as const
  if (typeof said === "string") return { ...part, source: { type: "text", text: said } }
  const media_type = documentType(textOr(format, ""))
  return typeof bytes === "string" && media_type !== undefined
    ? { ...part, source: { type: "data", media_type, data: bytes } }
    : fields.refuse(`${at}.document.source`, "must be bytes or text")
}

const readResult = (fields: Fields, at: string, result: JsonObject, cache: CacheMark | undefined): ToolResultPart => ({
  type: "tool_result",
  at,
  id: fields.needed(`${at}.toolResult.toolUseId`, result.toolUseId),
  content: listOf(result.content).flatMap((value, index): ReadonlyArray<Content> => {
    const where = `${at}.toolResult.content.${index}`
    const block = objectOf(value)
    const part =
      block.json === undefined
        ? readContent(fields, where, block, undefined)
        : ({ type: "text", at: where, text: written(block.json) ?? "", cache: undefined } as const)
    return part === undefined ? [] : [part]
  }),
  is_error: result.status === "error",
  cache
})

export const readUserParts = (fields: Fields, at: string, blocks: ReadonlyArray<unknown>): ReadonlyArray<UserPart> =>
  markedBlocks(blocks).flatMap(({ block, cache, index }): ReadonlyArray<UserPart> => {
    const where = `${at}.${index}`
    const part = isObject(block.toolResult)
      ? readResult(fields, where, block.toolResult, cache)
      : readContent(fields, where, block, cache)
    return part === undefined ? [] : [part]
  })

export const thoughtOf = (reasoning: JsonObject): Omit<ThinkingPart, "type" | "at"> => {
  const { reasoningText, redactedContent } = reasoning
  if (typeof redactedContent === "string")
    return { text: "", ...signatureOf(homeSigners.bedrock, redactedContent), redacted: true }
  const { signature, text: said } = objectOf(reasoningText)
  return { text: textOr(said, ""), ...signatureOf(homeSigners.bedrock, signature) }
}

export const readAssistantParts = (
  fields: Fields,
  at: string,
  blocks: ReadonlyArray<unknown>
): ReadonlyArray<AssistantPart> =>
  markedBlocks(blocks).flatMap(({ block, cache, index }): ReadonlyArray<AssistantPart> => {
    const where = `${at}.${index}`
    if (isObject(block.reasoningContent)) return [{ type: "thinking", at: where, ...thoughtOf(block.reasoningContent) }]
    if (isObject(block.toolUse)) {
      const { input, name, toolUseId } = block.toolUse
      const call: ToolCallPart = {
        type: "tool_call",
        at: where,
        id: fields.needed(`${where}.toolUse.toolUseId`, toolUseId),
        name: fields.needed(`${where}.toolUse.name`, name),
        arguments: argumentsOf(input) ?? "{}",
        custom: false,
        cache
      }
      return [call]
    }
    if (typeof block.text === "string") return [{ type: "text", at: where, text: block.text, cache }]
    fields.refuse(where, "must be text, reasoningContent or a toolUse")
    return []
  })

export const cachePoint = (cache: CacheMark | undefined): ReadonlyArray<JsonObject> =>
  cache === undefined ? [] : [{ cachePoint: cache === "1h" ? { type: "default", ttl: "1h" } : { type: "default" } }]

const documentName = (name: string | undefined): string => {
  const letters = (name ?? "").replaceAll(/[^\dA-Za-z()[\]-]+/g, " ").trim()
  return letters === "" ? "document" : letters.slice(0, 200)
}

const writeDocument = (fields: Fields, { at, context, name, source }: DocumentPart): JsonObject => {
  const described = { name: documentName(name), context }
  if (source.type === "text")
    return { document: present({ format: "txt", ...described, source: { text: source.text } }) }
  const format = source.type === "data" ? documentFormat(source.media_type) : undefined
  if (source.type === "data" && format !== undefined)
    return { document: present({ format, ...described, source: { bytes: source.data } }) }
  fields.refuse(
    at,
    source.type === "data"
      ? `the upstream of this model does not accept ${source.media_type}`
      : "the upstream of this model accepts files as data, not by URL"
  )
  return {}
}

const writeContent = (fields: Fields, part: Content): JsonObject => {
  if (part.type === "text") return { text: part.text }
  if (part.type === "document") return writeDocument(fields, part)
  const { at, source } = part
  const format = source.type === "data" ? imageFormat(source.media_type) : undefined
  if (source.type === "data" && format !== undefined) return { image: { format, source: { bytes: source.data } } }
  fields.refuse(
    at,
    source.type === "data"
      ? `the upstream of this model does not accept ${source.media_type}`
      : "the upstream of this model accepts images as data, not by URL"
  )
  return {}
}

const idLengthMax = 64

export const writeUserPart = (fields: Fields, part: UserPart): JsonObject => {
  if (part.type === "audio") {
    fields.refuse(part.at, "the upstream of this model accepts no audio")
    return {}
  }
  if (part.type !== "tool_result") return writeContent(fields, part)
  return {
    toolResult: present({
      toolUseId: fittingId(part.id, idLengthMax),
      content: part.content.map((one) => writeContent(fields, one)),
      status: part.is_error ? "error" : undefined
    })
  }
}

type AnswerBlock =
  | { readonly type: "text" | "refusal"; readonly text: string }
  | Pick<ThinkingPart, "type" | "text" | "signature" | "signer" | "redacted">
  | Pick<ToolCallPart, "type" | "id" | "name" | "arguments">

export const writeAssistantPart = (part: AnswerBlock): JsonObject => {
  switch (part.type) {
    case "text":
    case "refusal":
      return { text: part.text }
    case "thinking": {
      const signature = signatureIn(homeSigners.bedrock, part)
      return part.redacted && part.text === ""
        ? { reasoningContent: { redactedContent: signature ?? "" } }
        : { reasoningContent: { reasoningText: present({ text: part.text, signature }) } }
    }
    case "tool_call": {
      const { arguments: args, id, name } = part
      return { toolUse: { toolUseId: fittingId(id, idLengthMax), name, input: inputOf(args) } }
    }
  }
}
