/** Rows of applications, and SQL conditions on them for use in other statements. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { Actor } from "../../kernel/Caller.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { tagsOf, textOf } from "../../kernel/Labels.ts"
import type { Limit } from "../../books/ledger/rules/Transaction.ts"
import type { Application } from "./Application.ts"

export interface Row extends Pick<
  Application,
  | "account_id"
  | "created_at"
  | "description"
  | "id"
  | "key_hash"
  | "key_prefix"
  | "last_used_at"
  | "name"
  | "updated_at"
> {
  readonly tenant_id: TenantId
  readonly expires_at: number | null
  /** A JSON array of model names. */
  readonly allowed_models: string | null
  /** Lines of the form `name=value`. */
  readonly tags: string | null
  readonly client_id: string | null
  readonly client_name: string | null
  /** The sign-in of the OAuth client that created the key. When the sign-in ends, the key becomes invalid. */
  readonly family_id: string | null
  /** `Bounds` as JSON text. */
  readonly bounds: string | null
}

/** The operator as a caller. The operator may access every application of the tenant. */
export interface Operator {
  readonly tenant_id: TenantId
  readonly account_id: null
}

export const modelsToRow = (models: ReadonlyArray<string> | null): string | null =>
  models === null ? null : JSON.stringify([...new Set(models)])

export const tagsToRow = (tags: Readonly<Record<string, string>> | null): string | null =>
  tags === null || Object.keys(tags).length === 0 ? null : textOf(Object.entries(tags))

/** Converts a row. Optional fields are absent if neither the row nor the ledger has a value. */
export const fromRow = (row: Row, limit: Limit | undefined): Application => ({
  id: row.id,
  name: row.name,
  description: row.description,
  account_id: row.account_id,
  key_hash: row.key_hash,
  key_prefix: row.key_prefix,
  last_used_at: row.last_used_at,
  created_at: row.created_at,
  updated_at: row.updated_at,
  ...(row.client_id !== null && { created_by: { client_id: row.client_id, name: row.client_name ?? row.client_id } }),
  ...(limit !== undefined && {
    spending_limit_usd: limit.amount,
    spending_limit_period: limit.period,
    spent_usd: limit.spent,
    reserved_usd: limit.reserved
  }),
  ...(row.expires_at !== null && { expires_at: row.expires_at }),
  ...(row.allowed_models !== null && { allowed_models: JSON.parse(row.allowed_models) as ReadonlyArray<string> }),
  ...(row.tags !== null && { tags: tagsOf(row.tags) })
})

/** Builds the condition that the caller is an owner or admin of the tenant, or the operator. */
export const isManager = (sql: SqlClient, { account_id, tenant_id }: Actor | Operator): Fragment =>
  account_id === null
    ? sql`true`
    : sql`EXISTS (SELECT 1 FROM tollgate_tenants_memberships
        WHERE account_id = ${account_id} AND tenant_id = ${tenant_id} AND status = 'active' AND role IN ('owner', 'admin'))`

/**
 * Builds the condition that the caller may see and change the application. A statement that changes the application must repeat this condition,
 * because the caller can lose the role.
 */
export const isReached = (sql: SqlClient, caller: Actor | Operator): Fragment =>
  caller.account_id === null ? sql`true` : sql`(account_id = ${caller.account_id} OR ${isManager(sql, caller)})`

/** Builds the condition that an API key depends on the sign-in in `column`. */
export const hasKeys = (sql: SqlClient, column: string): Fragment =>
  sql.literal(`EXISTS (SELECT 1 FROM tollgate_tenants_applications k WHERE k.family_id = ${column})`)
