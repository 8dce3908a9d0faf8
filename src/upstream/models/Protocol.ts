/** The protocols in which models are asked: clients speak them to the service, and the service to its upstreams. */

/**
 * `chat` and `text`: OpenAI's chat and text completions. `messages`: Anthropic's. `responses`: OpenAI's newer. Only upstreams speak `google`
 * (Gemini's generateContent) and `bedrock` (Converse). `embeddings`: OpenAI's. `rerank`: Cohere's and Jina's.
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

/** Those that clients speak. */
export type ClientProtocol = "chat" | "text" | "messages" | "responses"

/** The protocol of an upstream whose configuration does not name one. */
export const usualProtocols: ReadonlyArray<ProtocolName> = ["chat", "text", "embeddings", "rerank"]
