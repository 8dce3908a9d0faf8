/** The service's client protocols: a test's requests and the fields of the responses. */

// oxlint-disable-next-line typescript/no-explicit-any -- tests inspect responses of any shape
type Body = Record<string, any>

export interface Spoken {
  readonly name: "chat" | "messages" | "responses"
  readonly path: string
  /** Builds a request to repeat a text, with at most 50 tokens. */
  readonly ask: (text: string, more?: Body) => Body
  /** The request fields that offer a tool with this name. */
  readonly tool: (name: string) => Body
  readonly think: Body
  readonly textOf: (answer: Body) => string
  readonly callsOf: (answer: Body) => ReadonlyArray<{ readonly name: string; readonly input: unknown }>
  /** The tokens that the response reports. */
  readonly usageOf: (answer: Body) => { readonly prompt: number; readonly completion: number }
  /** The message and our code in an error response. */
  readonly refusalOf: (body: Body) => { readonly message: string; readonly code: string | null }
  /** The text in a stream's events. */
  readonly textIn: (events: ReadonlyArray<Body>) => string
  /** The type of the last event of a complete stream. */
  readonly last: string | undefined
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

const chat: Spoken = {
  name: "chat",
  path: "/v1/chat/completions",
  ask: (text, more = {}) => ({
    model: "sandbox-large",
    max_tokens: 50,
    messages: [{ role: "user", content: text }],
    ...more
  }),
  tool: (name) => ({ tools: [{ type: "function", function: { name, parameters: { type: "object" } } }] }),
  think: { reasoning_effort: "low" },
  textOf: ({ choices }) => choices[0].message.content ?? "",
  callsOf: ({ choices }) =>
    choices[0].message.tool_calls.map((call: Body) => ({
      name: call.function.name,
      input: JSON.parse(call.function.arguments)
    })),
  usageOf: ({ usage }) => ({ prompt: usage.prompt_tokens, completion: usage.completion_tokens }),
  refusalOf: ({ code, error }) => ({ message: error, code: code ?? null }),
  textIn: (events) => events.map(({ choices }) => choices?.[0]?.delta?.content ?? "").join(""),
  last: undefined
}

export const spoken: ReadonlyArray<Spoken> = [messages, responses]

/** All client protocols, including chat. */
export const all: ReadonlyArray<Spoken> = [chat, ...spoken]

/** The data of server-sent events. Data that is not JSON is omitted. */
export const eventsIn = (stream: string): ReadonlyArray<Body> =>
  stream
    .split("\n\n")
    .flatMap((event) => event.split("\n").filter((line) => line.startsWith("data:")))
    .flatMap((line) => (line.includes("[DONE]") ? [] : [JSON.parse(line.slice(5)) as Body]))
