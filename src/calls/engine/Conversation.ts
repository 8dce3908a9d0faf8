/**
 * Identifies a request's conversation. All calls of a conversation can then go to the same upstream, whose cache may contain the start of the prompt.
 *
 * Where the specification is silent:
 * - `prompt_cache_key` identifies a conversation. Without this key, the conversation is identified by its beginning: the system prompt and the
 *   messages up to the first user message. Only the first 1,000 characters of a long string count. Conversations of different accounts are always
 *   different.
 */
import { createHash } from "node:crypto"
import type { Caller } from "../../kernel/Caller.ts"
import type { ValidPrompt } from "../prompts/Prompt.ts"

export const conversationOf = (
  { account_id, tenant_id }: Caller,
  { body, long }: Pick<ValidPrompt, "body" | "long">
): string =>
  createHash("sha256")
    .update(JSON.stringify([tenant_id, account_id, long?.conversation ?? conversationNameOf(body)]))
    .digest("base64url")

/** The maximum length of a conversation's name. A longer name is replaced with its hash. */
const nameMax = 64 * 1024

/** Returns the name of a body's conversation: `prompt_cache_key` or the beginning of the messages. */
export const conversationNameOf = (body: ValidPrompt["body"]): string => {
  const { prompt_cache_key } = body
  const name = typeof prompt_cache_key === "string" ? prompt_cache_key : prefixOf(body)
  return name.length <= nameMax ? name : createHash("sha256").update(name).digest("base64url")
}

const textMax = 1_000
const partsMax = 20

const prefixOf = ({ input, instructions, messages, prompt, system }: ValidPrompt["body"]): string =>
  JSON.stringify([system, instructions, firstOf(messages ?? input ?? prompt)], (_, part: unknown) =>
    typeof part === "string" ? part.slice(0, textMax) : Array.isArray(part) ? part.slice(0, partsMax) : part
  )

/** Returns the messages up to the first user message. A plain string is a user message. */
const firstOf = (messages: unknown): unknown => {
  if (!Array.isArray(messages)) return messages
  const first = messages.findIndex((message: { readonly role?: unknown } | null) => message?.role === "user")
  return messages.slice(0, first + 1)
}
