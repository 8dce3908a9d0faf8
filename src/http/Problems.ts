/** The refusals that any route may answer, whatever its domain. Those of a domain stand in its own `Problems.ts`. */
import { Schema } from "effect"
import { Problem } from "../kernel/Problem.ts"

export class RouteNotFound extends Problem<RouteNotFound>()("RouteNotFound", {
  status: 404,
  error: "no such route",
  code: "not_found"
}) {}

export class MethodNotAllowed extends Problem<MethodNotAllowed>()("MethodNotAllowed", {
  status: 405,
  error: "Method Not Allowed"
}) {}

export class PayloadTooLarge extends Problem<PayloadTooLarge>()("PayloadTooLarge", {
  status: 413,
  error: "the request body is too large",
  code: "payload_too_large"
}) {}

export class UnsupportedEncoding extends Problem<UnsupportedEncoding>()("UnsupportedEncoding", {
  status: 415,
  error: "the request body's Content-Encoding is none of gzip, br and deflate",
  code: "unsupported_encoding"
}) {}

/** The connection is closed behind it. */
export class BodyTooSlow extends Problem<BodyTooSlow>()("BodyTooSlow", {
  status: 408,
  error: "the request body comes too slowly",
  code: "request_timeout"
}) {}

/** The request line and the headers. */
export class HeadTooSlow extends Problem<HeadTooSlow>()("HeadTooSlow", {
  status: 408,
  error: "the request comes too slowly",
  code: "request_timeout"
}) {}

export class HeadTooLong extends Problem<HeadTooLong>()("HeadTooLong", {
  status: 431,
  error: "the request's headers are too long",
  code: "headers_too_long"
}) {}

/** The bodies of other requests take all the room that there is. */
export class Busy extends Problem<Busy>()("Busy", {
  status: 503,
  error: "too many large requests at once, try again shortly",
  code: "busy"
}) {}

/** What any route with a body may refuse. */
export const BodyRefusal = Schema.Union(PayloadTooLarge, UnsupportedEncoding, BodyTooSlow, Busy)

export class RateLimited extends Problem<RateLimited>()("RateLimited", {
  status: 429,
  error: "too many requests, try again later",
  code: "rate_limited"
}) {}

export class InternalError extends Problem<InternalError>()("InternalError", {
  status: 500,
  error: "internal error",
  code: "internal_error"
}) {}

export class Unavailable extends Problem<Unavailable>()("Unavailable", {
  status: 503,
  error: "the service is shutting down, try again shortly",
  code: "unavailable"
}) {}

// ---- authentication: one class for each text of the specification ------------------------------------------------------

export class MissingAuthorization extends Problem<MissingAuthorization>()("MissingAuthorization", {
  status: 401,
  error: "missing Authorization header"
}) {}

/** User-token-only routes: anything but a live user token. */
export class InvalidToken extends Problem<InvalidToken>()("InvalidToken", {
  status: 401,
  error: "invalid or expired token"
}) {}

/** Neither a user token nor three dash-separated segments with the service's prefix; an expired user token too. */
export class InvalidKeyFormat extends Problem<InvalidKeyFormat>()("InvalidKeyFormat", {
  status: 401,
  error: "invalid API key format"
}) {}

export class InvalidKey extends Problem<InvalidKey>()("InvalidKey", { status: 401, error: "invalid API key" }) {}

/** Key-shaped, with another prefix. Its text names the service: `API key is not a Tollgate key`. */
export class ForeignKey extends Problem<ForeignKey>()("ForeignKey", {
  status: 401,
  error: "API key is not a key of this service"
}) {}

/** A token of an application that the person has not allowed this. `WWW-Authenticate` names the scope that is missing. */
export class InsufficientScope extends Problem<InsufficientScope>()("InsufficientScope", {
  status: 403,
  error: "the application that holds this token may not do this",
  code: "insufficient_scope",
  /** The scope that is missing; `undefined` where no application may do it. */
  fields: { scope: Schema.optional(Schema.String) },
  details: {},
  headers: ({ scope }) => ({
    "www-authenticate": `Bearer error="insufficient_scope"${scope === undefined ? "" : `, scope="${scope}"`}`
  })
}) {}

// ---- the path's tenant ---------------------------------------------------------------------------------------------------

/** `usage` and `usage/rollup`. */
export class TenantMismatchUsage extends Problem<TenantMismatchUsage>()("TenantMismatchUsage", {
  status: 403,
  error: "Tenant ID in path does not match JWT"
}) {}

/** Every other money route. */
export class TenantMismatch extends Problem<TenantMismatch>()("TenantMismatch", {
  status: 403,
  error: "tenant ID in path does not match authenticated tenant"
}) {}
