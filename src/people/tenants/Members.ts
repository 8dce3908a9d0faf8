/** Members of shared tenants. Each permission is checked before the transaction and within it. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { Role } from "./Account.ts"
import type { Member } from "./Account.ts"
import type { BelongingContract } from "./Belonging.ts"
import { manages, mayTouch } from "./Organisation.ts"
import type { OrganisationsContract } from "./Organisations.ts"
import { HomeTenant, InsufficientRole, LastOwner, MemberNotFound, NotAMember, TooManyTenants } from "./Problems.ts"
import type { TenantsContract } from "./Tenants.ts"

/** The maximum number of tenants that an account may own, including its home tenant, and the maximum that it may belong to. */
const ownedMax = 20
const membershipsMax = 100
/** The maximum number of ended memberships retained per tenant. */
const removedMax = 500

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly tenants: TenantsContract
  readonly belonging: BelongingContract
}

export const make = (
  sql: SqlClient,
  writer: WriterContract,
  tenants: TenantsContract,
  belonging: BelongingContract
) => ({
  /** Returns a tenant's members and the viewer's role. Fails unless the viewer is an active member. */
  membersOf: (tenant: TenantId, viewer: AccountId) => membersOf(tenants, tenant, viewer),
  /** Like `membersOf`, but fails unless the viewer is an owner or admin. */
  managed: (tenant: TenantId, viewer: AccountId) => managed(tenants, tenant, viewer),
  /** Fails the transaction unless the account is an active member with this role. */
  stillHasRole: (account: AccountId, tenant: TenantId, role: Role) => stillHasRole(sql, account, tenant, role),
  /** Fails the transaction if the account has too many memberships (`joins`) or owns too many tenants (`owner`). */
  stillHasRoom: (account: AccountId, joins: boolean, owner: boolean) => stillHasRoom(sql, account, joins, owner),
  /** Fails unless the condition of `stillHasRoom` holds. This check runs outside the transaction, for a clear error. */
  hasRoom: (account: AccountId, joins: boolean, owner: boolean) => hasRoom(sql, account, joins, owner),
  change: makeChange({ sql, writer, tenants, belonging })
})

export type Members = ReturnType<typeof make>

// ---- conditions ---------------------------------------------------------------------------------------------------------

const membersOf = (tenants: TenantsContract, tenant_id: TenantId, viewer: AccountId) =>
  Effect.flatMap(tenants.members(tenant_id), (members) => {
    const found = members.find(({ account_id, status }) => account_id === viewer && status === "active")
    return found === undefined ? new NotAMember({ tenant_id }) : Effect.succeed({ members, role: found.role })
  })

const managed = Effect.fnUntraced(function* (tenants: TenantsContract, tenant_id: TenantId, viewer: AccountId) {
  const found = yield* membersOf(tenants, tenant_id, viewer)
  return manages(found.role) ? found : yield* new InsufficientRole({ tenant_id })
})

const stillHasRole = (sql: SqlClient, account: AccountId, tenant: TenantId, role: Role): Statement =>
  statement(
    sql`UPDATE tollgate_tenants_memberships SET role = role WHERE account_id = ${account} AND tenant_id = ${tenant}
      AND status = 'active' AND role = ${role} RETURNING account_id`,
    1
  )

/** Selects a row if the account may gain another membership (`joins`) and own another tenant (`owner`). */
const room = (sql: SqlClient, account: AccountId, joins: boolean, owner: boolean) =>
  sql`SELECT 1 FROM (SELECT count(*) AS all_of_them, count(*) FILTER (WHERE role = 'owner') AS owned
      FROM tollgate_tenants_memberships WHERE account_id = ${account} AND status <> 'removed')
    WHERE (${joins ? 0 : 1} OR all_of_them < ${membershipsMax}) AND (${owner ? 0 : 1} OR owned < ${ownedMax})`

const stillHasRoom = (sql: SqlClient, account: AccountId, joins: boolean, owner: boolean): Statement =>
  statement(room(sql, account, joins, owner), 1)

const hasRoom = (sql: SqlClient, account: AccountId, joins: boolean, owner: boolean) =>
  Effect.flatMap(Effect.orDie(room(sql, account, joins, owner)), (rows) =>
    rows.length === 0 ? new TooManyTenants() : Effect.void
  )

// ---- changing a member --------------------------------------------------------------------------------------------------

const makeChange = (dependencies: Dependencies): OrganisationsContract["change"] => {
  const { belonging, sql, tenants, writer } = dependencies
  const change: OrganisationsContract["change"] = Effect.fn("Organisations.change")(function* (request) {
    const { account_id, caller, tenant_id } = request
    const now = yield* Clock.currentTimeMillis
    const { members, role } = yield* membersOf(tenants, tenant_id, caller.account_id)
    const decision = yield* decide(request, members, role, now)
    if (decision === undefined) return members.find((one) => one.account_id === account_id)!
    const { after, becomesOwner, before, losesOwner } = decision
    if (becomesOwner) yield* hasRoom(sql, account_id, false, true)
    const statements = [
      stillHasRole(sql, caller.account_id, tenant_id, role),
      stillHasRoom(sql, account_id, false, becomesOwner),
      statement(
        sql`UPDATE tollgate_tenants_memberships SET role = ${after.role}, status = ${after.status}, updated_at = ${now}
          WHERE account_id = ${account_id} AND tenant_id = ${tenant_id} AND role = ${before.role} AND status = ${before.status}
            AND (${losesOwner ? 0 : 1} OR EXISTS (SELECT 1 FROM tollgate_tenants_memberships WHERE tenant_id = ${tenant_id}
              AND account_id <> ${account_id} AND role = 'owner' AND status = 'active'))
          RETURNING account_id`,
        1
      ),
      ...withoutInvites(sql, tenant_id, after, now),
      ...(after.status === "removed" ? [withoutOldest(sql, tenant_id)] : [])
    ]
    return yield* afterCommit(writer.submit({ postings: [], statements }), belonging.changed(account_id)).pipe(
      Effect.as(after),
      Effect.catchTag("Conflict", () => change(request))
    )
  })
  return change
}

/**
 * Revokes a member's open invitations to roles that the member may no longer grant. Otherwise, a removed admin could return through an invitation.
 */
const withoutInvites = (sql: SqlClient, tenant: TenantId, { account_id, role, status }: Member, now: number) => {
  const lost = Role.literals.filter((one) => status !== "active" || !mayTouch(role, one))
  const revoked = sql`UPDATE tollgate_tenants_invites SET status = 'revoked', ended_at = ${now}
    WHERE tenant_id = ${tenant} AND invited_by = ${account_id} AND status = 'pending' AND ${sql.in("role", lost)}`
  return lost.length === 0 ? [] : [statement(revoked)]
}

/** Deletes the tenant's oldest ended memberships above the limit. */
const withoutOldest = (sql: SqlClient, tenant: TenantId): Statement => {
  const removed = sql`tenant_id = ${tenant} AND status = 'removed'`
  return statement(sql`DELETE FROM tollgate_tenants_memberships WHERE ${removed} AND (updated_at, account_id) <= (
    SELECT updated_at, account_id FROM tollgate_tenants_memberships WHERE ${removed}
    ORDER BY updated_at DESC, account_id DESC LIMIT 1 OFFSET ${sql.literal(String(removedMax))})`)
}

interface Decision {
  readonly before: Member
  readonly after: Member
  readonly losesOwner: boolean
  readonly becomesOwner: boolean
}

/** Validates a change to a member. Fails unless the caller may make the change. Returns `undefined` if the change has no effect. */
const decide = Effect.fnUntraced(function* (
  { account_id, caller, change: { role, status }, tenant_id }: Parameters<OrganisationsContract["change"]>[0],
  members: ReadonlyArray<Member>,
  callerRole: Role,
  now: number
): Effect.fn.Return<Decision | undefined, InsufficientRole | MemberNotFound | InvalidRequest | HomeTenant | LastOwner> {
  const before = members.find((one) => one.account_id === account_id)
  const leaving = caller.account_id === account_id && status === "removed" && role === undefined
  if (!leaving && !manages(callerRole)) return yield* new InsufficientRole({ tenant_id })
  if (before === undefined) return yield* new MemberNotFound({ tenant_id, account_id })
  if (role === undefined && status === undefined) {
    return yield* new InvalidRequest({
      message: "role or status: at least one is required",
      field: "role",
      rule: "role or status"
    })
  }
  const after = { ...before, role: role ?? before.role, status: status ?? before.status, updated_at: now }
  if (after.role === before.role && after.status === before.status) return undefined
  if (!leaving && !(mayTouch(callerRole, before.role) && mayTouch(callerRole, after.role))) {
    return yield* new InsufficientRole({ tenant_id })
  }
  if (before.is_home && after.status !== "active") return yield* new HomeTenant({ tenant_id, account_id })
  const losesOwner = isActiveOwner(before) && !isActiveOwner(after)
  if (losesOwner && members.filter(isActiveOwner).length === 1) return yield* new LastOwner({ tenant_id })
  return { before, after, losesOwner, becomesOwner: before.role !== "owner" && after.role === "owner" }
})

const isActiveOwner = ({ role, status }: Pick<Member, "role" | "status">): boolean =>
  role === "owner" && status === "active"
