// The floor: a minimal metered gateway in a separate process, with one thread, `node:http`, better-sqlite3 and no layers. Usage: `floor metered
// <upstream's port> <folder> <callers>`. `floor plain <upstream's port>` relays requests without metering them.
import { createHmac, randomBytes } from "node:crypto"
import { Agent, createServer, request as httpRequest } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { credit, modelOf, models, pathOf, price, searchPrice } from "./calls.ts"
import type { Spoken } from "./calls.ts"
import { endWithParent, report } from "./processes.ts"
import { openStore } from "./store.ts"
import type { Line } from "./store.ts"

const [mode, upstream, directory, callers] = process.argv.slice(2) as [string, string, string, string]

const agent = new Agent({ keepAlive: true })

const call = (
  body: Buffer,
  answered: (answer: IncomingMessage) => void,
  failed: () => void,
  path = "/v1/chat/completions"
): void => {
  const outgoing = httpRequest(
    {
      host: "127.0.0.1",
      port: Number(upstream),
      path,
      method: "POST",
      agent,
      headers: {
        "content-type": "application/json",
        "content-length": body.length,
        authorization: "Bearer upstream-key"
      }
    },
    answered
  )
  outgoing.on("error", failed)
  outgoing.end(body)
}

const read = (message: IncomingMessage, done: (body: Buffer) => void): void => {
  let first: Buffer | undefined
  let rest: Array<Buffer> | undefined
  message.on("data", (data: Buffer) => {
    if (first === undefined) first = data
    else (rest ??= [first]).push(data)
  })
  message.on("end", () => done(rest === undefined ? (first ?? Buffer.alloc(0)) : Buffer.concat(rest)))
}

const say = (response: ServerResponse, status: number, body: string | Buffer): void => {
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
  response.end(body)
}

const refuse = (response: ServerResponse, status: number, error: string): void =>
  say(response, status, JSON.stringify({ error }))

// ---- without metering ---------------------------------------------------------------------------------------------------

const proxy = (request: IncomingMessage, response: ServerResponse): void =>
  read(request, (body) =>
    call(
      body,
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(response)
      },
      () => refuse(response, 500, "upstream error")
    )
  )

// ---- with metering ------------------------------------------------------------------------------------------------------

interface Asked {
  readonly model?: unknown
  readonly messages?: unknown
  readonly max_tokens?: number
  readonly stream?: boolean
  stream_options?: { readonly include_usage?: boolean }
}

interface Usage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

interface Caller {
  readonly account: string
  readonly chat: ReadonlyMap<string, Line>
  readonly decisions: Line
  readonly search: Line
}

const every = [...models, modelOf.messages, modelOf.responses]

const metered = () => {
  const store = openStore(directory)
  const secret = randomBytes(32)
  const hash = (key: string) => createHmac("sha256", secret).update(key).digest("base64")
  const prices = new Map(every.map((model) => [model as string, { ...price, maximum: 4096 }]))

  const openCaller = (number: number): readonly [key: string, caller: Caller] => {
    const id = `06bench${String(number).padStart(13, "0")}`
    const account = `bil_${id}`
    store.open(account, credit * 1e9)
    const common = {
      account,
      tenant: `ten_${id}`,
      person: `acc_${id}`,
      application: `app_${id}`,
      provider: "bench"
    }
    const chat = new Map(
      every.map((model) => [model as string, { ...common, model, endpoint: "/v1/chat/completions" }])
    )
    const decisions = { ...common, model: "jev-1.13.0", endpoint: "/v1/decisions" }
    const search = { ...common, model: "bench", endpoint: "/v1/search" }
    return [`svc-prod-${randomBytes(32).toString("hex")}`, { account, chat, decisions, search }]
  }
  const opened = Array.from({ length: Number(callers) }, (_, i) => openCaller(i))
  const known = new Map(opened.map(([key, caller]) => [hash(key), caller]))
  const callerOf = (request: IncomingMessage) => known.get(hash((request.headers.authorization ?? "").slice(7)))

  let calls = 0
  const begun = Date.now().toString(36)

  const chat = (request: IncomingMessage, response: ServerResponse): void => {
    const caller = callerOf(request)
    if (caller === undefined) return refuse(response, 401, "invalid API key")
    read(request, (body) => {
      let asked: Asked
      try {
        asked = JSON.parse(body.toString()) as Asked
      } catch {
        return refuse(response, 400, "invalid request")
      }
      const priced = prices.get(asked.model as string)
      const line = caller.chat.get(asked.model as string)
      if (priced === undefined || line === undefined || !Array.isArray(asked.messages)) {
        return refuse(response, 400, "invalid request")
      }
      // A prompt's token count cannot exceed its byte count.
      const bound = body.length * priced.prompt + (asked.max_tokens ?? priced.maximum) * priced.completion
      const id = `call_${begun}${(calls++).toString(36).padStart(12, "0")}`
      const started = performance.now()
      const charge = (usage: Usage, done: () => void): void => {
        const charged = {
          call: id,
          line,
          prompt: usage.prompt_tokens,
          completion: usage.completion_tokens,
          cost: usage.prompt_tokens * priced.prompt + usage.completion_tokens * priced.completion,
          latency: Math.round(performance.now() - started)
        }
        store.enqueue(() => store.settle(charged), done)
      }
      // If the client requests the usage itself, the floor relays the bytes unchanged.
      const shown = asked.stream_options?.include_usage === true
      if (asked.stream === true && !shown) {
        asked.stream_options = { ...asked.stream_options, include_usage: true }
        body = Buffer.from(JSON.stringify(asked))
      }
      store.enqueue(
        () => store.reserve(id, caller.account, bound),
        (reserved) => {
          if (reserved !== true) return refuse(response, 402, "insufficient credits")
          const fail = () =>
            charge({ prompt_tokens: 0, completion_tokens: 0 }, () => refuse(response, 500, "upstream error"))
          call(
            body,
            (answer) => {
              if (answer.statusCode !== 200) {
                answer.resume()
                fail()
              } else if (asked.stream === true) stream(answer, response, shown, charge)
              else
                read(answer, (given) => {
                  const { usage } = JSON.parse(given.toString()) as { readonly usage: Usage }
                  charge(usage, () => say(response, 200, given))
                })
            },
            fail
          )
        }
      )
    })
  }

  /** Handles a tool call: reserves its bound, sends it, charges for it and responds. */
  const tool = (
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    line: (caller: Caller) => Line,
    bound: number,
    asked: (body: Buffer) => Buffer,
    priceOf: (answer: Buffer) => { readonly prompt: number; readonly cost: number }
  ): void => {
    const caller = callerOf(request)
    if (caller === undefined) return refuse(response, 401, "invalid API key")
    read(request, (body) => {
      const id = `call_${begun}${(calls++).toString(36).padStart(12, "0")}`
      const started = performance.now()
      const fail = () => refuse(response, 500, "upstream error")
      store.enqueue(
        () => store.reserve(id, caller.account, bound),
        (reserved) => {
          if (reserved !== true) return refuse(response, 402, "insufficient credits")
          call(
            asked(body),
            (answer) =>
              read(answer, (given) => {
                const { cost, prompt } = priceOf(given)
                const charged = {
                  call: id,
                  line: line(caller),
                  prompt,
                  completion: 0,
                  cost,
                  latency: Math.round(performance.now() - started)
                }
                store.enqueue(
                  () => store.settle(charged),
                  () => say(response, 200, given)
                )
              }),
            fail,
            path
          )
        }
      )
    })
  }

  /** Handles a call in a protocol other than chat. These protocols' streams always report usage, so the floor relays the bytes unchanged. */
  const serveProtocol = (protocol: Other, request: IncomingMessage, response: ServerResponse): void => {
    const caller = callerOf(request)
    if (caller === undefined) return refuse(response, 401, "invalid API key")
    read(request, (body) => {
      let asked: AskedOther
      try {
        asked = JSON.parse(body.toString()) as AskedOther
      } catch {
        return refuse(response, 400, "invalid request")
      }
      const priced = prices.get(asked.model as string)
      const line = caller.chat.get(asked.model as string)
      if (priced === undefined || line === undefined || !Array.isArray(asked.messages ?? asked.input)) {
        return refuse(response, 400, "invalid request")
      }
      const limit = asked.max_tokens ?? asked.max_output_tokens ?? priced.maximum
      const bound = body.length * priced.prompt + limit * priced.completion
      const id = `call_${begun}${(calls++).toString(36).padStart(12, "0")}`
      const started = performance.now()
      const charge = ({ input_tokens, output_tokens }: UsageOther, done: () => void): void => {
        const charged = {
          call: id,
          line,
          prompt: input_tokens,
          completion: output_tokens,
          cost: input_tokens * priced.prompt + output_tokens * priced.completion,
          latency: Math.round(performance.now() - started)
        }
        store.enqueue(() => store.settle(charged), done)
      }
      store.enqueue(
        () => store.reserve(id, caller.account, bound),
        (reserved) => {
          if (reserved !== true) return refuse(response, 402, "insufficient credits")
          const fail = () => charge(noUsage, () => refuse(response, 500, "upstream error"))
          call(
            body,
            (answer) => {
              if (answer.statusCode !== 200) {
                answer.resume()
                fail()
              } else if (asked.stream === true) streamOther(protocol, answer, response, charge)
              else
                read(answer, (given) => {
                  const { usage } = JSON.parse(given.toString()) as { readonly usage: UsageOther }
                  charge(usage, () => say(response, 200, given))
                })
            },
            fail,
            pathOf[protocol]
          )
        }
      )
    })
  }

  const decide = (request: IncomingMessage, response: ServerResponse) =>
    tool(
      request,
      response,
      "/v1/systemone",
      (caller) => caller.decisions,
      300_000_000,
      (body) => Buffer.from(JSON.stringify({ ...(JSON.parse(body.toString()) as object), model: "jev-1.13.0" })),
      (given) => {
        const { usage } = JSON.parse(given.toString()) as { readonly usage: { readonly input_tokens: number } }
        return { prompt: usage.input_tokens, cost: usage.input_tokens * 42 }
      }
    )

  const search = (request: IncomingMessage, response: ServerResponse) => {
    const query = new URLSearchParams(request.url!.slice(request.url!.indexOf("?") + 1))
    const asked = { query: query.get("query"), max_results: Number(query.get("max_results") ?? 10) }
    tool(
      request,
      response,
      "/search",
      (caller) => caller.search,
      searchPrice,
      () => Buffer.from(JSON.stringify(asked)),
      (given) => {
        JSON.parse(given.toString())
        return { prompt: 0, cost: searchPrice }
      }
    )
  }

  return {
    chat,
    speak: serveProtocol,
    decide,
    search,
    hello: { keys: opened.map(([key]) => key) },
    look: store.look,
    close: store.close
  }
}

const usageMark = Buffer.from('"usage":{')
const doneMark = Buffer.from("data: [DONE]")
const eventEnd = Buffer.from("\n\n")

/** Returns the start of the event that contains the byte at `before`. */
const eventStart = (bytes: Buffer, before: number): number => {
  const end = bytes.lastIndexOf(eventEnd, before)
  return end < 0 ? 0 : end + 2
}

/** Relays complete events as they arrive. Delays the last event until the call is charged. */
const stream = (
  answer: IncomingMessage,
  response: ServerResponse,
  shown: boolean,
  charge: (usage: Usage, done: () => void) => void
): void => {
  let pending: Buffer | undefined
  let usage: Usage | undefined
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
  answer.on("data", (data: Buffer) => {
    const bytes = pending === undefined ? data : Buffer.concat([pending, data])
    const done = bytes.indexOf(doneMark)
    const end = done >= 0 ? done : eventStart(bytes, bytes.length)
    pending = end < bytes.length ? bytes.subarray(end) : undefined
    if (end === 0) return
    const events = bytes.subarray(0, end)
    const mark = events.indexOf(usageMark)
    if (mark < 0) return void response.write(events)
    const from = eventStart(events, mark)
    const to = events.indexOf(eventEnd, mark) + 2
    usage = (JSON.parse(events.toString("utf8", from + 6, to)) as { readonly usage: Usage }).usage
    if (shown) return void response.write(events)
    if (from > 0) response.write(events.subarray(0, from))
    if (to < end) response.write(events.subarray(to))
  })
  answer.on("end", () => {
    charge(usage ?? { prompt_tokens: 0, completion_tokens: 0 }, () => response.end(pending))
  })
}

type Other = Exclude<Spoken, "chat">

interface AskedOther {
  readonly model?: unknown
  readonly messages?: unknown
  readonly input?: unknown
  readonly max_tokens?: number
  readonly max_output_tokens?: number
  readonly stream?: boolean
}

interface UsageOther {
  readonly input_tokens: number
  readonly output_tokens: number
}

const noUsage: UsageOther = { input_tokens: 0, output_tokens: 0 }

const lastEvents = {
  messages: Buffer.from("event: message_stop"),
  responses: Buffer.from("event: response.completed")
} as const
const dataMark = Buffer.from("data: ")

/** Merges the usage in these events into the earlier usage, because an event can report only some of the counts. */
const reported = (events: Buffer, before: UsageOther): UsageOther => {
  const usage = { ...before }
  for (let at = events.indexOf(usageMark); at >= 0;) {
    const end = events.indexOf(eventEnd, at)
    const from = events.indexOf(dataMark, eventStart(events, at)) + dataMark.length
    const event = JSON.parse(events.toString("utf8", from, end)) as {
      readonly usage?: UsageOther
      readonly message?: { readonly usage: UsageOther }
      readonly response?: { readonly usage: UsageOther }
    }
    Object.assign(usage, event.usage ?? event.message?.usage ?? event.response?.usage)
    at = events.indexOf(usageMark, end)
  }
  return usage
}

/** Like `stream`, for the other protocols. Their streams always report usage and have their own final events. */
const streamOther = (
  protocol: Other,
  answer: IncomingMessage,
  response: ServerResponse,
  charge: (usage: UsageOther, done: () => void) => void
): void => {
  let pending: Buffer | undefined
  let usage = noUsage
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
  answer.on("data", (data: Buffer) => {
    const bytes = pending === undefined ? data : Buffer.concat([pending, data])
    const last = bytes.indexOf(lastEvents[protocol])
    const end = last >= 0 ? last : eventStart(bytes, bytes.length)
    pending = end < bytes.length ? bytes.subarray(end) : undefined
    if (end === 0) return
    const events = bytes.subarray(0, end)
    usage = reported(events, usage)
    response.write(events)
  })
  answer.on("end", () => {
    if (pending !== undefined) usage = reported(pending, usage)
    charge(usage, () => response.end(pending))
  })
}

// ---- the process --------------------------------------------------------------------------------------------------------

const books = mode === "metered" ? metered() : undefined
const answer = books?.chat ?? proxy

const server = createServer((request, response) => {
  if (request.method === "POST" && request.url === "/v1/chat/completions") answer(request, response)
  else if (books !== undefined && request.method === "POST" && request.url === pathOf.messages)
    books.speak("messages", request, response)
  else if (books !== undefined && request.method === "POST" && request.url === pathOf.responses)
    books.speak("responses", request, response)
  else if (books !== undefined && request.method === "POST" && request.url === "/v1/decisions")
    books.decide(request, response)
  else if (books !== undefined && request.url?.startsWith("/v1/search?") === true) books.search(request, response)
  else refuse(response, 404, "not found")
})

endWithParent()
process.on("message", () => report(books?.look() ?? {}))
server.listen(0, "127.0.0.1", () => report({ port: (server.address() as AddressInfo).port, ...books?.hello }))
