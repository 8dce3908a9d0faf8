/** The pages of the authorization code flow: the consent page, and the redirect that follows the decision. */
import type { HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { storable } from "../../http/lanes/Answer.ts"
import { described } from "../credentials/Scope.ts"
import { mayRedirect } from "../credentials/Clients.ts"
import type { AuthorizationRequest, ConsentRequest } from "./Authorization.ts"
import type { BrowserContract, Dependencies } from "./Browser.ts"
import type { SignedIn } from "./BrowserState.ts"
import { back, formOf, html, queryOf, tooLong } from "./PageReply.ts"
import * as Pages from "./Pages.ts"
import { decidedBy, proofOf, signedInBy, signInFirst } from "./ProviderSignIn.ts"

type Response = HttpServerResponse.HttpServerResponse

export const authorize =
  (dependencies: Dependencies): BrowserContract["authorize"] =>
  (http) => {
    const request = requestIn(queryOf(http))
    return checked(dependencies, request, (consentRequest) =>
      Effect.flatMap(signedInBy(dependencies, http), (person) =>
        person === undefined
          ? signInFirst(dependencies, `authorize?${queryText(request)}`, consentRequest.client.name)
          : ask(dependencies, consentRequest, request, person.cookie, person.who)
      )
    )
  }

export const decide = (dependencies: Dependencies): BrowserContract["decide"] =>
  Effect.fnUntraced(function* (http) {
    const { authorization, info } = dependencies
    const form = yield* formOf(http)
    const who = yield* decidedBy(dependencies, http, form)
    if (who === undefined) return html(400, Pages.wrong(tooLong))
    return yield* checked(dependencies, requestIn(form), (consentRequest) => {
      const { redirect_uri, state } = consentRequest
      const answer = { state, iss: info.public_url }
      return form.get("decision") === "allow"
        ? Effect.map(storable(authorization.consent(who, consentRequest)), (code) =>
            back(redirect_uri, { code, ...answer })
          )
        : Effect.succeed(back(redirect_uri, { ...refusal("access_denied", "the person did not allow it"), ...answer }))
    })
  })

const refusal = (error: string, error_description: string) => ({ error, error_description })

/** Validates the request, then calls `then`. */
const checked = <A>(
  dependencies: Dependencies,
  request: AuthorizationRequest,
  then: (consentRequest: ConsentRequest) => Effect.Effect<Response, A>
) =>
  Effect.matchEffect(dependencies.authorization.check(request), {
    onFailure: (problem) =>
      refused(
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

/** Refuses at the application's redirect address, if that is registered; otherwise on a page. */
const refused = Effect.fnUntraced(function* (
  { clients, info }: Dependencies,
  { client_id, redirect_uri, state }: AuthorizationRequest,
  error: string,
  description: string
) {
  const client = client_id === undefined ? undefined : yield* clients.find(client_id, ["oauth"])
  return client === undefined || redirect_uri === undefined || !mayRedirect(client, redirect_uri)
    ? html(400, Pages.wrong(description))
    : back(redirect_uri, { ...refusal(error, description), state, iss: info.public_url })
})

const ask = Effect.fnUntraced(function* (
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
