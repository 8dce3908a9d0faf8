/**
 * The OAuth flows in a browser: the person signs in with a provider, reads who asks for what, and decides; in the device flow they type
 * the code that their device shows before. And the sign-in to the console. What is remembered between
 * two pages travels sealed, in a cookie and in the provider's `state`; both are good for ten minutes.
 */
import { HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Clock, Context, Effect, Layer } from "effect"
import { randomBytes, timingSafeEqual } from "node:crypto"
import { storable } from "../../http/lanes/Answer.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import type { RateLimitName } from "../../http/transport/RateLimits.ts"
import { described } from "../credentials/Scope.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Identity } from "../../upstream/identity/Identity.ts"
import type { ProviderName } from "../../upstream/identity/Identity.ts"
import { Authorization } from "./Authorization.ts"
import type { ConsentRequest, AuthorizationRequest } from "./Authorization.ts"
import * as BrowserState from "./BrowserState.ts"
import { BrowserSessions } from "./BrowserSessions.ts"
import type { Arriving, Errand, SignedIn } from "./BrowserState.ts"
import { Clients, mayRedirect } from "../credentials/Clients.ts"
import * as ConsoleReturn from "./ConsoleReturn.ts"
import type { SignInFailure } from "./ConsoleReturn.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import { shownUserCode } from "./Devices.ts"
import { AccountSuspended } from "./Problems.ts"
import { back, html, redirect, tooMany } from "./PageReply.ts"
import * as Pages from "./Pages.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

export interface BrowserContract {
  /** `GET /oauth/authorize`: asks the person, or where they want to sign in. */
  readonly authorize: (request: Request) => Effect.Effect<Response>
  /** `POST /oauth/authorize`: the person's decision. */
  readonly decide: (request: Request) => Effect.Effect<Response>
  /** `GET /oauth/device`: asks which code the device shows, and then the person. */
  readonly device: (request: Request) => Effect.Effect<Response>
  /** `POST /oauth/device`: the person's decision about a device. */
  readonly decideDevice: (request: Request) => Effect.Effect<Response>
  /** `GET /console/sign-in/{provider}`: leads to the provider, and from there back to a page of the console with a session. */
  readonly toProvider: (request: Request, provider: ProviderName) => Effect.Effect<Response>
  /** `POST /oauth/signed-in`: the provider's token for the person, in a form. */
  readonly signedIn: (request: Request) => Effect.Effect<Response>
  /** `GET /oauth/continue`: the same browser again, with its cookie, which the provider's form did not bring. */
  readonly resume: (request: Request) => Effect.Effect<Response>
}

export class Browser extends Context.Tag("tollgate/auth/Browser")<Browser, BrowserContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Browser, make))
}

/** What people call the providers. */
export const names: Record<ProviderName, string> = { google: "Google", microsoft: "Microsoft" }

const make = Effect.gen(function* () {
  const authorization = yield* Authorization
  const clients = yield* Clients
  const identity = yield* Identity
  const tenants = yield* Tenants
  const secret = yield* DeploymentSecret
  const sessions = yield* BrowserSessions
  const limits = yield* RateLimits
  const { public_url, service_name } = yield* ServiceInfo
  /** Where the pages stand for a browser: a service beneath a path of another server has that path in its `public_url`. */
  const pages = `${new URL(public_url).pathname.replace(/\/$/, "")}/oauth`

  const consolePages = ConsoleReturn.make({ public_url })

  const { cookieName, isOver, open, openLate, seal, setCookie, until } = BrowserState.make(secret, public_url)

  const limited =
    (name: RateLimitName, handle: (request: Request) => Effect.Effect<Response>) =>
    (request: Request): Effect.Effect<Response> =>
      Effect.matchEffect(limits.take(name, request), {
        onFailure: (problem) => Effect.succeed(tooMany(problem)),
        onSuccess: () => handle(request)
      })

  /** An application's request that has an address to come back to is refused there, in the words of RFC 6749. */
  const refused = Effect.fnUntraced(function* (request: AuthorizationRequest, error: string, description: string) {
    const client = request.client_id === undefined ? undefined : yield* clients.find(request.client_id, ["oauth"])
    return client === undefined || request.redirect_uri === undefined || !mayRedirect(client, request.redirect_uri)
      ? html(400, Pages.wrong(description))
      : back(request.redirect_uri, { error, error_description: description, state: request.state, iss: public_url })
  })

  const checked = <A>(
    request: AuthorizationRequest,
    then: (consentRequest: ConsentRequest) => Effect.Effect<Response, A>
  ) =>
    Effect.matchEffect(authorization.check(request), {
      onFailure: (problem) =>
        refused(
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

  const ask = Effect.fnUntraced(function* (
    consentRequest: ConsentRequest,
    request: AuthorizationRequest,
    cookie: string,
    who: SignedIn
  ) {
    const [person] = yield* tenants.named([who.account_id])
    return html(
      200,
      Pages.consent({
        service: service_name,
        client: consentRequest.client.name,
        person: person?.email ?? "",
        allows: described(consentRequest.grant),
        trusted: consentRequest.grant === "all",
        then: `You will be taken to ${new URL(consentRequest.redirect_uri).host}.`,
        action: `${pages}/authorize`,
        fields: { ...request, proof: secret.hash("browser", cookie) }
      })
    )
  })

  /** The provider's page from which the browser comes back on this errand. */
  const signInPage = Effect.fnUntraced(function* (
    errand: Pick<Errand, "provider" | "nonce" | "room" | "page">,
    hint: { readonly login_hint?: string } = {}
  ) {
    const state = yield* seal({ ...errand, kind: "errand", until: yield* until })
    const redirect_uri = `${public_url}/oauth/signed-in`
    return yield* identity.signInPage(errand.provider, { redirect_uri, nonce: errand.nonce, state, ...hint })
  })

  /** Where to sign in; `page` is where the browser comes back to, signed in. */
  const signInFirst = Effect.fnUntraced(function* (page: string, client: string | undefined) {
    const nonce = randomBytes(16).toString("hex")
    const leaving = yield* seal({ kind: "leaving", nonce, until: yield* until })
    const providers = yield* Effect.forEach(identity.configured, (provider) =>
      Effect.map(signInPage({ provider, nonce, page }), (url) => [{ name: names[provider], url }]).pipe(
        Effect.catchAll(() => Effect.succeed([]))
      )
    )
    const found = providers.flat()
    if (found.length === 0) return html(503, Pages.wrong("Nobody can be signed in just now."))
    const body = Pages.signIn({ service: service_name, client, providers: found })
    return HttpServerResponse.setHeader(html(200, body), "set-cookie", setCookie(leaving))
  })

  /** Who has signed in in this browser, and the cookie that says so. */
  const signedInBy = Effect.fnUntraced(function* (http: Request) {
    const cookie = http.cookies[cookieName]
    const who = yield* open("signed-in", cookie)
    return who === undefined || cookie === undefined ? undefined : { who, cookie }
  })

  /** Who decides. The proof is only in our own form: no other site can decide for the person. */
  const decidedBy = Effect.fnUntraced(function* (http: Request, form: URLSearchParams) {
    const person = yield* signedInBy(http)
    const proof = form.get("proof") ?? ""
    return person !== undefined && same(proof, secret.hash("browser", person.cookie)) ? person.who : undefined
  })

  const authorize: BrowserContract["authorize"] = (http) => {
    const request = requestIn(queryOf(http))
    return checked(request, (consentRequest) =>
      Effect.flatMap(signedInBy(http), (person) =>
        person === undefined
          ? signInFirst(`authorize?${queryText(request)}`, consentRequest.client.name)
          : ask(consentRequest, request, person.cookie, person.who)
      )
    )
  }

  const device: BrowserContract["device"] = Effect.fnUntraced(function* (http) {
    const user_code = shownUserCode(queryOf(http).get("user_code") ?? "")
    if (user_code === "") return html(200, Pages.deviceCode({ service: service_name, action: `${pages}/device` }))
    // Who guesses codes signs in first.
    const person = yield* signedInBy(http)
    if (person === undefined) return yield* signInFirst(`device?${queryText({ user_code })}`, undefined)
    const waiting = yield* authorization.findDevice(user_code)
    if (waiting === undefined) {
      return html(400, Pages.deviceCode({ service: service_name, action: `${pages}/device`, unknown: user_code }))
    }
    const [named] = yield* tenants.named([person.who.account_id])
    return html(
      200,
      Pages.consent({
        service: service_name,
        client: waiting.client.name,
        person: named?.email ?? "",
        allows: described(waiting.grant),
        trusted: waiting.grant === "all",
        warning: `Only go on if your own device shows ${user_code} now. If somebody sent you this code or a link to this page, do not allow it.`,
        then: "You can close this page afterwards.",
        action: `${pages}/device`,
        fields: { user_code, proof: secret.hash("browser", person.cookie) }
      })
    )
  })

  const decideDevice: BrowserContract["decideDevice"] = Effect.fnUntraced(function* (http) {
    const form = yield* formOf(http)
    const who = yield* decidedBy(http, form)
    if (who === undefined) return html(400, Pages.wrong(tooLong))
    const decision = form.get("decision") === "allow" ? "allow" : "deny"
    const done = yield* storable(authorization.decideDevice(who, form.get("user_code") ?? "", decision))
    return done
      ? html(200, Pages.decided(decision === "allow"))
      : html(400, Pages.wrong("The code has expired, or was decided on before. Begin again on your device."))
  })

  const toProvider: BrowserContract["toProvider"] = Effect.fnUntraced(function* (http, provider) {
    const query = queryOf(http)
    const page = ConsoleReturn.pageIn(query.get("to"))
    const limit = yield* Effect.either(limits.take("authorize", http))
    if (limit._tag === "Left") return redirect(consolePages.failedAt("too_many_requests", page))
    const nonce = randomBytes(16).toString("hex")
    // A link of somebody else does not say who signs in: a provider may take that for an answer.
    const hint = http.headers["sec-fetch-site"] === "same-origin" ? query.get("login_hint") : null
    const url = yield* Effect.either(
      signInPage({ provider, nonce, room: "console", page }, hint === null || hint === "" ? {} : { login_hint: hint })
    )
    if (url._tag === "Left") return redirect(consolePages.failedAt("provider_unavailable", page))
    const leaving = yield* seal({ kind: "leaving", nonce, until: yield* until })
    return HttpServerResponse.setHeader(redirect(url.right), "set-cookie", setCookie(leaving))
  })

  /** A sign-in that came to nothing: the console says so on a page of its own. */
  const failed = (errand: Pick<Errand, "room" | "page"> | undefined, reason: SignInFailure, text: string): Response =>
    errand?.room === "console" ? redirect(consolePages.failedAt(reason, errand.page)) : html(400, Pages.wrong(text))

  const signedIn: BrowserContract["signedIn"] = Effect.fnUntraced(function* (http) {
    const form = yield* formOf(http)
    const errand = yield* openLate("errand", form.get("state"))
    if (errand === undefined || (yield* isOver(errand)))
      return failed(errand, "expired", "This sign-in took too long, or did not begin here.")
    const person = yield* Effect.either(
      identity.verify(errand.provider, { id_token: form.get("id_token") ?? undefined, nonce: errand.nonce })
    )
    if (person._tag === "Left") {
      const { _tag, body } = person.left
      const reason = form.has("error")
        ? refusalOf(form)
        : _tag === "IdentityProviderUnavailable"
          ? "provider_unavailable"
          : "rejected"
      return failed(errand, reason, body.error)
    }
    const welcomed = yield* Effect.either(tenants.welcome(person.right))
    if (welcomed._tag === "Left")
      return errand.room === "console" ? failed(errand, "unavailable", "") : yield* Effect.die(welcomed.left)
    const { account_id, home_tenant_id: tenant_id } = welcomed.right
    if (yield* tenants.isSuspended(account_id)) return failed(errand, "suspended", new AccountSuspended().body.error)
    const { nonce, page, room } = errand
    const arriving = yield* seal({
      kind: "arriving",
      account_id,
      tenant_id,
      nonce,
      ...(room !== undefined && { room }),
      page,
      until: yield* until
    })
    return redirect(`${pages}/continue?${new URLSearchParams({ arriving })}`)
  })

  const resume: BrowserContract["resume"] = Effect.fnUntraced(function* (http) {
    const arriving = yield* openLate("arriving", queryOf(http).get("arriving"))
    const leaving = yield* open("leaving", http.cookies[cookieName])
    // Only the browser that began a sign-in may end it: a link signs nobody in as somebody else.
    if (arriving === undefined || (yield* isOver(arriving)) || leaving?.nonce !== arriving.nonce) {
      const reason = arriving !== undefined && (yield* isOver(arriving)) ? "expired" : "other_browser"
      return failed(arriving, reason, "This sign-in took too long, or was begun in another browser.")
    }
    if (arriving.room === "console") return yield* intoConsole(arriving)
    const { account_id, page, tenant_id } = arriving
    const cookie = yield* seal({ kind: "signed-in", account_id, tenant_id, until: yield* until })
    return HttpServerResponse.setHeader(redirect(`${pages}/${page}`), "set-cookie", setCookie(cookie))
  })

  const intoConsole = ({ account_id, page, tenant_id }: Arriving): Effect.Effect<Response> =>
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

  const decide: BrowserContract["decide"] = Effect.fnUntraced(function* (http) {
    const form = yield* formOf(http)
    const request = requestIn(form)
    const who = yield* decidedBy(http, form)
    if (who === undefined) return html(400, Pages.wrong(tooLong))
    return yield* checked(request, (consentRequest) => {
      const { redirect_uri, state } = consentRequest
      return form.get("decision") === "allow"
        ? Effect.map(storable(authorization.consent(who, consentRequest)), (code) =>
            back(redirect_uri, { code, state, iss: public_url })
          )
        : Effect.succeed(
            back(redirect_uri, {
              error: "access_denied",
              error_description: "the person did not allow it",
              state,
              iss: public_url
            })
          )
    })
  })

  return {
    authorize: limited("authorize", authorize),
    decide: limited("authorize", decide),
    device: limited("authorize", device),
    decideDevice: limited("authorize", decideDevice),
    toProvider,
    signedIn: limited("sign_in", signedIn),
    resume: limited("authorize", resume)
  } satisfies BrowserContract
})

const tooLong = "This page was open for too long. Nothing was allowed."

const queryText = (values: AuthorizationRequest | { readonly user_code: string }): string =>
  new URLSearchParams(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  ).toString()

/** What the provider itself said: that the person went no further, or something else. */
const refusalOf = (form: URLSearchParams): SignInFailure =>
  ["access_denied", "user_cancelled_login", "consent_required"].includes(form.get("error") ?? "")
    ? "cancelled"
    : "rejected"

const same = (one: string, other: string): boolean => {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}

const queryOf = ({ url }: Request): URLSearchParams => {
  const at = url.indexOf("?")
  return new URLSearchParams(at === -1 ? "" : url.slice(at + 1))
}

const formOf = (request: Request): Effect.Effect<URLSearchParams> =>
  Effect.map(Effect.orDie(request.text), (text) => new URLSearchParams(text))

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
