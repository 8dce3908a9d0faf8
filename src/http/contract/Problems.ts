/** The refusals that any route can return. A domain's own refusals are in its `Problems.ts`. */
import { Schema } from "effect"
import { Busy } from "../../kernel/Busy.ts"
import { Problem } from "../../kernel/Problem.ts"

export class RouteNotFound extends Problem<RouteNotFound>()("RouteNotFound", {
  status: 404,
  error: "no such route",
  code: "not_found"
}) {}

export class MethodNotAllowed extends Problem<MethodNotAllowed>()("MethodNotAllowed", {
  status: 405,
  error: "Method Not Allowed",
  /** The methods of the path, if the path exists. */
  fields: { allow: Schema.optional(Schema.Array(Schema.String)) },
  details: {},
  headers: ({ allow }): Record<string, string> => (allow === undefined ? {} : { allow: allow.join(", ") })
}) {}

/** The refusal of a WebSocket handshake on a path that serves only plain requests. */
export class WebSocketNotServed extends Problem<WebSocketNotServed>()("WebSocketNotServed", {
  status: 426,
  error: "this path does not serve WebSockets: send a POST request",
  code: "upgrade_required",
  // HTTP requires both headers in a 426 response. The connection is closed, because node stops reading after such a request.
  headers: () => ({ upgrade: "HTTP/1.1", connection: "upgrade, close" })
}) {}

export class PayloadTooLarge extends Problem<PayloadTooLarge>()("PayloadTooLarge", {
  status: 413,
  error: "the request body is too large",
  code: "payload_too_large"
}) {}

export class UnsupportedEncoding extends Problem<UnsupportedEncoding>()("UnsupportedEncoding", {
  status: 415,
  error: "the request body's Content-Encoding must be gzip, br or deflate",
  code: "unsupported_encoding"
}) {}

export class UnsupportedMediaType extends Problem<UnsupportedMediaType>()("UnsupportedMediaType", {
  status: 415,
  error: "the request body must be application/json",
  code: "unsupported_media_type"
}) {}

/** Refuses a request that is authenticated by a cookie but was sent by another page. */
export class CrossOrigin extends Problem<CrossOrigin>()("CrossOrigin", {
  status: 403,
  error: "only the service's own pages may send this request",
  code: "cross_origin"
}) {}

/** The connection is closed after the response. */
export class BodyTooSlow extends Problem<BodyTooSlow>()("BodyTooSlow", {
  status: 408,
  error: "the request body arrives too slowly",
  code: "request_timeout"
}) {}

/** The request line and the headers arrived too slowly. */
export class HeadTooSlow extends Problem<HeadTooSlow>()("HeadTooSlow", {
  status: 408,
  error: "the request arrives too slowly",
  code: "request_timeout"
}) {}

export class HeadTooLong extends Problem<HeadTooLong>()("HeadTooLong", {
  status: 431,
  error: "the request's headers are too long",
  code: "headers_too_long"
}) {}

export const BodyRefusal = Schema.Union(PayloadTooLarge, UnsupportedEncoding, BodyTooSlow, Busy)

export class RateLimited extends Problem<RateLimited>()("RateLimited", {
  status: 429,
  error: "too many requests; try again later",
  code: "rate_limited"
}) {}

/** Appears only in metrics, because the client has disconnected. */
export class ClientDisconnected extends Problem<ClientDisconnected>()("ClientDisconnected", {
  status: 499,
  error: "the client disconnected before the response",
  code: "client_disconnected"
}) {}

export class InternalError extends Problem<InternalError>()("InternalError", {
  status: 500,
  error: "internal error",
  code: "internal_error"
}) {}

export class Unavailable extends Problem<Unavailable>()("Unavailable", {
  status: 503,
  error: "the service is shutting down; try again shortly",
  code: "unavailable"
}) {}
