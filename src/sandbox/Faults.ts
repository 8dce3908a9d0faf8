/** Injects faults. Each service has a queue of faults, and each fault applies to a number of calls. */
import { Schema } from "effect"
import { validateHeaderName, validateHeaderValue } from "node:http"
import { json } from "./Outside.ts"
import type { Answer } from "./Outside.ts"
import { serviceNames } from "./World.ts"
import type { ServiceName } from "./World.ts"

const Millis = Schema.Int.pipe(
  Schema.between(0, 2 ** 31 - 1, { message: () => "must be a whole number of milliseconds, zero or more" })
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
    message: () => "must contain names and values that are valid in HTTP headers"
  })
)

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

export const Fault = Schema.Struct({
  service: Schema.Literal(...serviceNames).annotations({ message: () => `must be one of ${serviceNames.join(", ")}` }),
  /** The status that replaces the service's response, together with `body` and `headers`. */
  status: Schema.optional(
    Schema.Int.pipe(Schema.between(200, 599, { message: () => "must be a status from 200 to 599" }))
  ),
  /** A string is sent unchanged; any other value is sent as JSON. The default status is 200. */
  body: Schema.optional(Schema.Unknown),
  /** A binary body in base64, for example the frames of an event stream. */
  body_base64: Schema.optional(
    Schema.String.pipe(Schema.pattern(base64, { message: () => "must be bytes in base64" }))
  ),
  headers: Schema.optional(Headers),
  delay_ms: Schema.optional(Millis),
  /** Whether the connection is closed instead of responding. A stream breaks after its first chunks. */
  drop: Schema.optional(Schema.Boolean),
  chunk_delay_ms: Schema.optional(Millis),
  times: Schema.optionalWith(
    Schema.Int.pipe(Schema.between(1, 1_000_000_000, { message: () => "must be a whole number of at least one" })),
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
          message: "a fault must set at least one of status, body, body_base64, headers, delay_ms, drop, chunk_delay_ms"
        }
      : undefined
  )
)
export interface Fault extends Schema.Schema.Type<typeof Fault> {}

/** Returns the fault's own response, or `undefined` if the service itself responds. */
export const answerOf = ({ body, body_base64, drop, headers, status }: Fault): Answer | undefined => {
  if (status === undefined && body === undefined && body_base64 === undefined) return undefined
  const content =
    body_base64 !== undefined
      ? Buffer.from(body_base64, "base64")
      : typeof body === "string"
        ? body
        : JSON.stringify(body === undefined ? unsaid : body)
  const head = { status: status ?? 200, headers: { "content-type": "application/json", ...lowered(headers) } }
  const streams = /^(?:text\/event-stream|application\/vnd\.amazon\.eventstream)/.test(head.headers["content-type"])
  if (!streams && drop !== true) return { ...head, body: content }
  // One chunk per event, so that a fault can delay each event and break the stream after the last one.
  const pieces = streams && typeof content === "string" ? content.split(/(?<=\n\n)/) : [content]
  return { ...head, pieces, first: pieces.length }
}

const unsaid = {
  error: { message: "The sandbox was configured to fail.", type: "sandbox_fault", param: null, code: null }
}

/** Converts the names to lower case, because `Content-Type` and `content-type` would otherwise be two headers. */
export const lowered = (headers: Fault["headers"]): Record<string, string> =>
  Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))

export interface Faults {
  readonly add: (fault: Fault) => void
  /** Returns the fault for the service's next call and counts the call against it. */
  readonly next: (service: ServiceName) => Fault | undefined
  /** Calls `onEnd` once: after the delay, or when the faults are cleared. Returns a function that ends the delay immediately. */
  readonly delay: (millis: number, onEnd: () => void) => () => void
  /** Clears all faults and ends running delays. Returns how many faults were cleared. */
  readonly clear: () => number
}

export const make = (): Faults => {
  const queues = new Map<ServiceName, Array<{ readonly fault: Fault; left: number }>>()
  const delays = new Set<() => void>()
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
    delay: (millis, onEnd) => {
      const end = () => {
        if (!delays.delete(end)) return
        clearTimeout(timer)
        onEnd()
      }
      const timer = setTimeout(end, millis)
      delays.add(end)
      return end
    },
    clear: () => {
      for (const end of delays) end()
      let count = 0
      for (const queue of queues.values()) count += queue.length
      queues.clear()
      return count
    }
  }
}

export const queued = (fault: Fault): Answer => json(200, fault)
