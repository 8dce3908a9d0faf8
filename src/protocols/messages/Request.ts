/**
 * Reads and writes requests in Anthropic's Messages protocol (version 2023-06-01).
 *
 * Where the specification is silent:
 * - Some fields are dropped for vendors of other protocols, because they do not affect the response: `service_tier`, `context_management`,
 *   `diagnostics`, `user_profile_id`, `workspace_id`, and the tools' `input_examples`, `defer_loading`, `eager_input_streaming` and
 *   `allowed_callers`. Cache breakpoints are dropped if the vendor does not support them.
 * - Tools that the vendor runs (`web_search_...`, `bash_...`), `mcp_servers`, `container`, `citations`, files by id, and unknown fields are rejected.
 * - In a request translated to Messages, later instructions are moved to `system`, as Anthropic's chat endpoint does. `seed`, penalties, `verbosity`,
 *   cache keys and reasoning that Anthropic did not sign are dropped. A temperature above 1, the format `json_object`, audio, custom tools, and a
 *   choice restricted to some tools are rejected.
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
import { isObject, objectOf, present } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { anthropicThinking, isEffort } from "../conversation/Reasoning.ts"
import { reading, writing } from "../conversation/Request.ts"
import { isSignedBy } from "../conversation/Thoughts.ts"
import { alternating, instructionsOf, resultsFirst } from "../conversation/Turns.ts"
import {
  cacheControl,
  cacheOf,
  readAssistantParts,
  readTexts,
  readUserParts,
  writeAssistantPart,
  writeTexts,
  writeUserPart
} from "./Blocks.ts"

const names: FieldNames = {
  turns: "messages",
  tools: "tools",
  tool_choice: "tool_choice",
  parallel: "tool_choice.disable_parallel_tool_use",
  limit: "max_tokens",
  stop: "stop_sequences",
  format: "output_config.format",
  reasoning: "thinking"
}

const known: ReadonlySet<string> = new Set(
  (
    "model messages system max_tokens stop_sequences stream temperature top_p top_k tools tool_choice thinking " +
    "output_config output_format cache_control metadata speed " +
    "service_tier context_management diagnostics user_profile_id workspace_id"
  ).split(" ")
)

const readTurn = (fields: Fields, message: unknown, index: number): ReadonlyArray<Turn> => {
  const at = `messages.${index}`
  if (!isObject(message)) {
    fields.refuse(at, "must be an object")
    return []
  }
  const { content, role } = message
  const where = `${at}.content`
  if (role === "user") return [{ role, at, parts: readUserParts(fields, where, content) }]
  if (role === "assistant") return [{ role, at, parts: readAssistantParts(fields, where, content) }]
  if (role === "system") return [{ role, at, parts: readTexts(fields, where, content) }]
  fields.refuse(`${at}.role`, "must be user or assistant")
  return []
}

const readTool = (fields: Fields, tool: unknown, index: number): ReadonlyArray<Tool> => {
  const at = `tools.${index}`
  if (!isObject(tool)) {
    fields.refuse(at, "must be an object")
    return []
  }
  const { cache_control, description, input_schema, name, strict, type } = tool
  if (type !== undefined && type !== null && type !== "custom") {
    fields.refuse(`${at}.type`, `${String(type).slice(0, 60)} is a tool that the upstream of this model does not have`)
    return []
  }
  return [
    {
      type: "function",
      at,
      name: fields.needed(`${at}.name`, name),
      description: fields.text(`${at}.description`, description),
      parameters: fields.object(`${at}.input_schema`, input_schema),
      strict: fields.flag(`${at}.strict`, strict),
      cache: cacheOf(cache_control)
    }
  ]
}

const readChoice = (fields: Fields, choice: JsonObject): ToolChoice | undefined => {
  switch (choice.type) {
    case "auto":
    case "any":
    case "none":
      return { type: choice.type }
    case "tool":
      return { type: "tool", name: fields.needed("tool_choice.name", choice.name), custom: false }
    default:
      return fields.refuse("tool_choice.type", "must be auto, any, tool or none")
  }
}

const readReasoning = (fields: Fields, thinking: unknown, effort: unknown): Reasoning | undefined => {
  if (effort !== undefined && effort !== null && !isEffort(effort))
    return fields.refuse("output_config.effort", "must be low, medium, high, xhigh or max")
  const config = fields.object("thinking", thinking)
  const known = effort ?? undefined
  if (config === undefined)
    return known === undefined
      ? undefined
      : { off: false, effort: known, budget: undefined, adaptive: false, summary: undefined }
  const summary = config.display !== "omitted"
  switch (config.type) {
    case "disabled":
      return { off: true, effort: known, budget: undefined, adaptive: false, summary: undefined }
    case "adaptive":
      return { off: false, effort: known, budget: undefined, adaptive: true, summary }
    case "enabled": {
      const budget = fields.whole("thinking.budget_tokens", config.budget_tokens, 1)
      if (budget === undefined) return fields.refuse("thinking.budget_tokens", "must be a whole number of at least 1")
      return { off: false, effort: known, budget, adaptive: false, summary }
    }
    default:
      return fields.refuse("thinking.type", "must be enabled, adaptive or disabled")
  }
}

const readFormat = (fields: Fields, at: string, format: JsonObject | undefined): ResponseFormat | undefined => {
  if (format === undefined) return undefined
  if (format.type !== "json_schema" || !isObject(format.schema))
    return fields.refuse(at, "must be a json_schema that contains its schema")
  return { type: "schema", name: undefined, description: undefined, schema: format.schema, strict: undefined }
}

export const readRequest = reading((fields, body) => {
  fields.only(body, known)
  if (body.speed !== undefined && body.speed !== null && body.speed !== "standard")
    fields.refuse("speed", "the upstream of this model has no other speed")
  const output = fields.object("output_config", body.output_config) ?? {}
  const choice = fields.object("tool_choice", body.tool_choice)
  const system = readTexts(fields, "system", body.system ?? [])
  const turns = fields.list("messages", body.messages).flatMap((message, index) => readTurn(fields, message, index))
  const conversation: Conversation = {
    protocol: "messages",
    names,
    model: fields.needed("model", body.model),
    turns: system.length === 0 ? turns : [{ role: "system", at: "system", parts: system }, ...turns],
    tools: fields.list("tools", body.tools).flatMap((tool, index) => readTool(fields, tool, index)),
    tool_choice: choice === undefined ? undefined : readChoice(fields, choice),
    parallel_tool_calls: parallelOf(fields.flag(names.parallel, choice?.disable_parallel_tool_use)),
    limit: fields.whole("max_tokens", body.max_tokens, 1),
    temperature: fields.number("temperature", body.temperature),
    top_p: fields.number("top_p", body.top_p),
    top_k: fields.whole("top_k", body.top_k, 0),
    stop: fields.texts("stop_sequences", body.stop_sequences),
    seed: undefined,
    frequency_penalty: undefined,
    presence_penalty: undefined,
    format:
      readFormat(fields, "output_config.format", fields.object("output_config.format", output.format)) ??
      readFormat(fields, "output_format", fields.object("output_format", body.output_format)),
    reasoning: readReasoning(fields, body.thinking, output.effort),
    verbosity: undefined,
    cache: cacheOf(body.cache_control),
    prompt_cache_key: undefined,
    user: fields.text("metadata.user_id", objectOf(body.metadata).user_id),
    safety_identifier: undefined,
    stream: fields.flag("stream", body.stream) ?? false,
    include_usage: true
  }
  if (turns.length === 0) fields.refuse("messages", "must contain at least one message")
  return conversation
})

const parallelOf = (disabled: boolean | undefined): boolean | undefined =>
  disabled === undefined ? undefined : !disabled

const writeTool = (fields: Fields, tool: Tool): JsonObject => {
  if (tool.type === "custom") {
    fields.refuse(tool.at, "the upstream of this model has no custom tools, only functions")
    return {}
  }
  return present({
    name: tool.name,
    description: tool.description,
    input_schema: tool.parameters ?? { type: "object", properties: {} },
    strict: tool.strict || undefined,
    cache_control: cacheControl(tool.cache)
  })
}

const writeChoice = (fields: Fields, { names, parallel_tool_calls, tool_choice, tools }: Conversation) => {
  if (tools.length === 0) return undefined
  const disable_parallel_tool_use = parallelOf(parallel_tool_calls)
  if (tool_choice === undefined)
    return disable_parallel_tool_use === true ? { type: "auto", disable_parallel_tool_use } : undefined
  if (tool_choice.type === "allowed")
    return fields.refuse(names.tool_choice, "the upstream of this model cannot restrict the choice to some tools")
  if (tool_choice.type === "none") return { type: "none" }
  return present({
    type: tool_choice.type,
    name: tool_choice.type === "tool" ? tool_choice.name : undefined,
    disable_parallel_tool_use
  })
}

const writeFormat = (fields: Fields, { format, names }: Conversation): JsonObject | undefined => {
  if (format === undefined) return undefined
  if (format.type === "json")
    return fields.refuse(names.format, "the upstream of this model requires a schema for the format")
  return { type: "json_schema", schema: format.schema }
}

export const writeRequest = writing((fields, conversation, options) => {
  const { names, stop, temperature, tools, top_k, top_p, turns } = conversation
  const limit = options.limit ?? conversation.limit
  if (limit === undefined) fields.refuse(names.limit, "the upstream of this model requires a limit for the answer")
  if (temperature !== undefined && temperature > 1)
    fields.refuse("temperature", "the upstream of this model requires a temperature from 0 to 1")
  const system = instructionsOf(turns)
  const messages = alternating(conversation, (part) => isSignedBy("anthropic", part)).map((turn) => ({
    role: turn.role,
    content:
      turn.role === "assistant"
        ? turn.parts.map((part) => writeAssistantPart(part))
        : resultsFirst(turn.parts).map((part) => writeUserPart(fields, part))
  }))
  if (messages.length === 0) fields.refuse(names.turns, "must contain at least one message that is not empty")
  const { effort, thinking } = anthropicThinking(conversation, options.model, limit)
  const format = writeFormat(fields, conversation)
  const user = conversation.user ?? conversation.safety_identifier
  const body = present({
    model: options.model,
    max_tokens: limit,
    messages,
    system: system.length === 0 ? undefined : writeTexts(fields, system),
    tools: tools.length === 0 ? undefined : tools.map((tool) => writeTool(fields, tool)),
    tool_choice: writeChoice(fields, conversation),
    temperature,
    top_p,
    top_k,
    stop_sequences: stop.length === 0 ? undefined : stop,
    thinking,
    output_config: effort === undefined && format === undefined ? undefined : present({ effort, format }),
    cache_control: cacheControl(conversation.cache),
    metadata: user === undefined ? undefined : { user_id: user },
    stream: options.stream || undefined
  })
  return body
})
