/**
 * Reads and writes Gemini's requests (`generateContent` and `streamGenerateContent`). The path names the model and selects streaming.
 *
 * Where the specification is silent:
 * - In a translated request, later instructions are moved to `systemInstruction`. `parallel_tool_calls`, `user`, `verbosity`, cache keys and cache
 *   breakpoints are dropped, because Gemini has no fields for them. Strict functions use the mode `VALIDATED`. Custom tools are rejected. Schemas are
 *   sent unchanged (`parametersJsonSchema` and `responseJsonSchema`).
 * - Gemini 3 and later models get a reasoning level, and older models a budget. A budget that the client sets is sent unchanged.
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
import { isObject, listOf, objectOf, present, text } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { budgetOf } from "../conversation/Reasoning.ts"
import { reading, writing } from "../conversation/Request.ts"
import { isSignedBy } from "../conversation/Thoughts.ts"
import type { RequestOptions } from "../conversation/Translation.ts"
import { alternating, instructionsOf } from "../conversation/Turns.ts"
import { Calls, partsOf, readModelParts, readUserParts, roleOf, writeModelParts, writeUserParts } from "./Parts.ts"

const names: FieldNames = {
  turns: "contents",
  tools: "tools",
  tool_choice: "toolConfig.functionCallingConfig",
  parallel: "toolConfig",
  limit: "generationConfig.maxOutputTokens",
  stop: "generationConfig.stopSequences",
  format: "generationConfig.responseJsonSchema",
  reasoning: "generationConfig.thinkingConfig"
}

const known: ReadonlySet<string> = new Set(
  "model contents systemInstruction tools toolConfig generationConfig safetySettings labels".split(" ")
)

const readTurn = (fields: Fields, content: unknown, index: number, calls: Calls): Turn => {
  const at = `contents.${index}`
  const where = `${at}.parts`
  return roleOf(content) === "model"
    ? { role: "assistant", at, parts: readModelParts(fields, where, partsOf(content), calls) }
    : { role: "user", at, parts: readUserParts(fields, where, partsOf(content), calls) }
}

const readTools = (fields: Fields, tools: unknown): ReadonlyArray<Tool> =>
  fields.list("tools", tools).flatMap((tool, group) => {
    const other = Object.keys(objectOf(tool)).find((name) => name !== "functionDeclarations")
    if (other !== undefined)
      fields.refuse(`tools.${group}.${other}`, "the upstream of this model does not have this tool")
    return listOf(objectOf(tool).functionDeclarations).map((value, index): Tool => {
      const at = `tools.${group}.functionDeclarations.${index}`
      const declared = objectOf(value)
      const schema = declared.parametersJsonSchema ?? declared.parameters
      return {
        type: "function",
        at,
        name: fields.needed(`${at}.name`, declared.name),
        description: fields.text(`${at}.description`, declared.description),
        parameters: fields.object(`${at}.parametersJsonSchema`, schema),
        strict: undefined,
        cache: undefined
      }
    })
  })

const readChoice = (fields: Fields, config: JsonObject): ToolChoice | undefined => {
  const allowed = fields.texts(`${names.tool_choice}.allowedFunctionNames`, config.allowedFunctionNames)
  switch (config.mode) {
    case undefined:
      return undefined
    case "NONE":
      return { type: "none" }
    case "ANY":
      if (allowed.length === 1) return { type: "tool", name: allowed[0]!, custom: false }
      return allowed.length === 0 ? { type: "any" } : { type: "allowed", mode: "any", names: allowed }
    case "AUTO":
    case "VALIDATED":
      return allowed.length === 0 ? { type: "auto" } : { type: "allowed", mode: "auto", names: allowed }
    default:
      return fields.refuse(`${names.tool_choice}.mode`, "must be AUTO, ANY, VALIDATED or NONE")
  }
}

const readFormat = (config: JsonObject): ResponseFormat | undefined => {
  const schema = config.responseJsonSchema ?? config.responseSchema
  if (isObject(schema)) return { type: "schema", name: undefined, description: undefined, schema, strict: undefined }
  return config.responseMimeType === "application/json" ? { type: "json" } : undefined
}

const levels = { minimal: "minimal", low: "low", medium: "medium", high: "high" } as const

const readReasoning = (fields: Fields, config: JsonObject | undefined): Reasoning | undefined => {
  if (config === undefined) return undefined
  const budget = fields.whole(`${names.reasoning}.thinkingBudget`, config.thinkingBudget, -1)
  const level = text(config.thinkingLevel)?.toLowerCase()
  return {
    off: budget === 0,
    effort: level !== undefined && level in levels ? levels[level as keyof typeof levels] : undefined,
    budget: budget === undefined || budget < 1 ? undefined : budget,
    adaptive: budget === -1,
    summary: typeof config.includeThoughts === "boolean" ? config.includeThoughts : undefined
  }
}

export const readRequest = reading((fields, body) => {
  fields.only(body, known)
  const config = fields.object("generationConfig", body.generationConfig) ?? {}
  const field = (name: string) => `generationConfig.${name}`
  const calls = new Calls()
  const turns = fields.list("contents", body.contents).map((content, index) => readTurn(fields, content, index, calls))
  if (turns.length === 0) fields.refuse("contents", "must contain at least one content")
  const system = partsOf(body.systemInstruction).flatMap((part, index) => {
    const at = `systemInstruction.parts.${index}`
    const said = fields.text(`${at}.text`, objectOf(part).text)
    return said === undefined ? [] : [{ type: "text", at, text: said, cache: undefined } as const]
  })
  const conversation: Conversation = {
    protocol: "google",
    names,
    model: text(body.model) ?? "",
    turns: system.length === 0 ? turns : [{ role: "system", at: "systemInstruction", parts: system }, ...turns],
    tools: readTools(fields, body.tools),
    tool_choice: readChoice(fields, objectOf(objectOf(body.toolConfig).functionCallingConfig)),
    parallel_tool_calls: undefined,
    limit: fields.whole(field("maxOutputTokens"), config.maxOutputTokens, 1),
    temperature: fields.number(field("temperature"), config.temperature),
    top_p: fields.number(field("topP"), config.topP),
    top_k: fields.number(field("topK"), config.topK),
    stop: fields.texts(field("stopSequences"), config.stopSequences),
    seed: fields.number(field("seed"), config.seed),
    frequency_penalty: fields.number(field("frequencyPenalty"), config.frequencyPenalty),
    presence_penalty: fields.number(field("presencePenalty"), config.presencePenalty),
    format: readFormat(config),
    reasoning: readReasoning(fields, fields.object(names.reasoning, config.thinkingConfig)),
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

/** Returns whether a model is older than Gemini 3. Older models use a reasoning budget and accept calls without signatures. */
const isOld = (model: string): boolean => /gemini-(?:[12](?!\d)|pro)/.test(model)

const writeTool = (fields: Fields, tool: Tool): JsonObject => {
  if (tool.type === "custom") {
    fields.refuse(tool.at, "the upstream of this model has no custom tools, only functions")
    return {}
  }
  return present({ name: tool.name, description: tool.description, parametersJsonSchema: tool.parameters })
}

const writeChoice = ({ tool_choice, tools }: Conversation): JsonObject | undefined => {
  if (tools.length === 0) return undefined
  const strict = tools.some((tool) => tool.type === "function" && tool.strict === true)
  switch (tool_choice?.type) {
    case undefined:
      return strict ? { mode: "VALIDATED" } : undefined
    case "auto":
      return { mode: strict ? "VALIDATED" : "AUTO" }
    case "none":
      return { mode: "NONE" }
    case "any":
      return { mode: "ANY" }
    case "tool":
      return { mode: "ANY", allowedFunctionNames: [tool_choice.name] }
    case "allowed":
      return { mode: tool_choice.mode === "any" ? "ANY" : "VALIDATED", allowedFunctionNames: tool_choice.names }
  }
}

const writeReasoning = (
  reasoning: Reasoning | undefined,
  model: string,
  limit: number | undefined
): JsonObject | undefined => {
  if (reasoning === undefined) return undefined
  const { adaptive, budget, effort, off, summary } = reasoning
  const includeThoughts = summary === undefined ? undefined : summary !== false
  if (off) return isOld(model) ? { thinkingBudget: 0 } : { thinkingLevel: "minimal" }
  if (budget !== undefined) return present({ thinkingBudget: budget, includeThoughts })
  if (effort === undefined) return present({ thinkingBudget: adaptive ? -1 : undefined, includeThoughts })
  if (isOld(model)) return present({ thinkingBudget: budgetOf(effort, limit), includeThoughts })
  const thinkingLevel = effort in levels ? effort : "high"
  return present({ thinkingLevel, includeThoughts })
}

const writeConfig = (conversation: Conversation, { model }: RequestOptions, limit: number | undefined): JsonObject => {
  const { format, stop } = conversation
  return present({
    maxOutputTokens: limit,
    temperature: conversation.temperature,
    topP: conversation.top_p,
    topK: conversation.top_k,
    stopSequences: stop.length === 0 ? undefined : stop,
    seed: conversation.seed,
    frequencyPenalty: conversation.frequency_penalty,
    presencePenalty: conversation.presence_penalty,
    responseMimeType: format === undefined ? undefined : "application/json",
    responseJsonSchema: format?.type === "schema" ? format.schema : undefined,
    thinkingConfig: writeReasoning(conversation.reasoning, model, limit)
  })
}

export const writeRequest = writing((fields, conversation, options) => {
  const { tools, turns } = conversation
  const toolNames = new Map(
    turns.flatMap((turn) =>
      turn.role === "assistant"
        ? turn.parts.flatMap((part) => (part.type === "tool_call" ? [[part.id, part.name] as const] : []))
        : []
    )
  )
  const system = instructionsOf(turns).map((part) => ({ text: part.text }))
  const contents = alternating(conversation, (part) => isSignedBy("google", part)).map((turn) =>
    turn.role === "assistant"
      ? { role: "model", parts: writeModelParts(turn.parts, !isOld(options.model)) }
      : { role: "user", parts: writeUserParts(fields, turn.parts, toolNames) }
  )
  if (contents.length === 0)
    fields.refuse(conversation.names.turns, "must contain at least one message that is not empty")
  const config = writeConfig(conversation, options, options.limit ?? conversation.limit)
  const choice = writeChoice(conversation)
  const body = present({
    systemInstruction: system.length === 0 ? undefined : { parts: system },
    contents,
    tools: tools.length === 0 ? undefined : [{ functionDeclarations: tools.map((tool) => writeTool(fields, tool)) }],
    toolConfig: choice === undefined ? undefined : { functionCallingConfig: choice },
    generationConfig: Object.keys(config).length === 0 ? undefined : config
  })
  return body
})
