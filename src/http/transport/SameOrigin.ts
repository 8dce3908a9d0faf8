/** Protects requests that only the service's own pages may send. They are authenticated by a cookie, and a browser sends that cookie for any page. */
import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { CrossOrigin, UnsupportedMediaType } from "../contract/Problems.ts"

type Request = HttpServerRequest.HttpServerRequest

/**
 * Rejects requests from other pages. Browsers send the origin of a request in `Sec-Fetch-Site`. Older browsers, and all browsers at an address
 * without TLS, send it in `Origin`. A page cannot set either header.
 */
export const sameOrigin = ({ headers }: Request, public_url: string): Effect.Effect<void, CrossOrigin> => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined) return site === "same-origin" ? Effect.void : new CrossOrigin()
  const origin = headers["origin"]
  if (origin === undefined || !URL.canParse(origin)) return new CrossOrigin()
  const { host, origin: claimed } = new URL(origin)
  return claimed === new URL(public_url).origin || host === headers["host"] ? Effect.void : new CrossOrigin()
}

/** Refuses a request without a JSON content type. A form on another site cannot set that content type. */
export const saysJson = ({ headers }: Request): Effect.Effect<void, UnsupportedMediaType> =>
  /^application\/json *(?:;|$)/i.test(headers["content-type"] ?? "") ? Effect.void : new UnsupportedMediaType()
