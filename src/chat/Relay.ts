/**
 * A stream of server-sent events on its way from an upstream to a client. Bytes pass through as they come; only the usage, an
 * error and the end are looked for. The last event, `[DONE]`, waits until the charge is in the books.
 */
import { Effect } from "effect"
import { Readable } from "node:stream"
import type { Streaming } from "../upstream/Wire.ts"
import { bytesAToken } from "./Tokens.ts"

/** How a stream ended, and what was seen of it. */
export interface Ending {
  /**
   * `complete`: the upstream finished, and said so. `broken`: it broke off or sent an error. `left`: the client went, and so did
   * we.
   */
  readonly how: "complete" | "broken" | "left"
  /** The last usage object that the upstream sent. */
  readonly usage: unknown
  /** Tokens of the answer, as far as the pieces tell: at least one for each. */
  readonly tokens_seen: number
}

export interface Relay {
  /** What the client reads. */
  readonly body: Readable
  /** Ends once, whatever the client does. */
  readonly ended: Effect.Effect<Ending>
  /** Lets the client have the end, after the books have it. */
  readonly finish: (ending: Ending) => void
  /** Cuts the client off without an end: the books could not have it in time. */
  readonly cut: () => void
}

/** How long an upstream is read on after its client has left, to learn what it will charge. */
export const readOnFor = 10_000

/** An event longer than this is passed on without a look. */
const eventMax = 8 * 1024 * 1024

const blankLine = "\n\n"
const blankLineCrLf = "\r\n\r\n"

/** An event with a usage object; most carry `"usage":null`, and are not worth parsing. */
const counts = /"usage"\s*:\s*\{/
/** An event that ends an answer; those before it say null, or an empty string. */
const finishes = /"finish_reason"\s*:\s*"[^"]/
const isDone = /^data: ?\[DONE\]\s*$/

const done = "data: [DONE]\n\n"
const broken = `data: ${JSON.stringify({
  error: { message: "the model broke off", type: "upstream_error", code: "upstream_error" }
})}\n\n`

export const make = (upstream: Streaming, options: { readonly show_usage: boolean }): Relay => {
  let rest: Buffer | undefined
  let usage: unknown
  let tokens_seen = 0
  let finished = false
  let clientGone = false
  let readOn: NodeJS.Timeout | undefined
  let ending: Ending | undefined
  let onEnded: ((ending: Ending) => void) | undefined

  const end = (how: Ending["how"]) => {
    if (ending !== undefined) return
    clearTimeout(readOn)
    ending = { how, usage, tokens_seen }
    onEnded?.(ending)
  }

  const body = new Readable({
    highWaterMark: 64 * 1024,
    read: () => upstream.resume(),
    destroy: (error, callback) => {
      // The client has gone, or has everything. What the upstream still says is read for its usage, but not for long.
      clientGone = true
      if (ending === undefined) {
        upstream.resume()
        readOn = setTimeout(() => {
          end("left")
          upstream.abort()
        }, readOnFor)
      }
      callback(error)
    }
  })

  const pass = (bytes: Buffer) => {
    if (!clientGone && bytes.length > 0 && !body.push(bytes)) upstream.pause()
  }

  /**
   * Looks at an event; says what the client is to have of it. `text` is its bytes as Latin-1, a character for each: searching a
   * string costs a fraction of searching a buffer, and this is done for every piece of every answer.
   */
  const look = (text: string, bytes: () => Buffer): "all" | "nothing" | "failure" | Buffer => {
    if (text.includes("[DONE]") && isDone.test(text)) {
      finished = true
      return "nothing"
    }
    finished ||= finishes.test(text)
    tokens_seen += tokensIn(text)
    if (!counts.test(text) && !text.includes('"error"')) return "all"

    const data = parse(bytes())
    if (data === undefined) return "all"
    const counted = typeof data.usage === "object" && data.usage !== null
    if (counted) usage = data.usage
    if (isFailure(data)) return "failure"
    if (!counted || options.show_usage) return "all"
    return Array.isArray(data.choices) && data.choices.length > 0 ? withoutUsage(bytes(), data) : "nothing"
  }

  /**
   * Looks at whole events; passes on, in as few pieces as they came, those that the client is to have. What an upstream says
   * after an error, and of it, is not for the client: it may name addresses and keys.
   */
  const take = (events: Buffer) => {
    const text = events.toString("latin1")
    const blank = text.includes(blankLineCrLf) ? blankLineCrLf : blankLine
    let from = 0
    let at = 0
    while (at < text.length) {
      const start = at
      const blankAt = text.indexOf(blank, at)
      const next = blankAt === -1 ? text.length : blankAt + blank.length
      const shown = look(text.slice(at, next), () => events.subarray(start, next))
      if (shown !== "all") {
        pass(events.subarray(from, at))
        if (shown === "failure") {
          end("broken")
          upstream.abort()
          return
        }
        if (shown !== "nothing") pass(shown)
        from = next
      }
      at = next
    }
    pass(from === 0 ? events : events.subarray(from))
  }

  upstream.flow({
    data: (chunk) => {
      // Pieces that had come before an error was seen in one of them.
      if (ending !== undefined) return
      const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk])
      const whole = endOfEvents(bytes)
      rest = whole === bytes.length ? undefined : bytes.subarray(whole)
      if (whole > 0) take(bytes.subarray(0, whole))
      if (rest !== undefined && rest.length > eventMax) {
        pass(rest)
        rest = undefined
      }
    },
    end: () => {
      // The last event may lack its blank line, but one that was cut in its midst is nothing to pass on.
      if (rest !== undefined && (isDone.test(rest.toString("latin1")) || parse(rest) !== undefined)) {
        take(Buffer.concat([rest, Buffer.from(blankLine)]))
      }
      end(finished ? "complete" : "broken")
    },
    cut: () => end("broken")
  })

  return {
    body,
    ended: Effect.async((resume) => {
      onEnded = (ending) => resume(Effect.succeed(ending))
      if (ending !== undefined) onEnded(ending)
    }),
    finish: ({ how }) => {
      if (clientGone) return
      if (how === "broken") body.push(broken)
      body.push(done)
      body.push(null)
    },
    cut: () => void body.destroy(new Error("the end of the call is not in the books yet"))
  }
}

/** Whether an answer, or an event of one, says that it failed. Some say `"error":null` where nothing did. */
export const isFailure = ({ error }: Readonly<Record<string, unknown>>): boolean =>
  error !== undefined && error !== null

/** Where the last whole event ends. Carriage returns count as part of the line they end. */
const endOfEvents = (bytes: Buffer): number => {
  const lf = bytes.lastIndexOf(blankLine)
  const crlf = bytes.lastIndexOf(blankLineCrLf)
  return Math.max(lf === -1 ? 0 : lf + 2, crlf === -1 ? 0 : crlf + 4)
}

const linesOf = (event: Buffer): ReadonlyArray<string> => event.toString("utf8").split(/\r?\n/)

/** An event as it would be had nobody asked for its usage. */
const withoutUsage = (event: Buffer, data: Readonly<Record<string, unknown>>): Buffer => {
  const others = linesOf(event).filter((line) => line !== "" && !line.startsWith("data:"))
  return Buffer.from([...others, `data: ${JSON.stringify({ ...data, usage: undefined })}`, "", ""].join("\n"))
}

const parse = (event: Buffer): Record<string, unknown> | undefined => {
  const data = linesOf(event)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5))
    .join("\n")
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** A piece of text up to this long is one token, the way upstreams send them; a longer one has a token for each four bytes. */
const tokenBytesMax = 12

/** Tokens in an event, by the text in it. */
const tokensIn = (text: string): number => {
  let tokens = 0
  for (const key of ['"content":"', '"text":"', '"arguments":"']) {
    for (let at = text.indexOf(key); at !== -1; at = text.indexOf(key, at)) {
      at += key.length
      const start = at
      while (at < text.length && text.charCodeAt(at) !== 0x22) at += text.charCodeAt(at) === 0x5c ? 2 : 1
      const bytes = at - start
      if (bytes > 0) tokens += bytes <= tokenBytesMax ? 1 : Math.round(bytes / bytesAToken)
    }
  }
  return tokens
}
