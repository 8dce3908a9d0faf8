/**
 * Reads and writes requests of Bedrock's Converse. The path names the model and selects streaming.
 *
 * Where the specification is silent:
 * - In a translated request, later instructions are moved to `system`. `parallel_tool_calls`, `user`, `seed`, penalties, `verbosity` and cache keys
 *   are dropped, because Converse has no fields for them. `top_k`, reasoning settings and cache breakpoints are sent only to models that accept them
 *   (Claude: all; Nova: cache breakpoints, and efforts from Nova 2 on; OpenAI: efforts).
 * - Content by URL, audio, custom tools, and a format without a schema are rejected. A tool choice that Converse cannot express is also rejected:
 *   `none` if the conversation contains calls, or a subset of the tools.
 */
import type {
  Conversation,
  FieldNames,
  JsonObject,
  Reasoning,
  ResponseFormat,
  Tool,
  ToolChoice,
  Turn
} from "../conversation/Conversation.ts"
import { isDeep, isObject, listOf, objectOf, parsed, present, text } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { anthropicThinking, effortOf, isEffort } from "../conversation/Reasoning.ts"
import { reading, writing } from "../conversation/Request.ts"
import { isSignedBy } from "../conversation/Thoughts.ts"
import { alternating, instructionsOf, resultsFirst } from "../conversation/Turns.ts"
import type { Alternating } from "../conversation/Turns.ts"
import {
  cachePoint,
  markedBlocks,
  readAssistantParts,
  readUserParts,
  writeAssistantPart,
  writeUserPart
} from "./Blocks.ts"

const names: FieldNames = {
  turns: "messages",
  tools: "toolConfig.tools",
  tool_choice: "toolConfig.toolChoice",
  parallel: "toolConfig.toolChoice",
  limit: "inferenceConfig.maxTokens",
  stop: "inferenceConfig.stopSequences",
  format: "outputConfig.textFormat",
  reasoning: "additionalModelRequestFields.thinking"
}

const known: ReadonlySet<string> = new Set(
  (
    "messages system inferenceConfig toolConfig outputConfig additionalModelRequestFields requestMetadata performanceConfig " +
    "serviceTier additionalModelResponseFieldPaths"
  ).split(" ")
)

const readTurn = (fields: Fields, message: unknown, index: number): ReadonlyArray<Turn> => {
  const at = `messages.${index}`
  const { content, role } = objectOf(message)
  const blocks = fields.list(`${at}.content`, content)
  if (role === "user") return [{ role, at, parts: readUserParts(fields, `${at}.content`, blocks) }]
  if (role === "assistant") return [{ role, at, parts: readAssistantParts(fields, `${at}.content`, blocks) }]
  fields.refuse(`${at}.role`, "must be user or assistant")
  return []
}

const readTools = (fields: Fields, tools: ReadonlyArray<unknown>): ReadonlyArray<Tool> =>
  markedBlocks(tools).flatMap(({ block, cache, index }): ReadonlyArray<Tool> => {
    const at = `${names.tools}.${index}`
    const { description, inputSchema, name, strict } = objectOf(block.toolSpec)
    if (!isObject(block.toolSpec)) {
      fields.refuse(at, "the upstream of this model does not have this tool")
      return []
    }
    return [
      {
        type: "function",
        at,
        name: fields.needed(`${at}.toolSpec.name`, name),
        description: fields.text(`${at}.toolSpec.description`, description),
        parameters: fields.object(`${at}.toolSpec.inputSchema.json`, objectOf(inputSchema).json),
        strict: fields.flag(`${at}.toolSpec.strict`, strict),
        cache
      }
    ]
  })

const readChoice = (fields: Fields, choice: JsonObject | undefined): ToolChoice | undefined => {
  if (choice === undefined) return undefined
  if (choice.auto !== undefined) return { type: "auto" }
  if (choice.any !== undefined) return { type: "any" }
  return {
    type: "tool",
    name: fields.needed(`${names.tool_choice}.tool.name`, objectOf(choice.tool).name),
    custom: false
  }
}

const readFormat = (fields: Fields, format: JsonObject | undefined): ResponseFormat | undefined => {
  if (format === undefined) return undefined
  const { description, name, schema } = objectOf(objectOf(format.structure).jsonSchema)
  const value = typeof schema === "string" ? parsed(schema) : undefined
  if (!isObject(value) || isDeep(value)) return fields.refuse(names.format, "must be a schema as JSON")
  return { type: "schema", name: text(name), description: text(description), schema: value, strict: undefined }
}

const readReasoning = (more: JsonObject): Reasoning | undefined => {
  const { display, budget_tokens, type } = objectOf(more.thinking)
  const effort = objectOf(more.output_config).effort
  if (type === undefined && !isEffort(effort)) return undefined
  return {
    off: type === "disabled",
    effort: isEffort(effort) ? effort : undefined,
    budget: type === "enabled" && typeof budget_tokens === "number" ? budget_tokens : undefined,
    adaptive: type === "adaptive",
    summary: type === "enabled" || type === "adaptive" ? display !== "omitted" : undefined
  }
}

export const readRequest = reading((fields, body) => {
  fields.only(body, known)
  const config = objectOf(body.inferenceConfig)
  const toolConfig = objectOf(body.toolConfig)
  const more = objectOf(body.additionalModelRequestFields)
  const field = (name: string) => `inferenceConfig.${name}`
  const turns = fields.list("messages", body.messages).flatMap((message, index) => readTurn(fields, message, index))
  if (turns.length === 0) fields.refuse("messages", "must contain at least one message")
  const system = markedBlocks(fields.list("system", body.system)).flatMap(({ block, cache, index }) => {
    const at = `system.${index}`
    const said = fields.text(`${at}.text`, block.text)
    return said === undefined ? [] : [{ type: "text", at, text: said, cache } as const]
  })
  const conversation: Conversation = {
    protocol: "bedrock",
    names,
    model: "",
    turns: system.length === 0 ? turns : [{ role: "system", at: "system", parts: system }, ...turns],
    tools: readTools(fields, fields.list(names.tools, toolConfig.tools)),
    tool_choice: readChoice(fields, fields.object(names.tool_choice, toolConfig.toolChoice)),
    parallel_tool_calls: undefined,
    limit: fields.whole(field("maxTokens"), config.maxTokens, 1),
    temperature: fields.number(field("temperature"), config.temperature),
    top_p: fields.number(field("topP"), config.topP),
    top_k: fields.number("additionalModelRequestFields.top_k", more.top_k),
    stop: fields.texts(field("stopSequences"), config.stopSequences),
    seed: undefined,
    frequency_penalty: undefined,
    presence_penalty: undefined,
    format: readFormat(fields, fields.object(names.format, objectOf(body.outputConfig).textFormat)),
    reasoning: readReasoning(more),
    verbosity: undefined,
    cache: undefined,
    prompt_cache_key: undefined,
    user: undefined,
    safety_identifier: undefined,
    stream: false,
    include_usage: true
  }
  return conversation
})

const writeTool = (fields: Fields, tool: Tool, marks: boolean): ReadonlyArray<JsonObject> => {
  if (tool.type === "custom") {
    fields.refuse(tool.at, "the upstream of this model has no custom tools, only functions")
    return []
  }
  const toolSpec = present({
    name: tool.name,
    description: tool.description,
    inputSchema: { json: tool.parameters ?? { type: "object", properties: {} } },
    strict: tool.strict || undefined
  })
  return [{ toolSpec }, ...cachePoint(marks ? tool.cache : undefined)]
}

const writeChoice = (fields: Fields, { names, tool_choice }: Conversation): JsonObject | undefined => {
  switch (tool_choice?.type) {
    case undefined:
      return undefined
    case "auto":
      return { auto: {} }
    case "any":
      return { any: {} }
    case "tool":
      return { tool: { name: tool_choice.name } }
    case "none":
      return fields.refuse(names.tool_choice, "the upstream of this model may call its tools at any time")
    case "allowed":
      return fields.refuse(names.tool_choice, "the upstream of this model cannot restrict the choice to some tools")
  }
}

/** Writes the tools. Converse cannot forbid tool calls, so `none` omits the tools if the conversation contains no calls. */
const writeTools = (fields: Fields, conversation: Conversation, marks: boolean): JsonObject | undefined => {
  const { tool_choice, tools, turns } = conversation
  if (tools.length === 0) return undefined
  const called = turns.some((turn) => turn.role === "assistant" && turn.parts.some((part) => part.type === "tool_call"))
  if (tool_choice?.type === "none" && !called) return undefined
  return present({
    tools: tools.flatMap((tool) => writeTool(fields, tool, marks)),
    toolChoice: writeChoice(fields, conversation)
  })
}

const writeFormat = (fields: Fields, { format, names }: Conversation): JsonObject | undefined => {
  if (format === undefined) return undefined
  if (format.type === "json")
    return fields.refuse(names.format, "the upstream of this model requires a schema for the format")
  const { description, name, schema } = format
  const jsonSchema = present({ schema: JSON.stringify(schema), name: name ?? "answer", description })
  return { textFormat: { type: "json_schema", structure: { jsonSchema } } }
}

/** Writes the vendor-specific fields: `top_k` and reasoning settings. */
const writeModelFields = (
  conversation: Conversation,
  model: string,
  limit: number | undefined
): JsonObject | undefined => {
  const { reasoning, top_k } = conversation
  const more = isClaude(model)
    ? claudeFields(conversation, model, limit)
    : reasoning === undefined || reasoning.off
      ? {}
      : effortFields(model, effortOf(reasoning, limit))
  const fields = present({ top_k: isClaude(model) ? top_k : undefined, ...more })
  return Object.keys(fields).length === 0 ? undefined : fields
}

const isClaude = (model: string): boolean => /anthropic|claude/.test(model)

export const acceptsCacheMarks = (model: string): boolean => isClaude(model) || /nova/.test(model)

const claudeFields = (conversation: Conversation, model: string, limit: number | undefined): JsonObject => {
  const { effort, thinking } = anthropicThinking(conversation, model, limit)
  return present({ thinking, output_config: effort === undefined ? undefined : { effort } })
}

const effortFields = (model: string, effort: string | undefined): JsonObject => {
  if (effort === undefined) return {}
  if (/openai/.test(model)) return { reasoning_effort: effort }
  return /nova-2/.test(model) ? { reasoningConfig: { type: "enabled", maxReasoningEffort: effort } } : {}
}

const writeTurn = (fields: Fields, turn: Alternating, marks: boolean): JsonObject => ({
  role: turn.role,
  content:
    turn.role === "assistant"
      ? turn.parts.flatMap((part) => [writeAssistantPart(part), ...mark(part, marks)])
      : resultsFirst(turn.parts).flatMap((part) => [writeUserPart(fields, part), ...mark(part, marks)])
})

const mark = (part: object, marks: boolean): ReadonlyArray<JsonObject> =>
  marks && "cache" in part ? cachePoint(part.cache as Parameters<typeof cachePoint>[0]) : []

export const writeRequest = writing((fields, conversation, options) => {
  const { stop, temperature, top_p, turns } = conversation
  const { model } = options
  const limit = options.limit ?? conversation.limit
  const marks = acceptsCacheMarks(model)
  const system = instructionsOf(turns).flatMap((part) => [{ text: part.text }, ...mark(part, marks)])
  const messages = alternating(conversation, (part) => isSignedBy("anthropic", part)).map((turn) =>
    writeTurn(fields, turn, marks)
  )
  if (messages.length === 0)
    fields.refuse(conversation.names.turns, "must contain at least one message that is not empty")
  if (marks && conversation.cache !== undefined && messages.length > 0) {
    const last = messages.at(-1)!
    messages[messages.length - 1] = { ...last, content: [...listOf(last.content), ...cachePoint(conversation.cache)] }
  }
  const config = present({
    maxTokens: limit,
    temperature,
    topP: top_p,
    stopSequences: stop.length === 0 ? undefined : stop
  })
  const body = present({
    system: system.length === 0 ? undefined : system,
    messages,
    inferenceConfig: Object.keys(config).length === 0 ? undefined : config,
    toolConfig: writeTools(fields, conversation, marks),
    outputConfig: writeFormat(fields, conversation),
    additionalModelRequestFields: writeModelFields(conversation, model, limit)
  })
  return body
})
