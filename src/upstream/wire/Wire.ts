/**
 * Sends HTTP requests to an upstream over one keep-alive pool per address, for complete responses and for streams. A response with any status is a
 * success here.
 *
 * If a fiber is interrupted before its call is sent, the call is never sent. A call that was sent may be charged, so its response is still read
 * (`kernel/ReadOn`). It is read to the end, within the upstream's limits, if the caller passes an admission's `to_its_end`, and otherwise for up to
 * ten seconds. A caller in an uninterruptible region gets the response as usual and can charge it. The gate runs every metered call in an
 * uninterruptible region. A call that fails or is aborted during that time fails with the interruption. The interrupting fiber waits for the end of
 * the call unless it uses `Effect.disconnect`.
 */
import { Data, Effect } from "effect"
import type { Scope } from "effect"
import { Readable } from "node:stream"
import { Pool } from "undici"
import type { Dispatcher } from "undici"
import type { Sink, Source } from "./ByteStream.ts"
import { Work } from "../../kernel/ReadOn.ts"
import type { ReadOnPolicy } from "../../kernel/ReadOn.ts"
import { isVendorId } from "../../kernel/VendorRequests.ts"
import { Intake } from "./Intake.ts"
import type { Taken, Taking } from "./Intake.ts"
import { lookupPublic } from "./PublicAddress.ts"

export type WireHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface WireRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  /** The path relative to the base address, with a leading slash. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** An array and a stream are read once, as fast as the upstream accepts the bytes. */
  readonly body?: string | Buffer | ReadonlyArray<Buffer> | Readable
  /** The SHA-256 of the body, in hexadecimal, if it is already known. Only upstreams that sign requests need it. */
  readonly sha256?: string | undefined
}

/**
 * There was no response, because the connection failed or broke, or a time limit was reached. The reason is for the log and must never reach a
 * caller. `unsent` means that there was no connection, so the upstream cannot have charged anything.
 */
export class Unreachable extends Data.TaggedError("Unreachable")<{
  readonly reason: string
  readonly unsent?: boolean | undefined
}> {}

export interface Whole extends Taken {
  readonly status: number
  readonly headers: WireHeaders
}

/** A response with a complete head and a body that is still arriving. */
export interface Streaming extends Source {
  readonly status: number
  readonly headers: WireHeaders
}

export interface Limits extends Taking {
  /** The maximum time from the request to the response's last byte, in milliseconds. By default, only the upstream's limits apply. */
  readonly timeout?: number
  /**
   * How long to continue reading after an interruption, ten seconds by default. `false`, for calls without a cost, aborts the call at once.
   */
  readonly read_on?: ReadOnPolicy | undefined
}

export interface Wire {
  readonly exchange: (request: WireRequest, limits: Limits) => Effect.Effect<Whole, Unreachable>
  /** Waits only for the response head. `flow` then starts the body. `read_on` limits the wait for the head after the caller has disconnected. */
  readonly open: (request: WireRequest, read_on?: ReadOnPolicy) => Effect.Effect<Streaming, Unreachable>
}

export interface WireOptions {
  readonly base_url: string
  /**
   * How long the upstream may be silent, in milliseconds, before the head and between body chunks. Informational heads (1xx) do not count.
   * The final head must arrive within this time after the first informational one.
   */
  readonly silence_ms_max: number
  /**
   * The maximum time from the request to the response's last byte, in milliseconds; unlimited by default. A stream that takes longer is truncated.
   * Any other response that takes longer is a failure.
   */
  readonly total_ms_max?: number | undefined
  /** Whether connections are restricted to public addresses. */
  readonly isPublic?: boolean
  /**
   * Called once per call: when a complete response has ended, when a stream's head has arrived, or when there is no response. The arguments are the
   * status and headers (0 and empty without a response) and the milliseconds until the head. It is not called if the caller's disconnection aborted
   * the call, because that reveals nothing about the upstream.
   */
  readonly observe?: (status: number, millis: number, headers: WireHeaders) => void
}

const noHeaders: WireHeaders = {}
const callerAborted = new Error("aborted by the caller")

type Handler = Dispatcher.DispatchHandler

/** Enforces the time limits of one request, and reports its outcome to the observer. */
class RequestTimer {
  private readonly options: WireOptions
  private readonly began = performance.now()
  private readonly giveUp: (reason: string) => void
  private readonly total: NodeJS.Timeout | undefined
  private informed: NodeJS.Timeout | undefined
  private millis = 0

  constructor(options: WireOptions, giveUp: (reason: string) => void) {
    this.options = options
    this.giveUp = giveUp
    const { total_ms_max } = options
    if (total_ms_max === undefined) return
    this.total = setTimeout(() => giveUp(`the response did not end within ${total_ms_max} ms`), total_ms_max)
  }

  /**
   * Returns whether a response head is the final one. The pool restarts its own timer at each informational head, so this class limits the wait for
   * the final head.
   */
  head(status: number): boolean {
    if (status >= 200) {
      clearTimeout(this.informed)
      this.millis = performance.now() - this.began
      return true
    }
    const { silence_ms_max } = this.options
    this.informed ??= setTimeout(
      () => this.giveUp(`no final head within ${silence_ms_max} ms of an informational one`),
      silence_ms_max
    )
    return false
  }

  answered(status: number, headers: WireHeaders): void {
    this.options.observe?.(status, this.millis, headers)
  }

  unreachable(): void {
    this.options.observe?.(0, performance.now() - this.began, noHeaders)
  }

  over(): void {
    clearTimeout(this.informed)
    clearTimeout(this.total)
  }
}

const exchangeHandler = (call: Work<Whole, Unreachable>, options: WireOptions, limits: Limits): Handler => {
  const { limit, timeout } = limits
  const intake = new Intake(limits)
  const declared = () => Number(header(head, "content-length") ?? 0)
  let status = 0
  let head: WireHeaders = {}
  const giveUp = (reason: string) => {
    call.end(unreachable(reason))
    call.abort()
  }
  const clocked = new RequestTimer(options, giveUp)
  if (timeout !== undefined) call.within(timeout, unreachable(`no response within ${timeout} ms`))
  return {
    onRequestStart: (controller) => call.started(() => controller.abort(callerAborted)),
    onResponseStart: (_, code, headers) => {
      if (!clocked.head(code)) return
      status = code
      head = headers
    },
    onResponseData: (controller, chunk) => {
      if (!intake.data(chunk, controller, declared))
        controller.abort(new Error(`the response is longer than ${limit} bytes`))
    },
    onResponseEnd: () => {
      clocked.over()
      clocked.answered(status, head)
      call.end(Effect.succeed({ status, headers: head, ...intake.end() }))
    },
    onResponseError: (_, error) => {
      clocked.over()
      intake.cut()
      if (!call.isLeft) clocked.unreachable()
      call.end(connectionFailure(error))
    }
  }
}

const openHandler = (call: Work<Streaming, Unreachable>, options: WireOptions): Handler => {
  let started = false
  let isOver = false
  let sink: Sink | undefined
  let ending: ((sink: Sink) => void) | undefined
  const early: Array<Buffer> = []
  const over = (how: (sink: Sink) => void) => {
    if (isOver) return
    isOver = true
    if (sink !== undefined) how(sink)
    else ending = how
  }
  const flow = (to: Sink) => {
    sink = to
    for (const chunk of early.splice(0)) to.data(chunk)
    ending?.(to)
  }
  const clocked = new RequestTimer(options, (reason) => {
    if (started) over((sink) => sink.cut(reason, true))
    else call.end(unreachable(reason))
    call.abort()
  })
  return {
    onRequestStart: (controller) => call.started(() => controller.abort(callerAborted)),
    onResponseStart: (controller, status, headers) => {
      if (!clocked.head(status)) return
      started = true
      clocked.answered(status, headers)
      const pause = () => controller.pause()
      const resume = () => controller.resume()
      const abort = () => controller.abort(callerAborted)
      call.end(Effect.succeed({ status, headers, flow, pause, resume, abort }))
    },
    onResponseData: (_, chunk) => {
      if (sink !== undefined) sink.data(chunk)
      else early.push(chunk)
    },
    onResponseEnd: () => {
      clocked.over()
      over((sink) => sink.end())
    },
    onResponseError: (_, error) => {
      clocked.over()
      if (started) return over((sink) => sink.cut(reasonOf(error)))
      if (!call.isLeft) clocked.unreachable()
      call.end(connectionFailure(error))
    }
  }
}

export const make = (options: WireOptions): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { base_url, isPublic = false, silence_ms_max } = options
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

    const dispatchOptionsOf = ({ body, headers, method, path }: WireRequest): Dispatcher.DispatchOptions =>
      isChunkList(body)
        ? { method, path: prefix + path, headers: withLength(headers, body), body: chunkStream(body) }
        : { method, path: prefix + path, headers, body: body ?? null }

    const exchange: Wire["exchange"] = (request, limits) =>
      Effect.suspend(() =>
        new Work<Whole, Unreachable>(limits.read_on).done((call) => {
          pool.dispatch(dispatchOptionsOf(request), exchangeHandler(call, options, limits))
        })
      )

    const open: Wire["open"] = (request, read_on) =>
      Effect.suspend(() =>
        new Work<Streaming, Unreachable>(read_on).done((call) => {
          pool.dispatch(dispatchOptionsOf(request), openHandler(call, options))
        })
      )

    return { exchange, open }
  })

const isChunkList = (body: WireRequest["body"]): body is ReadonlyArray<Buffer> => Array.isArray(body)

const withLength = (headers: WireRequest["headers"], pieces: ReadonlyArray<Buffer>) => ({
  ...headers,
  "content-length": String(pieces.reduce((sum, { length }) => sum + length, 0))
})

/** The maximum chunk size, in bytes. Encrypting a long body in one step would block the main thread for tens of milliseconds. */
const chunkMax = 256 * 1024

/** Streams the buffers in order, split into chunks, without joining them. */
const chunkStream = (pieces: ReadonlyArray<Buffer>): Readable =>
  Readable.from(
    pieces.flatMap((piece) =>
      Array.from({ length: Math.ceil(piece.length / chunkMax) }, (_, i) =>
        piece.subarray(i * chunkMax, (i + 1) * chunkMax)
      )
    ),
    { objectMode: false }
  )

const unreachable = (reason: string): Effect.Effect<never, Unreachable> => new Unreachable({ reason })

const reasonOf = (error: Error & { readonly code?: string }): string => error.code ?? error.message

/** The error codes of connections that were never established. */
const unsent: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT"
])

const connectionFailure = (error: Error): Effect.Effect<never, Unreachable> => {
  const reason = reasonOf(error)
  return new Unreachable(unsent.has(reason) ? { reason, unsent: true } : { reason })
}

export const collect = (
  streaming: Streaming,
  { read_on, ...taking }: Omit<Limits, "timeout">
): Effect.Effect<Whole, Unreachable> =>
  Effect.suspend(() => {
    const call = new Work<Whole, Unreachable>(read_on)
    call.started(() => streaming.abort())
    return call.done(() => {
      const intake = new Intake(taking)
      const { headers, status } = streaming
      const declared = () => Number(header(headers, "content-length") ?? 0)
      streaming.flow({
        data: (chunk) => {
          if (!intake.data(chunk, streaming, declared)) streaming.abort()
        },
        end: () => call.end(Effect.succeed({ status, headers, ...intake.end() })),
        cut: (reason) => call.end(unreachable(reason))
      })
    })
  })

/** The vendors' request id headers, most reliable first. `cf-ray` is Cloudflare's id, and many vendors use Cloudflare. */
const requestNames = [
  "x-generation-id",
  "x-request-id",
  "request-id",
  "x-amzn-requestid",
  "apim-request-id",
  "x-goog-request-id",
  "x-fal-request-id",
  "cf-ray"
] as const

/** Returns the vendor's request id, or `undefined` if the response headers contain no valid one. */
export const vendorRequestOf = (headers: WireHeaders): string | undefined => {
  for (const name of requestNames) {
    const value = header(headers, name)
    if (value !== undefined && isVendorId(value)) return value
  }
  return undefined
}

export const header = (headers: WireHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}
