/** Identity providers: their settings, and the people that they vouch for. */
import type { Redacted } from "effect"

/** The provider's name in the configuration, in routes and in stored identities: `google`, `keycloak`. */
export type ProviderName = string

export interface ProviderSettings {
  /** An OpenID Connect issuer, or GitHub, which has OAuth 2.0 without ID tokens. `openid` by default. */
  readonly kind?: "openid" | "github" | undefined
  /** The issuer's address; for GitHub the address of its pages. */
  readonly issuer: string
  /** The client ids that its tokens may be issued for. */
  readonly audiences: ReadonlyArray<string>
  /** The address of its keys. By default its discovery document names it. */
  readonly jwks_uri?: string | undefined
  /** Treat an address as verified unless the token says that it is not. */
  readonly trust_email?: boolean | undefined
  /** The client of the code flow. Without it a browser signs in by a posted ID token, which needs no secret. */
  readonly client_id?: string | undefined
  readonly client_secret?: Redacted.Redacted | undefined
  /** The name on the button. */
  readonly name?: string | undefined
  /** The requested scope. */
  readonly scope?: string | undefined
  /** The claim that lists the person's groups. Dots lead into nested claims. */
  readonly groups_claim?: string | undefined
  /** GitHub only: the address of its API. */
  readonly api_url?: string | undefined
}

/** A person as the provider vouches for them. */
export interface VerifiedIdentity {
  readonly provider: ProviderName
  readonly subject: string
  /** In lower case; empty if the provider gives none. */
  readonly email: string
  readonly email_verified: boolean
  readonly name: string
  /** The groups of the configured claim. */
  readonly groups?: ReadonlyArray<string> | undefined
}

/** The answer of the sign-in page, with the values that the browser left with. */
export interface Redemption {
  readonly code: string
  readonly redirect_uri: string
  /** The PKCE verifier. */
  readonly verifier: string
  /** The nonce that the ID token must repeat. */
  readonly nonce: string
  /** The `iss` parameter of RFC 9207, if the provider sent one. */
  readonly iss?: string | undefined
}

export const defaultGroupsClaim = "groups"

/** A claim that is a text; empty otherwise. */
export const text = (value: unknown): string => (typeof value === "string" ? value : "")

type Claims = Readonly<Record<string, unknown>>

/** The claim of this name. A name with dots that is no claim itself leads into nested claims: `realm_access.roles`. */
const claimAt = (claims: Claims, name: string): unknown => {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Claims)[part]
  }
  return value
}

/** The groups that the claims list. A single text is one group. */
export const groupsIn = (claims: Claims, { groups_claim = defaultGroupsClaim }: ProviderSettings) => {
  const value = claimAt(claims, groups_claim)
  const listed = Array.isArray(value) ? value : [value]
  return listed.filter((group): group is string => typeof group === "string" && group !== "")
}

/** Whether the claims state groups at all. */
export const statesGroups = (claims: Claims, { groups_claim = defaultGroupsClaim }: ProviderSettings): boolean =>
  claimAt(claims, groups_claim) !== undefined
