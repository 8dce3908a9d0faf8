/** How a browser is answered in the code flow: with a page, or by a redirect. */
import { HttpServerResponse } from "@effect/platform"
import type { RateLimited } from "../../http/contract/Problems.ts"
import * as Pages from "./Pages.ts"

type Response = HttpServerResponse.HttpServerResponse

/** A page that no other site can frame, and no cache stores. */
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
    html(429, Pages.wrong("There were too many requests from your address. Wait a minute.")),
    "retry-after",
    String(retry_after)
  )

export const redirect = (location: string): Response =>
  HttpServerResponse.empty({ status: 303, headers: { location, "cache-control": "no-store" } })

export const back = (redirect_uri: string, answer: Readonly<Record<string, string | undefined>>): Response => {
  const url = new URL(redirect_uri)
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) url.searchParams.set(name, value)
  return redirect(url.href)
}
