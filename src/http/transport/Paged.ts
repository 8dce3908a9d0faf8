/** A response with a body that is read page by page. The next page is read only once the client has taken the previous one. */
import type { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Cause, Effect, Exit, FiberId, Runtime } from "effect"
import type { Fiber } from "effect"
import { Readable } from "node:stream"
import { isOver, whenOver } from "./Closed.ts"
import * as Inbound from "./Inbound.ts"
import { toResponse } from "./Reply.ts"

/** The body is complete once `start` yields `undefined`. */
class PagedBody extends Readable {
  private readonly start: () => Fiber.RuntimeFiber<string | undefined>
  private reading: Fiber.RuntimeFiber<string | undefined> | undefined

  constructor(start: () => Fiber.RuntimeFiber<string | undefined>) {
    super()
    this.start = start
  }

  override _read(): void {
    this.reading = this.start()
    this.reading.addObserver((exit) => {
      this.reading = undefined
      if (this.destroyed) return
      if (Exit.isSuccess(exit)) this.push(exit.value ?? null)
      // The client must not mistake a part of the file for all of it, so its connection is closed.
      else this.destroy(new Error("the response ended early", { cause: Cause.squash(exit.cause) }))
    })
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.reading?.unsafeInterruptAsFork(FiberId.none)
    done(error)
  }
}

/**
 * Responds with the pages that `next` returns, none of them empty. If the client disconnects, the page that is being read is interrupted. If `next`
 * dies, the connection is closed. `closed` is called once, however the response ends.
 */
export const paged = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  headers: Readonly<Record<string, string>>,
  next: Effect.Effect<string | undefined>,
  closed: () => void
): Effect.fn.Return<HttpServerResponse.HttpServerResponse> {
  const runtime = yield* Effect.runtime()
  const page = Effect.tapErrorCause(next, (cause) =>
    Cause.isInterruptedOnly(cause) ? Effect.void : Effect.logWarning("a response ended early", cause)
  )
  const body = new PagedBody(() => Runtime.runFork(runtime)(Effect.interruptible(page)))
  body.once("close", closed)
  // An error reaches the pipeline that reads the body. Without a pipeline, the error must not end the process.
  body.on("error", () => {})
  const node = Inbound.nodeOf(request)
  if (node !== undefined) {
    if (isOver(node.response)) body.destroy()
    else whenOver(node.response, () => body.destroy())
  }
  return toResponse({ status: 200, headers, body })
}, Effect.uninterruptible)
