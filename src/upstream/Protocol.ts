/** The protocols in which models are asked: clients speak them to the service, and the service to its upstreams. */

/**
 * `chat` and `text`: OpenAI's chat and text completions. `messages`: Anthropic's. `responses`: OpenAI's newer. Only upstreams speak `google`
 * (Gemini's generateContent) and `bedrock` (Converse).
 */
export const protocolNames = ["chat", "text", "messages", "responses", "google", "bedrock"] as const
export type ProtocolName = (typeof protocolNames)[number]

/** What an upstream speaks of which the configuration does not say it. */
export const usualProtocols: ReadonlyArray<ProtocolName> = ["chat", "text"]
