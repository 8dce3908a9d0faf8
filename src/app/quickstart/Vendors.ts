/**
 * The vendors that `tollgate quickstart` knows, each with the variable for its key, its upstream and a few models. The catalogue provides limits and
 * prices, and a test checks that it contains each of these models.
 */

export interface Vendor {
  /** The upstream's name and the vendor's name in the catalogue. */
  readonly name: string
  readonly variable: string
  readonly upstream: {
    readonly base_url: string
    readonly speaks?: ReadonlyArray<string>
  }
  /** Ids in the catalogue, without the vendor's name. The first one is the default. */
  readonly models: ReadonlyArray<string>
}

export const vendors: ReadonlyArray<Vendor> = [
  {
    name: "openai",
    variable: "OPENAI_API_KEY",
    upstream: { base_url: "https://api.openai.com/v1", speaks: ["chat", "text", "responses", "embeddings"] },
    models: ["gpt-5.4-mini", "gpt-5.5", "gpt-5.4-nano", "gpt-4.1", "gpt-4o-mini"]
  },
  {
    name: "anthropic",
    variable: "ANTHROPIC_API_KEY",
    upstream: { base_url: "https://api.anthropic.com/v1", speaks: ["messages"] },
    models: ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"]
  },
  {
    name: "google",
    variable: "GEMINI_API_KEY",
    upstream: { base_url: "https://generativelanguage.googleapis.com/v1beta", speaks: ["google"] },
    models: ["gemini-3.5-flash", "gemini-2.5-pro", "gemini-2.5-flash-lite"]
  },
  {
    name: "openrouter",
    variable: "OPENROUTER_API_KEY",
    upstream: { base_url: "https://openrouter.ai/api/v1" },
    models: ["openai/gpt-5.4-mini", "anthropic/claude-sonnet-5.5", "google/gemini-3.5-flash"]
  },
  {
    name: "mistral",
    variable: "MISTRAL_API_KEY",
    upstream: { base_url: "https://api.mistral.ai/v1" },
    models: ["mistral-small-latest", "mistral-large-latest"]
  },
  {
    name: "deepseek",
    variable: "DEEPSEEK_API_KEY",
    upstream: { base_url: "https://api.deepseek.com/v1" },
    models: ["deepseek-v4-pro", "deepseek-flash"]
  },
  {
    name: "groq",
    variable: "GROQ_API_KEY",
    upstream: { base_url: "https://api.groq.com/openai/v1" },
    models: ["llama-3.3-70b-versatile", "openai/gpt-oss-120b"]
  },
  {
    name: "xai",
    variable: "XAI_API_KEY",
    upstream: { base_url: "https://api.x.ai/v1" },
    models: ["grok-4.7", "grok-4.6"]
  }
]

/** Returns the vendors with a key in the environment. */
export const inEnvironment = (environment: { readonly [name: string]: string | undefined }): ReadonlyArray<Vendor> =>
  vendors.filter(({ variable }) => (environment[variable] ?? "").trim() !== "")
