/**
 * The pages of the authorization code flow: the consent page and the redirect after the decision.
 *
 * Where the specification is silent:
 * - `prompt=login`, or a sign-in older than `max_age`, sends the user back to the identity provider. Every request requires consent, so `prompt=none`
 *   always fails with `login_required` or `consent_required`. Request objects are rejected.
 */
import type { HttpServerResponse } from "@effect/platform"
import { Clock, Effect } from "effect"
import { storable } from "../../http/lanes/Answer.ts"
import { described } from "../credentials/Scope.ts"
import { mayRedirect } from "../credentials/Clients.ts"
import type { AuthorizationRequest, ConsentRequest } from "./Authorization.ts"
import type { BrowserContract, Dependencies } from "./Browser.ts"
import type { SignedIn } from "./BrowserState.ts"
import { signedInAt } from "./BrowserState.ts"
import { back, formOf, html, queryOf, redirect, tooLong } from "./PageReply.ts"
import * as Pages from "./Pages.ts"
import { findSubmitter, proofOf, readSignIn, signInFirst } from "./ProviderSignIn.ts"

type Response = HttpServerResponse.HttpServerResponse

export const authorize =
  (dependencies: Dependencies): BrowserContract["authorize"] =>
  (http) => {
    const query = queryOf(http)
    const request = requestIn(query)
    return withValidRequest(dependencies, request, (consentRequest) =>
      Effect.gen(function* () {
        const unsupported = refusalOfOptions(query)
        if (unsupported !== undefined) return refusedBack(dependencies, consentRequest, unsupported)
        const person = yield* readSignIn(dependencies, http)
        const isFresh = person !== undefined && (yield* isFreshFor(query, person.who))
        if (promptsIn(query).includes("none")) {
          const none = isFresh
            ? refusal("consent_required", "the user must consent")
            : refusal("login_required", "the user must sign in")
          return refusedBack(dependencies, consentRequest, none)
        }
        return isFresh
          ? yield* requestConsent(dependencies, consentRequest, request, person.cookie, person.who)
          : yield* signInFirst(dependencies, `authorize?${queryText(request)}`, consentRequest.client.name)
      })
    )
  }

// ---- OpenID Connect options ---------------------------------------------------------------------------------------------

const promptsIn = (query: URLSearchParams): ReadonlyArray<string> => (query.get("prompt") ?? "").split(" ")

/** Returns the error for invalid or unsupported request options, or `undefined` if there is none. */
const refusalOfOptions = (query: URLSearchParams): Refusal | undefined => {
  const prompts = promptsIn(query)
  const max_age = query.get("max_age")
  if (query.has("request")) return refusal("request_not_supported", "request objects are not supported")
  if (query.has("request_uri")) return refusal("request_uri_not_supported", "request objects are not supported")
  if (prompts.includes("none") && prompts.length > 1)
    return refusal("invalid_request", "prompt: none must not be combined with other values")
  if (max_age !== null && !/^\d{1,9}$/.test(max_age))
    return refusal("invalid_request", "max_age: must be a number of seconds")
  return undefined
}

/** Returns whether this browser's sign-in is recent enough for `prompt` and `max_age`. */
const isFreshFor = (query: URLSearchParams, who: SignedIn) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const max_age = query.get("max_age")
    const isRecent = max_age === null || now - signedInAt(who) <= Number(max_age) * 1000
    return isRecent && !promptsIn(query).includes("login")
  })

// ---- the decision -------------------------------------------------------------------------------------------------------

export const decide = (dependencies: Dependencies): BrowserContract["decide"] =>
  Effect.fnUntraced(function* (http) {
    const { authorization, info } = dependencies
    const form = yield* formOf(http)
    if (!form.has("proof") && !form.has("decision")) return asGet(dependencies, form)
    const who = yield* findSubmitter(dependencies, http, form)
    if (who === undefined) return html(400, Pages.wrong(tooLong))
    return yield* withValidRequest(dependencies, requestIn(form), (consentRequest) => {
      const { redirect_uri, state } = consentRequest
      const answer = { state, iss: info.public_url }
      return form.get("decision") === "allow"
        ? Effect.map(storable(authorization.consent({ ...who, auth_time: signedInAt(who) }, consentRequest)), (code) =>
            back(redirect_uri, { code, ...answer })
          )
        : Effect.succeed(refusedBack(dependencies, consentRequest, refusal("access_denied", "the user denied access")))
    })
  })

const queryMax = 8_000

/** Redirects an authorization request from POST to GET, because browsers send no cookie with a form from another site. */
const asGet = ({ pages }: Dependencies, form: URLSearchParams): Response => {
  const query = form.toString()
  return query.length > queryMax
    ? html(400, Pages.wrong("The request is too long."))
    : redirect(`${pages}/authorize?${query}`)
}

// ---- errors -------------------------------------------------------------------------------------------------------------

interface Refusal {
  readonly error: string
  readonly error_description: string
}

const refusal = (error: string, error_description: string): Refusal => ({ error, error_description })

const refusedBack = (
  { info }: Dependencies,
  { redirect_uri, state }: Pick<ConsentRequest, "redirect_uri" | "state">,
  { error, error_description }: Refusal
): Response => back(redirect_uri, { error, error_description, state, iss: info.public_url })

/** Calls `then` if the request is valid. Otherwise responds with the error. */
const withValidRequest = <A>(
  dependencies: Dependencies,
  request: AuthorizationRequest,
  then: (consentRequest: ConsentRequest) => Effect.Effect<Response, A>
) =>
  Effect.matchEffect(dependencies.authorization.check(request), {
    onFailure: (problem) =>
      redirectError(
        dependencies,
        request,
        problem._tag === "InvalidScope"
          ? "invalid_scope"
          : request.response_type === "code"
            ? "invalid_request"
            : "unsupported_response_type",
        problem.body.error
      ),
    onSuccess: then
  })

/** Redirects with the error to the application's redirect URI if that URI is registered. Otherwise shows a page. */
const redirectError = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  { client_id, redirect_uri, state }: AuthorizationRequest,
  error: string,
  description: string
) {
  const client = client_id === undefined ? undefined : yield* dependencies.clients.find(client_id, ["oauth"])
  return client === undefined || redirect_uri === undefined || !mayRedirect(client, redirect_uri)
    ? html(400, Pages.wrong(description))
    : refusedBack(dependencies, { redirect_uri, state }, refusal(error, description))
})

// ---- the consent page ---------------------------------------------------------------------------------------------------

const requestConsent = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  { client, grant, redirect_uri }: ConsentRequest,
  request: AuthorizationRequest,
  cookie: string,
  who: SignedIn
) {
  const { info, pages, tenants } = dependencies
  const [person] = yield* tenants.named([who.account_id])
  return html(
    200,
    Pages.consent({
      service: info.service_name,
      client: client.name,
      person: person?.email ?? "",
      allows: described(grant),
      trusted: grant === "all",
      then: `You will be taken to ${new URL(redirect_uri).host}.`,
      action: `${pages}/authorize`,
      fields: { ...request, proof: proofOf(dependencies, cookie) }
    })
  )
})

const fields = [
  "client_id",
  "redirect_uri",
  "response_type",
  "scope",
  "state",
  "nonce",
  "code_challenge",
  "code_challenge_method"
] as const

const requestIn = (params: URLSearchParams): AuthorizationRequest =>
  Object.fromEntries(fields.map((name) => [name, params.get(name) ?? undefined]))

const queryText = (request: AuthorizationRequest): string =>
  new URLSearchParams(
    Object.entries(request).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  ).toString()
