/** Who calls: what a credential stands for. An embedder makes one of its own; over HTTP `auth/Credentials` does. */
import type { AccountId, ApplicationId, TenantId } from "./Ids.ts"

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
  /** The models that the API key may call, by the names that usage records have; absent where it may call all. */
  readonly allowed_models?: ReadonlyArray<string>
}

/** Whether the caller's list of models has this one, by the name that usage records have. */
export const mayCall = ({ allowed_models }: Pick<Caller, "allowed_models">, model: string): boolean =>
  allowed_models === undefined || allowed_models.includes(model)

/** Who acts, in which tenant: what a method needs that charges nothing. */
export type Actor = Pick<Caller, "account_id" | "tenant_id">
