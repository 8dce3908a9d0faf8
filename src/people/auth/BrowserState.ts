/** What the pages of the OAuth flows remember from one to the next: sealed, in a cookie and in the provider's `state`, for ten minutes. */
import { Clock, Duration, Effect } from "effect"
import { ownCookie } from "../../http/transport/OwnCookie.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { ProviderName } from "../../upstream/identity/Identity.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"

const lifetime = Duration.minutes(10)

/** Who has signed in in this browser. */
export interface SignedIn {
  readonly kind: "signed-in"
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly until: number
}
/** A browser on its way to a provider. */
interface Leaving {
  readonly kind: "leaving"
  readonly nonce: string
  readonly until: number
}
/** What a provider hands back as `state`. */
export interface Errand {
  readonly kind: "errand"
  readonly provider: ProviderName
  readonly nonce: string
  /** Whose page it is; the OAuth flows' unless it says so. */
  readonly room?: "console"
  /** The page to come back to, below those of its room: `authorize?client_id=...`. */
  readonly page: string
  readonly until: number
}
/** A person whom the provider has vouched for, on the way back to their browser. */
export interface Arriving extends Omit<SignedIn, "kind"> {
  readonly kind: "arriving"
  readonly nonce: string
  readonly room?: "console"
  readonly page: string
}
type Sealed = SignedIn | Leaving | Errand | Arriving

/** For a service that people reach at `public_url`. */
export const make = (secret: DeploymentSecretContract, public_url: string) => {
  const cookie = ownCookie("tollgate_consent", "/oauth", public_url)
  const until = Effect.map(Clock.currentTimeMillis, (now) => now + Duration.toMillis(lifetime))
  const seal = (value: Sealed) => secret.seal(JSON.stringify(value))

  /** What was sealed here, and is of this kind, however long ago. */
  const openLate = <Kind extends Sealed["kind"]>(kind: Kind, sealed: string | undefined | null) =>
    sealed === undefined || sealed === null || sealed === ""
      ? Effect.succeed(undefined)
      : Effect.map(secret.unseal(sealed), (text) => {
          const value = JSON.parse(text) as Sealed
          return value.kind === kind ? (value as Extract<Sealed, { kind: Kind }>) : undefined
        }).pipe(Effect.catchAllCause(() => Effect.succeed(undefined)))

  const isOver = ({ until }: Sealed) => Effect.map(Clock.currentTimeMillis, (now) => until <= now)

  /** What was sealed here a moment ago, and is of this kind. */
  const open = <Kind extends Sealed["kind"]>(kind: Kind, sealed: string | undefined | null) =>
    Effect.flatMap(openLate(kind, sealed), (value) =>
      value === undefined ? Effect.succeed(undefined) : Effect.map(isOver(value), (over) => (over ? undefined : value))
    )

  const setCookie = (value: string) =>
    `${cookie.name}=${value}; ${cookie.attributes}; SameSite=Lax; Max-Age=${Duration.toSeconds(lifetime)}`

  return { cookieName: cookie.name, until, seal, open, openLate, isOver, setCookie }
}
