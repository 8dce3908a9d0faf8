/** The rooms of identity over a fresh database, with an issuer and their routes. */
import { HttpApi, HttpApiBuilder, HttpApp, HttpServer } from "@effect/platform"
import type { HttpRouter } from "@effect/platform"
import { SqlClient } from "@effect/sql/SqlClient"
import { it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import type { Scope, TestServices } from "effect"
import type { JWTPayload } from "jose"
import { AuthApi } from "../../../src/people/auth/Api.ts"
import { Clients, ConfiguredClients } from "../../../src/people/credentials/Clients.ts"
import { Credentials } from "../../../src/people/auth/Credentials.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { AuthHttp } from "../../../src/people/auth/Http.ts"
import { SecurityHttp } from "../../../src/people/auth/SecurityHttp.ts"
import { Sessions } from "../../../src/people/auth/Sessions.ts"
import { SigningKeys } from "../../../src/people/auth/SigningKeys.ts"
import { Tokens } from "../../../src/people/auth/Tokens.ts"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { ApiMiddleware } from "../../../src/http/lanes/ApiMiddleware.ts"
import { RateLimits } from "../../../src/http/transport/RateLimits.ts"
import { parse } from "../../../src/kernel/Moment.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import type { PriceListFacts } from "../../../src/books/prices/PriceList.ts"
import { RunsApi } from "../../../src/people/runs/Api.ts"
import { BudgetedRuns } from "../../../src/people/runs/BudgetedRuns.ts"
import { RunsHttp } from "../../../src/people/runs/Http.ts"
import { TenantsApi } from "../../../src/people/tenants/Api.ts"
import { Applications } from "../../../src/people/tenants/Applications.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { TenantsHttp } from "../../../src/people/tenants/Http.ts"
import { InvitedElsewhere, Registration } from "../../../src/people/tenants/Registration.ts"
import { invitedOnly, RegistrationPolicy } from "../../../src/people/tenants/RegistrationPolicy.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { Identity, IdentityProviders } from "../../../src/upstream/identity/Identity.ts"
import { audience, Issuer } from "../../support/Issuer.ts"
import * as TestDatabase from "../../support/database.ts"

export const client_id = "console"
export const secret = new Uint8Array(32).fill(7)

/** The books over a database in memory. */
export const books = Ledger.layer.pipe(Layer.provideMerge(TestDatabase.writer), Layer.provideMerge(TestDatabase.sql))

/** The rooms of identity. They need the books, the settings and the secret. */
export const rooms = Layer.merge(Credentials.layer, BudgetedRuns.layer).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      Sessions.layer,
      Applications.layer,
      Identity.layer,
      Clients.layer,
      RateLimits.layer,
      Layer.provide(Registration.layer, InvitedElsewhere.layerNone)
    )
  ),
  Layer.provideMerge(Layer.mergeAll(Tenants.layer, Tokens.layer)),
  Layer.provideMerge(Layer.mergeAll(SigningKeys.layer, Belonging.layer))
)

const defaults: PriceListFacts = { default_new_credits: 5n * usd, default_registration_credits: 2n * usd }

const settings = (prices: PriceListFacts) =>
  Layer.unwrapEffect(
    Effect.map(Issuer, ({ url }) =>
      Layer.mergeAll(
        Layer.succeed(IdentityProviders, {
          google: { issuer: url, audiences: ["another-client", audience] },
          microsoft: { issuer: url, audiences: [audience], jwks_uri: `${url}/keys`, trust_email: true }
        }),
        Layer.succeed(ConfiguredClients, [
          { client_id, kind: "app", name: "Console", redirect_uris: [] },
          { client_id: "phone", kind: "app", name: "Phone", redirect_uris: [] }
        ]),
        RegistrationPolicy.layer({ ...invitedOnly, open: true }),
        Layer.succeed(PriceList, prices),
        Layer.succeed(ServiceInfo, {
          service_name: "Tollbooth",
          key_prefix: "svc",
          public_url: "https://toll.example"
        }),
        DeploymentSecret.layer(secret)
      )
    )
  )

// Only these groups of the contract.
const api = HttpApi.make("tollgate").add(AuthApi).add(TenantsApi).add(RunsApi)

const routes = HttpApiBuilder.api(api).pipe(
  Layer.provide([AuthHttp, TenantsHttp, RunsHttp]),
  Layer.provide(SecurityHttp)
)

export const layerOf = (prices: PriceListFacts = defaults) =>
  ApiMiddleware.pipe(
    Layer.provideMerge(routes),
    Layer.provideMerge(
      Layer.mergeAll(HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer, HttpServer.layerContext)
    ),
    Layer.provideMerge(rooms),
    Layer.provideMerge(settings(prices)),
    Layer.provideMerge(Layer.merge(books, Issuer.layer))
  )

export type World = Layer.Layer.Success<ReturnType<typeof layerOf>>

/** The time at which a scene begins. */
export const beginning = parse("2026-03-01T10:00:00Z")!

/** A test in a world of its own. */
export const scene = <A, E>(
  name: string,
  body: Effect.Effect<A, E, World | Scope.Scope | TestServices.TestServices>,
  prices?: PriceListFacts
) => it.scoped(name, () => Effect.zipRight(TestClock.setTime(beginning), Effect.provide(body, layerOf(prices))))

export interface Answer {
  readonly status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads any answer
  readonly body: any
}

/** Sends a request. */
export const ask = (
  method: string,
  path: string,
  {
    authorization,
    json,
    token
  }: { readonly token?: string; readonly authorization?: string; readonly json?: unknown } = {}
) =>
  Effect.gen(function* () {
    const app = yield* HttpApiBuilder.httpApp
    const handler = HttpApp.toWebHandlerRuntime(yield* Effect.runtime<HttpRouter.HttpRouter.DefaultServices>())(app)
    const bearer = authorization ?? (token === undefined ? undefined : `Bearer ${token}`)
    const response = yield* Effect.promise(() =>
      handler(
        new Request(`http://localhost${path}`, {
          method,
          headers: {
            ...(bearer !== undefined && { authorization: bearer }),
            ...(json !== undefined && { "content-type": "application/json" })
          },
          ...(json !== undefined && { body: typeof json === "string" ? json : JSON.stringify(json) })
        })
      )
    )
    const answer: Answer = { status: response.status, body: yield* Effect.promise(() => response.json()) }
    return answer
  })

export interface Person {
  readonly token: string
  readonly refresh_token: string
  readonly account_id: string
  readonly tenant_id: string
}

/** The issuer's claims about a person with this address. */
export const claimsOf = (email: string, claims: JWTPayload = {}): JWTPayload => ({
  sub: `sub-${email.toLowerCase()}`,
  email,
  email_verified: true,
  name: email.slice(0, email.indexOf("@")),
  ...claims
})

/** Signs in over HTTP. */
export const signIn = (email: string, claims: JWTPayload = {}, provider: "google" | "microsoft" = "google") =>
  Effect.gen(function* () {
    const { sign } = yield* Issuer
    const id_token = yield* sign(claimsOf(email, claims))
    return yield* ask("POST", `/v1/auth/${provider}`, { json: { id_token, client_id } })
  })

/** A person who has signed in. */
export const person = (email: string, claims: JWTPayload = {}, provider: "google" | "microsoft" = "google") =>
  Effect.gen(function* () {
    const { body, status } = yield* signIn(email, claims, provider)
    if (status !== 200) return yield* Effect.dieMessage(`sign-in answered ${status} ${JSON.stringify(body)}`)
    const { access_token: token, refresh_token } = body.result.token_response
    const me = yield* ask("GET", "/v1/me", { token })
    const { id, tenant_id } = me.body.result.account
    return { token, refresh_token, account_id: id, tenant_id } as Person
  })

export const refresh = (refresh_token: string, more: object = {}) =>
  ask("POST", "/v1/auth/token", { json: { client_id, grant_type: "refresh_token", refresh_token, ...more } })

/** An application of the person's tenant, with its key. */
export const application = (of: Person, name = "test") =>
  Effect.map(
    ask("POST", `/v1/tenants/${of.tenant_id}/applications`, { token: of.token, json: { name } }),
    ({ body }) => body.result as { readonly id: string; readonly api_key: string }
  )

/** Runs SQL beside the service. */
export const sql = <A extends object>(text: string, params: ReadonlyArray<string | number> = []) =>
  Effect.flatMap(SqlClient, (sql) => sql.unsafe<A>(text, [...params])).pipe(Effect.orDie)

/** Makes an account an active member of another's tenant. */
export const join = (account: string, tenant: string, status = "active", role = "member") =>
  sql(
    `INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
      VALUES (?, ?, ?, ?, 1, 1) ON CONFLICT (account_id, tenant_id) DO UPDATE SET status = excluded.status`,
    [account, tenant, role, status]
  )
