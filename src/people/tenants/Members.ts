/** The members of shared tenants: who may do what, decided on what is read and guarded again in the transaction that does it. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import { afterCommit } from "../../books/ledger/Writer.ts"
import type { Writer } from "../../books/ledger/Writer.ts"
import type { Member, Role } from "./Account.ts"
import type { BelongingContract } from "./Belonging.ts"
import { manages, mayTouch } from "./Organisation.ts"
import type { OrganisationsContract } from "./Organisations.ts"
import { HomeTenant, InsufficientRole, LastOwner, MemberNotFound, NotAMember, TooManyTenants } from "./Problems.ts"
import type { TenantsContract } from "./Tenants.ts"

/** How many tenants an account may own, its home included, and be a member of. */
const ownedMax = 20
const membershipsMax = 100

export const make = (
  sql: SqlClient,
  writer: Writer["Type"],
  tenants: TenantsContract,
  belonging: BelongingContract
) => {
  /** The members of a tenant and the viewer's role, if the viewer is an active member. */
  const membersOf = (tenant_id: TenantId, viewer: AccountId) =>
    Effect.flatMap(tenants.members(tenant_id), (members) => {
      const found = members.find(({ account_id, status }) => account_id === viewer && status === "active")
      return found === undefined ? new NotAMember({ tenant_id }) : Effect.succeed({ members, role: found.role })
    })

  /** The same for owners and admins. */
  const managed = Effect.fnUntraced(function* (tenant_id: TenantId, by: AccountId) {
    const found = yield* membersOf(tenant_id, by)
    return manages(found.role) ? found : yield* new InsufficientRole({ tenant_id })
  })

  /** Refuses the transaction unless the account is an active member of that role when it runs. */
  const stillHasRole = (account: AccountId, tenant: TenantId, role: Role): Statement =>
    statement(
      sql`UPDATE tollgate_tenants_memberships SET role = role WHERE account_id = ${account} AND tenant_id = ${tenant}
        AND status = 'active' AND role = ${role} RETURNING account_id`,
      1
    )

  /** Finds a row if the account may have one more membership, and if `owner` own one more tenant. */
  const room = (account: AccountId, joins: boolean, owner: boolean) =>
    sql`SELECT 1 FROM (SELECT count(*) AS all_of_them, count(*) FILTER (WHERE role = 'owner') AS owned
        FROM tollgate_tenants_memberships WHERE account_id = ${account} AND status <> 'removed')
      WHERE (${joins ? 0 : 1} OR all_of_them < ${membershipsMax}) AND (${owner ? 0 : 1} OR owned < ${ownedMax})`

  /** For the transaction that makes a membership, or an owner of a member. */
  const stillHasRoom = (account: AccountId, joins: boolean, owner: boolean): Statement =>
    statement(room(account, joins, owner), 1)

  const hasRoom = (account: AccountId, joins: boolean, owner: boolean) =>
    Effect.flatMap(Effect.orDie(room(account, joins, owner)), (rows) =>
      rows.length === 0 ? new TooManyTenants() : Effect.void
    )

  const change: OrganisationsContract["change"] = Effect.fn("Organisations.change")(function* (request) {
    const { account_id, caller, change: wish, tenant_id } = request
    const now = yield* Clock.currentTimeMillis
    const { members, role } = yield* membersOf(tenant_id, caller.account_id)
    const member = members.find((one) => one.account_id === account_id)
    const leaving = caller.account_id === account_id && wish.status === "removed" && wish.role === undefined
    if (!leaving && !manages(role)) return yield* new InsufficientRole({ tenant_id })
    if (member === undefined) return yield* new MemberNotFound({ tenant_id, account_id })
    if (wish.role === undefined && wish.status === undefined) {
      return yield* new InvalidRequest({
        message: "role or status: one of them must be given",
        field: "role",
        rule: "role or status"
      })
    }
    const after = { ...member, role: wish.role ?? member.role, status: wish.status ?? member.status, updated_at: now }
    if (after.role === member.role && after.status === member.status) return member
    if (!leaving && !(mayTouch(role, member.role) && mayTouch(role, after.role))) {
      return yield* new InsufficientRole({ tenant_id })
    }
    if (member.is_home && after.status !== "active") return yield* new HomeTenant({ tenant_id, account_id })
    const losesOwner = isActiveOwner(member) && !isActiveOwner(after)
    if (losesOwner && members.filter(isActiveOwner).length === 1) return yield* new LastOwner({ tenant_id })
    const becomesOwner = member.role !== "owner" && after.role === "owner"
    if (becomesOwner) yield* hasRoom(account_id, false, true)
    const statements = [
      stillHasRole(caller.account_id, tenant_id, role),
      stillHasRoom(account_id, false, becomesOwner),
      statement(
        sql`UPDATE tollgate_tenants_memberships SET role = ${after.role}, status = ${after.status}, updated_at = ${now}
          WHERE account_id = ${account_id} AND tenant_id = ${tenant_id} AND role = ${member.role} AND status = ${member.status}
            AND (${losesOwner ? 0 : 1} OR EXISTS (SELECT 1 FROM tollgate_tenants_memberships WHERE tenant_id = ${tenant_id}
              AND account_id <> ${account_id} AND role = 'owner' AND status = 'active'))
          RETURNING account_id`,
        1
      )
    ]
    return yield* afterCommit(writer.submit({ postings: [], statements }), belonging.changed(account_id)).pipe(
      Effect.as(after),
      Effect.catchTag("Conflict", () => change(request))
    )
  })

  return { membersOf, managed, stillHasRole, stillHasRoom, hasRoom, change }
}

export type Members = ReturnType<typeof make>

const isActiveOwner = ({ role, status }: Pick<Member, "role" | "status">): boolean =>
  role === "owner" && status === "active"
