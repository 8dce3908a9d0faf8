/** Who calls: what a credential stands for. An embedder makes one of its own; over HTTP `people/auth/Credentials` does. */
import type { AccountId, ApplicationId, TenantId } from "./Ids.ts"

/** What a request says about itself for usage records and budgets. */
export interface Labels {
  /** Pairs `name=value`, one a line, ascending. */
  readonly tags?: string | undefined
  /** The caller's own user. */
  readonly end_user?: string | undefined
}

export interface Caller {
  readonly account_id: AccountId
  /** The tenant of the credential: an API key's, or the one that a user token was made for. */
  readonly tenant_id: TenantId
  /** The application whose API key this is; null for a user token. */
  readonly application_id: ApplicationId | null
  readonly credential: "user_token" | "api_key"
  /** Minted by the OAuth code exchange: the team pool is charged first. */
  readonly team_first: boolean
  /** The client that the OAuth code exchange minted the token for; absent for a person's own sign-in and for an API key. */
  readonly oauth_client?: string
  /** With `oauth_client`: the sign-in that the token follows from, which the person or the client can end. */
  readonly sign_in?: string
  /** The models that the API key may call, by the names that usage records have; absent where it may call all. */
  readonly allowed_models?: ReadonlyArray<string>
  /** For the key of a run: the run, and the runs that it descends from. `application_id` is the API key that they descend from. */
  readonly runs?: ReadonlyArray<string>
  /** Labels of the key, which a request cannot replace, and those of the request (`Labels`). */
  readonly labels?: Labels
  /** The tenant wants the sessions and agents that coding agents name in headers as tags. */
  readonly attribution?: true
}

/** Whether the caller's list of models has this one, by the name that usage records have. */
export const mayCall = ({ allowed_models }: Pick<Caller, "allowed_models">, model: string): boolean =>
  allowed_models === undefined || allowed_models.includes(model)

/**
 * Whose things a caller reaches besides what is their account's and tenant's: those of the application, of the OAuth client, or of the
 * person's own sign-ins. It stays the same when a token is refreshed or the person signs in again.
 */
export const holderOf = ({ application_id, oauth_client }: Pick<Caller, "application_id" | "oauth_client">): string => {
  if (application_id !== null) return application_id
  return oauth_client === undefined ? signedIn : `client ${oauth_client}`
}

/** The holder of what a person made by a sign-in of their own. */
export const signedIn = "sign_in"

/** Who acts, in which tenant: what a method needs that charges nothing. */
export type Actor = Pick<Caller, "account_id" | "tenant_id">
