/**
 * OAuth flows in a browser, and console sign-in. The user signs in with a provider, sees what access the application requests, and approves or denies
 * it. In the device flow, the user first enters the code that the device shows.
 */
import type { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { ServiceFacts } from "../../kernel/ServiceInfo.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import type { RateLimitName, RateLimitsContract } from "../../http/transport/RateLimits.ts"
import { Outbox } from "../mail/Outbox.ts"
import { Registration } from "../tenants/Registration.ts"
import type { RegistrationContract } from "../tenants/Registration.ts"
import { Tenants } from "../tenants/Tenants.ts"
import type { TenantsContract } from "../tenants/Tenants.ts"
import { Identity } from "../../upstream/identity/Identity.ts"
import type { IdentityContract, ProviderName } from "../../upstream/identity/Identity.ts"
import { Authorization } from "./Authorization.ts"
import type { AuthorizationContract } from "./Authorization.ts"
import * as BrowserState from "./BrowserState.ts"
import { BrowserSessions } from "./BrowserSessions.ts"
import type { BrowserSessionsContract } from "./BrowserSessions.ts"
import { Clients } from "../credentials/Clients.ts"
import type { ClientsContract } from "../credentials/Clients.ts"
import * as CodeReturn from "./CodeReturn.ts"
import * as ConsentPages from "./ConsentPages.ts"
import * as ConsoleReturn from "./ConsoleReturn.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import * as DevicePages from "./DevicePages.ts"
import { EmailSignIn } from "./EmailSignIn.ts"
import * as LinkPages from "./LinkPages.ts"
import * as Links from "./Links.ts"
import { tooMany } from "./PageReply.ts"
import * as ProviderSignIn from "./ProviderSignIn.ts"
import * as Returns from "./Returns.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

export interface BrowserContract {
  /** Shows the consent page, or the sign-in page if the user must sign in first (`GET /oauth/authorize`). */
  readonly authorize: (request: Request) => Effect.Effect<Response>
  /** Processes the user's decision (`POST /oauth/authorize`). */
  readonly decide: (request: Request) => Effect.Effect<Response>
  /** Shows the form for the user code, then the consent page (`GET /oauth/device`). */
  readonly device: (request: Request) => Effect.Effect<Response>
  /** Processes the user's decision about a device (`POST /oauth/device`). */
  readonly decideDevice: (request: Request) => Effect.Effect<Response>
  /** Redirects to the provider's sign-in, for a session in the console (`GET /console/sign-in/{provider}`). */
  readonly toProvider: (request: Request, provider: ProviderName) => Effect.Effect<Response>
  /** Handles the return from a provider that posts an ID token in a form (`POST /oauth/signed-in`). */
  readonly signedIn: (request: Request) => Effect.Effect<Response>
  /** Handles the return from a provider that sends a code in the query (`GET /oauth/signed-in/{provider}`). */
  readonly returned: (request: Request, provider: ProviderName) => Effect.Effect<Response>
  /** Redirects to the address form (`GET /console/sign-in/email`). */
  readonly toLetter: (request: Request) => Effect.Effect<Response>
  /** Sends a sign-in link (`POST /oauth/link`). */
  readonly requestLink: (request: Request) => Effect.Effect<Response>
  /** Follows the link in an email, or shows the address form if the request contains no token (`GET /oauth/link`). */
  readonly followLink: (request: Request) => Effect.Effect<Response>
  /** Continues with the browser's cookie (`GET /oauth/continue`). Browsers do not send the cookie with the provider's cross-site form post. */
  readonly resume: (request: Request) => Effect.Effect<Response>
}

export class Browser extends Context.Tag("tollgate/auth/Browser")<Browser, BrowserContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Browser, make))
}

export interface Dependencies {
  readonly authorization: AuthorizationContract
  readonly clients: ClientsContract
  readonly identity: IdentityContract
  readonly tenants: TenantsContract
  readonly registration: RegistrationContract
  readonly returns: Returns.Returns
  readonly links: Links.Links
  /** Whether users may sign in by email. */
  readonly emailSignIn: boolean
  readonly secret: DeploymentSecretContract
  readonly sessions: BrowserSessionsContract
  readonly limits: RateLimitsContract
  readonly info: ServiceFacts
  /** The path of the OAuth pages. It starts with the path of `public_url`. */
  readonly pages: string
  readonly consolePages: ConsoleReturn.ConsoleReturn
  readonly state: BrowserState.BrowserState
}

const make = Effect.gen(function* () {
  const info = yield* ServiceInfo
  const { public_url } = info
  const secret = yield* DeploymentSecret
  const [sql, writer, registration] = [yield* SqlClient, yield* Writer, yield* Registration]
  const dependencies: Dependencies = {
    authorization: yield* Authorization,
    clients: yield* Clients,
    identity: yield* Identity,
    tenants: yield* Tenants,
    registration,
    returns: Returns.make(sql, writer, secret),
    links: Links.make({ sql, writer, secret, outbox: yield* Outbox, registration, info }),
    emailSignIn: yield* EmailSignIn,
    secret,
    sessions: yield* BrowserSessions,
    limits: yield* RateLimits,
    info,
    pages: `${new URL(public_url).pathname.replace(/\/$/, "")}/oauth`,
    consolePages: ConsoleReturn.make({ public_url }),
    state: BrowserState.make(secret, public_url)
  }
  const limited = makeLimited(dependencies)
  return {
    authorize: limited("authorize", ConsentPages.authorize(dependencies)),
    decide: limited("authorize", ConsentPages.decide(dependencies)),
    device: limited("authorize", DevicePages.device(dependencies)),
    decideDevice: limited("authorize", DevicePages.decideDevice(dependencies)),
    toProvider: ProviderSignIn.toProvider(dependencies),
    signedIn: limited("sign_in", ProviderSignIn.signedIn(dependencies)),
    returned: (request, provider) => limited("sign_in", CodeReturn.returned(dependencies, provider))(request),
    toLetter: (request) => Effect.succeed(LinkPages.toForm(dependencies, request)),
    requestLink: limited("sign_in_link", LinkPages.request(dependencies)),
    followLink: limited("sign_in", LinkPages.follow(dependencies)),
    resume: limited("authorize", ProviderSignIn.resume(dependencies))
  } satisfies BrowserContract
})

const makeLimited =
  ({ limits }: Dependencies) =>
  (name: RateLimitName, handle: (request: Request) => Effect.Effect<Response>) =>
  (request: Request): Effect.Effect<Response> =>
    Effect.matchEffect(limits.take(name, request), {
      onFailure: (problem) => Effect.succeed(tooMany(problem)),
      onSuccess: () => handle(request)
    })
