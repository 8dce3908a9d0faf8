/**
 * The words that the sandbox's outside world is described in: a service, the routes that it answers, what comes in and what goes
 * out. To add one, write a file whose `make` gives an `Outside`, and a line in `Sandbox.ts`.
 */
import { Either, ParseResult, Schema } from "effect"
import type { Effect, Scope } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import { parseExact } from "../http/transport/Json.ts"
import { write } from "../kernel/Decimal.ts"
import type { Calls } from "./Calls.ts"
import type { Faults } from "./Faults.ts"
import type { SteeredClock } from "./SteeredClock.ts"

/** The services as faults and calls name them, whether they are there yet or not. */
export const serviceNames = [
  "chat",
  "messages",
  "responses",
  "google",
  "bedrock",
  "images",
  "search",
  "speech",
  "transcription",
  "media",
  "decisions",
  "embeddings",
  "rerank",
  "payments",
  "mail",
  "identity"
] as const
export type ServiceName = (typeof serviceNames)[number]

/** A request, read whole. */
export interface Received {
  /** On the sandbox's port, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** What stands in the path for each `{name}` of the route. */
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
  /** What a stream is paced and broken by; made only as fast as it is taken. */
  readonly pieces: Iterable<string | Uint8Array>
  /** How many of them a stream that breaks midway still sends. */
  readonly first: number
}

export type Answer = Whole | Streamed

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  /** From the root of the sandbox's port; `{name}` is any one segment, `{name*}` any number of them. */
  readonly path: string
  readonly answer: (received: Received) => Answer | Promise<Answer>
}

/** A route that a test calls to steer the sandbox, with what the list of levers says of it. */
export interface Lever extends Route {
  readonly does: string
  /** A query and a body that it takes; `{name}` stands for what the caller knows. */
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** What a test may make of a generation job. */
export interface JobMove {
  readonly status?: "IN_PROGRESS" | "COMPLETED" | "FAILED" | undefined
  /** Of the video that it makes. */
  readonly duration?: number | undefined
}

/** How a job stands after a move, and how it stood before. */
export interface Moved {
  readonly status: string
  readonly was: string
}

/** A service of the outside world. */
export interface Outside {
  readonly service: ServiceName
  /** What the deployment calls: listed in `calls`, and met by faults. */
  readonly routes: ReadonlyArray<Route>
  /** What only a test calls, to steer it: neither listed nor faulted. */
  readonly levers?: ReadonlyArray<Lever>
  /** Of a service that has jobs: moves one; `undefined` where it has no such job. */
  readonly move?: (vendor_id: string, move: JobMove) => Moved | undefined
  /** Of a service that calls back: where the deployment can be reached. */
  readonly connect?: (url: string) => void
  /** The entries of the configuration document that point a deployment at it. */
  readonly configuration: Readonly<Record<string, unknown>>
}

/** What a service finds around it. */
export interface Surroundings {
  /** The sandbox's address: `http://127.0.0.1:PORT`. */
  readonly origin: string
  readonly data_dir: string | undefined
  readonly clock: SteeredClock
  /** For a service that does not speak HTTP: what others have done for them by the switchboard. */
  readonly calls: Calls
  readonly faults: Faults
}

export type Make = (surroundings: Surroundings) => Effect.Effect<Outside, SandboxFailed, Scope.Scope>

/** The sandbox cannot start; the message is for whoever starts it. */
export interface SandboxFailed {
  readonly _tag: "SandboxFailed"
  readonly message: string
}

export const json = (status: number, body: unknown, headers: Record<string, string> = {}): Whole => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: write(body)
})

/** Thrown by a route that answers otherwise than it promised. */
export class Refusal extends Error {
  readonly answer: Answer

  constructor(answer: Answer) {
    super("refused")
    this.answer = answer
  }
}

/** A JSON object that a vendor is sent. */
export type Body = Readonly<Record<string, unknown>>

export const isBody = (value: unknown): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value)
/** What stands there, or nothing. */
export const objectOf = (value: unknown): Body => (isBody(value) ? value : {})
export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Says which field of a request is wrong, and by which rule. */
export const wrong = (field: string, rule: string): Refusal =>
  new Refusal(json(400, { error: `${field}: ${rule}`, details: { field, rule } }))

export const parse = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString())
  } catch {
    throw wrong("body", "JSON")
  }
}

/** The same for a body in which money stands: its numbers keep all their digits. */
export const parseMoney = (body: Buffer): unknown =>
  Either.getOrThrowWith(parseExact(body), () => wrong("body", "JSON"))

// What is refused is quoted, and may be as long as a body can be.
const ruleLengthMax = 300

/** Reads a JSON body of exactly this shape, or refuses it by its first wrong field. */
export const reader = <A, I>(schema: Schema.Schema<A, I>, read = parse): ((body: Buffer) => A) => {
  const decode = Schema.decodeUnknownEither(schema, { onExcessProperty: "error" })
  return (body) => {
    const decoded = decode(read(body))
    if (Either.isRight(decoded)) return decoded.right
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(decoded.left)
    throw wrong(issue?.path.join(".") || "body", (issue?.message ?? "not as expected").slice(0, ruleLengthMax))
  }
}
