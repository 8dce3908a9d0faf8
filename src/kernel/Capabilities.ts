/** The names of the service's capabilities, for budgets. */
export const capabilities = [
  "chat",
  "embeddings",
  "rerank",
  "decisions",
  "images",
  "media",
  "search",
  "speech",
  "transcription",
  "email"
] as const
export type Capability = (typeof capabilities)[number]
