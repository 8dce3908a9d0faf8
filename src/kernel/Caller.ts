/** The caller that a credential identifies. For HTTP requests, `people/auth/Credentials` creates it. Embedders create it themselves. */
import type { AccountId, ApplicationId, TenantId } from "./Ids.ts"

/** A request's labels, for usage records and budgets. */
export interface Labels {
  /** One `name=value` per line, in ascending order. */
  readonly tags?: string | undefined
  /** The caller's own end user. */
  readonly end_user?: string | undefined
}

export interface Caller {
  readonly account_id: AccountId
  /** The tenant that owns the API key or that the user token was issued for. */
  readonly tenant_id: TenantId
  /** The application that owns the API key; `null` for a user token. */
  readonly application_id: ApplicationId | null
  readonly credential: "user_token" | "api_key"
  /** Whether the team pool is charged first, as for tokens issued by the OAuth code exchange. */
  readonly team_first: boolean
  /** The token's OAuth client; absent for a user's own sign-in and for an API key. */
  readonly oauth_client?: string
  /** The sign-in that produced the token of `oauth_client`. The user or the client can end it. */
  readonly sign_in?: string
  /** The models that the API key may call, by their names in usage records. Absent if the key may call all models. */
  readonly allowed_models?: ReadonlyArray<string>
  /** For a run's key: the run and its ancestors. `application_id` then identifies their API key. */
  readonly runs?: ReadonlyArray<string>
  /** The labels of the key and the request (`Labels`). A request cannot override the key's labels. */
  readonly labels?: Labels
  /** Whether the tenant has enabled tags for the sessions and agents that coding agents send in headers. */
  readonly attribution?: true
}

/** Returns whether the caller may call a model, identified by its name in usage records. */
export const mayCall = ({ allowed_models }: Pick<Caller, "allowed_models">, model: string): boolean =>
  allowed_models === undefined || allowed_models.includes(model)

/**
 * Returns the holder of everything that this caller creates, within an account and tenant: the application, the OAuth client, or the user's own
 * sign-ins. The holder stays the same when a token is refreshed or the user signs in again.
 */
export const holderOf = ({ application_id, oauth_client }: Pick<Caller, "application_id" | "oauth_client">): string => {
  if (application_id !== null) return application_id
  return oauth_client === undefined ? signedIn : `client ${oauth_client}`
}

/** The holder for a user's own sign-ins. */
export const signedIn = "sign_in"

/** A caller's account and tenant, for methods that do not charge. */
export type Actor = Pick<Caller, "account_id" | "tenant_id">
