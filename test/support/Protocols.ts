/** Each protocol in which the service answers, as a client speaks it: what a test asks, and where the answer says what. */

// oxlint-disable-next-line typescript/no-explicit-any -- a test looks into what came, whatever it is
type Body = Record<string, any>

export interface Spoken {
  readonly name: "messages" | "responses"
  readonly path: string
  /** Asks for a text to be repeated, with at most 50 tokens. */
  readonly ask: (text: string, more?: Body) => Body
  /** Lets a tool of this name be called. */
  readonly tool: (name: string) => Body
  readonly think: Body
  readonly textOf: (answer: Body) => string
  readonly callsOf: (answer: Body) => ReadonlyArray<{ readonly name: string; readonly input: unknown }>
  /** The tokens that the vendor reports. */
  readonly usageOf: (answer: Body) => { readonly prompt: number; readonly completion: number }
  /** The message of a refusal, and our code in it. */
  readonly refusalOf: (body: Body) => { readonly message: string; readonly code: string | null }
  /** The text of a stream. */
  readonly textIn: (events: ReadonlyArray<Body>) => string
  /** The last event of a whole stream, and of a broken one. */
  readonly last: string
}

const messages: Spoken = {
  name: "messages",
  path: "/v1/messages",
  ask: (text, more = {}) => ({
    model: "sandbox-large",
    max_tokens: 50,
    messages: [{ role: "user", content: text }],
    ...more
  }),
  tool: (name) => ({ tools: [{ name, input_schema: { type: "object" } }] }),
  think: { thinking: { type: "enabled", budget_tokens: 1_024 } },
  textOf: ({ content }) => content.map(({ text = "" }) => text).join(""),
  callsOf: ({ content }) =>
    content.filter(({ type }: Body) => type === "tool_use").map(({ input, name }: Body) => ({ name, input })),
  usageOf: ({ usage }) => ({
    prompt: usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens,
    completion: usage.output_tokens
  }),
  refusalOf: ({ error, type }) => {
    if (type !== "error") throw new Error(`no error of messages: ${JSON.stringify(error)}`)
    return { message: error.message, code: error.code ?? null }
  },
  textIn: (events) => events.map(({ delta }) => delta?.text ?? "").join(""),
  last: "message_stop"
}

const responses: Spoken = {
  name: "responses",
  path: "/v1/responses",
  ask: (text, more = {}) => ({ model: "sandbox-large", max_output_tokens: 50, input: text, ...more }),
  tool: (name) => ({ tools: [{ type: "function", name, parameters: { type: "object" } }] }),
  think: { reasoning: { effort: "low", summary: "auto" } },
  textOf: ({ output }) =>
    output
      .flatMap(({ content = [], type }: Body) => (type === "message" ? content : []))
      .map(({ text }: Body) => text)
      .join(""),
  callsOf: ({ output }) =>
    output
      .filter(({ type }: Body) => type === "function_call")
      .map((item: Body) => ({ name: item.name, input: JSON.parse(item.arguments) })),
  usageOf: ({ usage }) => ({ prompt: usage.input_tokens, completion: usage.output_tokens }),
  refusalOf: ({ error }) => {
    if (!("param" in error)) throw new Error(`no error of responses: ${JSON.stringify(error)}`)
    return { message: error.message, code: error.code }
  },
  textIn: (events) => events.map(({ delta, type }) => (type === "response.output_text.delta" ? delta : "")).join(""),
  last: "response.completed"
}

export const spoken: ReadonlyArray<Spoken> = [messages, responses]

/** The data of server-sent events, but for what is no JSON. */
export const eventsIn = (stream: string): ReadonlyArray<Body> =>
  stream
    .split("\n\n")
    .flatMap((event) => event.split("\n").filter((line) => line.startsWith("data:")))
    .flatMap((line) => (line.includes("[DONE]") ? [] : [JSON.parse(line.slice(5)) as Body]))
