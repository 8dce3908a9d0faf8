/** Annotations for serving an endpoint. */
import { Context } from "effect"
import type { RatesAt } from "../../books/gate/RateHeaders.ts"
import type { ProblemBody, ProblemInstance } from "../../kernel/Problem.ts"

/** The handler reads the body itself, within its own limit. */
export class ReadsOwnBody extends Context.Reference<ReadsOwnBody>()("tollgate/http/ReadsOwnBody", {
  defaultValue: () => false
}) {}

/** For a GET endpoint with charged calls. HEAD is refused, because its response would be discarded. */
export class NoHead extends Context.Reference<NoHead>()("tollgate/http/NoHead", {
  defaultValue: () => false
}) {}

/**
 * Clients of the protocol first try to open a WebSocket with a GET request. After a 426 response they send the request by POST. After a 405 they
 * would retry for seconds.
 */
export class RefusesWebSocket extends Context.Reference<RefusesWebSocket>()("tollgate/http/RefusesWebSocket", {
  defaultValue: () => false
}) {}

/** The fast lane also serves the endpoint (`FastLane`). Its handler is raw, and its path has no parameters. */
export class Fast extends Context.Reference<Fast>()("tollgate/http/Fast", {
  defaultValue: () => false
}) {}

/** The format of refusals in an endpoint's protocol, as that protocol's clients parse it. */
export interface Shape {
  /**
   * Writes the body. The status stays the problem's own. `request_id` is the value of `X-Request-Id`. Message, code and details are in an object
   * `error`, where `problemBodyIn` finds them.
   */
  readonly write: (problem: ProblemInstance<string>, request_id: string) => unknown
  /** The protocol's own rate limit headers, in addition to those of OpenAI's protocols. */
  readonly rateHeaders?: (rates: RatesAt) => Readonly<Record<string, string>>
  /** The name in the OpenAPI document, and the JSON schema. */
  readonly identifier: string
  readonly schema: Readonly<Record<string, unknown>>
}

/** The problem in a body of this shape; `undefined` for any other body. */
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

/** The shape of an endpoint's refusals, from any layer. `undefined` means `{ error, code?, details? }`. */
export class RefusalShape extends Context.Reference<RefusalShape>()("tollgate/http/RefusalShape", {
  defaultValue: (): Shape | undefined => undefined
}) {}

/** The maximum body size in bytes, if it differs from `bodyBytesMax` and `openBodyBytesMax`. */
export class BodyBytesMax extends Context.Reference<BodyBytesMax>()("tollgate/http/BodyBytesMax", {
  defaultValue: (): number | undefined => undefined
}) {}

/** The maximum body size of a route that requires a credential and does not read its own body. */
export const bodyBytesMax = 1024 * 1024

/** The maximum body size of a route without a credential, where anyone can send a body. */
export const openBodyBytesMax = 64 * 1024
