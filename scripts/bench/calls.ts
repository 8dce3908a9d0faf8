// Defines the benchmark's calls: their content, their cost and their callers.

/** The prices in nano-USD per token: 0.15 and 0.60 USD per million. */
export const price = { prompt: 150, completion: 600 }

/** The usage that the upstream reports for every chat call. */
export const usage = { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 }

/** The cost of every chat call, in nano-USD. If the database shows any other charge, the measurement is invalid. */
export const callPrice = usage.prompt_tokens * price.prompt + usage.completion_tokens * price.completion

/** The tokens that the upstream reports for every decision. The next two constants are the costs of a decision and a search, in nano-USD. */
export const decisionTokens = 40
const decisionPrice = decisionTokens * 42
export const searchPrice = 5_000_000

/** The initial credit of each caller, in USD. */
export const credit = 100_000

export const manyCallers = 1_000

/** A single caller uses only the first model. Many callers use all of them. */
export const models = ["bench-model", "bench-model-2", "bench-model-3", "bench-model-4"] as const

/** For each protocol, the model whose upstream accepts only that protocol. Chat uses the first of `models`. */
export type Spoken = "chat" | "messages" | "responses"
export const modelOf = { chat: models[0], messages: "bench-messages", responses: "bench-responses" } as const
export const pathOf = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses"
} as const

const endOf = { chat: "data: [DONE]\n\n", messages: '"message_stop"}\n\n', responses: "}}\n\n" } as const

// ---- prompts ------------------------------------------------------------------------------------------------------------

/** A prompt that contains this string makes the upstream pause mid-stream. This reveals a gateway that delays the first byte. */
export const paced = "at your own pace"
/** The duration of that pause in milliseconds. */
export const pause = 250

/** Builds the part of a prompt that sets the number of chunks in the stream. */
export const inPieces = (chunks: number): string => `in ${chunks} pieces`
export const piecesOf = (prompt: string): number | undefined => {
  const found = /\bin (\d+) pieces\b/.exec(prompt)
  return found === null ? undefined : Number(found[1])
}

/** A prompt that contains this string makes the upstream send a chunk every `trickleEvery` milliseconds until a `TrickleOrder` ends the stream. */
export const trickling = "little by little"
export const trickleEvery = 2_000

interface Chat {
  readonly model?: string
  readonly stream?: boolean
  /** An instruction to the upstream, such as `paced`. */
  readonly manner?: string
  /** The minimum length of the body in bytes. A shorter body is padded. */
  readonly bytes?: number
}

const question = "Say in one sentence why a ledger keeps two sides of every entry"
const filler = "Each side names an account, an amount and the moment at which it was booked. "

/** Builds the client's request body. A streaming request asks for usage, so every contender relays the same bytes. */
export const chatBody = ({ bytes = 0, manner = "", model = models[0], stream = false }: Chat): string => {
  const written = (context: string) =>
    JSON.stringify({
      model,
      messages: [
        { role: "system", content: "You are a terse assistant." },
        { role: "user", content: `${question}${manner && `, ${manner}`}.${context}` }
      ],
      temperature: 0.2,
      max_tokens: 64,
      ...(stream && { stream: true, stream_options: { include_usage: true } })
    })
  const missing = Math.max(0, bytes - written("").length)
  return written(filler.repeat(Math.ceil(missing / filler.length)).slice(0, missing))
}

const bodyIn = (protocol: Spoken, model: string, stream: boolean): string => {
  const chat = JSON.parse(chatBody({ model, stream })) as {
    readonly messages: ReadonlyArray<{ readonly content: string }>
  }
  const [system, asked] = chat.messages.map(({ content }) => content)
  const messages = [{ role: "user", content: asked }]
  const common = { model, temperature: 0.2, ...(stream && { stream }) }
  switch (protocol) {
    case "chat":
      return JSON.stringify(chat)
    case "messages":
      return JSON.stringify({ ...common, system, messages, max_tokens: 64 })
    case "responses":
      return JSON.stringify({ ...common, instructions: system, input: messages, max_output_tokens: 64, store: false })
  }
}

// ---- workloads ----------------------------------------------------------------------------------------------------------

/** A call type and its concurrency. The load generator sends these calls to a contender. */
export interface Workload {
  /** The name in progress lines and in `--json`. */
  readonly name: string
  readonly method: "GET" | "POST"
  readonly path: string
  /** One body per model. */
  readonly bodies: ReadonlyArray<string>
  readonly stream: boolean
  /** The end of a complete stream. */
  readonly end?: string
  readonly callers: number
  readonly connections: number
  /** The cost of a call in nano-USD. */
  readonly price: number
}

export const chatCalls = ({
  callers = 1,
  connections,
  name,
  stream = false,
  ...chat
}: Omit<Chat, "model"> & Pick<Workload, "name" | "connections"> & Partial<Pick<Workload, "callers">>): Workload => ({
  name,
  method: "POST",
  path: "/v1/chat/completions",
  bodies: (callers === 1 ? models.slice(0, 1) : models).map((model) => chatBody({ ...chat, stream, model })),
  stream,
  callers,
  connections,
  price: callPrice
})

/** Builds a workload in one protocol, for the model whose upstream accepts `to`. */
export const callsIn = (
  protocol: Spoken,
  to: Spoken,
  { callers, connections, stream }: Pick<Workload, "callers" | "connections" | "stream">
): Workload => ({
  name: `${protocol}${protocol === to ? "" : ` over ${to}`}${stream ? ", streamed" : ""}${callers === 1 ? "" : `, ${callers} callers`}`,
  method: "POST",
  path: pathOf[protocol],
  bodies: [bodyIn(protocol, modelOf[to], stream)],
  stream,
  end: endOf[protocol],
  callers,
  connections,
  price: callPrice
})

const decisionBody = JSON.stringify({
  state: "I was charged twice for billing",
  questions: {
    about: { type: "choice", instructions: "What is it about?", criteria: { billing: "money", other: "the rest" } }
  }
})

export const decisionCalls = (connections: number): Workload => ({
  name: "decisions",
  method: "POST",
  path: "/v1/decisions",
  bodies: [decisionBody],
  stream: false,
  callers: 1,
  connections,
  price: decisionPrice
})

export const searchCalls = (connections: number): Workload => ({
  name: "search",
  method: "GET",
  path: "/v1/search?query=double%20entry&max_results=5",
  bodies: [""],
  stream: false,
  callers: 1,
  connections,
  price: searchPrice
})

// ---- callers ------------------------------------------------------------------------------------------------------------

/** Creates a deterministic generator of pseudo-random numbers in [0, 1) (mulberry32). */
export const numbers = (seed: number) => {
  let state = seed
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Creates a function that selects each call's caller and model, as `caller * kinds + model`. Callers are Zipf-distributed with s = 1, so caller n
 * makes 1/n as many calls as the first caller. Models are uniformly distributed. The sequence is the same in every run.
 */
export const callSequence = (callers: number, kinds: number, seed = 1): (() => number) => {
  if (callers === 1 && kinds === 1) return () => 0
  const below: Array<number> = []
  let weight = 0
  for (let rank = 1; rank <= callers; rank++) below.push((weight += 1 / rank))
  const random = numbers(seed)
  const rankOf = (at: number): number => {
    let [low, high] = [0, callers - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (below[middle]! < at) low = middle + 1
      else high = middle
    }
    return low
  }
  // The numbers are drawn in advance and reused cyclically, so the measurement does not include drawing them.
  const drawn = Uint32Array.from(
    { length: 1 << 18 },
    () => rankOf(random() * weight) * kinds + Math.floor(random() * kinds)
  )
  let next = 0
  return () => drawn[next++ & (drawn.length - 1)]!
}
