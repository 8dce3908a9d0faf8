/**
 * Derives team memberships from an identity provider's groups, each time a user signs in with that provider.
 *
 * Where the specification is silent:
 * - Groups remove only memberships that groups granted. They do not affect memberships by invitation, owners, or suspensions within the team.
 * - If a user's groups grant two roles in one team, the user receives the higher role.
 * - If all seats in the team are taken, the user signs in without joining the team, and a log line names the team.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
import type { BelongingContract } from "./Belonging.ts"
import * as Joining from "./Joining.ts"
import { rulesFor } from "./RegistrationPolicy.ts"
import type { GroupRule } from "./RegistrationPolicy.ts"
import type { TenantsContract } from "./Tenants.ts"

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly belonging: BelongingContract
  readonly tenants: TenantsContract
  readonly rules: ReadonlyArray<GroupRule>
}

type GroupRole = GroupRule["role"]

/** A membership that a group grants or has granted. */
interface GroupMembership {
  readonly account: AccountId
  readonly team: TenantId
  readonly provider: string
}

export const make = (dependencies: Dependencies) =>
  Effect.fn("Registration.applyGroups")(function* (
    account: AccountId,
    identity: Pick<VerifiedIdentity, "provider" | "groups">
  ): Effect.fn.Return<void, BooksUnavailable> {
    const { provider } = identity
    const wanted = teamsOf(rulesFor(dependencies.rules, identity))
    const given = yield* grantedTeams(dependencies, account)
    for (const [team, role] of wanted) {
      yield* addMembership(dependencies, { account, team, provider }, role, given.get(team) ?? [])
    }
    for (const [team, providers] of given) {
      if (providers.includes(provider) && !wanted.has(team))
        yield* removeMembership(dependencies, { account, team, provider })
    }
  })

const teamsOf = (rules: ReadonlyArray<GroupRule>): ReadonlyMap<TenantId, GroupRole> => {
  const teams = new Map<TenantId, GroupRole>()
  for (const { role, team } of rules) {
    if (team !== undefined && teams.get(team) !== "admin") teams.set(team, role)
  }
  return teams
}

/** Lists the teams that groups granted to the account, with the providers of those groups. */
const grantedTeams = ({ sql }: Dependencies, account: AccountId) =>
  Effect.map(
    Effect.orDie(
      sql<{ tenant_id: TenantId; provider: string }>`SELECT tenant_id, provider FROM tollgate_tenants_group_members
        WHERE account_id = ${account}`
    ),
    (rows) => {
      const given = new Map<TenantId, Array<string>>()
      for (const { provider, tenant_id } of rows) given.set(tenant_id, [...(given.get(tenant_id) ?? []), provider])
      return given
    }
  )

// ---- granting -----------------------------------------------------------------------------------------------------------

const addMembership = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  groupMembership: GroupMembership,
  role: GroupRole,
  givenBy: ReadonlyArray<string>
) {
  const { belonging, sql, tenants, writer } = dependencies
  const { account, provider, team } = groupMembership
  const current = (yield* tenants.memberships(account)).find(({ tenant_id }) => tenant_id === team)
  const now = yield* Clock.currentTimeMillis
  const note = givenBy.includes(provider) ? [] : [noticeStatement(sql, groupMembership)]
  if (current === undefined) {
    const joins = yield* Joining.statements(dependencies, { account, team, role }, now)
    const joined = yield* afterCommit(Statements.tryWrite(writer, ...joins, ...note), belonging.changed(account))
    if (!joined)
      yield* Effect.logWarning("a group's team is unknown or full, or the user has too many teams", groupMembership)
    return
  }
  const follows = givenBy.length > 0 && current.status === "active" && current.role !== "owner"
  if (!follows || (current.role === role && note.length === 0)) return
  const changed = sql`UPDATE tollgate_tenants_memberships SET role = ${role}, updated_at = ${now}
    WHERE account_id = ${account} AND tenant_id = ${team} AND status = 'active' AND role <> 'owner'`
  const written = Statements.write(writer, statement(changed), ...note, withoutInvites(sql, groupMembership, now))
  yield* afterCommit(written, belonging.changed(account))
})

const noticeStatement = (sql: SqlClient, { account, provider, team }: GroupMembership): Statement =>
  statement(sql`INSERT INTO tollgate_tenants_group_members (account_id, tenant_id, provider)
    VALUES (${account}, ${team}, ${provider}) ON CONFLICT DO NOTHING`)

// ---- revoking -----------------------------------------------------------------------------------------------------------

const removeMembership = Effect.fnUntraced(function* (
  { belonging, sql, writer }: Dependencies,
  groupMembership: GroupMembership
) {
  const { account, provider, team } = groupMembership
  const now = yield* Clock.currentTimeMillis
  const statements = [
    statement(sql`DELETE FROM tollgate_tenants_group_members
      WHERE account_id = ${account} AND tenant_id = ${team} AND provider = ${provider}`),
    statement(sql`UPDATE tollgate_tenants_memberships SET status = 'removed', updated_at = ${now}
      WHERE account_id = ${account} AND tenant_id = ${team} AND status = 'active' AND role <> 'owner'
        AND NOT EXISTS (SELECT 1 FROM tollgate_tenants_group_members WHERE account_id = ${account} AND tenant_id = ${team})`),
    withoutInvites(sql, groupMembership, now)
  ]
  yield* afterCommit(Statements.write(writer, ...statements), belonging.changed(account))
})

/** Revokes a user's open invitations if the user may no longer invite. */
const withoutInvites = (sql: SqlClient, { account, team }: GroupMembership, now: number): Statement =>
  statement(sql`UPDATE tollgate_tenants_invites SET status = 'revoked', ended_at = ${now}
    WHERE tenant_id = ${team} AND invited_by = ${account} AND status = 'pending'
      AND NOT EXISTS (SELECT 1 FROM tollgate_tenants_memberships
        WHERE account_id = ${account} AND tenant_id = ${team} AND status = 'active' AND role IN ('owner', 'admin'))`)
