/** Identity providers: their settings, and the users that they verify. */
import type { Redacted } from "effect"

/** The provider's name in the configuration, in routes and in stored identities, such as `google` or `keycloak`. */
export type ProviderName = string

export interface ProviderSettings {
  /** An OpenID Connect issuer (the default), or GitHub. GitHub supports OAuth 2.0 without ID tokens. */
  readonly kind?: "openid" | "github" | undefined
  /** The issuer's URL; for GitHub, the URL of its pages. */
  readonly issuer: string
  /** The client ids that are accepted as the audience of the provider's tokens. */
  readonly audiences: ReadonlyArray<string>
  /** The URL of the provider's keys. The default is the one in its discovery document. */
  readonly jwks_uri?: string | undefined
  /** Whether an address counts as verified unless the token states otherwise. */
  readonly trust_email?: boolean | undefined
  /** The client id for the code flow. Without it, browsers sign in with a posted ID token and no secret is needed. */
  readonly client_id?: string | undefined
  readonly client_secret?: Redacted.Redacted | undefined
  readonly name?: string | undefined
  readonly scope?: string | undefined
  /** The claim that lists the user's groups. Dots address nested claims. */
  readonly groups_claim?: string | undefined
  /** GitHub only: the URL of its API. */
  readonly api_url?: string | undefined
}

export interface VerifiedIdentity {
  readonly provider: ProviderName
  readonly subject: string
  /** In lower case; empty if the provider sends no address. */
  readonly email: string
  readonly email_verified: boolean
  readonly name: string
  readonly groups?: ReadonlyArray<string> | undefined
}

/** The parameters of the authorization callback, and the values saved when the sign-in began. */
export interface Redemption {
  readonly code: string
  readonly redirect_uri: string
  readonly verifier: string
  /** The nonce that the ID token must contain. */
  readonly nonce: string
  /** The `iss` parameter of RFC 9207, if the provider sent one. */
  readonly iss?: string | undefined
}

export const defaultGroupsClaim = "groups"

/** Returns the value if it is a string, otherwise an empty string. */
export const text = (value: unknown): string => (typeof value === "string" ? value : "")

type Claims = Readonly<Record<string, unknown>>

/** Returns the claim with this name. If there is none, a name with dots addresses a nested claim, as in `realm_access.roles`. */
const claimAt = (claims: Claims, name: string): unknown => {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Claims)[part]
  }
  return value
}

/** Reads the groups from the claims. A single string counts as one group. */
export const groupsIn = (claims: Claims, { groups_claim = defaultGroupsClaim }: ProviderSettings) => {
  const value = claimAt(claims, groups_claim)
  const listed = Array.isArray(value) ? value : [value]
  return listed.filter((group): group is string => typeof group === "string" && group !== "")
}

/** Returns whether the claims contain the groups, even as an empty list. */
export const statesGroups = (claims: Claims, { groups_claim = defaultGroupsClaim }: ProviderSettings): boolean =>
  claimAt(claims, groups_claim) !== undefined
