/** The token endpoint: exchanges a code, a device code or a refresh token for tokens. */
import { Clock, Effect } from "effect"
import { createHash, timingSafeEqual } from "node:crypto"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { Client, ClientsContract } from "../credentials/Clients.ts"
import { fromRow, includes } from "../credentials/Scope.ts"
import type { AuthorizationContract, Dependencies, Exchanged, TokenRequest } from "./Authorization.ts"
import type { Code } from "./Codes.ts"
import type { DeviceRow } from "./Devices.ts"
import { AccountSuspended } from "../tenants/Problems.ts"
import { OAuthRefusal } from "./Problems.ts"
import { userInfoBy } from "./UserInfo.ts"

/** The grant type that RFC 8628 defines. */
export const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

const invalidGrant = () => OAuthRefusal.of("invalid_grant", "the code or token is invalid, expired or already used")

/** Finds the OAuth client with the request's `client_id`. Fails with 401 `invalid_client` if the client is missing or unknown. */
export const knownClient = Effect.fnUntraced(function* (clients: ClientsContract, client_id: string | undefined) {
  const client = client_id === undefined || client_id === "" ? undefined : yield* clients.find(client_id, ["oauth"])
  return client ?? (yield* OAuthRefusal.of("invalid_client", "no such client", 401))
})

export const exchanging = (dependencies: Dependencies): AuthorizationContract["exchange"] =>
  Effect.fn("Authorization.exchange")(function* (request) {
    const { grant_type = "", refresh_token } = request
    const { clients, sessions } = dependencies
    if (grant_type !== "authorization_code" && grant_type !== "refresh_token" && grant_type !== deviceGrant) {
      return yield* OAuthRefusal.of(`Unsupported grant_type: ${grant_type.slice(0, 200)}`)
    }
    const client = yield* knownClient(clients, request.client_id)
    if (grant_type === "authorization_code") return yield* byCode(dependencies, client, request)
    if (grant_type === deviceGrant) return yield* byDevice(dependencies, client, request.device_code)
    if (refresh_token === undefined) {
      return yield* OAuthRefusal.of("invalid_request", "refresh_token is required")
    }
    return yield* Effect.catchTags(
      sessions.refresh({ refresh_token, client_id: client.client_id, tenant_id: undefined }),
      { InvalidGrant: invalidGrant, NotAMember: invalidGrant }
    )
  })

/** Opens the application's sign-in in the same transaction as `spend`. Returns `undefined` if the code was already spent. */
const open = Effect.fnUntraced(function* (
  { sessions, tenants, tokens }: Dependencies,
  code: Pick<Code, "account_id" | "tenant_id" | "client_id" | "scope" | "nonce" | "auth_time">,
  spend: (family: string) => Statement
): Effect.fn.Return<Exchanged | undefined, BooksUnavailable> {
  const { account_id, auth_time, client_id, nonce, tenant_id } = code
  const grant = fromRow(code.scope)
  const pair = yield* sessions.openBeside({ account_id, tenant_id, client_id, team_first: true, grant }, spend)
  if (pair === undefined || !includes(grant, "openid")) return pair
  const { sub: _, ...who } = yield* userInfoBy(tenants)(account_id)
  return { ...pair, id_token: yield* tokens.signId({ account_id, client_id, nonce, auth_time, ...who }) }
})

// ---- authorization codes ------------------------------------------------------------------------------------------------

const byCode = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  client: Client,
  { code, code_verifier, redirect_uri }: TokenRequest
) {
  const { codes, sessions, tenants } = dependencies
  if (code === undefined || code_verifier === undefined || redirect_uri === undefined) {
    return yield* OAuthRefusal.of("invalid_request", "code, redirect_uri and code_verifier are required")
  }
  const row = yield* codes.find(code)
  if (row === undefined || row.client_id !== client.client_id) return yield* invalidGrant()
  const now = yield* Clock.currentTimeMillis
  const isValid =
    row.expires_at > now &&
    row.redirect_uri === redirect_uri &&
    isVerifier(code_verifier, row.challenge) &&
    !(yield* tenants.isSuspended(row.account_id))
  if (row.used_at === null) {
    const tokens = isValid ? yield* open(dependencies, row, (family) => codes.spend(row, family, now)) : undefined
    if (tokens !== undefined) return tokens
    // An invalid request also spends the code.
    if (!isValid && (yield* codes.discard(row))) return yield* invalidGrant()
  }
  // The code was already used, so it may have been copied. Ends the sign-in that it opened.
  const family = yield* codes.familyOf(row)
  if (family !== null) yield* sessions.end(row.account_id, family)
  return yield* invalidGrant()
})

/** Returns whether the verifier is valid: the challenge must be its SHA-256 (RFC 7636). */
const isVerifier = (verifier: string, challenge: string): boolean => {
  if (!/^[A-Za-z0-9._~-]{43,128}$/.test(verifier)) return false
  const made = Buffer.from(createHash("sha256").update(verifier).digest("base64url"))
  const wanted = Buffer.from(challenge)
  return made.length === wanted.length && timingSafeEqual(made, wanted)
}

// ---- device codes -------------------------------------------------------------------------------------------------------

const byDevice = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  { client_id }: Client,
  device_code: string | undefined
) {
  const { devices, sessions, tenants } = dependencies
  if (device_code === undefined) return yield* OAuthRefusal.of("invalid_request", "device_code is required")
  const row = yield* devices.find(device_code)
  if (row === undefined || row.client_id !== client_id) return yield* invalidGrant()
  const now = yield* Clock.currentTimeMillis
  const { account_id, decision, family_id, tenant_id } = row
  if (row.used_at !== null) {
    // The code was already used, so it may have been copied. Ends the sign-in that it opened.
    if (account_id !== null && family_id !== null) yield* sessions.end(account_id, family_id)
    return yield* invalidGrant()
  }
  if (row.expires_at <= now) return yield* OAuthRefusal.of("expired_token", "the codes have expired; start again")
  if (decision === "deny") return yield* OAuthRefusal.of("access_denied", "the user denied access")
  if (account_id === null || tenant_id === null) return yield* pendingError(dependencies, row)
  if (yield* tenants.isSuspended(account_id)) {
    return yield* OAuthRefusal.of("access_denied", new AccountSuspended().body.error)
  }
  const code = { account_id, tenant_id, client_id, scope: row.scope, nonce: null, auth_time: null }
  const tokens = yield* open(dependencies, code, (family) => devices.spend(row, family, now))
  // If there are no tokens, a concurrent request received them.
  return tokens ?? (yield* invalidGrant())
})

const pendingError = Effect.fnUntraced(function* ({ devices }: Dependencies, row: DeviceRow) {
  return (yield* devices.poll(row))
    ? yield* OAuthRefusal.of("slow_down", "wait five seconds longer between requests from now on")
    : yield* OAuthRefusal.of("authorization_pending", "the user has not decided yet")
})
