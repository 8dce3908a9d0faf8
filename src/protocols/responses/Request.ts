/**
 * Reads and writes requests in OpenAI's Responses protocol.
 *
 * Where the specification is silent:
 * - Translated responses are not stored. `previous_response_id`, `conversation`, `prompt`, references to items, files by id and `background` are
 *   rejected. `store: true` is dropped, and the response contains `store: false`.
 * - Some fields are dropped for vendors of other protocols, because they do not affect the response: `include` (although token probabilities are
 *   rejected), `truncation`, `metadata`, `client_metadata`, `max_tool_calls`, `stream_options`, `prompt_cache_retention`, and `service_tier` with its
 *   default value.
 * - For a vendor of another protocol, a namespace becomes a prefix of its tools' names (`Namespaces`).
 * - The vendor's tools (`web_search`, `mcp`, `local_shell`, ...), their calls' items, and unknown fields are rejected.
 * - In a request translated to Responses, `store` is false. If the client requests reasoning, OpenAI's encrypted reasoning is requested too, and it
 *   is sent back without ids. Stop sequences and audio are rejected. `top_k`, `seed`, penalties, cache breakpoints and a tool result's `is_error` are
 *   dropped. A function's `strict` is false by default, as in all other protocols. A conversation from Messages, Google or Bedrock that ends with an
 *   assistant message is rejected. A completion limit below 16 is rejected, because OpenAI does not accept it.
 */
import { effortName, isCustom, readFormat, schemaOf, userOf } from "../chat/Request.ts"
import type {
  Conversation,
  FieldNames,
  JsonObject,
  Reasoning,
  Tool,
  ToolChoice,
  Turn
} from "../conversation/Conversation.ts"
import { listOf, objectOf, present, textOr } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { isEffort } from "../conversation/Reasoning.ts"
import { reading, writing } from "../conversation/Request.ts"
import { isPrefilled } from "../conversation/Turns.ts"
import { readInput, writeInput } from "./Items.ts"
import { nameOf, toolsIn } from "./Namespaces.ts"

const names: FieldNames = {
  turns: "input",
  tools: "tools",
  tool_choice: "tool_choice",
  parallel: "parallel_tool_calls",
  limit: "max_output_tokens",
  stop: "stop",
  format: "text.format",
  reasoning: "reasoning"
}

const known: ReadonlySet<string> = new Set(
  (
    "model input instructions max_output_tokens temperature top_p tools tool_choice parallel_tool_calls reasoning text store " +
    "stream user safety_identifier prompt_cache_key previous_response_id conversation background include top_logprobs " +
    "service_tier stream_options truncation metadata client_metadata max_tool_calls prompt_cache_retention"
  ).split(" ")
)

const plainTiers: ReadonlySet<unknown> = new Set(["auto", "default"])

const refuseOwn = (fields: Fields, body: JsonObject): void => {
  for (const name of ["previous_response_id", "conversation"])
    if (body[name] !== undefined && body[name] !== null)
      fields.refuse(name, "the upstream of this model stores no conversations: send the complete conversation in input")
  if (fields.flag("background", body.background) === true)
    fields.refuse("background", "the upstream of this model has no background mode")
  const logprobs = fields.list("include", body.include).includes("message.output_text.logprobs")
  if (logprobs || (fields.whole("top_logprobs", body.top_logprobs, 0) ?? 0) > 0)
    fields.refuse(logprobs ? "include" : "top_logprobs", "the upstream of this model returns no token probabilities")
  const tier = fields.text("service_tier", body.service_tier)
  if (tier !== undefined && !plainTiers.has(tier))
    fields.refuse("service_tier", "the upstream of this model has no other service tier")
}

const readTool = (fields: Fields, tool: unknown, at: string): ReadonlyArray<Tool> => {
  const tools = toolsIn(tool)
  if (tools !== undefined) return tools.flatMap((one, index) => readTool(fields, one, `${at}.tools.${index}`))
  const { description, format, name, parameters, strict, type } = objectOf(tool)
  const read = {
    at,
    name: type === "function" || type === "custom" ? fields.needed(`${at}.name`, name) : "",
    description: fields.text(`${at}.description`, description)
  }
  if (type === "function")
    return [
      {
        type,
        ...read,
        parameters: fields.object(`${at}.parameters`, parameters),
        strict: fields.flag(`${at}.strict`, strict),
        cache: undefined
      }
    ]
  if (type === "custom") return [{ type, ...read, format: fields.object(`${at}.format`, format) }]
  fields.refuse(
    `${at}.type`,
    typeof type === "string"
      ? `${type.slice(0, 60)} is a tool that the upstream of this model does not have`
      : "must be function or custom"
  )
  return []
}

const readChoice = (fields: Fields, choice: unknown): ToolChoice | undefined => {
  if (choice === undefined || choice === null) return undefined
  if (choice === "auto" || choice === "none") return { type: choice }
  if (choice === "required") return { type: "any" }
  const { mode, tools, type } = objectOf(choice)
  const name = nameOf(objectOf(choice))
  if ((type === "function" || type === "custom") && typeof name === "string")
    return { type: "tool", name, custom: type === "custom" }
  if (type === "allowed_tools")
    return {
      type: "allowed",
      mode: mode === "required" ? "any" : "auto",
      names: listOf(tools).map((tool) => textOr(nameOf(objectOf(tool)), ""))
    }
  return fields.refuse("tool_choice", "must be auto, none, required, or a function or custom tool")
}

const readReasoning = (fields: Fields, reasoning: JsonObject | undefined): Reasoning | undefined => {
  if (reasoning === undefined) return undefined
  const effort = reasoning.effort ?? undefined
  const summary = fields.text("reasoning.summary", reasoning.summary ?? reasoning.generate_summary)
  if (effort !== undefined && effort !== "none" && !isEffort(effort))
    return fields.refuse("reasoning.effort", "must be none, minimal, low, medium, high or xhigh")
  if (effort === undefined && summary === undefined) return undefined
  return {
    off: effort === "none",
    effort: effort === "none" ? undefined : effort,
    budget: undefined,
    adaptive: false,
    summary
  }
}

export const readRequest = reading((fields, body) => {
  refuseOwn(fields, body)
  fields.only(body, known)
  const instructions = fields.text("instructions", body.instructions)
  const text = fields.object("text", body.text) ?? {}
  const format = fields.object("text.format", text.format)
  const turns = readInput(fields, body.input)
  if (turns.length === 0) fields.refuse("input", "must be a string, or an array of at least one item")
  const conversation: Conversation = {
    protocol: "responses",
    names,
    model: fields.needed("model", body.model),
    turns: instructions === undefined ? turns : [instruction(instructions), ...turns],
    tools: fields.list("tools", body.tools).flatMap((tool, index) => readTool(fields, tool, `tools.${index}`)),
    tool_choice: readChoice(fields, body.tool_choice),
    parallel_tool_calls: fields.flag("parallel_tool_calls", body.parallel_tool_calls),
    limit: fields.whole("max_output_tokens", body.max_output_tokens, 1),
    temperature: fields.number("temperature", body.temperature),
    top_p: fields.number("top_p", body.top_p),
    top_k: undefined,
    stop: [],
    seed: undefined,
    frequency_penalty: undefined,
    presence_penalty: undefined,
    format: readFormat(fields, "text.format", format?.type, format),
    reasoning: readReasoning(fields, fields.object("reasoning", body.reasoning)),
    verbosity: fields.text("text.verbosity", text.verbosity),
    cache: undefined,
    prompt_cache_key: fields.text("prompt_cache_key", body.prompt_cache_key),
    user: fields.text("user", body.user),
    safety_identifier: fields.text("safety_identifier", body.safety_identifier),
    stream: fields.flag("stream", body.stream) ?? false,
    include_usage: true
  }
  return conversation
})

const instruction = (text: string): Turn => ({
  role: "system",
  at: "instructions",
  parts: [{ type: "text", at: "instructions", text, cache: undefined }]
})

const writeTool = (tool: Tool, byResponses: boolean): JsonObject =>
  tool.type === "custom"
    ? present({ type: "custom", name: tool.name, description: tool.description, format: tool.format })
    : present({
        type: "function",
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters ?? { type: "object", properties: {} },
        strict: tool.strict ?? (byResponses ? undefined : false)
      })

const writeChoice = ({ tool_choice, tools }: Conversation): unknown => {
  if (tool_choice === undefined || tools.length === 0) return undefined
  switch (tool_choice.type) {
    case "auto":
    case "none":
      return tool_choice.type
    case "any":
      return "required"
    case "tool":
      return { type: tool_choice.custom ? "custom" : "function", name: tool_choice.name }
    case "allowed":
      return {
        type: "allowed_tools",
        mode: tool_choice.mode === "any" ? "required" : "auto",
        tools: tool_choice.names.map((name) => ({ type: isCustom(tools, name) ? "custom" : "function", name }))
      }
  }
}

const writeText = (conversation: Conversation): JsonObject | undefined => {
  const { format, verbosity } = conversation
  if (format === undefined && verbosity === undefined) return undefined
  const schema = schemaOf(conversation)
  return present({
    format:
      format === undefined
        ? undefined
        : schema === undefined
          ? { type: "json_object" }
          : { type: "json_schema", ...schema },
    verbosity
  })
}

const writeReasoning = (conversation: Conversation, limit: number | undefined): JsonObject | undefined => {
  const { reasoning } = conversation
  const effort = effortName(conversation, limit)
  const summary =
    reasoning?.summary === true ? "auto" : typeof reasoning?.summary === "string" ? reasoning.summary : undefined
  return effort === undefined && summary === undefined ? undefined : present({ effort, summary })
}

/** Returns the text of a leading system turn, if it has a single part, because Responses has a separate field for it. */
const leading = (turns: ReadonlyArray<Turn>): string | undefined => {
  const [first] = turns
  return first?.role === "system" && first.parts.length === 1 ? first.parts[0]!.text : undefined
}

/** The minimum completion limit that OpenAI accepts. */
const limitMin = 16

export const writeRequest = writing((fields, conversation, options) => {
  const { names, protocol, stop, tools, turns } = conversation
  const limit = options.limit ?? conversation.limit
  if (limit !== undefined && limit < limitMin)
    fields.refuse(names.limit, `the upstream of this model requires a limit of at least ${limitMin}`)
  if (stop.length > 0) fields.refuse(names.stop, "the upstream of this model accepts no stop sequences")
  if (isPrefilled(conversation))
    fields.refuse(turns.at(-1)!.at, "the upstream of this model does not continue an assistant message")
  const instructions = leading(turns)
  const input = writeInput(fields, instructions === undefined ? turns : turns.slice(1))
  if (input.length === 0) fields.refuse(names.turns, "must contain at least one message that is not empty")
  const reasoning = writeReasoning(conversation, limit)
  const thinks = reasoning !== undefined && reasoning.effort !== "none"
  const body = present({
    model: options.model,
    instructions,
    input,
    max_output_tokens: limit,
    temperature: conversation.temperature,
    top_p: conversation.top_p,
    tools: tools.length === 0 ? undefined : tools.map((tool) => writeTool(tool, protocol === "responses")),
    tool_choice: writeChoice(conversation),
    parallel_tool_calls: tools.length === 0 ? undefined : conversation.parallel_tool_calls,
    text: writeText(conversation),
    reasoning,
    include: thinks ? ["reasoning.encrypted_content"] : undefined,
    store: false,
    prompt_cache_key: conversation.prompt_cache_key,
    user: userOf(conversation),
    safety_identifier: conversation.safety_identifier,
    stream: options.stream || undefined
  })
  return body
})
