/**
 * The OAuth 2.0 authorization server: the authorization code flow with PKCE, the device flow, refresh, revocation and user info. Calls with its
 * tokens charge the team's pool first.
 *
 * The server does not use `oidc-provider`, for three reasons. First, that library owns its HTTP server, its cookies and its storage adapter. It could
 * not write a code, the code's sign-in and the tokens in one transaction of the single writer. Second, this service's sign-ins, scopes and API keys
 * end together, but the library's grants and sessions would exist beside them. Third, the service needs only a small part of the library: the
 * operator's public clients, PKCE with S256, two grants and refresh. `test/people/auth/Conformance.test.ts` restates the OpenID basic and PKCE test
 * plans.
 *
 * Where the specification is silent:
 * - A verified address identifies an account, regardless of the provider that verified it. An unverified address proves nothing.
 * - If an application revokes one of its tokens, its sign-in ends, as RFC 7009 allows. The response to an unknown token, or to another application's
 *   token, is identical, but no sign-in ends.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { Tenants } from "../tenants/Tenants.ts"
import type { TenantsContract } from "../tenants/Tenants.ts"
import { Clients } from "../credentials/Clients.ts"
import type { Client, ClientsContract } from "../credentials/Clients.ts"
import * as Codes from "./Codes.ts"
import * as ConsentRequests from "./ConsentRequests.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import * as Devices from "./Devices.ts"
import type { DeviceCodes } from "./Devices.ts"
import { OAuthRefusal } from "./Problems.ts"
import type { ClientIdNotFound, ClientIdRequired, InvalidScope } from "./Problems.ts"
import { grantOf, scopes } from "../credentials/Scope.ts"
import type { Grant } from "../credentials/Scope.ts"
import { Sessions } from "./Sessions.ts"
import type { SessionsContract, TokenPair } from "./Sessions.ts"
import * as TokenEndpoint from "./TokenEndpoint.ts"
import { Tokens } from "./Tokens.ts"
import type { TokensContract } from "./Tokens.ts"
import { userInfoBy } from "./UserInfo.ts"

export interface AuthorizationRequest {
  readonly client_id?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly response_type?: string | undefined
  readonly scope?: string | undefined
  readonly state?: string | undefined
  /** A value that the ID token echoes. */
  readonly nonce?: string | undefined
  readonly code_challenge?: string | undefined
  readonly code_challenge_method?: string | undefined
}

/** A valid authorization request, ready for consent. */
export interface ConsentRequest {
  readonly client: Client
  readonly redirect_uri: string
  /** The requested scope. */
  readonly scope: string
  readonly grant: Grant
  readonly state: string | undefined
  readonly nonce: string | undefined
  readonly challenge: string
}

/** The tokens from an exchange, including an ID token if the scope contains `openid`. */
export interface Exchanged extends TokenPair {
  readonly id_token?: string
}

export interface TokenRequest {
  readonly grant_type?: string | undefined
  readonly code?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly client_id?: string | undefined
  readonly code_verifier?: string | undefined
  readonly refresh_token?: string | undefined
  readonly device_code?: string | undefined
}

export interface DeviceRequest {
  readonly client_id?: string | undefined
  readonly scope?: string | undefined
}

/** A device that is waiting for the user's decision. */
export interface DeviceConsent {
  readonly client: Client
  readonly grant: Grant
}

/** The OpenID Connect claims about a user. */
export interface UserInfo {
  readonly sub: AccountId
  readonly name: string
  readonly email: string
  readonly email_verified: boolean
}

export interface AuthorizationContract {
  readonly check: (
    request: AuthorizationRequest
  ) => Effect.Effect<ConsentRequest, ClientIdRequired | ClientIdNotFound | InvalidRequest | InvalidScope>
  /** Records the user's consent and returns a code that works once, within a minute. `auth_time` is in milliseconds. */
  readonly consent: (
    person: Pick<Caller, "account_id" | "tenant_id"> & { readonly auth_time?: number },
    request: ConsentRequest
  ) => Effect.Effect<string, BooksUnavailable>
  readonly exchange: (request: TokenRequest) => Effect.Effect<Exchanged, OAuthRefusal | BooksUnavailable>
  readonly beginDevice: (request: DeviceRequest) => Effect.Effect<DeviceCodes, OAuthRefusal | BooksUnavailable>
  /** Finds the device that is waiting for this user code. Returns `undefined` if no device is waiting. */
  readonly findDevice: (user_code: string) => Effect.Effect<DeviceConsent | undefined>
  /** Records the user's decision. Returns `false` if no device is waiting for this code. */
  readonly decideDevice: (
    person: Pick<Caller, "account_id" | "tenant_id">,
    user_code: string,
    decision: "allow" | "deny"
  ) => Effect.Effect<boolean, BooksUnavailable>
  /** Ends the sign-in of an application's access token or refresh token. */
  readonly revoke: (request: {
    readonly token?: string | undefined
    readonly client_id?: string | undefined
  }) => Effect.Effect<void, OAuthRefusal | BooksUnavailable>
  readonly userInfo: (account: AccountId) => Effect.Effect<UserInfo>
}

export class Authorization extends Context.Tag("tollgate/auth/Authorization")<Authorization, AuthorizationContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Authorization, make))
}

export interface Dependencies {
  readonly codes: Codes.Codes
  readonly devices: Devices.Devices
  readonly clients: ClientsContract
  readonly sessions: SessionsContract
  readonly tokens: TokensContract
  readonly tenants: TenantsContract
}

const make = Effect.gen(function* () {
  const [sql, writer, secret] = [yield* SqlClient, yield* Writer, yield* DeploymentSecret]
  const dependencies: Dependencies = {
    codes: Codes.make(sql, writer, secret),
    devices: Devices.make(sql, writer, secret),
    clients: yield* Clients,
    sessions: yield* Sessions,
    tokens: yield* Tokens,
    tenants: yield* Tenants
  }
  const { clients, codes, devices, tenants } = dependencies
  return {
    check: ConsentRequests.makeCheck(clients),
    consent: codes.issue,
    exchange: TokenEndpoint.exchanging(dependencies),
    beginDevice: beginningDevice(dependencies),
    findDevice: findingDevice(dependencies),
    decideDevice: (person, user_code, decision) => devices.decide(user_code, person, decision),
    revoke: revoking(dependencies),
    userInfo: userInfoBy(tenants)
  } satisfies AuthorizationContract
})

/**
 * Finds the OAuth client with the request's `client_id`. Fails with 400 `invalid_request` if the id is missing, and with 401 `invalid_client` if it
 * is unknown.
 */
const namedClient = (clients: ClientsContract, client_id: string | undefined) =>
  client_id === undefined || client_id === ""
    ? OAuthRefusal.of("invalid_request", "client_id is required")
    : TokenEndpoint.knownClient(clients, client_id)

const beginningDevice = ({ clients, devices }: Dependencies): AuthorizationContract["beginDevice"] =>
  Effect.fn("Authorization.beginDevice")(function* ({ client_id, scope = "" }) {
    const client = yield* namedClient(clients, client_id)
    if (client.device !== true) {
      return yield* OAuthRefusal.of("unauthorized_client", "this client is not registered for the device flow")
    }
    const granted = grantOf(scope, client.trusted === true)
    if ("unknown" in granted) {
      return yield* OAuthRefusal.of("invalid_scope", `scope: must be one or more of ${scopes.join(", ")}`)
    }
    return yield* devices.begin(client.client_id, granted.grant)
  })

const findingDevice = ({ clients, devices }: Dependencies): AuthorizationContract["findDevice"] =>
  Effect.fnUntraced(function* (user_code) {
    const waiting = yield* devices.waiting(user_code)
    const client = waiting === undefined ? undefined : yield* clients.find(waiting.client_id, ["oauth"])
    return waiting === undefined || client === undefined ? undefined : { client, grant: waiting.grant }
  })

const revoking = ({ clients, sessions, tokens }: Dependencies): AuthorizationContract["revoke"] =>
  Effect.fn("Authorization.revoke")(function* ({ client_id, token }) {
    const client = yield* namedClient(clients, client_id)
    if (token === undefined || token === "") return yield* OAuthRefusal.of("invalid_request", "token is required")
    yield* sessions.revoke(token, client.client_id)
    const access = yield* Effect.option(tokens.verify(token))
    if (Option.isSome(access) && access.value.client_id === client.client_id)
      yield* sessions.end(access.value.account_id, access.value.family)
  })
