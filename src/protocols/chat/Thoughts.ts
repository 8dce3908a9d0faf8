/**
 * Reads and writes reasoning in chat completions. OpenAI defines no fields for it. The text is in `reasoning_content` (DeepSeek, vLLM and most
 * others) or `reasoning`. `reasoning_details` (OpenRouter) also contains signatures, each with its format's name.
 *
 * Where the specification is silent:
 * - A client gets `reasoning_content`, and also `reasoning_details` if the vendor signed the reasoning.
 * - A signature from a chat upstream keeps its format's name (`xai-responses-v1~...`), because only a chat upstream can read it.
 */
import type { AnswerPart } from "../conversation/Answer.ts"
import type { JsonObject, Signer, ThinkingPart } from "../conversation/Conversation.ts"
import { isObject, listOf, present, text, textOr } from "../conversation/Json.ts"

const formats: Readonly<Record<Exclude<Signer, "unknown">, string>> = {
  anthropic: "anthropic-claude-v1",
  openai: "openai-responses-v1",
  google: "google-gemini-v1"
}

const signers: ReadonlyMap<unknown, Signer> = new Map(
  Object.entries(formats).map(([signer, format]) => [format, signer as Signer])
)

export type ReasoningPart = Extract<AnswerPart, { type: "thinking" }>

/** Returns the plain reasoning text of a message or chunk. */
export const plainReasoning = (message: JsonObject): string => {
  const { reasoning, reasoning_content } = message
  return typeof reasoning_content === "string" && reasoning_content !== "" ? reasoning_content : textOr(reasoning, "")
}

/** Reads an entry of `reasoning_details`. Only an entry from a client can have a known signer. Any other entry is sent back only to a chat vendor. */
const detailOf = (detail: JsonObject, of: "client" | "vendor"): ReasoningPart => {
  const value = text(detail.signature) ?? text(detail.data)
  const format = textOr(detail.format, "")
  const signer = (of === "client" && signers.get(format)) || "unknown"
  const sealed = detail.type === "reasoning.encrypted"
  return {
    type: "thinking",
    text: sealed ? "" : (text(detail.text) ?? textOr(detail.summary, "")),
    signature: value === undefined ? undefined : signer === "unknown" && format !== "" ? `${format}~${value}` : value,
    signer,
    redacted: sealed && signer === "anthropic"
  }
}

export const detailsOf = (message: JsonObject, of: "client" | "vendor"): ReadonlyArray<ReasoningPart> =>
  listOf(message.reasoning_details).flatMap((detail) => (isObject(detail) ? [detailOf(detail, of)] : []))

/** Returns a message's reasoning. The plain text is omitted if `reasoning_details` contains text, because it would repeat that text. */
export const reasoningOf = (message: JsonObject, of: "client" | "vendor"): ReadonlyArray<ReasoningPart> => {
  const details = detailsOf(message, of)
  const plain = plainReasoning(message)
  const readable = details.some((one) => one.text !== "")
  return plain === "" || readable
    ? details
    : [{ type: "thinking", text: plain, signature: undefined, signer: "unknown", redacted: false }, ...details]
}

const signed = (signer: Signer, signature: string): { readonly format: string; readonly value: string } => {
  if (signer !== "unknown") return { format: formats[signer], value: signature }
  const cut = signature.indexOf("~")
  return cut === -1
    ? { format: "unknown", value: signature }
    : { format: signature.slice(0, cut), value: signature.slice(cut + 1) }
}

/** Writes an entry of `reasoning_details`. `index` is its position in the message. A `sealed` entry has no text. */
export const detail = (
  thought: Pick<ThinkingPart, "text" | "signature" | "signer">,
  index: number,
  sealed: boolean
): JsonObject => {
  const { format, value } = signed(thought.signer, thought.signature ?? "")
  if (sealed) return { type: "reasoning.encrypted", data: value, format, index }
  return present({
    type: "reasoning.text",
    text: thought.text,
    signature: thought.signature === undefined ? undefined : value,
    format,
    index
  })
}

export const writeThoughts = (
  thoughts: ReadonlyArray<Pick<ThinkingPart, "text" | "signature" | "signer">>
): JsonObject => {
  const plain = thoughts.map((thought) => thought.text).join("")
  const reasoning_content = plain === "" ? undefined : plain
  if (thoughts.every((thought) => thought.signature === undefined)) return present({ reasoning_content })
  const reasoning_details = thoughts.map((thought, index) => detail(thought, index, thought.text === ""))
  return present({ reasoning_content, reasoning_details })
}
