/** Allows cross-origin access. Any page can send requests with any headers. */

/**
 * The headers of every response. With them, a page can read all response headers. Browsers accept the wildcard because cross-origin requests contain
 * none of the browser's credentials.
 */
export const crossOrigin = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "*"
} as const

/** The headers that are allowed if a preflight requests none. */
const preset = "Authorization, Content-Type, Idempotency-Key, X-Title, HTTP-Referer"

/** The maximum number of header names in a preflight. */
const namesMax = 100

/** Builds the response headers for a preflight that requests these headers. */
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
