/** Answers of vendors, whole and streamed, each written by hand as every protocol has it; and what clients are to have of them. */
import type { Protocol } from "../../src/protocols/conversation/Conversation.ts"
import type { VendorEvent } from "../../src/protocols/conversation/Translation.ts"

type Json = Readonly<Record<string, unknown>>

export type Client = "chat" | "messages" | "responses"

export interface AnswerCase {
  readonly name: string
  readonly vendors: Readonly<Record<Protocol, Json>>
  /** Of a client's answer what says something. */
  readonly clients: Readonly<Record<Client, Json>>
}

const chatUsage = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 60 },
  completion_tokens_details: { reasoning_tokens: 5 }
}
const messagesUsage = {
  input_tokens: 40,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 60,
  output_tokens: 20,
  output_tokens_details: { thinking_tokens: 5 }
}
const responsesUsage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 60 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 120
}
const googleUsage = {
  promptTokenCount: 100,
  cachedContentTokenCount: 60,
  candidatesTokenCount: 15,
  thoughtsTokenCount: 5,
  totalTokenCount: 120
}
const bedrockUsage = { inputTokens: 40, outputTokens: 20, totalTokens: 120, cacheReadInputTokens: 60 }

const chat = (message: Json, finish_reason: string): Json => ({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "vendor-model",
  choices: [{ index: 0, message: { role: "assistant", refusal: null, ...message }, logprobs: null, finish_reason }],
  usage: chatUsage
})
const messages = (content: ReadonlyArray<Json>, stop_reason: string): Json => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "vendor-model",
  content,
  stop_reason,
  stop_sequence: null,
  usage: messagesUsage
})
const responses = (
  output: ReadonlyArray<Json>,
  status = "completed",
  incomplete_details: Json | null = null
): Json => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "vendor-model",
  status,
  incomplete_details,
  error: null,
  output,
  usage: responsesUsage
})
const google = (parts: ReadonlyArray<Json>, finishReason: string): Json => ({
  candidates: [{ content: { role: "model", parts }, finishReason, index: 0 }],
  usageMetadata: googleUsage,
  modelVersion: "vendor-model",
  responseId: "r1"
})
const bedrock = (content: ReadonlyArray<Json>, stopReason: string): Json => ({
  output: { message: { role: "assistant", content } },
  stopReason,
  usage: bedrockUsage,
  metrics: { latencyMs: 1 }
})

const said = (text: string): Json => ({
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }]
})

export const answers: ReadonlyArray<AnswerCase> = [
  {
    name: "a text",
    vendors: {
      chat: chat({ content: "Hello" }, "stop"),
      messages: messages([{ type: "text", text: "Hello" }], "end_turn"),
      responses: responses([{ id: "msg_1", ...said("Hello") }]),
      google: google([{ text: "Hel" }, { text: "lo" }], "STOP"),
      bedrock: bedrock([{ text: "Hello" }], "end_turn")
    },
    clients: {
      chat: { message: { role: "assistant", content: "Hello", refusal: null }, finish_reason: "stop" },
      messages: { content: [{ type: "text", text: "Hello" }], stop_reason: "end_turn" },
      responses: { output: [{ id: "msg_x_0", ...said("Hello") }], status: "completed", incomplete_details: null }
    }
  },
  {
    name: "a text, and two tools at once",
    vendors: {
      chat: chat(
        {
          content: "Let me see.",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Bern"}' } },
            { id: "call_2", type: "function", function: { name: "now", arguments: "{}" } }
          ]
        },
        "tool_calls"
      ),
      messages: messages(
        [
          { type: "text", text: "Let me see." },
          { type: "tool_use", id: "call_1", name: "weather", input: { city: "Bern" } },
          { type: "tool_use", id: "call_2", name: "now", input: {} }
        ],
        "tool_use"
      ),
      responses: responses([
        { id: "msg_1", ...said("Let me see.") },
        {
          id: "fc_1",
          type: "function_call",
          status: "completed",
          call_id: "call_1",
          name: "weather",
          arguments: '{"city":"Bern"}'
        },
        { id: "fc_2", type: "function_call", status: "completed", call_id: "call_2", name: "now", arguments: "{}" }
      ]),
      google: google(
        [
          { text: "Let me see." },
          { functionCall: { id: "call_1", name: "weather", args: { city: "Bern" } } },
          { functionCall: { id: "call_2", name: "now", args: {} } }
        ],
        "STOP"
      ),
      bedrock: bedrock(
        [
          { text: "Let me see." },
          { toolUse: { toolUseId: "call_1", name: "weather", input: { city: "Bern" } } },
          { toolUse: { toolUseId: "call_2", name: "now", input: {} } }
        ],
        "tool_use"
      )
    },
    clients: {
      chat: {
        message: {
          role: "assistant",
          content: "Let me see.",
          refusal: null,
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Bern"}' } },
            { id: "call_2", type: "function", function: { name: "now", arguments: "{}" } }
          ]
        },
        finish_reason: "tool_calls"
      },
      messages: {
        content: [
          { type: "text", text: "Let me see." },
          { type: "tool_use", id: "call_1", name: "weather", input: { city: "Bern" } },
          { type: "tool_use", id: "call_2", name: "now", input: {} }
        ],
        stop_reason: "tool_use"
      },
      responses: {
        output: [
          { id: "msg_x_0", ...said("Let me see.") },
          {
            id: "fc_x_1",
            type: "function_call",
            status: "completed",
            call_id: "call_1",
            name: "weather",
            arguments: '{"city":"Bern"}'
          },
          {
            id: "fc_x_2",
            type: "function_call",
            status: "completed",
            call_id: "call_2",
            name: "now",
            arguments: "{}"
          }
        ],
        status: "completed",
        incomplete_details: null
      }
    }
  },
  {
    name: "an answer that became too long",
    vendors: {
      chat: chat({ content: "Hel" }, "length"),
      messages: messages([{ type: "text", text: "Hel" }], "max_tokens"),
      responses: responses([{ id: "msg_1", ...said("Hel") }], "incomplete", { reason: "max_output_tokens" }),
      google: google([{ text: "Hel" }], "MAX_TOKENS"),
      bedrock: bedrock([{ text: "Hel" }], "max_tokens")
    },
    clients: {
      chat: { message: { role: "assistant", content: "Hel", refusal: null }, finish_reason: "length" },
      messages: { content: [{ type: "text", text: "Hel" }], stop_reason: "max_tokens" },
      responses: {
        output: [{ id: "msg_x_0", ...said("Hel") }],
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" }
      }
    }
  },
  {
    name: "an answer that a filter stopped",
    vendors: {
      chat: chat({ content: "Hel" }, "content_filter"),
      messages: messages([{ type: "text", text: "Hel" }], "refusal"),
      responses: responses([{ id: "msg_1", ...said("Hel") }], "incomplete", { reason: "content_filter" }),
      google: google([{ text: "Hel" }], "PROHIBITED_CONTENT"),
      bedrock: bedrock([{ text: "Hel" }], "guardrail_intervened")
    },
    clients: {
      chat: { message: { role: "assistant", content: "Hel", refusal: null }, finish_reason: "content_filter" },
      messages: { content: [{ type: "text", text: "Hel" }], stop_reason: "refusal" },
      responses: {
        output: [{ id: "msg_x_0", ...said("Hel") }],
        status: "incomplete",
        incomplete_details: { reason: "content_filter" }
      }
    }
  },
  {
    name: "nothing",
    vendors: {
      chat: chat({ content: null }, "stop"),
      messages: messages([], "end_turn"),
      responses: responses([]),
      google: { candidates: [{ finishReason: "STOP" }], usageMetadata: googleUsage },
      bedrock: bedrock([], "end_turn")
    },
    clients: {
      chat: { message: { role: "assistant", content: "", refusal: null }, finish_reason: "stop" },
      messages: { content: [], stop_reason: "end_turn" },
      responses: { output: [], status: "completed", incomplete_details: null }
    }
  }
]

const named = (event: string, data: Json): VendorEvent => ({ event, data: JSON.stringify(data) })
const typed = (data: Json): VendorEvent => named(String(data.type), data)
const plain = (data: Json): VendorEvent => ({ event: undefined, data: JSON.stringify(data) })

const chunk = (delta: Json, finish_reason: string | null = null): VendorEvent =>
  plain({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "vendor-model",
    choices: [{ index: 0, delta, finish_reason }]
  })
const call = (index: number, more: Json): VendorEvent => chunk({ tool_calls: [{ index, ...more }] })

/** The second of `answers`, as each vendor streams it; the arguments of chat's calls come by turns. */
export const streams: Readonly<Record<Protocol, ReadonlyArray<VendorEvent>>> = {
  chat: [
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Let me " }),
    chunk({ content: "see." }),
    call(0, { id: "call_1", type: "function", function: { name: "weather", arguments: "" } }),
    call(1, { id: "call_2", type: "function", function: { name: "now", arguments: "{" } }),
    call(0, { function: { arguments: '{"city":' } }),
    call(1, { function: { arguments: "}" } }),
    call(0, { function: { arguments: '"Bern"}' } }),
    chunk({}, "tool_calls"),
    plain({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: chatUsage }),
    { event: undefined, data: "[DONE]" }
  ],
  messages: [
    typed({
      type: "message_start",
      message: { id: "msg_1", model: "vendor-model", content: [], usage: { ...messagesUsage, output_tokens: 1 } }
    }),
    typed({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    typed({ type: "ping" }),
    typed({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Let me " } }),
    typed({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "see." } }),
    typed({ type: "content_block_stop", index: 0 }),
    typed({
      type: "content_block_start",
      index: 1,
      content_block: { type: "tool_use", id: "call_1", name: "weather", input: {} }
    }),
    typed({ type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: "" } }),
    typed({ type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"city":' } }),
    typed({ type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '"Bern"}' } }),
    typed({ type: "content_block_stop", index: 1 }),
    typed({
      type: "content_block_start",
      index: 2,
      content_block: { type: "tool_use", id: "call_2", name: "now", input: {} }
    }),
    typed({ type: "content_block_stop", index: 2 }),
    typed({
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { output_tokens: 20 }
    }),
    typed({ type: "message_stop" })
  ],
  responses: [
    typed({ type: "response.created", response: { id: "resp_1", model: "vendor-model", status: "in_progress" } }),
    typed({ type: "response.in_progress", response: { id: "resp_1", model: "vendor-model", status: "in_progress" } }),
    typed({ type: "response.output_item.added", output_index: 0, item: { type: "message", content: [] } }),
    typed({
      type: "response.content_part.added",
      output_index: 0,
      content_index: 0,
      part: { type: "output_text", text: "" }
    }),
    typed({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "Let me " }),
    typed({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "see." }),
    typed({ type: "response.output_text.done", output_index: 0, content_index: 0, text: "Let me see." }),
    typed({
      type: "response.content_part.done",
      output_index: 0,
      content_index: 0,
      part: { type: "output_text", text: "Let me see." }
    }),
    typed({ type: "response.output_item.done", output_index: 0, item: said("Let me see.") }),
    typed({
      type: "response.output_item.added",
      output_index: 1,
      item: { type: "function_call", call_id: "call_1", name: "weather", arguments: "" }
    }),
    typed({ type: "response.function_call_arguments.delta", output_index: 1, delta: '{"city":' }),
    typed({ type: "response.function_call_arguments.delta", output_index: 1, delta: '"Bern"}' }),
    typed({ type: "response.function_call_arguments.done", output_index: 1, arguments: '{"city":"Bern"}' }),
    typed({
      type: "response.output_item.done",
      output_index: 1,
      item: { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Bern"}' }
    }),
    typed({
      type: "response.output_item.done",
      output_index: 2,
      item: { type: "function_call", call_id: "call_2", name: "now", arguments: "{}" }
    }),
    typed({ type: "response.completed", response: { status: "completed", usage: responsesUsage } })
  ],
  google: [
    plain({
      candidates: [{ content: { role: "model", parts: [{ text: "Let me " }] }, index: 0 }],
      usageMetadata: { promptTokenCount: 100, totalTokenCount: 100 },
      modelVersion: "vendor-model",
      responseId: "r1"
    }),
    plain({ candidates: [{ content: { role: "model", parts: [{ text: "see." }] }, index: 0 }] }),
    plain({
      candidates: [
        {
          content: {
            role: "model",
            parts: [
              { functionCall: { id: "call_1", name: "weather", args: { city: "Bern" } } },
              { functionCall: { id: "call_2", name: "now", args: {} } }
            ]
          }
        }
      ]
    }),
    plain({
      candidates: [{ content: { role: "model", parts: [{ text: "" }] }, finishReason: "STOP", index: 0 }],
      usageMetadata: googleUsage
    })
  ],
  bedrock: [
    named("messageStart", { role: "assistant" }),
    named("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Let me " } }),
    named("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "see." } }),
    named("contentBlockStop", { contentBlockIndex: 0 }),
    named("contentBlockStart", {
      contentBlockIndex: 1,
      start: { toolUse: { toolUseId: "call_1", name: "weather" } }
    }),
    named("contentBlockDelta", { contentBlockIndex: 1, delta: { toolUse: { input: '{"city":"Bern"}' } } }),
    named("contentBlockStop", { contentBlockIndex: 1 }),
    named("contentBlockStart", { contentBlockIndex: 2, start: { toolUse: { toolUseId: "call_2", name: "now" } } }),
    named("contentBlockDelta", { contentBlockIndex: 2, delta: { toolUse: { input: "{}" } } }),
    named("contentBlockStop", { contentBlockIndex: 2 }),
    named("messageStop", { stopReason: "tool_use" }),
    named("metadata", { usage: bedrockUsage })
  ]
}

/** What breaks a stream midway, in each protocol's own shape. */
export const errors: Readonly<Record<Protocol, VendorEvent>> = {
  chat: plain({ error: { message: "too many", type: "rate_limit_error", code: 429 } }),
  messages: typed({ type: "error", error: { type: "rate_limit_error", message: "too many" } }),
  responses: typed({ type: "error", code: "rate_limit_exceeded", message: "too many" }),
  google: plain({ error: { code: 429, status: "RESOURCE_EXHAUSTED", message: "too many" } }),
  bedrock: named("throttlingException", { message: "too many" })
}
