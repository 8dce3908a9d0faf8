/** Which tenants there are, for the operator: found by a part of an id, a name or an owner's address. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { TenantId } from "../kernel/Ids.ts"

export interface Listed {
  readonly id: TenantId
  readonly name: string
  /** Of the owner who came first; null where none is left. */
  readonly owner_email: string | null
  readonly created_at: number
}

/** The newest first, at most `limit` of them, and how many there are in all. `search` is a text, not a pattern. */
export const tenantsLike = (
  search: string,
  limit: number
): Effect.Effect<{ readonly found: ReadonlyArray<Listed>; readonly total: number }, never, SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const part = `%${search.replace(/[\\%_]/g, "\\$&")}%`
    const like = (column: string) => sql`lower(${sql.literal(column)}) LIKE lower(${part}) ESCAPE '\\'`
    const owners = sql`tollgate_tenants_memberships m JOIN tollgate_tenants_accounts a ON a.id = m.account_id
      WHERE m.tenant_id = t.id AND m.role = 'owner' AND m.status = 'active'`
    const wanted = sql`${like("t.id")} OR ${like("t.name")} OR EXISTS (SELECT 1 FROM ${owners} AND ${like("a.email")})`
    const found = yield* sql<Listed>`SELECT t.id, t.name, t.created_at,
        (SELECT a.email FROM ${owners} ORDER BY m.created_at LIMIT 1) AS owner_email
      FROM tollgate_tenants_tenants t WHERE ${wanted} ORDER BY t.id DESC LIMIT ${limit}`
    const [counted] = yield* sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_tenants_tenants t WHERE ${wanted}`
    return { found, total: counted?.n ?? 0 }
  }).pipe(Effect.orDie)
