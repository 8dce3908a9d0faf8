/** The identity providers in the configuration: `identity`, by name. */
import { Effect, Schema } from "effect"
import { Address, NonEmpty, secretOf } from "../../kernel/Setting.ts"
import type { ConfigProblem } from "../../kernel/Setting.ts"
import * as GitHub from "../../upstream/identity/GitHub.ts"
import type { ProviderName, ProviderSettings } from "../../upstream/identity/Identity.ts"

/** Names that other routes, other sign-in methods and the directory already use under `/v1/auth/`. */
const reserved: ReadonlySet<string> = new Set(["token", "revoke", "oauth", "email", "link", "passkey", "scim"])

const namePattern = /^[a-z][a-z0-9-]{0,31}$/

const IdentityEntry = Schema.Struct({
  /** The kind of provider. `github` means GitHub's OAuth, which has no issuer. */
  kind: Schema.optional(Schema.Literal("openid", "github")),
  /** The OpenID Connect issuer. Its discovery document lists its keys and endpoints. */
  issuer: Schema.optional(Address),
  /** The client for the code flow, and the environment variable with its secret if the issuer requires one. */
  client_id: Schema.optional(NonEmpty),
  client_secret_env: Schema.optional(NonEmpty),
  /** The client ids accepted in tokens at `/v1/auth/{name}`. Defaults to `client_id`. */
  audiences: Schema.optional(Schema.NonEmptyArray(NonEmpty)),
  /** The label on the sign-in button. */
  name: Schema.optional(NonEmpty),
  jwks_uri: Schema.optional(Address),
  /** Whether addresses count as verified unless the token says otherwise. Microsoft's tokens do not say whether an address is verified. */
  trust_email: Schema.optional(Schema.Boolean),
  /** The scope to request. Defaults to `openid email profile`. */
  scope: Schema.optional(NonEmpty),
  /** The claim that lists a user's groups. Dots separate nested claims, as in `realm_access.roles`. */
  groups_claim: Schema.optional(NonEmpty),
  /** For `github`: the API URL of a self-hosted GitHub. */
  api_url: Schema.optional(Address)
})
type IdentityEntry = typeof IdentityEntry.Type

export interface IdentityEntries extends Readonly<Record<string, IdentityEntry>> {}

const issue = (path: ReadonlyArray<string>, message: string): Schema.FilterIssue => ({ path, message })

/** Checks an entry's name, and the rules that involve several of its fields. */
const issuesOf = (name: string, entry: IdentityEntry): ReadonlyArray<Schema.FilterIssue> => {
  const { audiences, client_id, client_secret_env, issuer, kind = "openid" } = entry
  return [
    ...(namePattern.test(name) && !reserved.has(name)
      ? []
      : [
          issue(
            [name],
            `must consist of lowercase letters, digits and dashes, and must not be one of ${[...reserved].join(", ")}`
          )
        ]),
    ...(kind === "openid" && issuer === undefined
      ? [issue([name, "issuer"], "must be a URL that begins with http:// or https://")]
      : []),
    ...(kind === "openid" && audiences === undefined && client_id === undefined
      ? [
          issue(
            [name, "client_id"],
            "must be the client's id at the issuer; set `audiences` instead to accept only its tokens"
          )
        ]
      : []),
    ...(kind === "github" && client_id === undefined
      ? [issue([name, "client_id"], "must be the OAuth application's id")]
      : []),
    ...(kind === "github" && client_secret_env === undefined
      ? [
          issue(
            [name, "client_secret_env"],
            "must name the environment variable that contains the OAuth application's secret"
          )
        ]
      : []),
    ...(client_secret_env !== undefined && client_id === undefined
      ? [issue([name, "client_id"], "must be the id of the client that the secret belongs to")]
      : [])
  ]
}

export const field = Schema.optionalWith(
  Schema.Record({ key: Schema.String, value: IdentityEntry }).pipe(
    Schema.filter((entries) => Object.entries(entries).flatMap(([name, entry]) => issuesOf(name, entry)))
  ),
  { default: (): IdentityEntries => ({}) }
)

/** Reads the providers, with their secrets from the environment. */
export const settingsOf = (
  entries: IdentityEntries
): Effect.Effect<Readonly<Record<ProviderName, ProviderSettings>>, ConfigProblem> =>
  Effect.map(
    Effect.forEach(Object.entries(entries), ([name, { client_secret_env, issuer, ...entry }]) =>
      Effect.map(
        secretOf(`identity.${name}.client_secret_env`, client_secret_env),
        (client_secret): readonly [string, ProviderSettings] => [
          name,
          {
            ...entry,
            issuer: issuer ?? GitHub.issuer,
            client_secret,
            audiences: entry.audiences ?? (entry.client_id === undefined ? [] : [entry.client_id])
          }
        ]
      )
    ),
    (settings) => Object.fromEntries(settings)
  )
