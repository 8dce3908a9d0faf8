/** Cross-origin access: any page may call, with the headers that clients of this API send. */

/** On every response. */
export const crossOrigin = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "X-Request-Id, X-Charge-Usd, Retry-After, WWW-Authenticate"
} as const

/** On the answer to a preflight request. */
export const preflight = {
  ...crossOrigin,
  "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
  "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, X-Title, HTTP-Referer",
  "access-control-max-age": "86400"
} as const
