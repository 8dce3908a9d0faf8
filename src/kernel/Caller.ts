/** The caller that a credential identifies. `people/auth/Credentials` creates it for HTTP requests, and embedders create it themselves. */
import type { AccountId, ApplicationId, TenantId } from "./Ids.ts"

/** Labels of a request, for usage records and budgets. */
export interface Labels {
  /** One `name=value` per line, in ascending order. */
  readonly tags?: string | undefined
  /** The end user, one of the caller's own users. */
  readonly end_user?: string | undefined
}

export interface Caller {
  readonly account_id: AccountId
  /** The tenant that the API key belongs to, or that the user token was issued for. */
  readonly tenant_id: TenantId
  /** The application that owns the API key; `null` for a user token. */
  readonly application_id: ApplicationId | null
  readonly credential: "user_token" | "api_key"
  /** Whether the team pool is charged first, because the OAuth code exchange issued the token. */
  readonly team_first: boolean
  /** The token's OAuth client; absent for a user's own sign-in and for an API key. */
  readonly oauth_client?: string
  /** The sign-in behind a token of `oauth_client`. The user or the client can end it. */
  readonly sign_in?: string
  /** The models that the API key may call, by their names in usage records; absent if all are allowed. */
  readonly allowed_models?: ReadonlyArray<string>
  /** For a run's key, the run and its ancestors. `application_id` is then the API key that they descend from. */
  readonly runs?: ReadonlyArray<string>
  /** The key's labels, which a request cannot override, together with the request's own labels (`Labels`). */
  readonly labels?: Labels
  /** Whether the tenant has enabled tags for the sessions and agents that coding agents name in headers. */
  readonly attribution?: true
}

/** Whether the caller may call this model, by its name in usage records. */
export const mayCall = ({ allowed_models }: Pick<Caller, "allowed_models">, model: string): boolean =>
  allowed_models === undefined || allowed_models.includes(model)

/**
 * The holder, within an account and tenant, that owns what this caller creates: the application, the OAuth client, or the user's own sign-ins. It
 * stays the same when a token is refreshed or the user signs in again.
 */
export const holderOf = ({ application_id, oauth_client }: Pick<Caller, "application_id" | "oauth_client">): string => {
  if (application_id !== null) return application_id
  return oauth_client === undefined ? signedIn : `client ${oauth_client}`
}

/** The holder for a user's own sign-ins. */
export const signedIn = "sign_in"

/** A caller's account and tenant, for methods without a charge. */
export type Actor = Pick<Caller, "account_id" | "tenant_id">
