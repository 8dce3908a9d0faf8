/** The model protocols of the service's clients and upstreams. */

/**
 * `chat` and `text` are OpenAI's chat and text completions, `responses` is its newer protocol, and `embeddings` is its protocol for embeddings.
 * `messages` is Anthropic's protocol. `rerank` is used by Cohere and Jina. `google` (Gemini's generateContent) and `bedrock` (Converse) are for
 * upstreams only.
 */
export const protocolNames = [
  "chat",
  "text",
  "messages",
  "responses",
  "google",
  "bedrock",
  "embeddings",
  "rerank"
] as const
export type ProtocolName = (typeof protocolNames)[number]

export type ClientProtocol = "chat" | "text" | "messages" | "responses"

/** The default protocols of an upstream. */
export const usualProtocols: ReadonlyArray<ProtocolName> = ["chat", "text", "embeddings", "rerank"]
