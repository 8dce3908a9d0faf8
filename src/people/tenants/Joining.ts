/** Adds a user to a shared tenant without an invitation, for the operator and for an identity provider's groups. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { Role } from "./Account.ts"
import type { BelongingContract } from "./Belonging.ts"
import * as Members from "./Members.ts"
import type { TenantsContract } from "./Tenants.ts"

export interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly belonging: BelongingContract
  readonly tenants: TenantsContract
}

interface NewMember {
  readonly account: AccountId
  readonly team: TenantId
  readonly role: Exclude<Role, "owner">
}

/**
 * Returns the statements that create a membership or restore a removed one. The statements fail the transaction if the tenant is unknown, the user is
 * already a member, no seat is free, or the account has too many memberships.
 */
export const statements = Effect.fnUntraced(function* (
  { belonging, sql, tenants, writer }: Dependencies,
  { account, role, team }: NewMember,
  now: number
): Effect.fn.Return<ReadonlyArray<Statement>> {
  const { plan, seats } = yield* tenants.plan(team)
  const bounded = plan === "none" ? 0 : 1
  const inserted = sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
    SELECT ${account}, id, ${role}, 'active', ${now}, ${now} FROM tollgate_tenants_tenants WHERE id = ${team}
      AND (${bounded} = 0 OR (SELECT count(*) FROM tollgate_tenants_memberships
        WHERE tenant_id = ${team} AND status <> 'removed') < ${seats})
    ON CONFLICT (account_id, tenant_id) DO UPDATE SET role = excluded.role, status = 'active',
      created_at = excluded.created_at, updated_at = excluded.updated_at WHERE tollgate_tenants_memberships.status = 'removed'
    RETURNING account_id`
  return [Members.make(sql, writer, tenants, belonging).stillHasRoom(account, true, false), statement(inserted, 1)]
})
