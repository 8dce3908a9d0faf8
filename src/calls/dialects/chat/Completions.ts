/** OpenAI's chat and text completions, as the engine knows a protocol. */
import { usageOf } from "../../../protocols/chat/Usage.ts"
import { noUsage } from "../../../protocols/conversation/Usage.ts"
import { messageOf } from "../../../upstream/wire/Failures.ts"
import { billed } from "../../prompts/Extras.ts"
import { outgoing } from "../../prompts/Outgoing.ts"
import { readChat, readCompletion } from "../../prompts/Prompt.ts"
import { serverSentEvents } from "../../prompts/Protocol.ts"
import type { Protocol } from "../../prompts/Protocol.ts"
import { broken, isFailure, reader } from "./Relay.ts"
import { tokensIn } from "../../prompts/Tokens.ts"

const answers: Omit<Protocol, "name" | "endpoint" | "pathFor" | "read" | "bodyFor" | "refusal"> = {
  billed,
  headers: {},
  stream: serverSentEvents,
  // Some upstreams say 200 where they failed.
  faultIn: (answer) =>
    isFailure(answer) || !Array.isArray(answer.choices)
      ? `its answer has an error, or no choices: ${messageOf(answer) ?? "it does not say why"}`
      : undefined,
  usageIn: ({ usage }) => usageOf(usage) ?? noUsage,
  countIn: ({ choices }) => tokensIn(latin1(choices)),
  broken,
  reader
}

/** As JSON, a character for each byte. */
const latin1 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("latin1")

export const chat: Protocol = {
  ...answers,
  name: "chat",
  endpoint: "chat/completions",
  pathFor: () => "/chat/completions",
  read: readChat,
  bodyFor: (prompt, { route }, streams, limit) => outgoing("chat/completions", streams, route, prompt, limit)
}

export const text: Protocol = {
  ...answers,
  name: "text",
  endpoint: "completions",
  pathFor: () => "/completions",
  read: readCompletion,
  bodyFor: (prompt, { route }, streams, limit) => outgoing("completions", streams, route, prompt, limit)
}
