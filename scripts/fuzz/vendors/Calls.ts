/** Client calls to hostile vendors: each protocol over each vendor, streamed or not, and each tool. */
export interface Call {
  readonly name: string
  readonly method: "GET" | "POST"
  readonly path: string
  /** The format of the client's errors. */
  readonly shape: "plain" | "messages" | "openai"
  /** The protocol of its stream, if it streams. */
  readonly stream?: "chat" | "messages" | "responses" | "other"
  /** Builds a body that contains this string. */
  readonly json?: (text: string) => object
  readonly form?: (text: string) => FormData
  readonly query?: (text: string) => string
  /** The type of job that the call starts, which further requests poll. */
  readonly follow?: "media" | "image"
  /** Set if the call waits up to five minutes for its images. */
  readonly waits?: true
}

export const vendors = ["chat", "messages", "responses", "google", "bedrock"] as const

const streams = { chat: "chat", messages: "messages", responses: "responses" } as const

const protocols = [
  {
    name: "chat",
    path: "/v1/chat/completions",
    shape: "plain",
    json: (text: string) => ({ messages: [{ role: "user", content: text }], max_tokens: 50 })
  },
  {
    name: "messages",
    path: "/v1/messages",
    shape: "messages",
    json: (text: string) => ({ messages: [{ role: "user", content: text }], max_tokens: 50 })
  },
  {
    name: "responses",
    path: "/v1/responses",
    shape: "openai",
    json: (text: string) => ({ input: text, max_output_tokens: 50 })
  }
] as const

const ofModels: ReadonlyArray<Call> = protocols.flatMap(({ json, name, path, shape }) =>
  vendors.flatMap((vendor) =>
    [false, true].map((stream): Call => ({
      name: `${name} by ${vendor}${stream ? ", streamed" : ""}`,
      method: "POST",
      path,
      shape,
      ...(stream && { stream: streams[name] }),
      json: (text) => ({ model: `by-${vendor}`, ...json(text), ...(stream && { stream }) })
    }))
  )
)

const post = (name: string, path: string, json: (text: string) => object, more: Partial<Call> = {}): Call => ({
  name,
  method: "POST",
  path,
  shape: "plain",
  json,
  ...more
})

const wave = Buffer.concat([Buffer.from("RIFF\0\0\0\0WAVEfmt "), Buffer.alloc(20_000)])

const audio =
  (fields: Readonly<Record<string, string>>) =>
  (text: string): FormData => {
    const form = new FormData()
    form.set("file", new Blob([Uint8Array.from(wave)]), "speech.wav")
    form.set("prompt", text)
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    return form
  }

const picture = (text: string): FormData => {
  const form = new FormData()
  form.set("image", new Blob([Uint8Array.from(Buffer.from("89504e470d0a1a0a", "hex"))]), "picture.png")
  form.set("prompt", text)
  return form
}

const openai = { shape: "openai" } as const
const streamed = { stream: "other" } as const

export const calls: ReadonlyArray<Call> = [
  ...ofModels,
  post("text", "/v1/completions", (text) => ({ model: "sandbox-small", prompt: text, max_tokens: 50 }), {}),
  post(
    "text, streamed",
    "/v1/completions",
    (text) => ({ model: "sandbox-small", prompt: text, max_tokens: 50, stream: true }),
    streamed
  ),
  post("failover", "/v1/chat/completions", (text) => ({
    model: "sandbox-failover",
    messages: [{ role: "user", content: text }],
    max_tokens: 50
  })),
  post("embeddings", "/v1/embeddings", (text) => ({ model: "sandbox-embedding", input: [text, "b"] }), openai),
  post("rerank", "/v1/rerank", (text) => ({ model: "sandbox-rerank", query: text, documents: ["a", "b"] })),
  post("rerank by token", "/v2/rerank", (text) => ({
    model: "sandbox-rerank-tokens",
    query: text,
    documents: ["a", "b"]
  })),
  post("decisions", "/v1/decisions", (text) => ({
    state: { text },
    questions: { go: { type: "noul", instructions: "Go?" } }
  })),
  {
    name: "search",
    method: "GET",
    path: "/v1/search",
    shape: "plain",
    query: (text) => `query=${text}&include_raw=true`
  },
  {
    name: "search by brave",
    method: "GET",
    path: "/v1/search",
    shape: "plain",
    query: (text) => `query=${text}&provider=brave`
  },
  post("speech", "/v1/speech", (input) => ({ input, model: "tts-1", voice: "alloy", response_format: "mp3" })),
  post(
    "speech of OpenAI",
    "/v1/audio/speech",
    (input) => ({ input, model: "vendor-4o-mini-tts", voice: "alloy", stream_format: "sse" }),
    { ...openai, ...streamed }
  ),
  {
    name: "transcription",
    method: "POST",
    path: "/v1/transcriptions",
    shape: "plain",
    form: audio({ model: "whisper-1" })
  },
  {
    name: "transcription of OpenAI",
    method: "POST",
    path: "/v1/audio/transcriptions",
    shape: "openai",
    form: audio({ model: "whisper-1", response_format: "verbose_json" })
  },
  {
    name: "translation",
    method: "POST",
    path: "/v1/audio/translations",
    shape: "openai",
    form: audio({ model: "whisper-1", response_format: "srt" })
  },
  post("image", "/v1/images/generate", (prompt) => ({ prompt }), { follow: "image" }),
  post("image of OpenAI", "/v1/images/generations", (prompt) => ({ prompt }), { ...openai, waits: true }),
  { name: "edit", method: "POST", path: "/v1/images/edits", shape: "openai", waits: true, form: picture },
  post("media", "/v1/tools/media/generate", (prompt) => ({ model: "sandbox-video", prompt }), { follow: "media" }),
  post("open media", "/v1/tools/media/generate", (prompt) => ({ model: "sandbox-video-open", prompt }), {
    follow: "media"
  })
]
