/**
 * The console's sessions. A session is a sign-in (`Sessions`) in a sealed cookie instead of a refresh token. Tabs that shared a refresh token would
 * invalidate it for each other. Ending the sign-in invalidates all of its access tokens.
 *
 * Where the specification is silent:
 * - A session expires a week after its last use, and 90 days after the sign-in at the latest. Its access tokens are valid for ten minutes.
 * - A tab that requests no particular tenant receives a token for the tenant that was requested last.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { NotAMember } from "../tenants/Problems.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import * as ConsoleLinks from "./ConsoleLinks.ts"
import { SessionEnded } from "./Problems.ts"
import { familyLifetime, refreshLifetime } from "./RefreshTokens.ts"
import { Sessions } from "./Sessions.ts"
import { Tokens } from "./Tokens.ts"

/** The client id in the console's tokens. */
export const consoleClient = "console"

const accessLifetime = Duration.minutes(10)

export interface Held {
  readonly cookie: string
  /** When the session expires unless it is used. */
  readonly until: number
}

export interface Access {
  readonly access_token: string
  /** The lifetime of the access token in seconds. */
  readonly expires_in: number
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  /** The session with its new expiry. */
  readonly session: Held
}

export interface BrowserSessionsContract {
  readonly open: (person: {
    readonly account_id: AccountId
    readonly tenant_id: TenantId
  }) => Effect.Effect<Held, BooksUnavailable>
  /** Creates an access token for the session's user, in `tenant` if present, and otherwise in the last requested tenant. */
  readonly access: (
    cookie: string | undefined,
    tenant: TenantId | undefined
  ) => Effect.Effect<Access, SessionEnded | NotAMember>
  /** Creates the code for a single-use console link (`ConsoleLinks`), in the same transaction as `beside`. */
  readonly invite: (
    person: ConsoleLinks.Person,
    beside: ReadonlyArray<Statement>
  ) => Effect.Effect<{ readonly code: string; readonly expires_at: number }, BooksUnavailable>
  /** Redeems a link's code and opens a session for its user. */
  readonly enter: (code: string) => Effect.Effect<Held, SessionEnded | BooksUnavailable>
  /** Ends the session. An invalid cookie has no effect. */
  readonly end: (cookie: string | undefined) => Effect.Effect<void, BooksUnavailable>
}

export class BrowserSessions extends Context.Tag("tollgate/auth/BrowserSessions")<
  BrowserSessions,
  BrowserSessionsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(BrowserSessions, make))
}

interface Sealed {
  readonly kind: "session"
  readonly family: string
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly signed_in_at: number
  readonly until: number
}

const make = Effect.gen(function* () {
  const secret = yield* DeploymentSecret
  const sessions = yield* Sessions
  const tenants = yield* Tenants
  const tokens = yield* Tokens
  const links = ConsoleLinks.make(yield* SqlClient, yield* Writer, secret)

  const seal = Effect.fnUntraced(function* (session: Omit<Sealed, "kind" | "until">, now: number) {
    const until = Math.min(
      now + Duration.toMillis(refreshLifetime),
      session.signed_in_at + Duration.toMillis(familyLifetime)
    )
    const sealed: Sealed = { ...session, kind: "session", until }
    return { cookie: yield* secret.seal(JSON.stringify(sealed)), until } satisfies Held
  })

  const unseal = (cookie: string | undefined): Effect.Effect<Sealed | undefined> =>
    cookie === undefined || cookie === ""
      ? Effect.succeed(undefined)
      : Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const session = JSON.parse(yield* secret.unseal(cookie)) as Sealed
          return session.kind === "session" && session.until > now ? session : undefined
          // The value is not sealed, or was sealed with another secret.
        }).pipe(Effect.catchAllCause(() => Effect.succeed(undefined)))

  const open: BrowserSessionsContract["open"] = Effect.fn("BrowserSessions.open")(function* (person) {
    const now = yield* Clock.currentTimeMillis
    const family = yield* sessions.begin({ ...person, client_id: consoleClient, team_first: false, grant: "all" })
    return yield* seal({ ...person, family, signed_in_at: now }, now)
  })

  /** Returns the requested tenant, by default the last requested one or the first with an active membership. Fails if the user is not a member. */
  const tenantOf = Effect.fnUntraced(function* ({ account_id, tenant_id }: Sealed, asked: TenantId | undefined) {
    if (yield* tenants.isActiveMember(account_id, asked ?? tenant_id)) return asked ?? tenant_id
    if (asked !== undefined) return yield* new NotAMember({ tenant_id: asked })
    const left = (yield* tenants.memberships(account_id)).find(({ status }) => status === "active")
    return left?.tenant_id ?? (yield* new SessionEnded())
  })

  const access: BrowserSessionsContract["access"] = Effect.fn("BrowserSessions.access")(function* (cookie, asked) {
    const session = yield* unseal(cookie)
    if (session === undefined || !(yield* sessions.isLive(session.family))) return yield* new SessionEnded()
    const { account_id, family } = session
    const tenant_id = yield* tenantOf(session, asked)
    const token = { account_id, tenant_id, client_id: consoleClient, family, team_first: false, grant: "all" } as const
    return {
      access_token: yield* tokens.sign(token, accessLifetime),
      expires_in: Duration.toSeconds(accessLifetime),
      account_id,
      tenant_id,
      session: yield* seal({ ...session, tenant_id }, yield* Clock.currentTimeMillis)
    }
  })

  const end: BrowserSessionsContract["end"] = Effect.fn("BrowserSessions.end")(function* (cookie) {
    const session = yield* unseal(cookie)
    if (session !== undefined) yield* sessions.end(session.account_id, session.family)
  })

  const enter: BrowserSessionsContract["enter"] = Effect.fn("BrowserSessions.enter")(function* (code) {
    const person = yield* links.spend(code)
    if (person === undefined || (yield* tenants.isSuspended(person.account_id))) return yield* new SessionEnded()
    return yield* open(person)
  })

  return { open, access, invite: links.invite, enter, end } satisfies BrowserSessionsContract
})
