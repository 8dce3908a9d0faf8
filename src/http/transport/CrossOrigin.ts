/** Cross-origin access: any page may call, with any request headers. */

import { rateHeaderNames } from "../../books/gate/RateHeaders.ts"

/** The response headers that a page may read. */
const exposed = [
  "X-Request-Id",
  "X-Charge-Usd",
  "X-Usage-Id",
  "X-Fallback-Model",
  "Retry-After",
  "WWW-Authenticate",
  "Allow",
  "Idempotency-Replayed",
  ...rateHeaderNames
]

/** Sent with every response. */
export const crossOrigin = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": exposed.join(", ")
} as const

/** The allowed headers if a preflight names none. */
const preset = "Authorization, Content-Type, Idempotency-Key, X-Title, HTTP-Referer"

/** The maximum number of header names in a preflight. */
const namesMax = 100

/** The response headers for a preflight that requests these headers. */
export const preflight = (header: string | undefined) => {
  const names = (header ?? "").split(",", namesMax).map((name) => name.trim())
  const valid = names.filter((name) => /^[\w!#$%&'*+.^`|~-]{1,100}$/.test(name))
  return {
    ...crossOrigin,
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
    "access-control-allow-headers": valid.length === 0 ? preset : valid.join(", "),
    "access-control-max-age": "86400",
    vary: "Access-Control-Request-Headers"
  }
}
