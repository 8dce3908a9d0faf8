/**
 * The rows of auto-reload (tenants' settings and attempts), and the statements that change them.
 *
 * Where the specification is silent:
 * - A finished attempt is deleted 90 days after it began. Its payment remains in the ledger and in the list of payments.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { day } from "../../kernel/Moment.ts"
import { fromRow, usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { unset } from "./AutoReload.ts"
import type { AutoReloadChange, StoredSettings } from "./AutoReload.ts"

export interface Attempt {
  readonly id: string
  readonly tenant_id: TenantId
  readonly amount: Nano
  readonly payment_method_id: string
  readonly created_at: number
}

/** The retention period of finished attempts, in milliseconds. */
export const attemptRetention = 90 * day

type Row = Omit<
  {
    readonly [Key in keyof StoredSettings]: StoredSettings[Key] extends boolean
      ? number
      : StoredSettings[Key] extends Nano
        ? string
        : StoredSettings[Key] extends Nano | null
          ? string | null
          : StoredSettings[Key]
  },
  "amount"
> & { readonly amount_credits: number }

const columns = `enabled, CAST(threshold AS TEXT) AS threshold, amount_credits, payment_method_id, attempt,
  in_flight_started_at, last_attempt_at, last_charged_at, last_failed, last_error, failures, disabled_reason,
  alerts_enabled, CAST(warn_threshold AS TEXT) AS warn_threshold, CAST(rearm_threshold AS TEXT) AS rearm_threshold,
  warned, CAST(looked AS TEXT) AS looked, fell, updated_at`

export const make = (sql: SqlClient) => ({ ...settingsRows(sql), ...attemptRows(sql) })

export type Storage = ReturnType<typeof make>

const settingsRows = (sql: SqlClient) => ({
  settings: (tenant: TenantId): Effect.Effect<StoredSettings> =>
    sql<Row>`SELECT ${sql.literal(columns)} FROM tollgate_autoreload_settings WHERE tenant_id = ${tenant}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => (row === undefined ? unset : settingsOf(row)))
    ),

  all: sql<Row & { readonly tenant_id: TenantId }>`SELECT tenant_id, ${sql.literal(columns)}
      FROM tollgate_autoreload_settings`.pipe(
    Effect.orDie,
    Effect.map((rows) => rows.map(({ tenant_id, ...row }) => ({ tenant: tenant_id, settings: settingsOf(row) })))
  ),

  /** Replaces a tenant's settings. Afterwards, only a movement away from `balance` can trigger a reload or an alert. */
  replace: (tenant_id: TenantId, { alerts, auto_reload }: AutoReloadChange, balance: Nano, now: number): Statement => {
    const columns = {
      enabled: auto_reload.enabled ? 1 : 0,
      threshold: auto_reload.threshold_usd,
      amount_credits: Number(auto_reload.amount_credits / usd),
      payment_method_id: auto_reload.payment_method_id,
      last_failed: 0,
      last_error: null,
      failures: 0,
      disabled_reason: null,
      alerts_enabled: alerts.enabled ? 1 : 0,
      warn_threshold: alerts.warn_threshold_usd,
      rearm_threshold: alerts.rearm_threshold_usd,
      // New thresholds can cause a new alert.
      warned: 0,
      // Setting a threshold above the balance triggers nothing; only a movement does.
      looked: balance,
      fell: 0,
      updated_at: now
    }
    return statement(sql`INSERT INTO tollgate_autoreload_settings ${sql.insert({ tenant_id, ...columns })}
      ON CONFLICT (tenant_id) DO UPDATE SET ${sql.csv(
        Object.keys(columns).map((name) => sql`${sql(name)} = excluded.${sql(name)}`)
      )}`)
  },

  /** Saves the balances that a check read: decimal strings in nano-USD, by tenant. */
  looked: (balances: { readonly [tenant: string]: string }): Statement => {
    const text = JSON.stringify(balances)
    return statement(sql`UPDATE tollgate_autoreload_settings SET looked = CAST(j.value AS BIGINT) FROM json_each(${text}) j
      WHERE tenant_id = j.key AND looked IS DISTINCT FROM CAST(j.value AS BIGINT)`)
  },

  /** Records whether the balance fell below the threshold while no attempt could begin. No effect if the settings have since been replaced. */
  fell: (tenant: TenantId, { updated_at }: StoredSettings, fell: boolean): Statement =>
    statement(sql`UPDATE tollgate_autoreload_settings SET fell = ${fell ? 1 : 0}
      WHERE tenant_id = ${tenant} AND updated_at = ${updated_at}`),

  /** Sets or clears `warned`, and saves the balance. Fails the transaction if `warned` already has that value or `updated_at` is outdated. */
  warned: (tenant: TenantId, warned: boolean, looked: Nano, updated_at: number): Statement =>
    statement(
      sql`UPDATE tollgate_autoreload_settings SET warned = ${warned ? 1 : 0}, looked = ${looked}
        WHERE tenant_id = ${tenant} AND updated_at = ${updated_at} AND warned = ${warned ? 0 : 1} RETURNING tenant_id`,
      1
    )
})

const attemptRows = (sql: SqlClient) => ({
  /** The attempts with an unknown outcome. */
  attempts: sql<Omit<Attempt, "amount"> & { amount_credits: number }>`SELECT id, tenant_id, amount_credits,
      payment_method_id, created_at FROM tollgate_autoreload_attempts WHERE status = 'in_flight'`.pipe(
    Effect.orDie,
    Effect.map((rows) =>
      rows.map(({ amount_credits, ...row }): Attempt => ({ ...row, amount: BigInt(amount_credits) * usd }))
    )
  ),

  /** Writes an attempt. Fails the transaction if the settings were replaced, auto-reload was disabled, or another attempt began after they were read. */
  begin: (
    { amount, created_at, id, payment_method_id, tenant_id }: Attempt,
    { last_attempt_at, updated_at }: StoredSettings,
    balance: Nano
  ): ReadonlyArray<Statement> => [
    statement(
      sql`UPDATE tollgate_autoreload_settings SET attempt = ${id}, in_flight_started_at = ${created_at},
        last_attempt_at = ${created_at}, looked = ${balance}, fell = 0
        WHERE tenant_id = ${tenant_id} AND enabled = 1 AND attempt IS NULL AND updated_at = ${updated_at}
          AND last_attempt_at IS NOT DISTINCT FROM ${last_attempt_at} RETURNING tenant_id`,
      1
    ),
    statement(sql`INSERT INTO tollgate_autoreload_attempts (id, tenant_id, amount_credits, payment_method_id, status, created_at)
      VALUES (${id}, ${tenant_id}, ${Number(amount / usd)}, ${payment_method_id}, 'in_flight', ${created_at})`),
    // Ids sort by time, so the oldest attempts are deleted first. The scan is short, because few old attempts are in flight.
    statement(sql`DELETE FROM tollgate_autoreload_attempts WHERE id IN (SELECT id FROM tollgate_autoreload_attempts
      WHERE id < ${Ids.at("pay", created_at - attemptRetention)} AND status <> 'in_flight' ORDER BY id LIMIT 20)`)
  ],

  /** Ends a paid attempt. Idempotent. */
  paid: ({ id, tenant_id }: Attempt, now: number): ReadonlyArray<Statement> => [
    statement(sql`UPDATE tollgate_autoreload_attempts SET status = 'paid', error = NULL, ended_at = ${now}
      WHERE id = ${id} AND status = 'in_flight'`),
    statement(sql`UPDATE tollgate_autoreload_settings SET attempt = NULL, in_flight_started_at = NULL, last_charged_at = ${now},
      last_failed = 0, last_error = NULL, failures = 0 WHERE tenant_id = ${tenant_id} AND attempt = ${id}`)
  ],

  /** Ends a failed attempt. With `disables`, also disables auto-reload. Fails the transaction if the attempt has already ended. */
  failed: (
    { id, tenant_id }: Attempt,
    { disables, failures, reason }: { readonly disables: boolean; readonly failures: number; readonly reason: string },
    now: number
  ): ReadonlyArray<Statement> => [
    statement(
      sql`UPDATE tollgate_autoreload_attempts SET status = 'failed', error = ${reason}, ended_at = ${now}
        WHERE id = ${id} AND status = 'in_flight' RETURNING id`,
      1
    ),
    statement(sql`UPDATE tollgate_autoreload_settings SET attempt = NULL, in_flight_started_at = NULL, last_failed = 1,
      last_error = ${reason}, failures = ${failures}
      ${disables ? sql`, enabled = 0, disabled_reason = 'payment_failed', fell = 0` : sql``}
      WHERE tenant_id = ${tenant_id} AND attempt = ${id}`)
  ]
})

const settingsOf = ({ amount_credits, ...row }: Row): StoredSettings => ({
  ...row,
  enabled: row.enabled === 1,
  threshold: fromRow(row.threshold),
  amount: BigInt(amount_credits) * usd,
  last_failed: row.last_failed === 1,
  alerts_enabled: row.alerts_enabled === 1,
  warn_threshold: row.warn_threshold === null ? null : fromRow(row.warn_threshold),
  rearm_threshold: row.rearm_threshold === null ? null : fromRow(row.rearm_threshold),
  warned: row.warned === 1,
  looked: row.looked === null ? null : fromRow(row.looked),
  fell: row.fell === 1
})
