/**
 * Reads and writes chat completion requests.
 *
 * Where the specification is silent:
 * - Some fields are dropped for vendors of other protocols, because they do not affect the response: `store`, `metadata`, `service_tier` with its
 *   default value, `prompt_cache_retention`, `min_p`, `top_a`, `typical_p`, `repetition_penalty`, `include_reasoning`, `usage`, and a message's
 *   `name`. Anthropic's chat endpoint drops `name` too. `seed`, penalties, `verbosity`, `prompt_cache_key` and `safety_identifier` are sent only to
 *   vendors that support them.
 * - `n` above 1, `logprobs`, `logit_bias` (its keys are one vendor's token ids), output other than text, `functions`, and unknown fields are
 *   rejected.
 * - In a request translated to chat, instructions always have the role `system`, because compatible servers do not support `developer`. Parts of a
 *   tool result other than text become a user message after all results. A result's `is_error` and cache breakpoints are dropped, because OpenAI
 *   rejects unknown fields. A `user_id` from Messages is replaced with a derived id unless it consists of at most 64 letters, digits, `_` and `-`. A
 *   conversation from Messages, Google or Bedrock that ends with an assistant message is rejected, because chat vendors do not continue it.
 */
import type {
  AssistantPart,
  Conversation,
  FieldNames,
  JsonObject,
  Reasoning,
  ResponseFormat,
  Tool,
  ToolChoice,
  ToolResultPart,
  Turn,
  UserPart
} from "../conversation/Conversation.ts"
import { isObject, listOf, objectOf, present, textOr } from "../conversation/Json.ts"
import type { Fields } from "../conversation/Json.ts"
import { effortOf, isEffort } from "../conversation/Reasoning.ts"
import { reading, writing } from "../conversation/Request.ts"
import { fittingId } from "../conversation/ToolCalls.ts"
import { isPrefilled } from "../conversation/Turns.ts"
import {
  readCall,
  readResultParts,
  readSaid,
  readTexts,
  readUserParts,
  writeCall,
  writeContent,
  writeResult
} from "./Parts.ts"
import { reasoningOf, writeThoughts } from "./Thoughts.ts"

const names: FieldNames = {
  turns: "messages",
  tools: "tools",
  tool_choice: "tool_choice",
  parallel: "parallel_tool_calls",
  limit: "max_completion_tokens",
  stop: "stop",
  format: "response_format",
  reasoning: "reasoning_effort"
}

const known: ReadonlySet<string> = new Set(
  (
    "model messages max_tokens max_completion_tokens temperature top_p top_k stop seed frequency_penalty presence_penalty " +
    "tools tool_choice parallel_tool_calls response_format reasoning_effort reasoning thinking enable_thinking verbosity " +
    "prompt_cache_key user safety_identifier stream stream_options n logprobs top_logprobs logit_bias modalities " +
    "service_tier store metadata prompt_cache_retention min_p top_a typical_p repetition_penalty include_reasoning usage " +
    "cache_control"
  ).split(" ")
)

const plainTiers: ReadonlySet<unknown> = new Set(["auto", "default", "standard", "on_demand"])

/** Rejects settings that no other protocol supports. */
const rejectUnsupported = (fields: Fields, body: JsonObject): void => {
  if ((fields.whole("n", body.n, 1) ?? 1) > 1) fields.refuse("n", "the upstream of this model returns only one answer")
  if (fields.flag("logprobs", body.logprobs) === true)
    fields.refuse("logprobs", "the upstream of this model returns no token probabilities")
  if (Object.keys(fields.object("logit_bias", body.logit_bias) ?? {}).length > 0)
    fields.refuse("logit_bias", "the upstream of this model uses other token ids")
  if (fields.list("modalities", body.modalities).some((one) => one !== "text"))
    fields.refuse("modalities", "the upstream of this model returns only text")
  const tier = fields.text("service_tier", body.service_tier)
  if (tier !== undefined && !plainTiers.has(tier))
    fields.refuse("service_tier", "the upstream of this model has no other service tier")
}

const readAssistant = (fields: Fields, at: string, message: JsonObject): ReadonlyArray<AssistantPart> => {
  if (message.function_call !== undefined && message.function_call !== null)
    fields.refuse(`${at}.function_call`, "the upstream of this model accepts only tool_calls")
  if (message.audio !== undefined && message.audio !== null)
    fields.refuse(`${at}.audio`, "the upstream of this model cannot use audio stored at another vendor")
  const refusal = fields.text(`${at}.refusal`, message.refusal)
  return [
    ...reasoningOf(message, "client").map((thought) => ({ ...thought, at: `${at}.reasoning_content` })),
    ...readSaid(fields, `${at}.content`, message.content),
    ...(refusal === undefined || refusal === ""
      ? []
      : [{ type: "refusal", at: `${at}.refusal`, text: refusal } as const]),
    ...fields
      .list(`${at}.tool_calls`, message.tool_calls)
      .flatMap((call, index) => readCall(fields, `${at}.tool_calls.${index}`, call) ?? [])
  ]
}

const readResult = (fields: Fields, at: string, message: JsonObject): ToolResultPart => ({
  type: "tool_result",
  at,
  id: fields.needed(`${at}.tool_call_id`, message.tool_call_id),
  content: readResultParts(fields, `${at}.content`, message.content),
  is_error: false,
  cache: undefined
})

const readTurn = (fields: Fields, message: unknown, index: number): ReadonlyArray<Turn> => {
  const at = `messages.${index}`
  if (!isObject(message)) {
    fields.refuse(at, "must be an object")
    return []
  }
  const { content, role } = message
  switch (role) {
    case "system":
    case "developer":
      return [{ role, at, parts: readTexts(fields, `${at}.content`, content) }]
    case "user":
      return [{ role, at, parts: readUserParts(fields, `${at}.content`, content) }]
    case "assistant":
      return [{ role, at, parts: readAssistant(fields, at, message) }]
    case "tool":
      return [{ role: "user", at, parts: [readResult(fields, at, message)] }]
    default:
      fields.refuse(`${at}.role`, "must be system, developer, user, assistant or tool")
      return []
  }
}

const readTool = (fields: Fields, tool: unknown, index: number): ReadonlyArray<Tool> => {
  const at = `tools.${index}`
  const { custom, function: declared, type } = objectOf(tool)
  if (type === "function" && isObject(declared)) {
    const where = `${at}.function`
    return [
      {
        type,
        at,
        name: fields.needed(`${where}.name`, declared.name),
        description: fields.text(`${where}.description`, declared.description),
        parameters: fields.object(`${where}.parameters`, declared.parameters),
        strict: fields.flag(`${where}.strict`, declared.strict),
        cache: undefined
      }
    ]
  }
  if (type === "custom" && isObject(custom))
    return [
      {
        type,
        at,
        name: fields.needed(`${at}.custom.name`, custom.name),
        description: fields.text(`${at}.custom.description`, custom.description),
        format: fields.object(`${at}.custom.format`, custom.format)
      }
    ]
  fields.refuse(
    `${at}.type`,
    typeof type === "string" && type !== "function" && type !== "custom"
      ? `${type.slice(0, 60)} is a tool that the upstream of this model does not have`
      : "must be a function or a custom tool"
  )
  return []
}

const nameIn = (choice: unknown): string => {
  const { custom, function: declared } = objectOf(choice)
  return textOr(objectOf(declared).name, textOr(objectOf(custom).name, ""))
}

const readChoice = (fields: Fields, choice: unknown): ToolChoice | undefined => {
  if (choice === undefined || choice === null) return undefined
  if (choice === "auto" || choice === "none") return { type: choice }
  if (choice === "required") return { type: "any" }
  const { allowed_tools, type } = objectOf(choice)
  if ((type === "function" || type === "custom") && nameIn(choice) !== "")
    return { type: "tool", name: nameIn(choice), custom: type === "custom" }
  if (type === "allowed_tools" && isObject(allowed_tools))
    return {
      type: "allowed",
      mode: allowed_tools.mode === "required" ? "any" : "auto",
      names: listOf(allowed_tools.tools).map(nameIn)
    }
  return fields.refuse("tool_choice", "must be auto, none, required, or a tool")
}

export const readFormat = (
  fields: Fields,
  at: string,
  type: unknown,
  schema: JsonObject | undefined
): ResponseFormat | undefined => {
  switch (type) {
    case undefined:
    case null:
    case "text":
      return undefined
    case "json_object":
      return { type: "json" }
    case "json_schema":
      if (!isObject(schema?.schema)) return fields.refuse(at, "must be a json_schema that contains its schema")
      return {
        type: "schema",
        name: fields.text(`${at}.name`, schema.name),
        description: fields.text(`${at}.description`, schema.description),
        schema: schema.schema,
        strict: fields.flag(`${at}.strict`, schema.strict)
      }
    default:
      return fields.refuse(`${at}.type`, "must be text, json_object or json_schema")
  }
}

/** Reads the reasoning settings of OpenAI, OpenRouter (`reasoning`), DeepSeek (`thinking`) and Qwen (`enable_thinking`). */
const readReasoning = (fields: Fields, body: JsonObject): Reasoning | undefined => {
  const reasoning = fields.object("reasoning", body.reasoning) ?? {}
  const thinking = fields.object("thinking", body.thinking) ?? {}
  const effort = body.reasoning_effort ?? reasoning.effort ?? undefined
  if (effort !== undefined && effort !== "none" && !isEffort(effort))
    return fields.refuse("reasoning_effort", "must be none, minimal, low, medium, high or xhigh")
  const budget =
    fields.whole("reasoning.max_tokens", reasoning.max_tokens, 1) ??
    fields.whole("thinking.budget_tokens", thinking.budget_tokens, 1)
  const off =
    effort === "none" || reasoning.enabled === false || thinking.type === "disabled" || body.enable_thinking === false
  const on = reasoning.enabled === true || thinking.type === "enabled" || body.enable_thinking === true
  if (!off && !on && effort === undefined && budget === undefined) return undefined
  return {
    off,
    effort: effort === "none" ? undefined : (effort ?? (on && budget === undefined ? "medium" : undefined)),
    budget,
    adaptive: false,
    summary: reasoning.exclude === true ? false : undefined
  }
}

const smaller = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : other === undefined ? one : Math.min(one, other)

export const readRequest = reading((fields, body) => {
  fields.only(body, known)
  rejectUnsupported(fields, body)
  const format = fields.object("response_format", body.response_format)
  const turns = fields.list("messages", body.messages).flatMap((message, index) => readTurn(fields, message, index))
  if (turns.length === 0) fields.refuse("messages", "must contain at least one message")
  const conversation: Conversation = {
    protocol: "chat",
    names,
    model: fields.needed("model", body.model),
    turns,
    tools: fields.list("tools", body.tools).flatMap((tool, index) => readTool(fields, tool, index)),
    tool_choice: readChoice(fields, body.tool_choice),
    parallel_tool_calls: fields.flag("parallel_tool_calls", body.parallel_tool_calls),
    limit: smaller(
      fields.whole("max_tokens", body.max_tokens, 1),
      fields.whole("max_completion_tokens", body.max_completion_tokens, 1)
    ),
    temperature: fields.number("temperature", body.temperature),
    top_p: fields.number("top_p", body.top_p),
    top_k: fields.whole("top_k", body.top_k, -1),
    stop: fields.texts("stop", body.stop),
    seed: fields.number("seed", body.seed),
    frequency_penalty: fields.number("frequency_penalty", body.frequency_penalty),
    presence_penalty: fields.number("presence_penalty", body.presence_penalty),
    format: readFormat(
      fields,
      "response_format.json_schema",
      format?.type,
      isObject(format?.json_schema) ? format.json_schema : undefined
    ),
    reasoning: readReasoning(fields, body),
    verbosity: fields.text("verbosity", body.verbosity),
    cache: undefined,
    prompt_cache_key: fields.text("prompt_cache_key", body.prompt_cache_key),
    user: fields.text("user", body.user),
    safety_identifier: fields.text("safety_identifier", body.safety_identifier),
    stream: fields.flag("stream", body.stream) ?? false,
    include_usage: objectOf(body.stream_options).include_usage === true
  }
  return conversation
})

/** Writes an assistant message. Unless the client's protocol is chat, reasoning with a known signer is omitted. */
const writeAssistant = (parts: ReadonlyArray<AssistantPart>, byChat: boolean): JsonObject => {
  const said = parts.filter((part) => part.type === "text")
  const refusal = parts.flatMap((part) => (part.type === "refusal" ? [part.text] : [])).join("")
  const calls = parts.filter((part) => part.type === "tool_call")
  const thoughts = parts.filter((part) => part.type === "thinking" && (part.signer === "unknown" || byChat))
  return present({
    role: "assistant",
    content: said.length === 0 ? (calls.length > 0 ? null : "") : saidContent(said.map((part) => part.text)),
    refusal: refusal === "" ? undefined : refusal,
    ...writeThoughts(thoughts as ReadonlyArray<Extract<AssistantPart, { type: "thinking" }>>),
    tool_calls: calls.length === 0 ? undefined : calls.map((part) => writeCall(part))
  })
}

const saidContent = (texts: ReadonlyArray<string>): string | ReadonlyArray<JsonObject> =>
  texts.length === 1 ? texts[0]! : texts.map((text) => ({ type: "text", text }))

/** Writes one message per tool result, then a message with all other parts, if there are any. */
const writeUser = (fields: Fields, parts: ReadonlyArray<UserPart>): ReadonlyArray<JsonObject> => {
  const results = parts.filter((part) => part.type === "tool_result").map((part) => writeResult(fields, part))
  const said = [
    ...results.flatMap(({ beside }) => beside),
    ...parts.filter((part) => part.type !== "tool_result")
  ] as ReadonlyArray<Exclude<UserPart, ToolResultPart>>
  const messages = results.map(({ message }) => message)
  return said.length === 0 ? messages : [...messages, { role: "user", content: writeContent(fields, said) }]
}

const writeTurn = (fields: Fields, turn: Turn, byChat: boolean): ReadonlyArray<JsonObject> => {
  if (turn.parts.length === 0) return turn.role === "assistant" ? [{ role: "assistant", content: "" }] : []
  switch (turn.role) {
    case "system":
    case "developer":
      return [{ role: "system", content: writeContent(fields, turn.parts) }]
    case "user":
      return writeUser(fields, turn.parts)
    case "assistant":
      return [writeAssistant(turn.parts, byChat)]
  }
}

/** Merges consecutive user turns that contain tool results, because chat requires the results directly after their calls. */
const mergeResultTurns = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> => {
  const merged: Array<Turn> = []
  let parts: Array<UserPart> = []
  for (const turn of turns) {
    if (turn.role !== "user") merged.push(turn)
    else if (merged.at(-1)?.role === "user" && turn.parts.some((part) => part.type === "tool_result"))
      for (const part of turn.parts) parts.push(part)
    else {
      parts = [...turn.parts]
      merged.push({ role: "user", at: turn.at, parts })
    }
  }
  return merged
}

const writeTool = (tool: Tool): JsonObject =>
  tool.type === "custom"
    ? { type: "custom", custom: present({ name: tool.name, description: tool.description, format: tool.format }) }
    : {
        type: "function",
        function: present({
          name: tool.name,
          description: tool.description,
          parameters: tool.parameters,
          strict: tool.strict || undefined
        })
      }

const named = (name: string, custom: boolean): JsonObject =>
  custom ? { type: "custom", custom: { name } } : { type: "function", function: { name } }

const writeChoice = ({ tool_choice, tools }: Conversation): unknown => {
  if (tool_choice === undefined || tools.length === 0) return undefined
  switch (tool_choice.type) {
    case "auto":
    case "none":
      return tool_choice.type
    case "any":
      return "required"
    case "tool":
      return named(tool_choice.name, tool_choice.custom)
    case "allowed":
      return {
        type: "allowed_tools",
        allowed_tools: {
          mode: tool_choice.mode === "any" ? "required" : "auto",
          tools: tool_choice.names.map((name) => named(name, isCustom(tools, name)))
        }
      }
  }
}

export const isCustom = (tools: ReadonlyArray<Tool>, name: string): boolean =>
  tools.some((tool) => tool.type === "custom" && tool.name === name)

/** Writes a schema in OpenAI's format: named, and enforced only if `strict`. Other protocols always enforce schemas, so `strict` becomes true. */
export const schemaOf = ({ format, protocol }: Conversation): JsonObject | undefined =>
  format?.type !== "schema"
    ? undefined
    : present({
        name: format.name ?? "answer",
        description: format.description,
        schema: format.schema,
        strict: format.strict ?? (protocol === "chat" || protocol === "responses" ? undefined : true)
      })

const writeFormat = (conversation: Conversation): JsonObject | undefined => {
  if (conversation.format === undefined) return undefined
  const json_schema = schemaOf(conversation)
  return json_schema === undefined ? { type: "json_object" } : { type: "json_schema", json_schema }
}

/**
 * Returns the effort to send. Disabled reasoning is not sent as `none` for clients of Messages and Bedrock, because it is their default and many
 * vendors reject `none`.
 */
export const effortName = ({ protocol, reasoning }: Conversation, limit: number | undefined): string | undefined => {
  if (reasoning === undefined) return undefined
  if (!reasoning.off) return effortOf(reasoning, limit)
  return protocol === "messages" || protocol === "bedrock" ? undefined : "none"
}

const userLengthMax = 64

/**
 * Returns the user id to send. Clients of Messages send long ids (Claude Code: device, account and session), but other vendors accept at most 64
 * letters, digits, `_` and `-`.
 */
export const userOf = ({ protocol, user }: Conversation): string | undefined =>
  user === undefined || protocol !== "messages" ? user : fittingId(user, userLengthMax)

export const writeRequest = writing((fields, conversation, options) => {
  const limit = options.limit ?? conversation.limit
  if (isPrefilled(conversation))
    fields.refuse(conversation.turns.at(-1)!.at, "the upstream of this model does not continue an assistant message")
  const { protocol, stop, tools } = conversation
  const turns = mergeResultTurns(conversation.turns)
  const messages = turns.flatMap((turn) => writeTurn(fields, turn, protocol === "chat"))
  const body = present({
    model: options.model,
    messages,
    [options.limit_field]: limit,
    temperature: conversation.temperature,
    top_p: conversation.top_p,
    top_k: conversation.top_k,
    stop: stop.length === 0 ? undefined : stop,
    seed: conversation.seed,
    frequency_penalty: conversation.frequency_penalty,
    presence_penalty: conversation.presence_penalty,
    tools: tools.length === 0 ? undefined : tools.map(writeTool),
    tool_choice: writeChoice(conversation),
    parallel_tool_calls: tools.length === 0 ? undefined : conversation.parallel_tool_calls,
    response_format: writeFormat(conversation),
    reasoning_effort: effortName(conversation, limit),
    verbosity: conversation.verbosity,
    prompt_cache_key: conversation.prompt_cache_key,
    user: userOf(conversation),
    safety_identifier: conversation.safety_identifier,
    stream: options.stream || undefined,
    stream_options: options.stream ? { include_usage: true } : undefined
  })
  if (messages.length === 0)
    fields.refuse(conversation.names.turns, "must contain at least one message that is not empty")
  return body
})
