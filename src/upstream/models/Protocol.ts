/** The protocols of models, for clients of the service and for its upstreams. */

/**
 * `chat` and `text`: OpenAI's chat and text completions. `messages`: Anthropic's. `responses`: OpenAI's newer protocol. `google` (Gemini's
 * generateContent) and `bedrock` (Converse) are for upstreams only. `embeddings`: OpenAI's. `rerank`: Cohere's and Jina's.
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
