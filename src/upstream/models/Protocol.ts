/** The model protocols that the service's clients and upstreams speak. */

/**
 * `chat` and `text` are OpenAI's chat and text completions, `responses` is its newer protocol, and `embeddings` is OpenAI's too. `messages` is
 * Anthropic's. `rerank` is Cohere's and Jina's. `google` (Gemini's generateContent) and `bedrock` (Converse) are for upstreams only.
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

/** The protocols that clients can speak. */
export type ClientProtocol = "chat" | "text" | "messages" | "responses"

/** The default protocols of an upstream. */
export const usualProtocols: ReadonlyArray<ProtocolName> = ["chat", "text", "embeddings", "rerank"]
