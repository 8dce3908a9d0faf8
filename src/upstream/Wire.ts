/**
 * HTTP to an upstream: one keep-alive pool for each address, a whole answer or one that streams. It says what happened on the
 * wire and judges nothing.
 */
import { Effect } from "effect"
import type { Scope } from "effect"
import type { Readable } from "node:stream"
import { Pool } from "undici"
import type { Dispatcher } from "undici"

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
export interface Unreachable {
  readonly _tag: "Unreachable"
  readonly reason: string
}

export interface Whole {
  readonly status: number
  readonly headers: WireHeaders
  readonly body: Buffer
}

/** Takes a streaming body. Exactly one of `end` and `cut` is called, last. */
export interface Sink {
  readonly data: (chunk: Buffer) => void
  readonly end: () => void
  readonly cut: (reason: string) => void
}

/** An answer whose head is here and whose body is still coming. */
export interface Streaming {
  readonly status: number
  readonly headers: WireHeaders
  /** Hands the body over, what came meanwhile first. */
  readonly flow: (sink: Sink) => void
  readonly pause: () => void
  readonly resume: () => void
  readonly abort: () => void
}

/** Ends a call early. Aborting twice, or a call that is over, does nothing. */
export interface Abort {
  abort?: () => void
}

export interface Wire {
  /** The whole answer, up to `limit` bytes. */
  readonly exchange: (request: WireRequest, limit: number, abort?: Abort) => Effect.Effect<Whole, Unreachable>
  /** The answer's head; its body flows when asked. */
  readonly open: (request: WireRequest, abort?: Abort) => Effect.Effect<Streaming, Unreachable>
}

export interface WireOptions {
  readonly base_url: string
  /** How long an upstream may stay silent: before its head, and between two pieces of its body. */
  readonly silence_ms_max: number
}

const cutShort = new Error("aborted by the caller")

export const make = ({ base_url, silence_ms_max }: WireOptions): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.gen(function* () {
    const base = new URL(base_url)
    const prefix = base.pathname.replace(/\/+$/, "")
    const pool = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new Pool(base.origin, {
            headersTimeout: silence_ms_max,
            bodyTimeout: silence_ms_max,
            connect: { timeout: 10_000 },
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

    const exchange: Wire["exchange"] = (request, limit, abort) =>
      Effect.async((resume) => {
        const chunks: Array<Buffer> = []
        let size = 0
        let status = 0
        let head: WireHeaders = {}
        pool.dispatch(options(request), {
          onRequestStart: (controller) => {
            if (abort !== undefined) abort.abort = () => controller.abort(cutShort)
          },
          onResponseStart: (_, code, headers) => {
            status = code
            head = headers
          },
          onResponseData: (controller, chunk) => {
            size += chunk.length
            if (size > limit) controller.abort(new Error(`the answer is longer than ${limit} bytes`))
            else chunks.push(chunk)
          },
          onResponseEnd: () => {
            const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)
            resume(Effect.succeed({ status, headers: head, body }))
          },
          onResponseError: (_, error) => resume(Effect.fail(unreachable(error)))
        })
      })

    const open: Wire["open"] = (request, abort) =>
      Effect.async((resume) => {
        let started = false
        let sink: Sink | undefined
        let ending: ((sink: Sink) => void) | undefined
        const early: Array<Buffer> = []
        const over = (how: (sink: Sink) => void) => {
          if (sink !== undefined) how(sink)
          else ending = how
        }
        pool.dispatch(options(request), {
          onRequestStart: (controller) => {
            if (abort !== undefined) abort.abort = () => controller.abort(cutShort)
          },
          onResponseStart: (controller, status, headers) => {
            // An informational head precedes the real one.
            if (status < 200) return
            started = true
            const flow = (to: Sink) => {
              sink = to
              for (const chunk of early.splice(0)) to.data(chunk)
              ending?.(to)
            }
            resume(
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
            if (started) over((sink) => sink.cut(unreachable(error).reason))
            else resume(Effect.fail(unreachable(error)))
          }
        })
      })

    return { exchange, open }
  })

const unreachable = (error: Error & { readonly code?: string }): Unreachable => ({
  _tag: "Unreachable",
  reason: error.code ?? error.message
})

/** Reads the rest of a streaming answer whole: the body of a refusal. */
export const collect = (streaming: Streaming, limit: number): Effect.Effect<Whole, Unreachable> =>
  Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    let size = 0
    streaming.flow({
      data: (chunk) => {
        size += chunk.length
        if (size > limit) streaming.abort()
        else chunks.push(chunk)
      },
      end: () =>
        resume(
          Effect.succeed({ status: streaming.status, headers: streaming.headers, body: Buffer.concat(chunks, size) })
        ),
      cut: (reason) => resume(Effect.fail({ _tag: "Unreachable", reason }))
    })
  })

/** A header's first value. */
export const header = (headers: WireHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}
