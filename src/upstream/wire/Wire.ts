/**
 * HTTP to an upstream: one keep-alive pool for each address, a whole answer or one that streams. It says what happened on the
 * wire and judges nothing.
 *
 * Interruption: a call that has not been sent when its fiber is interrupted is not sent. A call that has been sent may be charged, so it is
 * read on (`kernel/ReadOn`): to its end, within the limits of the upstream, where the caller names an admission's `to_its_end`, else for up
 * to ten seconds. The answer that comes is the call's answer as always, for a caller in an uninterruptible region (the gate makes one of every
 * metered call) to put into the books. A call that fails or is aborted meanwhile fails with the interruption. The interrupting fiber
 * waits for all that; `Effect.disconnect` spares it the wait.
 */
import { Data, Effect } from "effect"
import type { Scope } from "effect"
import type { Readable } from "node:stream"
import { Pool } from "undici"
import type { Dispatcher } from "undici"
import { Gist } from "../../protocols/conversation/Gist.ts"
import type { Generated } from "../../protocols/conversation/Gist.ts"
import type { Sink, Source } from "./ByteStream.ts"
import { Work } from "../../kernel/ReadOn.ts"
import type { ReadsOn } from "../../kernel/ReadOn.ts"
import { lookupPublic } from "./PublicAddress.ts"

export type WireHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface WireRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  /** Below the base address, with a leading slash. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** A stream is read once, and only as fast as the upstream takes it. */
  readonly body?: string | Buffer | Readable
}

/** No answer: not connected, cut off, or too slow. The reason is for the log, never for a caller. */
export class Unreachable extends Data.TaggedError("Unreachable")<{ readonly reason: string }> {}

export interface Whole {
  readonly status: number
  readonly headers: WireHeaders
  readonly body: Buffer
  /** The gist of an answer that is longer than its limit: the body is then empty. */
  readonly gist?: Gist | undefined
}

/** An answer whose head is here and whose body is still coming. */
export interface Streaming extends Source {
  readonly status: number
  readonly headers: WireHeaders
}

export interface Limits {
  /** The longest answer, in bytes. */
  readonly limit: number
  /** The names of generated strings: the gist of a longer answer is then read. Without them a longer answer is a failure. */
  readonly gist?: Generated
  /** How long it may take from the request to the answer's last byte, in milliseconds; without it only silence is limited. */
  readonly timeout?: number
  /** What becomes of the call when it is interrupted. `false` aborts it at once: it costs nothing. Without it the call has ten seconds. */
  readonly read_on?: ReadsOn
}

export interface Wire {
  /** The whole answer. */
  readonly exchange: (request: WireRequest, limits: Limits) => Effect.Effect<Whole, Unreachable>
  /** The answer's head; its body flows when asked. `read_on` says how long the head is waited for once the caller has left. */
  readonly open: (request: WireRequest, read_on?: ReadsOn) => Effect.Effect<Streaming, Unreachable>
}

export interface WireOptions {
  readonly base_url: string
  /**
   * How long an upstream may stay silent: before its head, and between two pieces of its body. Informational heads (1xx) are no answer: the
   * final head must come within this time of the first of them.
   */
  readonly silence_ms_max: number
  /** Connects to public addresses alone. */
  readonly isPublic?: boolean
  /** Told how each call ended (`2xx`, `4xx`, `5xx`, `unreachable`), and how long the head of its answer took. */
  readonly observe?: (outcome: string, millis: number) => void
}

/** An answer that goes on beyond this is a failure in any case. */
const gistBytesMax = 1024 * 1024 * 1024

const cutShort = new Error("aborted by the caller")

export const make = ({
  base_url,
  isPublic = false,
  observe,
  silence_ms_max
}: WireOptions): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.gen(function* () {
    const base = new URL(base_url)
    const prefix = base.pathname.replace(/\/+$/, "")
    const pool = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new Pool(base.origin, {
            headersTimeout: silence_ms_max,
            bodyTimeout: silence_ms_max,
            connect: { timeout: 10_000, ...(isPublic && { lookup: lookupPublic }) },
            keepAliveTimeout: 30_000
          })
      ),
      (pool) => Effect.promise(() => pool.destroy())
    )

    const options = ({ body, headers, method, path }: WireRequest): Dispatcher.DispatchOptions => ({
      method,
      path: prefix + path,
      headers,
      body: body ?? null
    })

    const answered = (status: number, millis: number) => observe?.(`${Math.floor(status / 100)}xx`, millis)

    /** Ends the call unless the timer is cleared in time. The pool's own timer starts again at each informational head. */
    const awaitFinalHead = (call: Pick<Work<never, Unreachable>, "abort" | "end">): NodeJS.Timeout =>
      setTimeout(() => {
        call.end(unreachable(`no final head within ${silence_ms_max} ms of an informational one`))
        call.abort()
      }, silence_ms_max)

    const exchange: Wire["exchange"] = (request, { gist: names, limit, read_on, timeout }) =>
      Effect.suspend(() =>
        new Work<Whole, Unreachable>(read_on).done((call) => {
          const chunks: Array<Buffer> = []
          const longest = names === undefined ? limit : gistBytesMax
          let size = 0
          let gist: Gist | undefined
          let status = 0
          let head: WireHeaders = {}
          const began = performance.now()
          let millis = 0
          let informed: NodeJS.Timeout | undefined
          if (timeout !== undefined) call.within(timeout, unreachable(`no answer within ${timeout} ms`))
          pool.dispatch(options(request), {
            onRequestStart: (controller) => call.started(() => controller.abort(cutShort)),
            onResponseStart: (_, code, headers) => {
              if (code < 200) {
                informed ??= awaitFinalHead(call)
                return
              }
              clearTimeout(informed)
              status = code
              head = headers
              millis = performance.now() - began
            },
            onResponseData: (controller, chunk) => {
              size += chunk.length
              if (size > longest) controller.abort(new Error(`the answer is longer than ${longest} bytes`))
              else if (names === undefined || size <= limit) chunks.push(chunk)
              else {
                gist ??= new Gist(names)
                for (const kept of chunks.splice(0)) gist.take(kept)
                gist.take(chunk)
              }
            },
            onResponseEnd: () => {
              const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
              answered(status, millis)
              call.end(Effect.succeed({ status, headers: head, body, gist }))
            },
            onResponseError: (_, error) => {
              clearTimeout(informed)
              observe?.("unreachable", performance.now() - began)
              call.end(unreachable(reasonOf(error)))
            }
          })
        })
      )

    const open: Wire["open"] = (request, read_on) =>
      Effect.suspend(() =>
        new Work<Streaming, Unreachable>(read_on).done((call) => {
          let started = false
          const began = performance.now()
          let sink: Sink | undefined
          let ending: ((sink: Sink) => void) | undefined
          const early: Array<Buffer> = []
          let informed: NodeJS.Timeout | undefined
          const over = (how: (sink: Sink) => void) => {
            if (sink !== undefined) how(sink)
            else ending = how
          }
          const flow = (to: Sink) => {
            sink = to
            for (const chunk of early.splice(0)) to.data(chunk)
            ending?.(to)
          }
          pool.dispatch(options(request), {
            onRequestStart: (controller) => call.started(() => controller.abort(cutShort)),
            onResponseStart: (controller, status, headers) => {
              if (status < 200) {
                informed ??= awaitFinalHead(call)
                return
              }
              clearTimeout(informed)
              started = true
              answered(status, performance.now() - began)
              call.end(
                Effect.succeed({
                  status,
                  headers,
                  flow,
                  pause: () => controller.pause(),
                  resume: () => controller.resume(),
                  abort: () => controller.abort(cutShort)
                })
              )
            },
            onResponseData: (_, chunk) => {
              if (sink !== undefined) sink.data(chunk)
              else early.push(chunk)
            },
            onResponseEnd: () => over((sink) => sink.end()),
            onResponseError: (_, error) => {
              if (started) return over((sink) => sink.cut(reasonOf(error)))
              clearTimeout(informed)
              observe?.("unreachable", performance.now() - began)
              call.end(unreachable(reasonOf(error)))
            }
          })
        })
      )

    return { exchange, open }
  })

const unreachable = (reason: string): Effect.Effect<never, Unreachable> => new Unreachable({ reason })

const reasonOf = (error: Error & { readonly code?: string }): string => error.code ?? error.message

/** Reads the rest of a streaming answer whole: the body of a refusal. */
export const collect = (streaming: Streaming, limit: number): Effect.Effect<Whole, Unreachable> =>
  Effect.suspend(() => {
    const call = new Work<Whole, Unreachable>()
    call.started(() => streaming.abort())
    return call.done(() => {
      const chunks: Array<Buffer> = []
      let size = 0
      streaming.flow({
        data: (chunk) => {
          size += chunk.length
          if (size > limit) streaming.abort()
          else chunks.push(chunk)
        },
        end: () => {
          const { headers, status } = streaming
          call.end(Effect.succeed({ status, headers, body: Buffer.concat(chunks, size) }))
        },
        cut: (reason) => call.end(unreachable(reason))
      })
    })
  })

/** A header's first value. */
export const header = (headers: WireHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}
