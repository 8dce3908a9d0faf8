/**
 * Reads request bodies: decodes and limits them, counts them against the process's budget, rejects those that arrive too slowly, and discards unread
 * bytes.
 */
import { Either } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Readable } from "node:stream"
import type { Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib"
import { Busy, busyFor } from "../../kernel/Busy.ts"
import { isProblem } from "../../kernel/Problem.ts"
import { windowBytesMin } from "./Bytes.ts"
import type { Budget, Share } from "./Bytes.ts"
import { BodyTooSlow, PayloadTooLarge, UnsupportedEncoding } from "../contract/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"

/** The reasons why a body cannot be read completely. */
export type BodyProblem = InvalidRequest | PayloadTooLarge | UnsupportedEncoding | BodyTooSlow | Busy

/** The source of a body, with its share of the budget. */
export interface Source {
  readonly header: (name: string) => string | undefined
  readonly incoming: Readable
  readonly share: Share
  readonly window_ms: number
  /** Sends `100 Continue` to a client that expects it. */
  readonly proceed: () => void
  readonly discard: () => void
}

export const bodyProblemOf = (error: unknown): BodyProblem =>
  isProblem(error) ? (error as unknown as BodyProblem) : unreadable("must be complete")

const unreadable = (rule: string) =>
  new InvalidRequest({ message: "the request body could not be read", field: "", rule })

const encodings = new Set(["gzip", "x-gzip", "br", "deflate"])

/** Creates the decoder for an encoding. `deflate` can mean either of two formats; the first byte distinguishes them. */
const decoderOf = (encoding: string, first: number): Transform => {
  if (encoding === "br") return createBrotliDecompress()
  if (encoding !== "deflate") return createGunzip()
  return (first & 0x0f) === 8 ? createInflate() : createInflateRaw()
}

/** Reads a body. A class is cheaper than closures per call. */
abstract class Intake {
  private readonly source: Source
  private readonly limit: number
  /** The value of `Content-Encoding`; empty if the body is not encoded. */
  private readonly encoding: string
  private decoder: Transform | undefined
  private timer: NodeJS.Timeout | undefined
  private came = 0
  private cameBefore = 0
  private size = 0
  private paused = false
  private over = false

  constructor(source: Source, limit: number) {
    this.source = source
    this.limit = limit
    const encoding = source.header("content-encoding")?.trim().toLowerCase() ?? ""
    this.encoding = encoding === "identity" ? "" : encoding
  }

  /** Accepts a chunk. Returns whether it can accept another one now. */
  protected abstract data(chunk: Buffer): boolean
  protected abstract end(): void
  protected abstract failed(problem: BodyProblem): void

  begin(): void {
    const { source } = this
    const { incoming } = source
    if (incoming.errored !== null || incoming.destroyed) return this.onLost()
    if (this.encoding !== "" && !encodings.has(this.encoding)) return this.fail(new UnsupportedEncoding())
    if (Number(source.header("content-length") ?? 0) > this.limit) return this.fail(new PayloadTooLarge())
    source.proceed()
    incoming.on("data", this.onIncoming).once("end", this.onEnd).once("close", this.onLost).once("error", this.onLost)
    if (newIntakes.push(this) === 1) setImmediate(watchBegun)
  }

  watch(): void {
    if (this.over || (this.source.incoming as Partial<IncomingMessage>).complete === true) return
    this.timer = setTimeout(() => {
      if (!this.paused && this.came - this.cameBefore < windowBytesMin) return this.fail(new BodyTooSlow())
      this.cameBefore = this.came
      this.watch()
    }, this.source.window_ms)
  }

  pause(): void {
    this.paused = true
    ;(this.decoder ?? this.source.incoming).pause()
  }

  resume(): void {
    if (!this.paused) return
    this.paused = false
    ;(this.decoder ?? this.source.incoming).resume()
  }

  /** Stops reading, because the remaining body is not needed. */
  stop(): void {
    if (this.over) return
    this.leave()
    this.source.discard()
  }

  private fail(problem: BodyProblem): void {
    if (this.over) return
    this.stop()
    this.failed(problem)
  }

  private leave(): void {
    this.over = true
    clearTimeout(this.timer)
    const { incoming } = this.source
    incoming.off("data", this.onIncoming).off("end", this.onEnd).off("close", this.onLost).off("error", this.onLost)
    this.decoder?.destroy()
  }

  private finish(): void {
    if (this.over) return
    this.leave()
    this.end()
  }

  private readonly onLost = () => this.fail(unreadable("must be complete"))

  private readonly onIncoming = (chunk: Buffer) => {
    this.came += chunk.length
    if (this.encoding === "") this.onBytes(chunk)
    else this.decode(chunk)
  }

  private readonly onEnd = () => {
    // From here on, the received bytes remain valid even if the connection ends.
    this.source.incoming.off("close", this.onLost)
    clearTimeout(this.timer)
    if (this.decoder === undefined) this.finish()
    else this.decoder.end()
  }

  private onBytes(chunk: Buffer): void {
    if (this.over) return
    this.size += chunk.length
    if (this.size > this.limit) return this.fail(new PayloadTooLarge())
    if (!this.source.share.take(chunk.length)) return this.fail(new Busy({ retry_after: busyFor }))
    if (!this.data(chunk)) this.pause()
  }

  private decode(chunk: Buffer): void {
    // An endless encoded body can decode to nothing.
    if (this.came > this.limit) return this.fail(new PayloadTooLarge())
    const { incoming } = this.source
    if (this.decoder === undefined) {
      this.decoder = decoderOf(this.encoding, chunk[0]!)
      this.decoder.on("data", (decoded: Buffer) => this.onBytes(decoded)).once("end", () => this.finish())
      this.decoder.on("error", () => this.fail(unreadable(`must be valid ${this.encoding} data`)))
    }
    if (this.decoder.write(chunk)) return
    incoming.pause()
    this.decoder.once("drain", () => incoming.resume())
  }
}

/** The intakes that began in this iteration of the event loop. Most short bodies are complete when the iteration ends, so they need no timer. */
let newIntakes: Array<Intake> = []

const watchBegun = () => {
  const intakes = newIntakes
  newIntakes = []
  for (const intake of intakes) intake.watch()
}

// ---- whole ----------------------------------------------------------------------------------------------------------------

/** Reads the complete body and calls back once. */
export const whole = (source: Source, limit: number, then: (read: Either.Either<Buffer, BodyProblem>) => void): void =>
  new Whole(source, limit, then).begin()

const blockSize = 64 * 1024
const smallMax = 1024
/** A longer body is copied into one buffer of its declared length, because joining many chunks at the end is slow. */
const longMin = 1024 * 1024

class Whole extends Intake {
  private readonly then: (read: Either.Either<Buffer, BodyProblem>) => void
  private readonly pieces: Array<Buffer> = []
  /** The block into which small chunks are copied, because a million one-byte chunks would take a hundred megabytes. */
  private block: Buffer | undefined
  private from = 0
  private to = 0
  private readonly declared: number
  private come = 0
  private all: Buffer | undefined

  constructor(source: Source, limit: number, then: (read: Either.Either<Buffer, BodyProblem>) => void) {
    super(source, limit)
    this.then = then
    this.declared = source.header("content-encoding") === undefined ? Number(source.header("content-length") ?? 0) : 0
  }

  protected data(piece: Buffer): boolean {
    this.come += piece.length
    if (this.all !== undefined) {
      if (this.come <= this.all.length) {
        piece.copy(this.all, this.come - piece.length)
        return true
      }
      // More bytes have arrived than were declared.
      this.pieces.push(this.all)
      this.all = undefined
    }
    if (this.come > longMin && this.come < this.declared) {
      this.flush()
      this.all = Buffer.allocUnsafeSlow(this.declared)
      for (let at = 0, next: Buffer | undefined; (next = this.pieces.shift()) !== undefined; at += next.length)
        next.copy(this.all, at)
      piece.copy(this.all, this.come - piece.length)
      return true
    }
    if (piece.length > smallMax || this.pieces.length === 0) {
      this.flush()
      this.pieces.push(piece)
      return true
    }
    if (this.block === undefined || this.to + piece.length > blockSize) {
      this.flush()
      this.block = Buffer.allocUnsafeSlow(blockSize)
      this.from = this.to = 0
    }
    this.to += piece.copy(this.block, this.to)
    return true
  }

  protected end(): void {
    this.flush()
    const { all, come, pieces } = this
    const bytes = all?.subarray(0, come) ?? (pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces))
    this.then(Either.right(withoutBom(bytes)))
  }

  protected failed(problem: BodyProblem): void {
    this.then(Either.left(problem))
  }

  private flush(): void {
    if (this.block !== undefined && this.to > this.from) this.pieces.push(this.block.subarray(this.from, this.to))
    this.from = this.to
  }
}

/** Removes a byte order mark. It carries no information in UTF-8 and is not allowed at the start of JSON. */
const withoutBom = (bytes: Buffer): Buffer =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes

// ---- streamed ---------------------------------------------------------------------------------------------------------------

/** Reads the body as a stream, at the pace of its consumer. */
export const streamed = (source: Source, limit: number): Readable => {
  const intake = new Streamed(source, limit)
  // A reader that attaches after a failure finds the error in `errored`.
  intake.stream.on("error", () => {})
  intake.begin()
  return intake.stream
}

class Streamed extends Intake {
  readonly stream = new Readable({
    highWaterMark: 64 * 1024,
    read: () => this.resume(),
    destroy: (error, callback) => {
      this.stop()
      callback(error)
    }
  })

  protected data(chunk: Buffer): boolean {
    return this.stream.push(chunk)
  }

  protected end(): void {
    this.stream.push(null)
  }

  protected failed(problem: BodyProblem): void {
    this.stream.destroy(problem)
  }
}

// ---- Expect: 100-continue -------------------------------------------------------------------------------------------------

const continueResponses = new WeakMap<IncomingMessage, ServerResponse>()

/** Registers a request with `Expect: 100-continue`. `proceed` sends `100 Continue` to its client. */
export const awaitsContinue = (request: IncomingMessage, response: ServerResponse): void => {
  continueResponses.set(request, response)
}

export const proceed = (request: IncomingMessage): void => {
  if (request.headers.expect === undefined) return
  continueResponses.get(request)?.writeContinue()
  continueResponses.delete(request)
}

// ---- unread bytes ---------------------------------------------------------------------------------------------------------

/** The maximum size of an unread body that is read and discarded. A client that is still sending can then read its response. */
const discardMax = 64 * 1024 * 1024

/** The callbacks for the end of a body that is being discarded. */
const discarded = new WeakMap<IncomingMessage, Array<() => void>>()

/** Reads and discards the remaining body. A client that sends too much or stalls is disconnected. */
export const discard = (request: IncomingMessage, { window_ms }: Budget): void => {
  if (discarded.has(request) || request.complete || request.destroyed) return
  const waiting: Array<() => void> = []
  discarded.set(request, waiting)
  let size = 0
  let sizeBefore = 0
  const over = () => {
    clearInterval(watch)
    for (const tell of waiting.splice(0)) tell()
  }
  const watch = setInterval(() => {
    if (size - sizeBefore >= windowBytesMin) sizeBefore = size
    else if (waiting.length > 0) over()
    else request.destroy()
  }, window_ms)
  request.on("data", (chunk: Buffer) => {
    size += chunk.length
    if (size > discardMax) request.destroy()
  })
  request.once("end", over).once("close", over)
  request.resume()
}

/**
 * Calls back once the response can be sent. If the connection closes after the response, the callback waits until the request has arrived completely
 * or has stopped. Closing the connection while the client is still sending would reset it, and the client might never read the response.
 */
export const whenAnswerable = (
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Budget,
  then: () => void
): void => {
  if (request.complete || request.destroyed) return then()
  if (continueResponses.delete(request)) {
    // The client now skips its body, so the server would mistake the next bytes for the body.
    response.setHeader("connection", "close")
    return then()
  }
  discard(request, bytes)
  if (response.shouldKeepAlive) then()
  else discarded.get(request)!.push(then)
}
