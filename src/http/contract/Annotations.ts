/** Annotations of an endpoint for how it is served. */
import { Context } from "effect"
import type { ProblemBody, ProblemInstance } from "../../kernel/Problem.ts"

/** The handler reads the body itself, with a limit of its own. */
export class ReadsOwnBody extends Context.Reference<ReadsOwnBody>()("tollgate/http/ReadsOwnBody", {
  defaultValue: () => false
}) {}

/** Of a GET endpoint: each call costs, so HEAD, whose answer would be thrown away, is refused. */
export class NoHead extends Context.Reference<NoHead>()("tollgate/http/NoHead", {
  defaultValue: () => false
}) {}

/**
 * Clients of the protocol first ask the path, by GET, to become a WebSocket. They are answered 426, which tells them at once to send the
 * request by POST; after a 405 they try again for seconds.
 */
export class RefusesWebSocket extends Context.Reference<RefusesWebSocket>()("tollgate/http/RefusesWebSocket", {
  defaultValue: () => false
}) {}

/** The fast lane serves the endpoint too (`FastLane`). Its handler is a raw one, and nothing in its path varies. */
export class Fast extends Context.Reference<Fast>()("tollgate/http/Fast", {
  defaultValue: () => false
}) {}

/** How a refusal looks in the protocol of an endpoint: what that protocol's clients parse. */
export interface Shape {
  /**
   * The body; the status stays the problem's own. `request_id` is what `X-Request-Id` says. Message, code and details stand in an object
   * `error`, where `problemBodyIn` finds them.
   */
  readonly write: (problem: ProblemInstance<string>, request_id: string) => unknown
  /** Its name in the OpenAPI document, and its JSON schema. */
  readonly identifier: string
  readonly schema: Readonly<Record<string, unknown>>
}

/** The body of the problem that was written in a shape; `undefined` where the body is none of any shape. */
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

/** The shape of an endpoint's refusals, from any layer; `undefined`: `{ error, code?, details? }`. */
export class RefusalShape extends Context.Reference<RefusalShape>()("tollgate/http/RefusalShape", {
  defaultValue: (): Shape | undefined => undefined
}) {}

/** The longest body in bytes, where that is not `bodyBytesMax` or `openBodyBytesMax`. */
export class BodyBytesMax extends Context.Reference<BodyBytesMax>()("tollgate/http/BodyBytesMax", {
  defaultValue: (): number | undefined => undefined
}) {}

/** The longest body of a route that asks for a credential and does not read its own. */
export const bodyBytesMax = 1024 * 1024

/** The same of a route that asks for none: anybody can send there. */
export const openBodyBytesMax = 64 * 1024
