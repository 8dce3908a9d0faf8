/**
 * Receives a browser that returns from a provider's sign-in page with a code. The service sealed the `state` for this provider and accepts it once.
 * The cookie identifies the browser that began the sign-in.
 */
import { HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import type { ProviderName } from "../../upstream/identity/Identity.ts"
import type { BrowserContract, Dependencies } from "./Browser.ts"
import type { ProviderState } from "./BrowserState.ts"
import { queryOf } from "./PageReply.ts"
import { arrive, failed, notWelcome, reasonOf, verifierOf } from "./ProviderSignIn.ts"
import { redirectAddress } from "./RedirectAddress.ts"

export const returned = (dependencies: Dependencies, provider: ProviderName): BrowserContract["resume"] =>
  Effect.fnUntraced(function* (http) {
    const { state } = dependencies
    const query = queryOf(http)
    const returning = yield* state.openExpired("errand", query.get("state"))
    if (returning === undefined || returning.provider !== provider || (yield* state.hasExpired(returning)))
      return failed(dependencies, returning, "expired", "This sign-in took too long or did not start here.")
    // Only the browser that began a sign-in may finish it. Otherwise, a link could sign its victim in as another user.
    const pending = yield* state.open("leaving", http.cookies[state.cookieName])
    if (pending?.nonce !== returning.nonce)
      return failed(
        dependencies,
        returning,
        "other_browser",
        "This sign-in was started in another browser or has ended."
      )
    const answer = yield* finish(dependencies, returning, query)
    // If the sign-in continues, its cookie replaces the current cookie.
    return answer.headers["set-cookie"] === undefined
      ? HttpServerResponse.setHeader(answer, "set-cookie", state.clearCookie)
      : answer
  })

const finish = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  returning: ProviderState,
  query: URLSearchParams
) {
  const { identity, info, registration, returns } = dependencies
  const { nonce, page, provider, room } = returning
  const accepted = yield* Effect.either(returns.accept(returning))
  if (accepted._tag === "Left") return notWelcome(dependencies, returning, accepted.left)
  const code = query.get("code")
  if (!accepted.right || code === null || code === "") {
    const rejected = { _tag: "IdentityRejected" }
    return failed(dependencies, returning, reasonOf(query, rejected), "The sign-in was not completed. Start again.")
  }
  const redirect_uri = redirectAddress(info.public_url, provider, "code")
  const verifier = verifierOf(dependencies, nonce)
  const iss = query.get("iss") ?? undefined
  const person = yield* Effect.either(identity.redeem(provider, { code, redirect_uri, verifier, nonce, iss }))
  if (person._tag === "Left")
    return failed(dependencies, returning, reasonOf(query, person.left), person.left.body.error)
  const welcomed = yield* Effect.either(registration.signIn(person.right))
  if (welcomed._tag === "Left") return notWelcome(dependencies, returning, welcomed.left)
  const { account_id, home_tenant_id: tenant_id } = welcomed.right
  return yield* arrive(dependencies, { account_id, tenant_id, page, ...(room !== undefined && { room }) })
})
