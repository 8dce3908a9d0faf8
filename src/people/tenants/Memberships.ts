/** Reads memberships and roles. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { noPlan } from "./Account.ts"
import type { Account, Member, Plan, Role } from "./Account.ts"
import { manages } from "./Organisation.ts"
import { InsufficientRole } from "./Problems.ts"
import type { TenantsContract } from "./Tenants.ts"

export const make = (sql: SqlClient) => {
  const memberships = Effect.fn("Tenants.memberships")(function* (account: AccountId) {
    const rows = yield* sql<{
      tenant_id: TenantId
      tenant_name: string
      role: Account["role"]
      status: Account["status"]
      is_home: number
      plan: Plan["plan"]
      plan_status: Plan["status"]
      seats: number | null
    }>`SELECT m.tenant_id, t.name AS tenant_name, m.role, m.status, m.tenant_id = a.home_tenant_id AS is_home,
        coalesce(p.plan, ${noPlan.plan}) AS plan, p.status AS plan_status, p.seats
      FROM tollgate_tenants_memberships m JOIN tollgate_tenants_tenants t ON t.id = m.tenant_id JOIN tollgate_tenants_accounts a ON a.id = m.account_id
        LEFT JOIN tollgate_tenants_plans p ON p.tenant_id = m.tenant_id
      WHERE m.account_id = ${account} AND m.status <> 'removed'
      ORDER BY is_home DESC, m.created_at, m.tenant_id`.pipe(Effect.orDie)
    return rows.map(({ plan, plan_status, seats, ...row }) => ({
      ...row,
      is_home: row.is_home === 1,
      plan:
        plan === "none" ? { status: plan, seats: noPlan.seats } : { status: plan_status, seats: seats ?? noPlan.seats }
    }))
  })

  const roleOf = (account: AccountId, tenant: TenantId) =>
    sql<{ role: Role }>`SELECT role FROM tollgate_tenants_memberships
      WHERE account_id = ${account} AND tenant_id = ${tenant} AND status = 'active'
        AND NOT EXISTS (SELECT 1 FROM tollgate_tenants_suspensions WHERE account_id = ${account})`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row?.role)
    )

  const mayManage: TenantsContract["mayManage"] = ({ account_id, tenant_id }) =>
    Effect.flatMap(roleOf(account_id, tenant_id), (role) =>
      role === undefined || !manages(role) ? new InsufficientRole({ tenant_id }) : Effect.void
    )

  const isActiveMember = (account: AccountId, tenant: TenantId) =>
    Effect.map(roleOf(account, tenant), (role) => role !== undefined)

  const members = Effect.fn("Tenants.members")(function* (tenant: TenantId) {
    const rows = yield* sql<Omit<Member, "is_home"> & { readonly is_home: number }>`
      SELECT a.id AS account_id, a.name, a.email, m.role, m.status, a.home_tenant_id = m.tenant_id AS is_home,
        m.created_at, m.updated_at
      FROM tollgate_tenants_memberships m JOIN tollgate_tenants_accounts a ON a.id = m.account_id
      WHERE m.tenant_id = ${tenant} AND m.status <> 'removed' ORDER BY m.created_at, m.account_id`
    return rows.map((row) => ({ ...row, is_home: row.is_home === 1 }))
  }, Effect.orDie)

  const nameOf = (tenant: TenantId) =>
    sql<{ name: string }>`SELECT name FROM tollgate_tenants_tenants WHERE id = ${tenant}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row?.name)
    )

  const attributes = (tenant: TenantId) =>
    Effect.map(
      Effect.orDie(
        sql<{
          readonly attribution_tags: number
        }>`SELECT attribution_tags FROM tollgate_tenants_tenants WHERE id = ${tenant}`
      ),
      ([row]) => row?.attribution_tags === 1
    )

  return { memberships, roleOf, mayManage, isActiveMember, attributes, members, nameOf }
}
