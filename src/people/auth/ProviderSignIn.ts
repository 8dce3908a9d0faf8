/** Signs a user in with an identity provider: redirects the browser to the provider, handles its return, and continues to the original page. */
import { HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Clock, Effect } from "effect"
import { randomBytes, timingSafeEqual } from "node:crypto"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { AccountSuspended, NotInvited } from "../tenants/Problems.ts"
import type { BrowserContract, Dependencies } from "./Browser.ts"
import type { ProviderState, SignedIn, VerifiedPerson } from "./BrowserState.ts"
import * as ConsoleReturn from "./ConsoleReturn.ts"
import type { SignInFailure } from "./ConsoleReturn.ts"
import { redirectAddress } from "./RedirectAddress.ts"
import { formOf, html, queryOf, redirect } from "./PageReply.ts"
import * as Pages from "./Pages.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

export const newNonce = (): string => randomBytes(16).toString("hex")

/** Derives a sign-in's PKCE verifier from its public nonce and the deployment's secret. */
export const verifierOf = ({ secret }: Pick<Dependencies, "secret">, nonce: string): string =>
  secret.hash("sign_in", `verifier ${nonce}`)

// ---- to the provider ----------------------------------------------------------------------------------------------------

/** Returns the URL of the provider's sign-in page. The provider later returns the browser with `returning` as its state. */
const signInPage = Effect.fnUntraced(function* (
  { identity, info: { public_url }, secret, state }: Dependencies,
  returning: Pick<ProviderState, "provider" | "nonce" | "room" | "page">,
  hint: { readonly login_hint?: string } = {}
) {
  const sealed = yield* state.seal({ ...returning, kind: "errand", until: yield* state.until })
  const { nonce, provider } = returning
  const redirect_uri = redirectAddress(public_url, provider, identity.flowOf(provider))
  const verifier = verifierOf({ secret }, nonce)
  return yield* identity.signInPage(provider, { redirect_uri, nonce, verifier, state: sealed, ...hint })
})

/** Binds a sign-in to this browser with a cookie. */
export const withPending = Effect.fnUntraced(function* ({ state }: Dependencies, response: Response, nonce: string) {
  const pending = yield* state.seal({ kind: "leaving", nonce, until: yield* state.until })
  return HttpServerResponse.setHeader(response, "set-cookie", state.setCookie(pending))
})

/** The label of the button for sign-in by email. */
export const emailName = "email"

/** Requires a sign-in and then returns the user to `page`. `client` is the requesting application's name. */
export const signInFirst = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  page: string,
  client: string | undefined
) {
  const { emailSignIn, identity, info, pages } = dependencies
  const nonce = newNonce()
  const providers = yield* Effect.forEach(identity.configured, (provider) =>
    Effect.map(signInPage(dependencies, { provider, nonce, page }), (url) => [
      { name: identity.nameOf(provider), url }
    ]).pipe(Effect.catchAll(() => Effect.succeed([])))
  )
  const byLetter = { name: emailName, url: `${pages}/link?${new URLSearchParams({ page })}` }
  const found = [...providers.flat(), ...(emailSignIn ? [byLetter] : [])]
  if (found.length === 0) return html(503, Pages.wrong("Sign-in is currently unavailable."))
  const body = Pages.signIn({ service: info.service_name, client, providers: found })
  return yield* withPending(dependencies, html(200, body), nonce)
})

export const toProvider = (dependencies: Dependencies): BrowserContract["toProvider"] =>
  Effect.fnUntraced(function* (http, provider) {
    const { consolePages, limits } = dependencies
    const query = queryOf(http)
    const page = ConsoleReturn.pageIn(query.get("to"))
    const limit = yield* Effect.either(limits.take("authorize", http))
    if (limit._tag === "Left") return redirect(consolePages.failedAt("too_many_requests", page))
    const nonce = newNonce()
    // A link on another site must not choose the account, because some providers sign in the hinted user without asking.
    const hint = http.headers["sec-fetch-site"] === "same-origin" ? query.get("login_hint") : null
    const hinted = hint === null || hint === "" ? {} : { login_hint: hint }
    const url = yield* Effect.either(signInPage(dependencies, { provider, nonce, room: "console", page }, hinted))
    if (url._tag === "Left") return redirect(consolePages.failedAt("provider_unavailable", page))
    return yield* withPending(dependencies, redirect(url.right), nonce)
  })

// ---- back from the provider ---------------------------------------------------------------------------------------------

/** Returns the response to a failed sign-in. The console displays the reason itself. */
export const failed = (
  { consolePages }: Dependencies,
  returning: Pick<ProviderState, "room" | "page"> | undefined,
  reason: SignInFailure,
  text: string
): Response =>
  returning?.room === "console" ? redirect(consolePages.failedAt(reason, returning.page)) : html(400, Pages.wrong(text))

export const signedIn = (dependencies: Dependencies): BrowserContract["signedIn"] =>
  Effect.fnUntraced(function* (http) {
    const { identity, pages, registration, state } = dependencies
    const form = yield* formOf(http)
    const returning = yield* state.openExpired("errand", form.get("state"))
    if (returning === undefined || (yield* state.hasExpired(returning)))
      return failed(dependencies, returning, "expired", "This sign-in took too long or did not start here.")
    const { nonce, page, provider, room } = returning
    const token = { id_token: form.get("id_token") ?? undefined, nonce }
    const person = yield* Effect.either(identity.verify(provider, token))
    if (person._tag === "Left")
      return failed(dependencies, returning, reasonOf(form, person.left), person.left.body.error)
    const welcomed = yield* Effect.either(registration.signIn(person.right))
    if (welcomed._tag === "Left") return notWelcome(dependencies, returning, welcomed.left)
    const { account_id, home_tenant_id: tenant_id } = welcomed.right
    const until = yield* state.until
    const verified = { account_id, tenant_id, nonce, ...(room !== undefined && { room }), page, until }
    const arriving = yield* state.seal({ kind: "arriving", ...verified })
    return redirect(`${pages}/continue?${new URLSearchParams({ arriving })}`)
  })

/** Returns the reason for a failed sign-in. The provider's error takes precedence. */
export const reasonOf = (form: URLSearchParams, { _tag }: { readonly _tag: string }): SignInFailure => {
  const error = form.get("error")
  if (error !== null)
    return ["access_denied", "user_cancelled_login", "consent_required"].includes(error) ? "cancelled" : "rejected"
  return _tag === "IdentityProviderUnavailable" ? "provider_unavailable" : "rejected"
}

/** Returns the response to a verified user who may not sign in. */
export const notWelcome = (
  dependencies: Dependencies,
  returning: Pick<ProviderState, "room" | "page">,
  problem: NotInvited | AccountSuspended | BooksUnavailable
): Response => failed(dependencies, returning, reasons[problem._tag], problem.body.error)

const reasons = {
  NotInvited: "not_invited",
  AccountSuspended: "suspended",
  BooksUnavailable: "unavailable"
} as const

/** Redirects a signed-in user's browser to the requested page and sets that page's cookie. */
export const arrive = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  person: Pick<VerifiedPerson, "account_id" | "tenant_id" | "room" | "page">
) {
  if (person.room === "console") return yield* intoConsole(dependencies, person)
  const { pages, state } = dependencies
  const { account_id, page, tenant_id } = person
  const cookie = yield* state.seal({ kind: "signed-in", account_id, tenant_id, until: yield* state.until })
  return HttpServerResponse.setHeader(redirect(`${pages}/${page}`), "set-cookie", state.setCookie(cookie))
})

export const resume = (dependencies: Dependencies): BrowserContract["resume"] =>
  Effect.fnUntraced(function* (http) {
    const { state } = dependencies
    const arriving = yield* state.openExpired("arriving", queryOf(http).get("arriving"))
    const pending = yield* state.open("leaving", http.cookies[state.cookieName])
    const expired = arriving !== undefined && (yield* state.hasExpired(arriving))
    // Only the browser that began a sign-in may finish it. Otherwise, a link could sign its victim in as another user.
    if (arriving === undefined || expired || pending?.nonce !== arriving.nonce) {
      const text = "This sign-in took too long or was started in another browser."
      return failed(dependencies, arriving, expired ? "expired" : "other_browser", text)
    }
    return yield* arrive(dependencies, arriving)
  })

const intoConsole = (
  { consolePages, sessions }: Dependencies,
  { account_id, page, tenant_id }: Pick<VerifiedPerson, "account_id" | "tenant_id" | "page">
): Effect.Effect<Response> =>
  Effect.matchEffect(sessions.open({ account_id, tenant_id }), {
    onFailure: () => Effect.succeed(redirect(consolePages.failedAt("unavailable", page))),
    onSuccess: (held) =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        HttpServerResponse.setHeader(
          redirect(consolePages.pageAt(page)),
          "set-cookie",
          consolePages.setCookie(held, now)
        )
      )
  })

// ---- a browser that has signed in ---------------------------------------------------------------------------------------

/** Finds the signed-in user and the cookie that proves the sign-in, if any. */
export const readSignIn = Effect.fnUntraced(function* ({ state }: Dependencies, http: Request) {
  const cookie = http.cookies[state.cookieName]
  const who = yield* state.open("signed-in", cookie)
  return who === undefined || cookie === undefined ? undefined : { who, cookie }
})

/**
 * Computes the value of a form field that only the service's own pages can contain. Without this field, another site could submit a decision for the
 * user.
 */
export const proofOf = ({ secret }: Dependencies, cookie: string): string => secret.hash("browser", cookie)

/** Finds the user who submitted the form. Returns `undefined` unless the form comes from one of the service's pages. */
export const findSubmitter = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  http: Request,
  form: URLSearchParams
): Effect.fn.Return<SignedIn | undefined> {
  const person = yield* readSignIn(dependencies, http)
  const proof = form.get("proof") ?? ""
  return person !== undefined && isSame(proof, proofOf(dependencies, person.cookie)) ? person.who : undefined
})

const isSame = (one: string, other: string): boolean => {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}
