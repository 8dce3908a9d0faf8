/**
 * Serves the console's page over HTTP, and redirects `/` and email links.
 *
 * Where the specification is silent:
 * - `/` redirects browsers to the console and other clients to the documents.
 * - Links in emails (`/transfer-invites/{token}`, `/invites/{token}`) redirect to the invitation page. The token moves into the fragment (`#`),
 *   which browsers do not send, so servers and proxies cannot log it.
 * - The page loads nothing from another origin. The service proxies generated images and videos.
 */
import { HttpApiBuilder, HttpRouter, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { RouteNotFound } from "../http/contract/Problems.ts"
import { encodingsOf } from "../http/transport/Encodings.ts"
import * as Reply from "../http/transport/Reply.ts"
import { pathTo, ServiceInfo } from "../kernel/ServiceInfo.ts"
import * as Page from "./Page.ts"
import type { PageFile } from "./Page.ts"
import { ConsoleSettings } from "./Settings.ts"

const request = HttpServerRequest.HttpServerRequest

const notBuilt: Reply.Reply = {
  status: 503,
  headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
  body: "The console's page has not been built. Run `npm run build`, then load this page again.\n"
}

/**
 * Serves `/`, the email links, `/console` and all paths below `/console`. If the console is off, serves only `/`. `prefix` is the service's route
 * prefix.
 */
export const page = (prefix: "" | `/${string}`) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const { enabled } = yield* ConsoleSettings
      const { public_url } = yield* ServiceInfo
      const root = pathTo(prefix, public_url)
      yield* router.get("/", Effect.map(request, lead(root, enabled)))
      if (!enabled) return
      for (const { name, path } of letters) {
        yield* router.get(
          path,
          Effect.map(HttpRouter.params, ({ token = "" }) => open(root, name, token))
        )
      }

      let loaded: Page.Page | undefined
      // Until the page has been built, each request tries to load it.
      const current = Effect.suspend(() =>
        loaded === undefined
          ? Effect.tap(Page.load(`${root}/console/`), (page) => Effect.sync(() => (loaded = page)))
          : Effect.succeed(loaded)
      )
      const answer = Effect.gen(function* () {
        const asked = yield* request
        const page = yield* current
        if (page === undefined) return Reply.toResponse(notBuilt)
        const file = yield* Effect.promise(() => page.find(pathOf(asked.url), encodingsOf(asked)))
        if (file === undefined) return yield* Effect.die(new RouteNotFound())
        return Reply.toResponse(replyOf(file, asked.headers["if-none-match"]))
      })
      yield* router.get("/console", answer)
      yield* router.get("/console/*", answer)
    })
  )

/** The email links. `name` is the token's parameter in the fragment. */
const letters = [
  { path: "/transfer-invites/:token", name: "transfer" },
  { path: "/invites/:token", name: "team" }
] as const

const open = (root: string, name: string, token: string): HttpServerResponse.HttpServerResponse => {
  const location = `${root}/console/invitation#${name}=${encodeURIComponent(token)}`
  const headers = { location, "cache-control": "no-store", "referrer-policy": "no-referrer" }
  return HttpServerResponse.empty({ status: 303, headers })
}

const lead =
  (root: string, enabled: boolean) =>
  ({ headers }: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse => {
    const browser = enabled && (headers["accept"] ?? "").includes("text/html")
    const location = `${root}${browser ? "/console/" : "/docs"}`
    return HttpServerResponse.empty({ status: 303, headers: { location, "cache-control": "no-store", vary: "Accept" } })
  }

/** Returns the path after `/console/`, relative to the page's root. */
const pathOf = (url: string): string => {
  const path = url.split(/[?#]/, 1)[0]!.replace(/^.*?\/console\/?/, "")
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Headers that restrict scripts, styles and requests to the page's origin. Images and media may also come from `blob:` URLs. */
const security: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'"
  ].join("; "),
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()"
}

const replyOf = ({ bytes, encoding, etag, immutable, type }: PageFile, known: string | undefined): Reply.Reply => {
  const same = known !== undefined && known.split(",").some((one) => one.trim().replace(/^W\//, "") === etag)
  return {
    status: same ? 304 : 200,
    headers: {
      ...security,
      etag,
      vary: "Accept-Encoding",
      "cache-control": immutable ? "public, max-age=31536000, immutable" : "no-cache",
      ...(!same && { "content-type": type }),
      ...(!same && encoding !== undefined && { "content-encoding": encoding })
    },
    body: same ? "" : bytes
  }
}
