/** The capabilities of the service by the names that budgets use. */
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
