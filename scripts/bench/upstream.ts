// The world outside the gateway, in a separate process: a model without latency, and an issuer for sign-ins. Chat runs on a bare socket, so the
// upstream costs almost nothing.
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import { createServer as createHttpServer } from "node:http"
import { createServer } from "node:net"
import type { AddressInfo, Server, Socket } from "node:net"
import {
  decisionTokens,
  modelOf,
  models,
  paced,
  pathOf,
  pause,
  piecesOf,
  trickleEvery,
  trickling,
  usage
} from "./calls.ts"
import { endWithParent, report } from "./processes.ts"

/** Builds the fields around the choices of a chat chunk or response. */
const answer = (object: string, rest: object): string =>
  JSON.stringify({ id: "chatcmpl-bench0001", object, created: 1_760_000_000, model: models[0], ...rest })

const words =
  "Because what one account gives another must receive, so that a slip on either side shows at once in the sum."
    .split(" ")
    .map((word, i) => (i === 0 ? word : ` ${word}`))

const plain = (() => {
  const message = { role: "assistant", content: words.join("") }
  const body = answer("chat.completion", { choices: [{ index: 0, message, finish_reason: "stop" }], usage })
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
})()

const whole = (body: string): Buffer =>
  Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )

const tools: Readonly<Record<string, Buffer>> = {
  "/v1/systemone": whole(
    JSON.stringify({
      id: "dec_bench0001",
      model: "jev-1.13.0",
      answers: {
        about: { type: "choice", choice: "billing", probabilities: { billing: 0.8, other: 0.2 }, confidence: 0.8 }
      },
      usage: { input_tokens: decisionTokens, output_tokens: 1 }
    })
  ),
  "/search": whole(
    JSON.stringify({
      query: "double entry",
      results: Array.from({ length: 5 }, (_, i) => ({
        title: `Result ${i}`,
        url: `https://example.com/${i}`,
        content: "Because what one account gives another must receive.",
        score: 0.9,
        raw_content: null
      })),
      response_time: 0.1
    })
  )
}

const chunked = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

const chunk = (delta: object, finish_reason: string | null, withUsage: boolean): string =>
  answer("chat.completion.chunk", {
    choices: [{ index: 0, delta, finish_reason }],
    ...(withUsage && { usage: null })
  })

const events = (list: ReadonlyArray<string>): ReadonlyArray<string> => list.map((event) => `data: ${event}\n\n`)

const streamHead =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"

const ending = (withUsage: boolean): ReadonlyArray<string> =>
  events([
    chunk({}, "stop", withUsage),
    ...(withUsage ? [answer("chat.completion.chunk", { choices: [], usage })] : []),
    "[DONE]"
  ])

const contentsOf = (pieces: number): ReadonlyArray<string> =>
  Array.from({ length: pieces }, (_, i) => words.at((i - pieces) % words.length)!)

const streamed = (pieces: number, withUsage: boolean): ReadonlyArray<Buffer> =>
  written([
    ...events([
      chunk({ role: "assistant", content: "" }, null, withUsage),
      ...contentsOf(pieces).map((content) => chunk({ content }, null, withUsage))
    ]),
    ...ending(withUsage)
  ])

/** Splits a stream into a few writes of several events each, one per event loop iteration, as a model's tokens would arrive. */
const written = (all: ReadonlyArray<string>): ReadonlyArray<Buffer> => {
  const writes: Array<string> = []
  for (let i = 0; i < all.length; i += 5) writes.push(chunked(all.slice(i, i + 5).join("")))
  writes[0] = streamHead + writes[0]!
  writes[writes.length - 1] += "0\r\n\r\n"
  return writes.map((text) => Buffer.from(text))
}

const streams = new Map<string, ReadonlyArray<Buffer>>()
const streamOf = (pieces: number, withUsage: boolean): ReadonlyArray<Buffer> => {
  const name = `${pieces} ${withUsage}`
  let found = streams.get(name)
  if (found === undefined) streams.set(name, (found = streamed(pieces, withUsage)))
  return found
}

// ---- other protocols ----------------------------------------------------------------------------------------------------

const tokens = { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens }

const message = (rest: object): object => ({
  id: "msg_bench0001",
  type: "message",
  role: "assistant",
  model: modelOf.messages,
  stop_sequence: null,
  ...rest
})
const response = (rest: object): object => ({
  id: "resp_bench0001",
  object: "response",
  created_at: 1_760_000_000,
  model: modelOf.responses,
  error: null,
  ...rest
})
const textPart = (text: string): object => ({ type: "output_text", text, annotations: [] })
const item = (status: string, content: ReadonlyArray<object>): object => ({
  id: "msg_bench0001",
  type: "message",
  status,
  role: "assistant",
  content
})

const named = (
  list: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>
): ReadonlyArray<string> => list.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

const streamPieces = 30
const said = contentsOf(streamPieces)
const all = said.join("")

const place = { item_id: "msg_bench0001", output_index: 0, content_index: 0 }
const completed = (text: string): object =>
  response({
    status: "completed",
    output: [item("completed", [textPart(text)])],
    usage: {
      ...tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.total_tokens
    }
  })

/** The responses in each protocol other than chat, complete and as a stream. */
const others: Readonly<Record<string, { readonly whole: Buffer; readonly stream: ReadonlyArray<Buffer> }>> = {
  [pathOf.messages]: {
    whole: whole(
      JSON.stringify(
        message({ content: [{ type: "text", text: words.join("") }], stop_reason: "end_turn", usage: tokens })
      )
    ),
    stream: written(
      named([
        {
          type: "message_start",
          message: message({ content: [], stop_reason: null, usage: { ...tokens, output_tokens: 1 } })
        },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        ...said.map((text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
        { type: "content_block_stop", index: 0 },
        {
          type: "message_delta",
          delta: { stop_reason: "end_turn", stop_sequence: null },
          usage: { output_tokens: tokens.output_tokens }
        },
        { type: "message_stop" }
      ])
    )
  },
  [pathOf.responses]: {
    whole: whole(JSON.stringify(completed(words.join("")))),
    stream: written(
      named(
        [
          { type: "response.created", response: response({ status: "in_progress", output: [], usage: null }) },
          { type: "response.output_item.added", output_index: 0, item: item("in_progress", []) },
          { type: "response.content_part.added", ...place, part: textPart("") },
          ...said.map((delta) => ({ type: "response.output_text.delta", ...place, delta })),
          { type: "response.output_text.done", ...place, text: all },
          { type: "response.content_part.done", ...place, part: textPart(all) },
          { type: "response.output_item.done", output_index: 0, item: item("completed", [textPart(all)]) },
          { type: "response.completed", response: completed(all) }
        ].map((event, sequence_number) => ({ sequence_number, ...event }))
      )
    )
  }
}

const notFound = Buffer.from("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")

const write = (
  socket: Socket,
  parts: ReadonlyArray<Buffer>,
  pauseAfterFirst: boolean,
  done: () => void,
  i = 0
): void => {
  if (socket.destroyed) return
  socket.write(parts[i]!)
  if (i + 1 === parts.length) return done()
  if (i === 0 && pauseAfterFirst) setTimeout(write, pause, socket, parts, false, done, 1)
  else setImmediate(write, socket, parts, false, done, i + 1)
}

// ---- streams at a trickle -----------------------------------------------------------------------------------------------

const piece = Buffer.from(chunked(events([chunk({ content: words[0] }, null, true)]).join("")))
const begun = Buffer.from(
  streamHead + chunked(events([chunk({ role: "assistant", content: "" }, null, true)]).join(""))
)
const ended = Buffer.from(`${chunked(ending(true).join(""))}0\r\n\r\n`)

/** An order about the slow streams. The process reports the number of open streams, and ends them if `end` is set. */
export interface TrickleOrder {
  readonly end: boolean
}

const open = new Map<Socket, () => void>()

/** Sends one chunk to every stream per `trickleEvery`, with the chunks spread evenly over that time. */
const trickle = (): void => {
  const slots = trickleEvery / 20
  let slot = 0
  setInterval(() => {
    slot = (slot + 1) % slots
    let i = 0
    for (const socket of open.keys()) if (i++ % slots === slot) socket.write(piece)
  }, 20)
}

const endAll = (): void => {
  for (const [socket, done] of open) {
    socket.write(ended)
    done()
  }
  open.clear()
}

// ---- chat ---------------------------------------------------------------------------------------------------------------

/** Parses the buffer's first request. `end` is its end offset. Returns `undefined` while the request is incomplete. */
const requestIn = (
  buffer: Buffer
): { readonly path: string; readonly body: Buffer; readonly end: number } | undefined => {
  const headEnd = buffer.indexOf("\r\n\r\n")
  if (headEnd < 0) return undefined
  const head = buffer.toString("latin1", 0, headEnd)
  const path = head.slice(0, head.indexOf("\r\n")).split(" ")[1]!
  const start = headEnd + 4
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)
  if (length !== null || !/\r\ntransfer-encoding: *chunked/i.test(head)) {
    const end = start + Number(length?.[1] ?? 0)
    return buffer.length < end ? undefined : { path, body: buffer.subarray(start, end), end }
  }
  const pieces: Array<Buffer> = []
  for (let at = start; ;) {
    const line = buffer.indexOf("\r\n", at)
    if (line < 0) return undefined
    const size = parseInt(buffer.toString("latin1", at, line), 16)
    at = line + 2
    if (buffer.length < at + size + 2) return undefined
    if (size === 0) return { path, body: Buffer.concat(pieces), end: at + 2 }
    pieces.push(buffer.subarray(at, at + size))
    at += size + 2
  }
}

const chat = createServer({ noDelay: true }, (socket) => {
  let buffer: Buffer = Buffer.alloc(0)
  let busy = false
  const next = () => {
    if (busy || buffer.length === 0) return
    const found = requestIn(buffer)
    if (found === undefined) return
    buffer = buffer.subarray(found.end)
    const tool = tools[found.path]
    if (tool !== undefined) {
      socket.write(tool)
      return next()
    }
    const other = others[found.path]
    if (other === undefined && found.path !== pathOf.chat) {
      socket.write(notFound)
      return next()
    }
    // A substring search replaces parsing, so a long body costs almost nothing here.
    if (!found.body.includes('"stream":true')) {
      socket.write(other?.whole ?? plain)
      return next()
    }
    const prompt = found.body.toString("latin1", 0, 1_000)
    busy = true
    const done = () => {
      busy = false
      next()
    }
    if (other !== undefined) return write(socket, other.stream, false, done)
    if (prompt.includes(trickling)) {
      socket.write(begun)
      open.set(socket, done)
      return
    }
    const parts = streamOf(piecesOf(prompt) ?? 30, found.body.includes('"include_usage":true'))
    write(socket, parts, prompt.includes(paced), done)
  }
  socket.on("data", (data) => {
    buffer = buffer.length === 0 ? data : Buffer.concat([buffer, data])
    next()
  })
  socket.on("error", () => socket.destroy())
  socket.on("close", () => open.delete(socket))
})

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) =>
    server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => resolve((server.address() as AddressInfo).port))
  )

// ---- the issuer ---------------------------------------------------------------------------------------------------------

const { privateKey, publicKey } = await generateKeyPair("RS256")
const jwk = { ...(await exportJWK(publicKey)), kid: "bench", alg: "RS256", use: "sig" }
let issuer = ""

const idToken = (email: string): Promise<string> =>
  new SignJWT({ email, email_verified: true, name: email.split("@")[0] })
    .setProtectedHeader({ alg: "RS256", kid: "bench" })
    .setIssuer(issuer)
    .setAudience("bench")
    .setSubject(`subject-of-${email}`)
    .setIssuedAt()
    .setExpirationTime("1h")
    .sign(privateKey)

const documents: Readonly<Record<string, () => object>> = {
  "/.well-known/openid-configuration": () => ({
    issuer,
    jwks_uri: `${issuer}/jwks.json`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    authorization_endpoint: `${issuer}/authorize`,
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"]
  }),
  "/jwks.json": () => ({ keys: [jwk] })
}

const identity = createHttpServer((request, response) => {
  const say = (status: number, document: object) => {
    response.writeHead(status, { "content-type": "application/json" })
    response.end(JSON.stringify(document))
  }
  const path = request.url ?? "/"
  if (request.method === "GET" && path in documents) return say(200, documents[path]!())
  if (request.method !== "POST" || path !== "/token") return say(404, { error: "not_found" })
  let body = ""
  request.on("data", (data) => (body += data))
  request.on("end", () => {
    const { email } = JSON.parse(body) as { readonly email: string }
    void idToken(email).then((id_token) => say(200, { id_token }))
  })
})

endWithParent()
trickle()
process.on("message", ({ end }: TrickleOrder) => {
  report({ open: open.size })
  if (end) endAll()
})
const issuerPort = await listen(identity)
issuer = `http://127.0.0.1:${issuerPort}`
report({ port: await listen(chat), issuer })
