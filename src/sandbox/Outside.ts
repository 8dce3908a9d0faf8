/**
 * The interfaces that the sandbox's services share: routes, requests, responses and levers. To add a service, write a file with a `make` that returns
 * an `Outside`, and add it to `World.ts`.
 */
import { Either, ParseResult, Schema } from "effect"
import type { Effect, Scope } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import { parseExact } from "../http/transport/Json.ts"
import { write } from "../kernel/Decimal.ts"
import type { Bills } from "./Bills.ts"
import type { Calls } from "./Calls.ts"
import type { Faults } from "./Faults.ts"
import type { SteeredClock } from "./SteeredClock.ts"

export interface Received {
  /** The path, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** The path's value for each `{name}` in the route. */
  readonly params: Readonly<Record<string, string>>
  readonly body: Buffer
}

export interface Whole {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

export interface Streamed {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The chunks of the stream, generated lazily. A fault can pause or break the stream after any chunk. */
  readonly pieces: Iterable<string | Uint8Array>
  /** The number of chunks that a stream sends before a fault breaks it. */
  readonly first: number
}

export type Answer = Whole | Streamed

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  /** The path. `{name}` matches one segment, and `{name*}` any number of segments. */
  readonly path: string
  readonly answer: (received: Received) => Answer | Promise<Answer>
}

/** A route that controls the sandbox, with a description for the list of levers. */
export interface Lever extends Route {
  readonly does: string
  /** An example query and body. `{name}` stands for a value that the caller knows. */
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface JobMove {
  readonly status?: "IN_PROGRESS" | "COMPLETED" | "FAILED" | undefined
  /** The length of the video, in seconds. */
  readonly duration?: number | undefined
}

/** A job's status before and after a move. */
export interface Moved {
  readonly status: string
  readonly was: string
}

export interface Outside {
  /** Routes that the deployment calls. The sandbox lists calls to them and applies faults to them. */
  readonly routes: ReadonlyArray<Route>
  /** Routes that control the service. The sandbox neither lists calls to them nor applies faults to them. */
  readonly levers?: ReadonlyArray<Lever>
  /** Moves a generation job. Returns `undefined` if the service has no job with this id. */
  readonly move?: (vendor_id: string, move: JobMove) => Moved | undefined
  /** Receives the deployment's address, for services that call back. */
  readonly connect?: (url: string) => void
  /** The service's entries in the configuration document. */
  readonly configuration: Readonly<Record<string, unknown>>
}

export interface Surroundings {
  /** The sandbox's address: `http://127.0.0.1:PORT`. */
  readonly origin: string
  readonly data_dir: string | undefined
  readonly clock: SteeredClock
  /** The recorded calls, for services without HTTP. For all others, the switchboard records calls and applies faults. */
  readonly calls: Calls
  readonly faults: Faults
  readonly bills: Bills
}

export type Make = (surroundings: Surroundings) => Effect.Effect<Outside, SandboxFailed, Scope.Scope>

/** The sandbox cannot start. The message is written for the person who starts it. */
export interface SandboxFailed {
  readonly _tag: "SandboxFailed"
  readonly message: string
}

export const json = (status: number, body: unknown, headers: Record<string, string> = {}): Whole => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: write(body)
})

/** A route throws this to respond with a refusal. */
export class Refusal extends Error {
  readonly answer: Answer

  constructor(answer: Answer) {
    super("refused")
    this.answer = answer
  }
}

export type Body = Readonly<Record<string, unknown>>

export const isBody = (value: unknown): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value)
/** Returns the value if it is an object, and an empty object otherwise. */
export const objectOf = (value: unknown): Body => (isBody(value) ? value : {})
export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Builds a refusal with the request's invalid field and the violated constraint. */
export const wrong = (field: string, rule: string): Refusal =>
  new Refusal(json(400, { error: `${field}: ${rule}`, details: { field, rule } }))

export const parse = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString())
  } catch {
    throw wrong("body", "JSON")
  }
}

/** Parses a vendor's request as a JSON object. If that fails, throws the vendor's own refusal with one of these messages. */
export const jsonBody = (
  body: Buffer,
  refuse: (message: string) => Refusal,
  notJson: string,
  notObject: string
): Body => {
  let parsed: unknown
  try {
    parsed = JSON.parse(body.toString())
  } catch {
    throw refuse(notJson)
  }
  if (!isBody(parsed)) throw refuse(notObject)
  return parsed
}

/** Parses a body that contains money, keeping all digits of its numbers. */
export const parseMoney = (body: Buffer): unknown =>
  Either.getOrThrowWith(parseExact(body), () => wrong("body", "must be JSON"))

// The maximum length of a rule. Rules quote the rejected value, which can be long.
const ruleLengthMax = 300

/** Creates a reader of JSON bodies with exactly this shape. Any other body is rejected with the first invalid field. */
export const reader = <A, I>(schema: Schema.Schema<A, I>, read = parse): ((body: Buffer) => A) => {
  const decode = Schema.decodeUnknownEither(schema, { onExcessProperty: "error" })
  return (body) => {
    const decoded = decode(read(body))
    if (Either.isRight(decoded)) return decoded.right
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(decoded.left)
    throw wrong(issue?.path.join(".") || "body", (issue?.message ?? "not as expected").slice(0, ruleLengthMax))
  }
}
