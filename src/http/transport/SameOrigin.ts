/** Requests that only a page of the service itself may send: they authenticate by a cookie, which a browser sends for any page. */
import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { CrossOrigin, UnsupportedMediaType } from "../contract/Problems.ts"

type Request = HttpServerRequest.HttpServerRequest

/**
 * Refuses what does not come from a page of the service. Browsers say where a request comes from in `Sec-Fetch-Site`; where they do not
 * (older ones, and addresses without TLS), in `Origin`. No page can set either.
 */
export const sameOrigin = ({ headers }: Request, public_url: string): Effect.Effect<void, CrossOrigin> => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined) return site === "same-origin" ? Effect.void : new CrossOrigin()
  const origin = headers["origin"]
  if (origin === undefined || !URL.canParse(origin)) return new CrossOrigin()
  const { host, origin: claimed } = new URL(origin)
  return claimed === new URL(public_url).origin || host === headers["host"] ? Effect.void : new CrossOrigin()
}

/** Refuses what does not say that it is JSON: a form of another site cannot say so. */
export const saysJson = ({ headers }: Request): Effect.Effect<void, UnsupportedMediaType> =>
  /^application\/json *(?:;|$)/i.test(headers["content-type"] ?? "") ? Effect.void : new UnsupportedMediaType()
