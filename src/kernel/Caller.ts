/** The caller that a credential identifies. Over HTTP `people/auth/Credentials` creates it; an embedder creates it directly. */
import type { AccountId, ApplicationId, TenantId } from "./Ids.ts"

/** Labels of a request, for usage records and budgets. */
export interface Labels {
  /** Pairs `name=value`, one a line, ascending. */
  readonly tags?: string | undefined
  /** The caller's own user. */
  readonly end_user?: string | undefined
}

export interface Caller {
  readonly account_id: AccountId
  /** The tenant of the credential: that of the API key, or the one for which the user token was issued. */
  readonly tenant_id: TenantId
  /** The application that owns the API key; `null` for a user token. */
  readonly application_id: ApplicationId | null
  readonly credential: "user_token" | "api_key"
  /** The OAuth code exchange issued the token, so the team pool is charged first. */
  readonly team_first: boolean
  /** The OAuth client of the token; absent for a person's own sign-in and for an API key. */
  readonly oauth_client?: string
  /** With `oauth_client`: the sign-in of the token. The person or the client can end it. */
  readonly sign_in?: string
  /** The models that the API key may call, by their names in usage records; absent if all are allowed. */
  readonly allowed_models?: ReadonlyArray<string>
  /** For the key of a run: the run, and the runs that it descends from. `application_id` is the API key that they descend from. */
  readonly runs?: ReadonlyArray<string>
  /** Labels of the key, which a request cannot replace, and those of the request (`Labels`). */
  readonly labels?: Labels
  /** The tenant wants the sessions and agents that coding agents name in headers as tags. */
  readonly attribution?: true
}

/** Whether the caller may call this model, by its name in usage records. */
export const mayCall = ({ allowed_models }: Pick<Caller, "allowed_models">, model: string): boolean =>
  allowed_models === undefined || allowed_models.includes(model)

/**
 * The holder, within an account and tenant, that owns what this caller creates: the application, the OAuth client, or the person's own sign-ins.
 * It stays the same when a token is refreshed or the person signs in again.
 */
export const holderOf = ({ application_id, oauth_client }: Pick<Caller, "application_id" | "oauth_client">): string => {
  if (application_id !== null) return application_id
  return oauth_client === undefined ? signedIn : `client ${oauth_client}`
}

/** The holder for a person's own sign-ins. */
export const signedIn = "sign_in"

/** The account and tenant of a caller, for methods that charge nothing. */
export type Actor = Pick<Caller, "account_id" | "tenant_id">
