/**
 * Signs users in with GitHub. GitHub supports OAuth 2.0 without ID tokens, so the user and the user's email addresses are read from its API.
 *
 * Where the specification is silent:
 * - The address is the user's primary address, if GitHub has verified it. A user without a verified primary address signs in without an address.
 * - `POST /v1/auth/github` returns 401. GitHub's tokens are opaque, so a token issued to another application could otherwise sign its user in here.
 */
import { Effect } from "effect"
import { isStorable } from "../../kernel/StoredText.ts"
import { exchanged, readWith } from "./Endpoints.ts"
import { IdentityRejected } from "./Problems.ts"
import { text } from "./Provider.ts"
import type { ProviderName, ProviderSettings, Redemption, VerifiedIdentity } from "./Provider.ts"

export const issuer = "https://github.com"
export const api = "https://api.github.com"

export const scope = "read:user user:email"

export const authorizationEndpoint = ({ issuer }: ProviderSettings): string =>
  `${withoutSlash(issuer)}/login/oauth/authorize`

/** The API refuses requests without a user agent. */
const headers = { accept: "application/vnd.github+json", "user-agent": "tollgate" }

export const redeemed = Effect.fnUntraced(function* (
  provider: ProviderName,
  settings: ProviderSettings,
  redemption: Redemption
) {
  const endpoint = `${withoutSlash(settings.issuer)}/login/oauth/access_token`
  const { access_token } = yield* exchanged(endpoint, settings, redemption, ["client_secret_post"])
  // GitHub rejects a code with an error body and status 200.
  if (access_token === "") return yield* new IdentityRejected()
  const base = withoutSlash(settings.api_url ?? api)
  const user = (yield* readWith(access_token, `${base}/user`, headers)) as {
    readonly id?: unknown
    readonly login?: unknown
    readonly name?: unknown
  } | null
  const addresses = yield* readWith(access_token, `${base}/user/emails`, headers)
  if (user === null || !Number.isSafeInteger(user.id)) return yield* new IdentityRejected()
  const primary = (Array.isArray(addresses) ? addresses : []).find(
    (one: { readonly primary?: unknown; readonly verified?: unknown } | null) =>
      one?.primary === true && one.verified === true
  ) as { readonly email?: unknown } | undefined
  const email = text(primary?.email).trim().toLowerCase()
  const name = text(user.name) || text(user.login) || email
  if (!isStorable(email) || !isStorable(name)) return yield* new IdentityRejected()
  return { provider, subject: String(user.id), email, email_verified: email !== "", name } satisfies VerifiedIdentity
})

const withoutSlash = (address: string): string => address.replace(/\/+$/, "")
