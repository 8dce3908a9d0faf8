/**
 * HTTP to an upstream: one keep-alive pool for each address, a whole answer or one that streams. It says what happened on the
 * wire and judges nothing.
 *
 * Interruption: a call that has not been sent when its fiber is interrupted is not sent. One that has been sent is read on for up to
 * `readOnFor`, since it may be charged: what comes in that time is the call's answer as always, for a caller in an uninterruptible
 * region (which the gate makes of every metered call) to put into the books. After that it is aborted, and fails with the
 * interruption; so it does where it fails by itself. Who interrupts therefore waits up to ten seconds; who does not want to says
 * `Effect.disconnect`.
 */
import { Cause, Data, Effect } from "effect"
import type { Scope } from "effect"
import type { Readable } from "node:stream"
import { Pool } from "undici"
import type { Dispatcher } from "undici"

/** How long an upstream is read on after its caller has left, to learn what it charges: milliseconds. */
export const readOnFor = 10_000

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

export interface Limits {
  /** The longest answer, in bytes. */
  readonly limit: number
  /** How long it may take from the request to the answer's last byte, in milliseconds; without it only silence is limited. */
  readonly timeout?: number
  /** `false` for a call that costs nothing: it is aborted as soon as it is interrupted. */
  readonly read_on?: boolean
}

export interface Wire {
  /** The whole answer. */
  readonly exchange: (request: WireRequest, limits: Limits) => Effect.Effect<Whole, Unreachable>
  /** The answer's head; its body flows when asked. */
  readonly open: (request: WireRequest) => Effect.Effect<Streaming, Unreachable>
}

export interface WireOptions {
  readonly base_url: string
  /** How long an upstream may stay silent: before its head, and between two pieces of its body. */
  readonly silence_ms_max: number
  /** Told how each call ended: `2xx`, `4xx`, `5xx`, `unreachable`. */
  readonly observe?: (outcome: string) => void
}

const cutShort = new Error("aborted by the caller")

/** One call on the wire: what came of it, who waits for that, and how to end it early. */
class Call<A> {
  begun = false
  private readonly reads_on: boolean
  private outcome: Effect.Effect<A, Unreachable> | undefined
  private waiter: ((outcome: Effect.Effect<A, Unreachable>) => void) | undefined
  private stop: (() => void) | undefined
  private aborted = false
  private timer: NodeJS.Timeout | undefined

  constructor(reads_on = true) {
    this.reads_on = reads_on
  }

  /** It can be aborted from now on. */
  started(stop: () => void): void {
    this.stop = stop
    if (this.aborted) stop()
  }

  end(outcome: Effect.Effect<A, Unreachable>): void {
    if (this.outcome !== undefined) return
    this.outcome = outcome
    clearTimeout(this.timer)
    this.waiter?.(outcome)
  }

  fail(reason: string): void {
    this.end(new Unreachable({ reason }))
  }

  abort(): void {
    this.aborted = true
    this.stop?.()
  }

  /** Aborts it and fails unless it ends within so many milliseconds. */
  within(timeout: number): void {
    this.timer = setTimeout(() => {
      this.fail(`no answer within ${timeout} ms`)
      this.abort()
    }, timeout)
  }

  wait(waiter: (outcome: Effect.Effect<A, Unreachable>) => void): void {
    this.waiter = waiter
    if (this.outcome !== undefined) waiter(this.outcome)
  }

  /** What an interruption comes to: the answer, where it still comes in time. */
  interrupted(cause: Cause.Cause<never>): Effect.Effect<A, Unreachable> {
    if (!this.begun || !this.reads_on) {
      this.abort()
      return Effect.failCause(cause)
    }
    return Effect.async<A, Unreachable>((resume) => {
      const limit = setTimeout(() => {
        resume(Effect.failCause(cause))
        this.abort()
      }, readOnFor)
      this.wait((outcome) => {
        clearTimeout(limit)
        resume(Effect.catchAll(outcome, () => Effect.failCause(cause)))
      })
    })
  }
}

/** Begins a call and waits for its outcome. The wait can be interrupted wherever it stands; the call is then read on. */
const waited = <A>(call: Call<A>, begin: (call: Call<A>) => void): Effect.Effect<A, Unreachable> =>
  Effect.uninterruptible(
    Effect.catchAllCause(
      Effect.interruptible(
        Effect.async<A, Unreachable>((resume) => {
          call.begun = true
          call.wait(resume)
          begin(call)
        })
      ),
      (cause) => (Cause.isInterrupted(cause) ? call.interrupted(Cause.stripFailures(cause)) : Effect.failCause(cause))
    )
  )

export const make = ({ base_url, observe, silence_ms_max }: WireOptions): Effect.Effect<Wire, never, Scope.Scope> =>
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

    const answered = (status: number) => observe?.(`${Math.floor(status / 100)}xx`)

    const exchange: Wire["exchange"] = (request, { limit, read_on, timeout }) =>
      Effect.suspend(() =>
        waited(new Call<Whole>(read_on), (call) => {
          const chunks: Array<Buffer> = []
          let size = 0
          let status = 0
          let head: WireHeaders = {}
          if (timeout !== undefined) call.within(timeout)
          pool.dispatch(options(request), {
            onRequestStart: (controller) => call.started(() => controller.abort(cutShort)),
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
              answered(status)
              call.end(Effect.succeed({ status, headers: head, body }))
            },
            onResponseError: (_, error) => {
              observe?.("unreachable")
              call.fail(reasonOf(error))
            }
          })
        })
      )

    const open: Wire["open"] = (request) =>
      Effect.suspend(() =>
        waited(new Call<Streaming>(), (call) => {
          let started = false
          let sink: Sink | undefined
          let ending: ((sink: Sink) => void) | undefined
          const early: Array<Buffer> = []
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
              // An informational head precedes the real one.
              if (status < 200) return
              started = true
              answered(status)
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
              observe?.("unreachable")
              call.fail(reasonOf(error))
            }
          })
        })
      )

    return { exchange, open }
  })

const reasonOf = (error: Error & { readonly code?: string }): string => error.code ?? error.message

/** Reads the rest of a streaming answer whole: the body of a refusal. */
export const collect = (streaming: Streaming, limit: number): Effect.Effect<Whole, Unreachable> =>
  Effect.suspend(() => {
    const call = new Call<Whole>()
    call.started(() => streaming.abort())
    return waited(call, () => {
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
        cut: (reason) => call.fail(reason)
      })
    })
  })

/** A header's first value. */
export const header = (headers: WireHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}
