/** Requests to the OAuth pages, and their responses. */
import { HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import type { RateLimited } from "../../http/contract/Problems.ts"
import * as Pages from "./Pages.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

export const queryOf = ({ url }: Request): URLSearchParams => {
  const at = url.indexOf("?")
  return new URLSearchParams(at === -1 ? "" : url.slice(at + 1))
}

export const formOf = (request: Request): Effect.Effect<URLSearchParams> =>
  Effect.map(Effect.orDie(request.text), (text) => new URLSearchParams(text))

/** The text for a decision that is submitted without a valid proof. */
export const tooLong = "This page was open for too long. Nothing was allowed."

/** Returns a page that other sites cannot frame and caches do not store. */
export const html = (status: number, body: string): Response =>
  HttpServerResponse.text(body, {
    status,
    contentType: "text/html; charset=utf-8",
    headers: {
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff"
    }
  })

export const tooMany = ({ retry_after = 60 }: RateLimited): Response =>
  HttpServerResponse.setHeader(
    html(429, Pages.wrong("Too many requests from your address. Wait a minute.")),
    "retry-after",
    String(retry_after)
  )

export const redirect = (location: string): Response =>
  HttpServerResponse.empty({ status: 303, headers: { location, "cache-control": "no-store" } })

/** Redirects to the application with the result in the query. */
export const back = (redirect_uri: string, answer: Readonly<Record<string, string | undefined>>): Response => {
  const url = new URL(redirect_uri)
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) url.searchParams.set(name, value)
  return redirect(url.href)
}
