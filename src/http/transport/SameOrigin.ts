/** Requests that only the service's own pages may send: they authenticate by a cookie, which a browser sends for any page. */
import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { CrossOrigin, UnsupportedMediaType } from "../contract/Problems.ts"

type Request = HttpServerRequest.HttpServerRequest

/**
 * Refuses requests from other pages. Browsers give the origin in `Sec-Fetch-Site`; older browsers, and any browser at an address without TLS, in
 * `Origin`. No page can set either.
 */
export const sameOrigin = ({ headers }: Request, public_url: string): Effect.Effect<void, CrossOrigin> => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined) return site === "same-origin" ? Effect.void : new CrossOrigin()
  const origin = headers["origin"]
  if (origin === undefined || !URL.canParse(origin)) return new CrossOrigin()
  const { host, origin: claimed } = new URL(origin)
  return claimed === new URL(public_url).origin || host === headers["host"] ? Effect.void : new CrossOrigin()
}

/** Refuses a request that is not declared as JSON: a form on another site cannot declare that. */
export const saysJson = ({ headers }: Request): Effect.Effect<void, UnsupportedMediaType> =>
  /^application\/json *(?:;|$)/i.test(headers["content-type"] ?? "") ? Effect.void : new UnsupportedMediaType()
