/**
 * Passes the OAuth pages' state from one request to the next, in a cookie and in the provider's `state` parameter. The state is sealed and valid for
 * ten minutes.
 */
import { Clock, Duration, Effect } from "effect"
import { ownCookie } from "../../http/transport/OwnCookie.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { ProviderName } from "../../upstream/identity/Identity.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"

const lifetime = Duration.minutes(10)

/** Stored in the cookie; identifies the signed-in user. */
export interface SignedIn {
  readonly kind: "signed-in"
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly until: number
}
/** The cookie content of a browser that was redirected to a provider. */
interface PendingSignIn {
  readonly kind: "leaving"
  readonly nonce: string
  readonly until: number
}
/** Sent in the `state` parameter. The provider returns it unchanged. */
export interface ProviderState {
  readonly kind: "errand"
  readonly provider: ProviderName
  readonly nonce: string
  /** Set for a console sign-in, absent for the OAuth pages. */
  readonly room?: "console"
  /** The page to return to, relative to the OAuth pages or the console: `authorize?client_id=...`. */
  readonly page: string
  readonly until: number
}
/** Sent in the URL of `/oauth/continue`; identifies the user that the provider verified. */
export interface VerifiedPerson extends Omit<SignedIn, "kind"> {
  readonly kind: "arriving"
  readonly nonce: string
  readonly room?: "console"
  readonly page: string
}
/** Returns the Unix time of the user's sign-in, in milliseconds. */
export const signedInAt = ({ until }: SignedIn): number => until - Duration.toMillis(lifetime)

type Sealed = SignedIn | PendingSignIn | ProviderState | VerifiedPerson

export const make = (secret: DeploymentSecretContract, public_url: string) => {
  const cookie = ownCookie("tollgate_consent", "/oauth", public_url)
  const until = Effect.map(Clock.currentTimeMillis, (now) => now + Duration.toMillis(lifetime))
  const seal = (value: Sealed) => secret.seal(JSON.stringify(value))

  /** Opens a sealed state of this kind, even an expired one. Returns `undefined` if it was not sealed here. */
  const openExpired = <Kind extends Sealed["kind"]>(kind: Kind, sealed: string | undefined | null) =>
    sealed === undefined || sealed === null || sealed === ""
      ? Effect.succeed(undefined)
      : Effect.map(secret.unseal(sealed), (text) => {
          const value = JSON.parse(text) as Sealed
          return value.kind === kind ? (value as Extract<Sealed, { kind: Kind }>) : undefined
        }).pipe(Effect.catchAllCause(() => Effect.succeed(undefined)))

  const hasExpired = ({ until }: Sealed) => Effect.map(Clock.currentTimeMillis, (now) => until <= now)

  /** Opens a sealed state of this kind. Returns `undefined` if it has expired or was not sealed here. */
  const open = <Kind extends Sealed["kind"]>(kind: Kind, sealed: string | undefined | null) =>
    Effect.flatMap(openExpired(kind, sealed), (value) =>
      value === undefined
        ? Effect.succeed(undefined)
        : Effect.map(hasExpired(value), (expired) => (expired ? undefined : value))
    )

  const setCookie = (value: string) =>
    `${cookie.name}=${value}; ${cookie.attributes}; SameSite=Lax; Max-Age=${Duration.toSeconds(lifetime)}`

  const clearCookie = `${cookie.name}=; ${cookie.attributes}; SameSite=Lax; Max-Age=0`

  return { clearCookie, cookieName: cookie.name, until, seal, open, openExpired, hasExpired, setCookie }
}

export type BrowserState = ReturnType<typeof make>
