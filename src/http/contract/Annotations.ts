/** Annotations that control how an endpoint is served. */
import { Context } from "effect"
import type { RatesAt } from "../../books/gate/RateHeaders.ts"
import type { ProblemBody, ProblemInstance } from "../../kernel/Problem.ts"

/** Marks an endpoint with a handler that reads the request body and enforces its own limit. */
export class ReadsOwnBody extends Context.Reference<ReadsOwnBody>()("tollgate/http/ReadsOwnBody", {
  defaultValue: () => false
}) {}

/** Refuses HEAD on a GET endpoint that charges or is expensive to serve, because the response would be discarded. */
export class NoHead extends Context.Reference<NoHead>()("tollgate/http/NoHead", {
  defaultValue: () => false
}) {}

/**
 * Responds with 426 to a GET request that tries to open a WebSocket. Clients of the protocol try a WebSocket first. After a 426 they switch to POST,
 * but after a 405 they would retry for seconds.
 */
export class RefusesWebSocket extends Context.Reference<RefusesWebSocket>()("tollgate/http/RefusesWebSocket", {
  defaultValue: () => false
}) {}

/** Marks an endpoint that the fast lane (`FastLane`) also serves. The endpoint must have a raw handler and a path without parameters. */
export class Fast extends Context.Reference<Fast>()("tollgate/http/Fast", {
  defaultValue: () => false
}) {}

/** The format of refusals that clients of an endpoint's protocol expect. */
export interface Shape {
  /**
   * Builds the body. The status remains the problem's own. `request_id` is the value of `X-Request-Id`. The typed client finds the message, code and
   * details only in an `error` object (`problemBodyIn`).
   */
  readonly write: (problem: ProblemInstance<string>, request_id: string) => unknown
  /** Builds the protocol's own rate limit headers, in addition to those of OpenAI's protocols. */
  readonly rateHeaders?: (rates: RatesAt) => Readonly<Record<string, string>>
  /** The name in the OpenAPI document, and the JSON schema. */
  readonly identifier: string
  readonly schema: Readonly<Record<string, unknown>>
}

/** Extracts the problem from a body of this format. Returns `undefined` for any other body. */
export const problemBodyIn = (body: unknown): ProblemBody | undefined => {
  const shaped = (body as { readonly error?: unknown } | null)?.error
  if (typeof shaped !== "object" || shaped === null) return undefined
  const { code, details, message } = shaped as { readonly [name: string]: unknown }
  if (typeof message !== "string") return undefined
  return {
    error: message,
    ...(typeof code === "string" && { code }),
    ...(typeof details === "object" && details !== null && { details: details as Record<string, unknown> })
  }
}

/** The format of an endpoint's refusals, regardless of the layer that refuses. `undefined` means `{ error, code?, details? }`. */
export class RefusalShape extends Context.Reference<RefusalShape>()("tollgate/http/RefusalShape", {
  defaultValue: (): Shape | undefined => undefined
}) {}

/** The maximum body size in bytes, if it differs from `bodyBytesMax` and `openBodyBytesMax`. */
export class BodyBytesMax extends Context.Reference<BodyBytesMax>()("tollgate/http/BodyBytesMax", {
  defaultValue: (): number | undefined => undefined
}) {}

/** The maximum body size in bytes of a route that requires a credential and does not read its own body. */
export const bodyBytesMax = 1024 * 1024

/** The maximum body size in bytes of a route without a credential. This maximum is lower, because anyone can send a body there. */
export const openBodyBytesMax = 64 * 1024
