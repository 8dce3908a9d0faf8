/** Reads allowances and their grants. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Period } from "../../kernel/Period.ts"
import type { Terms } from "./Allowance.ts"
import type { PlansByName } from "./Settings.ts"

interface StoredRow {
  readonly tenant_id: TenantId
  readonly plan: string | null
  readonly amount: string | null
  readonly period: Period | null
  readonly rollover: "none" | "all" | "up_to" | null
  readonly up_to: string | null
  readonly revision: number
  readonly era: number
  readonly began_at: number
}

/** An active allowance. `terms` is `undefined` if its plan is no longer configured. */
export interface Row extends Pick<StoredRow, "tenant_id" | "plan" | "revision" | "era" | "began_at"> {
  readonly terms: Terms | undefined
}

/** A grant. `number` identifies the week or month. `place` counts the tenant's grants from 1. */
export interface Grant {
  readonly period: Period
  readonly number: number
  readonly era: number
  readonly reference: string
  readonly place: number
  readonly at: number
}

/** The numbers of the current week and the current month. */
export type Numbers = Readonly<Record<Period, number>>

const columns = `a.tenant_id, a.plan, CAST(a.amount AS TEXT) AS amount, a.period, a.rollover, CAST(a.up_to AS TEXT) AS up_to,
  a.revision, a.era, a.began_at`

export const make = (sql: SqlClient, plans: PlansByName) => {
  const termsOf = ({ amount, period, plan, rollover, up_to }: StoredRow): Terms | undefined => {
    if (plan !== null) return Object.hasOwn(plans, plan) ? plans[plan]!.allowance : undefined
    return {
      amount_usd: fromRow(amount!),
      period: period!,
      rollover: rollover === "up_to" ? { up_to_usd: fromRow(up_to!) } : rollover!
    }
  }
  const rowOf = (stored: StoredRow): Row => {
    const { began_at, era, plan, revision, tenant_id } = stored
    return { began_at, era, plan, revision, tenant_id, terms: termsOf(stored) }
  }

  const one = (tenant: TenantId): Effect.Effect<Row | undefined> =>
    sql<StoredRow>`SELECT ${sql.literal(columns)} FROM tollgate_allowances_allowances a
      WHERE a.tenant_id = ${tenant} AND a.ended_at IS NULL`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row && rowOf(row))
    )

  /** Reads active allowances by tenant id, starting after `tenant`. */
  const after = (tenant: string, limit: number): Effect.Effect<ReadonlyArray<Row>> =>
    sql<StoredRow>`SELECT ${sql.literal(columns)} FROM tollgate_allowances_allowances a
      WHERE a.tenant_id > ${tenant} AND a.ended_at IS NULL ORDER BY a.tenant_id LIMIT ${limit}`.pipe(
      Effect.orDie,
      Effect.map((rows) => rows.map(rowOf))
    )

  /**
   * Reads active allowances that can lack a grant for the current period, by tenant id, starting after `tenant`. Includes every allowance of a plan,
   * because only the configuration contains the plan's period.
   */
  const ungranted = (tenant: string, { month, week }: Numbers, limit: number): Effect.Effect<ReadonlyArray<Row>> =>
    sql<StoredRow>`SELECT ${sql.literal(columns)} FROM tollgate_allowances_allowances a
      WHERE a.tenant_id > ${tenant} AND a.ended_at IS NULL AND (a.period IS NULL OR NOT EXISTS (
        SELECT 1 FROM tollgate_allowances_grants g WHERE g.tenant_id = a.tenant_id AND g.period = a.period
          AND g.number = CASE a.period WHEN 'week' THEN CAST(${week} AS BIGINT) ELSE CAST(${month} AS BIGINT) END))
      ORDER BY a.tenant_id LIMIT ${limit}`.pipe(
      Effect.orDie,
      Effect.map((rows) => rows.map(rowOf))
    )

  const isGranted = (tenant: TenantId, period: Period, number: number): Effect.Effect<boolean> =>
    sql`SELECT 1 FROM tollgate_allowances_grants
      WHERE tenant_id = ${tenant} AND period = ${period} AND number = ${number}`.pipe(
      Effect.orDie,
      Effect.map((rows) => rows.length > 0)
    )

  const lastGrant = (tenant: TenantId): Effect.Effect<Grant | undefined> =>
    sql<Grant>`SELECT period, number, era, reference, place, at FROM tollgate_allowances_grants
      WHERE tenant_id = ${tenant} ORDER BY place DESC LIMIT 1`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row)
    )

  return { after, isGranted, lastGrant, one, ungranted }
}

export type Reading = ReturnType<typeof make>
