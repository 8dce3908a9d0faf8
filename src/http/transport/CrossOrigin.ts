/** Cross-origin access: any page may call, with whatever headers its client sends. */

/** On every response. */
export const crossOrigin = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers":
    "X-Request-Id, X-Charge-Usd, X-Usage-Id, X-Fallback-Model, Retry-After, WWW-Authenticate, Allow, Idempotency-Replayed"
} as const

/** The headers that are allowed to a preflight that names none. */
const preset = "Authorization, Content-Type, Idempotency-Key, X-Title, HTTP-Referer"

/** As many as a client may name. */
const namesMax = 100

/** The answer's headers to a preflight that asks for these headers. */
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
