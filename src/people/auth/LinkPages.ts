/** The pages for sign-in by email: the address form, the page after the form is submitted, and the page that the link opens. */
import { HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Duration, Effect, Either, Schema } from "effect"
import { RateLimited } from "../../http/contract/Problems.ts"
import { ownCookie } from "../../http/transport/OwnCookie.ts"
import { Email } from "../../kernel/Email.ts"
import type { BrowserContract, Dependencies } from "./Browser.ts"
import * as ConsoleReturn from "./ConsoleReturn.ts"
import { emailProvider, linkLifetime } from "./Links.ts"
import type { Destination } from "./Links.ts"
import { formOf, html, queryOf, redirect, tooMany } from "./PageReply.ts"
import * as Pages from "./Pages.ts"
import { arrive, failed, newNonce, notWelcome, withPending } from "./ProviderSignIn.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const off = html(404, Pages.wrong("This service does not send sign-in links."))

const cookieOf = ({ info }: Dependencies) => ownCookie("tollgate_link", "/oauth", info.public_url)

/** Redirects from the console's sign-in page to the form. */
export const toForm = ({ pages }: Dependencies, request: Request): Response => {
  const page = ConsoleReturn.pageIn(queryOf(request).get("to"))
  return redirect(`${pages}/link?${new URLSearchParams({ room: "console", page })}`)
}

/** Returns the page to open after sign-in: a console page, or one of the two OAuth pages that require sign-in. */
const destinationIn = (query: URLSearchParams): Destination => {
  const page = query.get("page")
  if (query.get("room") === "console") return { room: "console", page: ConsoleReturn.pageIn(page) }
  return { page: page !== null && /^(?:authorize|device)\?[^#]*$/.test(page) ? page : "device" }
}

const form = Effect.fnUntraced(function* (dependencies: Dependencies, query: URLSearchParams, unusable?: string) {
  const { info, pages, state } = dependencies
  const nonce = newNonce()
  const { page, room } = destinationIn(query)
  const errand = { kind: "errand", provider: emailProvider, nonce, page, until: yield* state.until } as const
  const sealed = yield* state.seal({ ...errand, ...(room !== undefined && { room }) })
  const body = Pages.linkForm({
    service: info.service_name,
    action: `${pages}/link`,
    fields: { state: sealed },
    ...(unusable !== undefined && { unusable })
  })
  return yield* withPending(dependencies, html(unusable === undefined ? 200 : 400, body), nonce)
})

/** Sends a link (`POST /oauth/link`). Only the service's own form contains a state that matches the browser's cookie. */
export const request = (dependencies: Dependencies): BrowserContract["requestLink"] =>
  Effect.fnUntraced(function* (http) {
    const { emailSignIn, info, links, state } = dependencies
    if (!emailSignIn) return off
    const sent = yield* formOf(http)
    const errand = yield* state.open("errand", sent.get("state"))
    const pending = yield* state.open("leaving", http.cookies[state.cookieName])
    if (errand?.provider !== emailProvider || pending?.nonce !== errand.nonce)
      return failed(dependencies, errand, "expired", "This page has expired or was opened in another browser.")
    const { page, room } = errand
    const address = Schema.decodeEither(Email)(sent.get("email") ?? "")
    if (Either.isLeft(address)) {
      const query = new URLSearchParams({ page, ...(room !== undefined && { room }) })
      return yield* form(dependencies, query, sent.get("email") ?? "")
    }
    const cookie = yield* Effect.either(links.request(address.right, { room, page }))
    if (cookie._tag === "Left") return notWelcome(dependencies, errand, cookie.left)
    if (cookie.right === undefined) return tooMany(new RateLimited({ retry_after: 3600 }))
    const { attributes, name } = cookieOf(dependencies)
    const held = `${name}=${cookie.right}; ${attributes}; SameSite=Lax; Max-Age=${Duration.toSeconds(linkLifetime)}`
    const body = Pages.linkSent({ service: info.service_name, email: address.right })
    return HttpServerResponse.setHeader(html(200, body), "set-cookie", held)
  })

/** Follows a link, or shows the address form if there is no token (`GET /oauth/link`). */
export const follow = (dependencies: Dependencies): BrowserContract["followLink"] =>
  Effect.fnUntraced(function* (http) {
    const { emailSignIn, links, registration } = dependencies
    if (!emailSignIn) return off
    const query = queryOf(http)
    const token = query.get("token")
    if (token === null) return yield* form(dependencies, query)
    const followed = yield* Effect.either(links.follow(token, http.cookies[cookieOf(dependencies).name]))
    if (followed._tag === "Left") return notWelcome(dependencies, { page: "" }, followed.left)
    if (typeof followed.right === "string") return html(400, Pages.wrong(linkTexts[followed.right]))
    const { destination, identity } = followed.right
    const { page, room } = destination
    const returning = { page, ...(room !== undefined && { room }) }
    const welcomed = yield* Effect.either(registration.signIn(identity))
    if (welcomed._tag === "Left") return notWelcome(dependencies, returning, welcomed.left)
    const { account_id, home_tenant_id: tenant_id } = welcomed.right
    return yield* arrive(dependencies, { account_id, tenant_id, ...returning })
  })

const linkTexts = {
  expired: "This link is incomplete, expired or already used. Request another link.",
  other_browser: "This link works only in the browser that requested it. Open it there, or request another link here."
}
