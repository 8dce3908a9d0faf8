/** What shall go wrong outside: for each service a queue of faults, each good for a number of calls. */
import { Schema } from "effect"
import { validateHeaderName, validateHeaderValue } from "node:http"
import { json, serviceNames } from "./Outside.ts"
import type { Answer, ServiceName } from "./Outside.ts"

const Millis = Schema.Int.pipe(
  Schema.between(0, 2 ** 31 - 1, { message: () => "a whole number of milliseconds, zero or more" })
)

const isHeader = (name: string, value: string): boolean => {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

const Headers = Schema.Record({ key: Schema.String, value: Schema.String }).pipe(
  Schema.filter((headers) => Object.entries(headers).every(([name, value]) => isHeader(name, value)), {
    message: () => "names and values that HTTP headers can have"
  })
)

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

export const Fault = Schema.Struct({
  service: Schema.Literal(...serviceNames).annotations({ message: () => `one of ${serviceNames.join(", ")}` }),
  /** Answered instead of the service, with `body` and `headers`. */
  status: Schema.optional(Schema.Int.pipe(Schema.between(200, 599, { message: () => "a status from 200 to 599" }))),
  /** A text is sent as it is, anything else as JSON. Without a status it is a 200. */
  body: Schema.optional(Schema.Unknown),
  /** The same as bytes, in base64: frames of an event stream. */
  body_base64: Schema.optional(Schema.String.pipe(Schema.pattern(base64, { message: () => "bytes in base64" }))),
  headers: Schema.optional(Headers),
  delay_ms: Schema.optional(Millis),
  /** Closes the connection instead of answering; that of a stream after its first pieces. */
  drop: Schema.optional(Schema.Boolean),
  /** Between two pieces of a stream. */
  chunk_delay_ms: Schema.optional(Millis),
  times: Schema.optionalWith(
    Schema.Int.pipe(Schema.between(1, 1_000_000_000, { message: () => "a whole number, one or more" })),
    { default: () => 1 }
  )
}).pipe(
  Schema.filter((fault) =>
    fault.status === undefined &&
    fault.body === undefined &&
    fault.body_base64 === undefined &&
    fault.headers === undefined &&
    fault.delay_ms === undefined &&
    fault.chunk_delay_ms === undefined &&
    fault.drop !== true
      ? {
          path: ["status"],
          message: "a fault needs one of status, body, body_base64, headers, delay_ms, drop, chunk_delay_ms"
        }
      : undefined
  )
)
export interface Fault extends Schema.Schema.Type<typeof Fault> {}

/** The answer that a fault gives in place of the service; `undefined` where the service's own is due. */
export const answerOf = ({ body, body_base64, drop, headers, status }: Fault): Answer | undefined => {
  if (status === undefined && body === undefined && body_base64 === undefined) return undefined
  const written =
    body_base64 !== undefined
      ? Buffer.from(body_base64, "base64")
      : typeof body === "string"
        ? body
        : JSON.stringify(body === undefined ? unsaid : body)
  const head = { status: status ?? 200, headers: { "content-type": "application/json", ...lowered(headers) } }
  const streams = /^(?:text\/event-stream|application\/vnd\.amazon\.eventstream)/.test(head.headers["content-type"])
  if (!streams && drop !== true) return { ...head, body: written }
  // Its events as pieces, so that it can be paced like any other stream, and breaks after the last of them.
  const pieces = streams && typeof written === "string" ? written.split(/(?<=\n\n)/) : [written]
  return { ...head, pieces, first: pieces.length }
}

const unsaid = { error: { message: "The sandbox was told to fail.", type: "sandbox_fault", param: null, code: null } }

/** Otherwise `Content-Type` and `content-type` would be two headers. */
export const lowered = (headers: Fault["headers"]): Record<string, string> =>
  Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))

export interface Faults {
  readonly add: (fault: Fault) => void
  /** Counts down the fault that is due, if there is one, and answers it. */
  readonly next: (service: ServiceName) => Fault | undefined
  /** Answers how many there were. */
  readonly clear: () => number
}

export const make = (): Faults => {
  const queues = new Map<ServiceName, Array<{ readonly fault: Fault; left: number }>>()
  return {
    add: (fault) => {
      const waiting = { fault, left: fault.times }
      const queue = queues.get(fault.service)
      if (queue === undefined) queues.set(fault.service, [waiting])
      else queue.push(waiting)
    },
    next: (service) => {
      const queue = queues.get(service)
      const due = queue?.[0]
      if (due === undefined) return undefined
      due.left -= 1
      if (due.left === 0) queue?.shift()
      return due.fault
    },
    clear: () => {
      let count = 0
      for (const queue of queues.values()) count += queue.length
      queues.clear()
      return count
    }
  }
}

/** What `POST {control}/faults` answers. */
export const queued = (fault: Fault): Answer => json(200, fault)
