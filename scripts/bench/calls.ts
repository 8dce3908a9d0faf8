// The calls that the benchmark makes: what they say, what they cost, and who makes them.

/** Nano-USD a token: 0.15 and 0.60 USD per million. */
export const price = { prompt: 150, completion: 600 }

/** What the upstream reports for every chat call. */
export const usage = { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 }

/** What every chat call must cost, in nano-USD: a figure taken with another charge in the books is worthless. */
export const callPrice = usage.prompt_tokens * price.prompt + usage.completion_tokens * price.completion

/** What the upstream reports for every decision, and what a decision and a search cost, in nano-USD. */
export const decisionTokens = 40
const decisionPrice = decisionTokens * 42
export const searchPrice = 5_000_000

/** Credit that every caller starts with, in USD. */
export const credit = 100_000

/** How many callers there are where there are many. */
export const manyCallers = 1_000

/** Where there is one caller, it asks for the first; of many, each asks for all. */
export const models = ["bench-model", "bench-model-2", "bench-model-3", "bench-model-4"] as const

/** Protocols of models, and of each the model whose upstream speaks it alone; chat's are the `models`. */
export type Spoken = "chat" | "messages" | "responses"
export const modelOf = { chat: models[0], messages: "bench-messages", responses: "bench-responses" } as const
export const pathOf = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses"
} as const

/** How the stream of a protocol ends, as far as its last bytes tell. */
const endOf = { chat: "data: [DONE]\n\n", messages: '"message_stop"}\n\n', responses: "}}\n\n" } as const

// ---- what is said -------------------------------------------------------------------------------------------------------

/** In a prompt: makes the upstream pause within a stream, so that a held-back first byte shows. */
export const paced = "at your own pace"
/** Milliseconds of that pause. */
export const pause = 250

/** In a prompt: the stream has so many chunks. */
export const inPieces = (chunks: number): string => `in ${chunks} pieces`
export const piecesOf = (prompt: string): number | undefined => {
  const found = /\bin (\d+) pieces\b/.exec(prompt)
  return found === null ? undefined : Number(found[1])
}

/** In a prompt: the stream goes on, a chunk every `trickleEvery` ms, until the upstream is told to end it. */
export const trickling = "little by little"
export const trickleEvery = 2_000

interface Chat {
  readonly model?: string
  readonly stream?: boolean
  /** How the upstream is to answer. */
  readonly manner?: string
  /** Length of the body, if it is to be longer than what is asked takes. */
  readonly bytes?: number
}

const question = "Say in one sentence why a ledger keeps two sides of every entry"
const filler = "Each side names an account, an amount and the moment at which it was booked. "

/** The body as clients send it. A stream asks for its usage, so that every contender passes the same bytes on. */
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

/** The same question in another protocol. */
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

// ---- kinds of calls -----------------------------------------------------------------------------------------------------

/** A kind of call with how many make it at once: what a contender is driven with. */
export interface Workload {
  /** What it is called in progress and in `--json`. */
  readonly name: string
  readonly method: "GET" | "POST"
  readonly path: string
  /** One for each model. */
  readonly bodies: ReadonlyArray<string>
  readonly stream: boolean
  /** What a stream ends with that is whole. */
  readonly end?: string
  readonly callers: number
  readonly connections: number
  /** Nano-USD that a call must cost. */
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

/** Calls in a protocol, of the model whose upstream speaks `to`. */
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

// ---- who calls ----------------------------------------------------------------------------------------------------------

/** Numbers in [0, 1), the same in every run (mulberry32). */
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
 * Who makes the next call, and with which model: `caller * kinds + model`. Callers by Zipf's law with s = 1 (the tenth calls a tenth as
 * often as the first), models evenly. The sequence is the same in every run.
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
  // Drawn before the measurement and gone through again and again, so that it costs the measurement nothing.
  const drawn = Uint32Array.from(
    { length: 1 << 18 },
    () => rankOf(random() * weight) * kinds + Math.floor(random() * kinds)
  )
  let next = 0
  return () => drawn[next++ & (drawn.length - 1)]!
}
