/**
 * What applications get in a person's name (OAuth 2.0), by the authorization code flow with PKCE or by the device flow: what an application
 * asks for, the person's consent, and the tokens that it gives, once. And how an application ends it, and who the person is. Tokens
 * from here charge the team's pool first.
 *
 * Where the specification is silent:
 * - Whoever proves a verified address is the account of that address, by whichever provider. An unverified address proves nothing.
 * - An application that revokes any of its tokens ends the whole sign-in that the token follows from (RFC 7009 allows it). A token of
 *   another application, or none, is answered in the same way and ends nothing.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { createHash, timingSafeEqual } from "node:crypto"
import type { Caller } from "../../kernel/Caller.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { isStorable, storableRule } from "../../kernel/StoredText.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { Writer } from "../../books/ledger/Writer.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Clients, mayRedirect } from "../credentials/Clients.ts"
import type { Client, ClientsContract } from "../credentials/Clients.ts"
import * as Codes from "./Codes.ts"
import type { Code } from "./Codes.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import * as Devices from "./Devices.ts"
import type { DeviceCodes } from "./Devices.ts"
import { AccountSuspended, ClientIdNotFound, ClientIdRequired, InvalidScope, OAuthRefusal } from "./Problems.ts"
import { fromRow, grantOf, includes, scopes } from "../credentials/Scope.ts"
import type { Grant } from "../credentials/Scope.ts"
import { Sessions } from "./Sessions.ts"
import type { TokenPair } from "./Sessions.ts"
import { Tokens } from "./Tokens.ts"

/** What an application asks for. */
export interface AuthorizationRequest {
  readonly client_id?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly response_type?: string | undefined
  readonly scope?: string | undefined
  readonly state?: string | undefined
  /** What the ID token is to repeat. */
  readonly nonce?: string | undefined
  readonly code_challenge?: string | undefined
  readonly code_challenge_method?: string | undefined
}

/** The same, found to be in order. */
export interface ConsentRequest {
  readonly client: Client
  readonly redirect_uri: string
  /** As it was asked for. */
  readonly scope: string
  /** What the application gets if the person consents. */
  readonly grant: Grant
  readonly state: string | undefined
  readonly nonce: string | undefined
  readonly challenge: string
}

/** What an exchange answers: with an ID token where `openid` is in its scope. */
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

/** What an application without a browser asks for. */
export interface DeviceRequest {
  readonly client_id?: string | undefined
  readonly scope?: string | undefined
}

/** A device that waits for the decision of the person who has typed its code. */
export interface DeviceConsent {
  readonly client: Client
  /** What the application gets if the person allows it. */
  readonly grant: Grant
}

/** Who a person is, in the claims of OpenID Connect. */
export interface UserInfo {
  readonly sub: AccountId
  readonly name: string
  readonly email: string
  readonly email_verified: boolean
}

/** Tokens are good for an hour, refresh tokens for a week; `ConsentRequest` comes from `check`. */
export interface AuthorizationContract {
  /** Whether what an application asks for is in order. */
  readonly check: (
    request: AuthorizationRequest
  ) => Effect.Effect<ConsentRequest, ClientIdRequired | ClientIdNotFound | InvalidRequest | InvalidScope>
  /** A code for what the person has consented to; good for a minute, once. */
  readonly consent: (
    person: Pick<Caller, "account_id" | "tenant_id">,
    request: ConsentRequest
  ) => Effect.Effect<string, BooksUnavailable>
  /** Tokens for a code, for a device's code that a person has allowed, or for a refresh token. */
  readonly exchange: (request: TokenRequest) => Effect.Effect<Exchanged, OAuthRefusal | BooksUnavailable>
  /** Two codes for an application without a browser, good for ten minutes (`Devices.lifetime`). */
  readonly beginDevice: (request: DeviceRequest) => Effect.Effect<DeviceCodes, OAuthRefusal | BooksUnavailable>
  /** Who waits with this user code, however it is typed; `undefined` where nobody does, or not any more. */
  readonly findDevice: (user_code: string) => Effect.Effect<DeviceConsent | undefined>
  /** The person's decision. Answers whether a device still waited for it. */
  readonly decideDevice: (
    person: Pick<Caller, "account_id" | "tenant_id">,
    user_code: string,
    decision: "allow" | "deny"
  ) => Effect.Effect<boolean, BooksUnavailable>
  /** Ends the sign-in that a token of the application follows from, by an access token or a refresh token. */
  readonly revoke: (request: {
    readonly token?: string | undefined
    readonly client_id?: string | undefined
  }) => Effect.Effect<void, OAuthRefusal | BooksUnavailable>
  readonly userInfo: (account: AccountId) => Effect.Effect<UserInfo>
}

/** The grant type of RFC 8628. */
export const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

const nonceMax = 1_000

export class Authorization extends Context.Tag("tollgate/auth/Authorization")<Authorization, AuthorizationContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Authorization, make))
}

const invalidGrant = () =>
  OAuthRefusal.of("invalid_grant", "the code or token is not valid, has expired, or was used before")

const make = Effect.gen(function* () {
  const [sql, writer, secret] = [yield* SqlClient, yield* Writer, yield* DeploymentSecret]
  const codes = Codes.make(sql, writer, secret)
  const devices = Devices.make(sql, writer, secret)
  const clients = yield* Clients
  const sessions = yield* Sessions
  const tokens = yield* Tokens
  const tenants = yield* Tenants

  const knownClient = Effect.fnUntraced(function* (client_id: string | undefined) {
    const client = client_id === undefined || client_id === "" ? undefined : yield* clients.find(client_id, ["oauth"])
    return client ?? (yield* OAuthRefusal.of("invalid_client", "no such client", 401))
  })

  /** The same for routes that tell a missing name from an unknown one. */
  const namedClient = (client_id: string | undefined) =>
    client_id === undefined || client_id === ""
      ? OAuthRefusal.of("invalid_request", "client_id is required")
      : knownClient(client_id)

  const byCode = Effect.fnUntraced(function* (client: Client, { code, code_verifier, redirect_uri }: TokenRequest) {
    if (code === undefined || code_verifier === undefined || redirect_uri === undefined) {
      return yield* OAuthRefusal.of("invalid_request", "code, redirect_uri and code_verifier are required")
    }
    const row = yield* codes.find(code)
    if (row === undefined || row.client_id !== client.client_id) return yield* invalidGrant()
    const inOrder =
      row.expires_at > (yield* Clock.currentTimeMillis) &&
      row.redirect_uri === redirect_uri &&
      isVerifier(code_verifier, row.challenge) &&
      !(yield* tenants.isSuspended(row.account_id))
    if (row.used_at === null) {
      // A wrong verifier spends the code too, and so does a person who was suspended since.
      const pair = inOrder ? yield* open(row) : undefined
      if (pair !== undefined) return pair
      if (!inOrder && (yield* codes.discard(row))) return yield* invalidGrant()
    }
    // Somebody has a copy of it: what it gave ends.
    const family = yield* codes.familyOf(row)
    if (family !== null) yield* sessions.end(row.account_id, family)
    return yield* invalidGrant()
  })

  /** The code and what it gives are one transaction: whoever spends it a second time finds what to end. */
  const open = Effect.fnUntraced(function* (code: Code) {
    const { account_id, client_id, tenant_id } = code
    const grant = fromRow(code.scope)
    const now = yield* Clock.currentTimeMillis
    const pair = yield* sessions.openBeside({ account_id, tenant_id, client_id, team_first: true, grant }, (family) =>
      codes.spend(code, family, now)
    )
    return pair === undefined ? undefined : yield* withIdToken(pair, grant, code)
  })

  const withIdToken = Effect.fnUntraced(function* (
    pair: TokenPair,
    grant: Grant,
    { account_id, client_id, nonce }: Pick<Code, "account_id" | "client_id" | "nonce">
  ) {
    if (!includes(grant, "openid")) return pair
    const { sub: _, ...who } = yield* userInfo(account_id)
    return { ...pair, id_token: yield* tokens.signId({ account_id, client_id, nonce, ...who }) }
  })

  const userInfo: AuthorizationContract["userInfo"] = Effect.fnUntraced(function* (account) {
    const [person] = yield* tenants.named([account])
    const { email = "", name = "" } = person ?? {}
    return { sub: account, name, email, email_verified: (yield* tenants.verifiedEmail(account)) === email }
  })

  const byDevice = Effect.fnUntraced(function* ({ client_id }: Client, device_code: string | undefined) {
    if (device_code === undefined) return yield* OAuthRefusal.of("invalid_request", "device_code is required")
    const row = yield* devices.find(device_code)
    if (row === undefined || row.client_id !== client_id) return yield* invalidGrant()
    const now = yield* Clock.currentTimeMillis
    const { account_id, decision, family_id, tenant_id } = row
    if (row.used_at !== null) {
      // Somebody has a copy of it: what it gave ends.
      if (account_id !== null && family_id !== null) yield* sessions.end(account_id, family_id)
      return yield* invalidGrant()
    }
    if (row.expires_at <= now) return yield* OAuthRefusal.of("expired_token", "the codes have expired: begin again")
    if (decision === "deny") return yield* OAuthRefusal.of("access_denied", "the person did not allow it")
    if (account_id === null || tenant_id === null) {
      return (yield* devices.poll(row))
        ? yield* OAuthRefusal.of("slow_down", "wait five seconds longer between two requests from now on")
        : yield* OAuthRefusal.of("authorization_pending", "the person has not decided yet")
    }
    if (yield* tenants.isSuspended(account_id)) {
      return yield* OAuthRefusal.of("access_denied", new AccountSuspended().body.error)
    }
    const grant = fromRow(row.scope)
    const pair = yield* sessions.openBeside({ account_id, tenant_id, client_id, team_first: true, grant }, (family) =>
      devices.spend(row, family, now)
    )
    // Two at once: the other one has it.
    if (pair === undefined) return yield* invalidGrant()
    return yield* withIdToken(pair, grant, { account_id, client_id, nonce: null })
  })

  const exchange: AuthorizationContract["exchange"] = Effect.fn("Authorization.exchange")(function* (request) {
    const { grant_type = "", refresh_token } = request
    if (grant_type !== "authorization_code" && grant_type !== "refresh_token" && grant_type !== deviceGrant) {
      return yield* OAuthRefusal.of(`Unsupported grant_type: ${grant_type.slice(0, 200)}`)
    }
    const client = yield* knownClient(request.client_id)
    if (grant_type === "authorization_code") return yield* byCode(client, request)
    if (grant_type === deviceGrant) return yield* byDevice(client, request.device_code)
    if (refresh_token === undefined) {
      return yield* OAuthRefusal.of("invalid_request", "refresh_token is required")
    }
    return yield* Effect.catchTags(
      sessions.refresh({ refresh_token, client_id: client.client_id, tenant_id: undefined }),
      { InvalidGrant: invalidGrant, NotAMember: invalidGrant }
    )
  })

  const beginDevice: AuthorizationContract["beginDevice"] = Effect.fn("Authorization.beginDevice")(function* ({
    client_id,
    scope = ""
  }) {
    const client = yield* namedClient(client_id)
    if (client.device !== true) {
      return yield* OAuthRefusal.of("unauthorized_client", "this client is not registered for the device flow")
    }
    const granted = grantOf(scope, client.trusted === true)
    if ("unknown" in granted) {
      return yield* OAuthRefusal.of("invalid_scope", `scope: one or more of ${scopes.join(", ")}`)
    }
    return yield* devices.begin(client.client_id, granted.grant)
  })

  const findDevice: AuthorizationContract["findDevice"] = Effect.fnUntraced(function* (user_code) {
    const row = yield* devices.waiting(user_code)
    const client = row === undefined ? undefined : yield* clients.find(row.client_id, ["oauth"])
    return row === undefined || client === undefined ? undefined : { client, grant: row.grant }
  })

  const revoke: AuthorizationContract["revoke"] = Effect.fn("Authorization.revoke")(function* ({ client_id, token }) {
    const client = yield* namedClient(client_id)
    if (token === undefined || token === "") return yield* OAuthRefusal.of("invalid_request", "token is required")
    yield* sessions.revoke(token, client.client_id)
    const access = yield* Effect.option(tokens.verify(token))
    if (Option.isSome(access) && access.value.client_id === client.client_id)
      yield* sessions.end(access.value.account_id, access.value.family)
  })

  return {
    check: checkBy(clients),
    consent: codes.issue,
    exchange,
    beginDevice,
    findDevice,
    decideDevice: (person, user_code, decision) => devices.decide(user_code, person, decision),
    revoke,
    userInfo
  } satisfies AuthorizationContract
})

const checkBy = (clients: ClientsContract): AuthorizationContract["check"] =>
  Effect.fn("Authorization.check")(function* (request) {
    const { client_id, code_challenge, code_challenge_method, nonce, redirect_uri, response_type, state } = request
    const { scope = "" } = request
    if (client_id === undefined || client_id === "") return yield* new ClientIdRequired()
    const client = yield* clients.find(client_id, ["oauth"])
    if (client === undefined) return yield* new ClientIdNotFound()
    if (redirect_uri === undefined || !mayRedirect(client, redirect_uri)) {
      return yield* InvalidRequest.of("redirect_uri", "one that the application has registered")
    }
    if (response_type !== "code") return yield* InvalidRequest.of("response_type", "code")
    if (code_challenge_method !== "S256") return yield* InvalidRequest.of("code_challenge_method", "S256")
    if (code_challenge === undefined || !/^[A-Za-z0-9_-]{43}$/.test(code_challenge)) {
      return yield* InvalidRequest.of("code_challenge", "the SHA-256 of the verifier in base64url")
    }
    if (nonce !== undefined && nonce.length > nonceMax)
      return yield* InvalidRequest.of("nonce", `up to ${nonceMax} characters`)
    if (nonce !== undefined && !isStorable(nonce)) return yield* InvalidRequest.of("nonce", storableRule)
    const granted = grantOf(scope, client.trusted === true)
    if ("unknown" in granted) {
      const unknown = granted.unknown.slice(0, 100)
      return yield* new InvalidScope({
        message: `scope: ${unknown} is not known here`,
        field: "scope",
        rule: `one or more of ${scopes.join(", ")}`
      })
    }
    return { client, redirect_uri, scope, grant: granted.grant, state, nonce, challenge: code_challenge }
  })

/** RFC 7636: the challenge is the SHA-256 of the verifier. */
const isVerifier = (verifier: string, challenge: string): boolean => {
  if (!/^[A-Za-z0-9._~-]{43,128}$/.test(verifier)) return false
  const made = Buffer.from(createHash("sha256").update(verifier).digest("base64url"))
  const wanted = Buffer.from(challenge)
  return made.length === wanted.length && timingSafeEqual(made, wanted)
}
