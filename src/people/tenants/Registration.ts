/**
 * Decides who may sign in: users with an account, and new users if the configuration admits them. An identity provider's groups add a user to teams.
 *
 * Where the specification is silent:
 * - A user without an account needs an invitation to a team, a pending transfer to their address, or a rule in `registration`: `open`, a verified
 *   address in `domains` or `emails`, or a group in `groups`. A deployment without rules admits only invited users. The sandbox is open.
 * - An account is identified by its identity or its verified address. Users with an account may always sign in.
 * - An invitation or an address counts only if the provider has verified the address.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { AccountId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
import { Belonging } from "./Belonging.ts"
import * as GroupTeams from "./GroupTeams.ts"
import { AccountSuspended, NotInvited } from "./Problems.ts"
import { admits, RegistrationPolicy } from "./RegistrationPolicy.ts"
import { Tenants } from "./Tenants.ts"
import type { TenantsContract, Welcomed } from "./Tenants.ts"

/** Checks whether another module's invitation lets the owner of a verified address create an account. */
export class InvitedElsewhere extends Context.Tag("tollgate/tenants/InvitedElsewhere")<
  InvitedElsewhere,
  (email: string) => Effect.Effect<boolean>
>() {
  /** Provides a check that always returns `false`, for a service without such invitations. */
  static readonly layerNone = Layer.succeed(InvitedElsewhere, () => Effect.succeed(false))
}

export interface RegistrationContract {
  /** Signs in a verified user: checks that they may sign in, creates an account if they have none, and updates their teams. */
  readonly signIn: (
    identity: VerifiedIdentity
  ) => Effect.Effect<Welcomed, NotInvited | AccountSuspended | BooksUnavailable>
  /** Adds an account to the teams for these groups, and removes it from the teams for this provider's other groups. */
  readonly applyGroups: (
    account: AccountId,
    identity: Pick<VerifiedIdentity, "provider" | "groups">
  ) => Effect.Effect<void, BooksUnavailable>
  /** Returns whether the owner of this address could sign in once it is verified. */
  readonly mayCome: (identity: VerifiedIdentity) => Effect.Effect<boolean>
}

export class Registration extends Context.Tag("tollgate/tenants/Registration")<Registration, RegistrationContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Registration, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const tenants = yield* Tenants
  const policy = yield* RegistrationPolicy
  const invitedElsewhere = yield* InvitedElsewhere
  const applyGroups = GroupTeams.make({
    sql,
    writer: yield* Writer,
    belonging: yield* Belonging,
    tenants,
    rules: policy.groups
  })

  const mayCome: RegistrationContract["mayCome"] = Effect.fnUntraced(function* (identity) {
    if (admits(policy, identity) || (yield* isKnown(sql, tenants, identity))) return true
    if (!identity.email_verified) return false
    const now = yield* Clock.currentTimeMillis
    return (yield* isInvited(sql, identity.email, now)) || (yield* invitedElsewhere(identity.email))
  })

  const signIn: RegistrationContract["signIn"] = Effect.fn("Registration.signIn")(function* (identity) {
    if (!(yield* mayCome(identity))) return yield* new NotInvited()
    const welcomed = yield* tenants.welcome(identity)
    if (yield* tenants.isSuspended(welcomed.account_id)) return yield* new AccountSuspended()
    yield* applyGroups(welcomed.account_id, identity)
    return welcomed
  })

  return { signIn, mayCome, applyGroups } satisfies RegistrationContract
})

const isKnown = (
  sql: SqlClient,
  tenants: TenantsContract,
  { email, email_verified, provider, subject }: VerifiedIdentity
): Effect.Effect<boolean> =>
  Effect.flatMap(
    Effect.orDie(
      sql<{ account_id: AccountId }>`SELECT account_id FROM tollgate_tenants_identities
        WHERE provider = ${provider} AND subject = ${subject}`
    ),
    ([found]) =>
      found !== undefined || !email_verified
        ? Effect.succeed(found !== undefined)
        : Effect.map(tenants.accountOfEmail(email), (account) => account !== undefined)
  )

const isInvited = (sql: SqlClient, email: string, now: number): Effect.Effect<boolean> =>
  Effect.map(
    Effect.orDie(
      sql`SELECT 1 FROM tollgate_tenants_invites WHERE email = ${email} AND status = 'pending' AND expires_at > ${now} LIMIT 1`
    ),
    (rows) => rows.length > 0
  )
