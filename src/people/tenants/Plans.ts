/** Reads and sets tenants' plans. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { noPlan } from "./Account.ts"
import type { Plan } from "./Account.ts"
import type { BelongingContract } from "./Belonging.ts"

const seatsDefault = 25

export const make = (sql: SqlClient, writer: WriterContract, belonging: BelongingContract) => {
  const plan = (tenant: TenantId) =>
    sql<Plan>`SELECT plan, status, seats FROM tollgate_tenants_plans WHERE tenant_id = ${tenant}`.pipe(
      Effect.orDie,
      // The plan `none` has no seats, whatever its row contains. Its status remains, so that a plan that was past due is so again if it returns.
      Effect.map(([row]) =>
        row === undefined ? noPlan : row.plan === "none" ? { ...noPlan, status: row.status } : row
      )
    )

  const setPlan = Effect.fn("Tenants.setPlan")(function* (tenant: TenantId, change: Partial<Plan>) {
    const now = yield* Clock.currentTimeMillis
    const unset = null
    const set = sql`INSERT INTO tollgate_tenants_plans (tenant_id, plan, status, seats, created_at, updated_at)
      SELECT id, coalesce(${change.plan ?? unset}, 'team'), coalesce(${change.status ?? unset}, 'active'),
        coalesce(CAST(${change.seats ?? unset} AS BIGINT), ${seatsDefault}), ${now}, ${now} FROM tollgate_tenants_tenants WHERE id = ${tenant}
      ON CONFLICT (tenant_id) DO UPDATE SET plan = coalesce(${change.plan ?? unset}, tollgate_tenants_plans.plan),
        status = coalesce(${change.status ?? unset}, tollgate_tenants_plans.status),
        seats = coalesce(CAST(${change.seats ?? unset} AS BIGINT), CASE WHEN tollgate_tenants_plans.plan = 'none' THEN ${seatsDefault} ELSE tollgate_tenants_plans.seats END),
        updated_at = excluded.updated_at
      RETURNING tenant_id`
    return yield* afterCommit(Statements.tryWrite(writer, statement(set, 1)), belonging.changed(tenant))
  })

  return { plan, setPlan }
}
