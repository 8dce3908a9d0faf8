/** OpenAI's chat and text completion protocols, as the engine uses them. */
import { usageOf } from "../../../protocols/chat/Usage.ts"
import { isObject, listOf } from "../../../protocols/conversation/Json.ts"
import { noUsage } from "../../../protocols/conversation/Usage.ts"
import { messageOf } from "../../../upstream/wire/Failures.ts"
import { billed } from "../../prompts/Extras.ts"
import { upstreamBodyOf } from "../../prompts/Outgoing.ts"
import { readChat, readCompletion } from "../../prompts/Prompt.ts"
import { serverSentEvents } from "../../prompts/Protocol.ts"
import type { Protocol } from "../../prompts/Protocol.ts"
import { blankLine } from "../../prompts/EventRelay.ts"
import { broken, done, isFailure, reader } from "./Relay.ts"
import { tokensIn } from "../../prompts/Tokens.ts"

const answers: Omit<Protocol, "name" | "endpoint" | "long_member" | "pathFor" | "read" | "bodyFor" | "refusal"> = {
  billed,
  headers: {},
  long: { names: new Set(["choices"]), depth: 1 },
  stream: serverSentEvents,
  // Some upstreams report an error with status 200.
  faultIn: (answer) =>
    isFailure(answer) || !Array.isArray(answer.choices)
      ? `the answer contains an error or no choices: ${messageOf(answer) ?? "no reason given"}`
      : undefined,
  usageIn: ({ id, usage }) => usageOf(usage, id) ?? noUsage,
  countIn: ({ choices }) => tokensIn(latin1(choices)),
  asEvents: ({ choices, usage, ...answer }, show_usage) => {
    const chunk = {
      ...answer,
      ...(answer.object === "chat.completion" && { object: "chat.completion.chunk" }),
      choices: listOf(choices).map(pieceOf),
      ...(show_usage && { usage })
    }
    return `data: ${JSON.stringify(chunk)}${blankLine}${done}`
  },
  broken,
  reader
}

/** Converts a complete response's choice to a chunk's choice. Text completions have the same form in both. */
const pieceOf = (choice: unknown): unknown => {
  if (!isObject(choice) || !isObject(choice.message)) return choice
  const { message, ...others } = choice
  const calls = message.tool_calls
  const tool_calls = listOf(calls).map((call, index) => (isObject(call) ? { index, ...call } : call))
  return { ...others, delta: Array.isArray(calls) ? { ...message, tool_calls } : message }
}

/** Returns a value's JSON with one character per UTF-8 byte. */
const latin1 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("latin1")

export const chat: Protocol = {
  ...answers,
  name: "chat",
  endpoint: "chat/completions",
  long_member: "messages",
  pathFor: () => "/chat/completions",
  read: readChat,
  bodyFor: (prompt, { route }, streams, limit) => upstreamBodyOf("chat/completions", streams, route, prompt, limit)
}

export const text: Protocol = {
  ...answers,
  name: "text",
  endpoint: "completions",
  long_member: "prompt",
  pathFor: () => "/completions",
  read: readCompletion,
  bodyFor: (prompt, { route }, streams, limit) => upstreamBodyOf("completions", streams, route, prompt, limit)
}
