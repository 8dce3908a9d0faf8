/** Anthropic's Messages protocol, as the engine uses it. */
import { promptJson } from "../../prompts/Outgoing.ts"
import { serverSentEvents } from "../../prompts/Protocol.ts"
import type { Protocol } from "../../prompts/Protocol.ts"
import { tokensOfString } from "../../prompts/Tokens.ts"
import { usageOf } from "../../../protocols/messages/Usage.ts"
import { noUsage } from "../../../protocols/conversation/Usage.ts"
import { messageOf } from "../../../upstream/wire/Failures.ts"
import { billed } from "./Billed.ts"
import { readMessages } from "./Prompt.ts"
import { broken, reader } from "./Relay.ts"

/** The protocol version, sent with every request. */
export const version = "2023-06-01"

export const messages: Protocol = {
  name: "messages",
  endpoint: "messages",
  read: readMessages,
  billed,
  long_member: "messages",
  pathFor: () => "/messages",
  headers: { "anthropic-version": version },
  stream: serverSentEvents,
  long: { names: new Set(["content"]), depth: 1 },
  // The protocol requires a limit.
  bodyFor: (prompt, { route: { model } }, streams, limit = prompt.body.max_tokens as number) =>
    promptJson(prompt, { ...prompt.body, model, max_tokens: limit, stream: streams ? true : undefined }, "messages"),
  faultIn: (answer) =>
    answer.type === "message" && Array.isArray(answer.content)
      ? undefined
      : `the answer contains an error or no content: ${messageOf(answer) ?? "no reason given"}`,
  usageIn: ({ usage }) => usageOf(usage) ?? noUsage,
  countIn: ({ content }) =>
    (content as ReadonlyArray<unknown>).reduce<number>((sum, block) => sum + tokensOf(block), 0),
  broken,
  reader
}

/** Estimates the tokens in a block's text, reasoning or tool call arguments. */
const tokensOf = (block: unknown): number => {
  const { input, text, thinking } = (block ?? {}) as Readonly<Record<string, unknown>>
  const generated = text ?? thinking ?? JSON.stringify(input)
  return typeof generated === "string" ? tokensOfString(Buffer.byteLength(generated)) : 0
}
