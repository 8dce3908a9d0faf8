/** Queries calls, for the gate and for other modules that store data about a call. */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { usageOf } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { monthOf } from "../../kernel/Moment.ts"
import { withDimensions } from "./rows/Dimensions.ts"
import { accountsTable } from "./rows/Rows.ts"
import type { Source } from "./rules/Transaction.ts"

export interface OpenCall {
  readonly call: string
  readonly payer: Source
  readonly amount: Nano
  /** The Unix time of the admission, in milliseconds. */
  readonly at: number
  readonly run: string
  /** The claimed model. */
  readonly model: string
  readonly provider: string
}

/** The charge for a call, and the payer's current balance. */
export interface Charged {
  readonly charged: Nano
  readonly balance: Nano
}

export interface Calls {
  readonly find: (call: string) => Effect.Effect<OpenCall | undefined>
  readonly runs: Effect.Effect<ReadonlyArray<string>>
  readonly ofRun: (run: string) => Effect.Effect<ReadonlyArray<string>>
  readonly charged: (call: string) => Effect.Effect<Charged | undefined, SqlError>
  readonly look: (asked: LookAsked) => Effect.Effect<Look>
  readonly active: (accounts: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>>
}

/** The billing accounts that may pay, the calling application, if any, and the Unix time in milliseconds. */
export interface LookAsked {
  readonly accounts: ReadonlyArray<string>
  readonly application: string | null
  readonly now: number
}

/** Whether an active account has unreserved credit, and whether the application's limit has credit left. */
export interface Look {
  readonly funded: boolean
  readonly within_limit: boolean
}

export const make: Effect.Effect<Calls, never, SqlClient> = Effect.map(SqlClient, (sql) => ({
  find: (call) =>
    Effect.map(
      Effect.orDie(
        sql<Pick<OpenCall, "at" | "model" | "provider" | "run"> & { amount: string } & Source>`
          SELECT CAST(r.amount AS TEXT) AS amount, r.at, r.run, d.model, d.provider, d.billing_account_id,
            d.billing_source_tenant_id AS tenant_id, d.billing_source_kind AS kind, d.billing_source_why AS why
          FROM tollgate_ledger_reservations r ${sql.literal(withDimensions)} WHERE r.id = ${call}`
      ),
      ([row]) => {
        if (row === undefined) return undefined
        const { amount, at, model, provider, run, ...payer } = row
        return { call, payer, amount: fromRow(amount), at, run, model, provider }
      }
    ),
  runs: Effect.map(Effect.orDie(sql<{ run: string }>`SELECT DISTINCT run FROM tollgate_ledger_reservations`), (rows) =>
    rows.map(({ run }) => run)
  ),
  ofRun: (run) =>
    Effect.map(
      Effect.orDie(sql<{ id: string }>`SELECT id FROM tollgate_ledger_reservations WHERE run = ${run}`),
      (rows) => rows.map(({ id }) => id)
    ),
  charged: (call) =>
    Effect.map(
      sql<{ cost: string; balance: string }>`
        SELECT CAST(u.cost AS TEXT) AS cost, CAST(a.giftable + a.granted AS TEXT) AS balance
        FROM tollgate_usage_records u CROSS JOIN tollgate_usage_dimensions d ON d.number = u.dimensions
          CROSS JOIN ${sql.literal(accountsTable)} a ON a.id = d.billing_account_id
        WHERE u.id = ${usageOf(call)}`,
      ([row]) => row && { charged: fromRow(row.cost), balance: fromRow(row.balance) }
    ),
  look: ({ accounts, application, now }) =>
    Effect.map(
      Effect.orDie(sql<{ funded: number; used_up: number }>`SELECT EXISTS (SELECT 1 FROM ${sql.literal(accountsTable)}
          WHERE id IN (SELECT value FROM json_each(${JSON.stringify(accounts)}))
            AND status = 'active' AND giftable + granted > reserved) AS funded,
        EXISTS (SELECT 1 FROM tollgate_ledger_budgets WHERE id = ${application ?? ""} AND usd <= reserved +
          CASE WHEN period = 'month' AND start < ${monthOf(now)} THEN 0 ELSE spent END) AS used_up`),
      ([row]) => ({ funded: row!.funded === 1, within_limit: row!.used_up === 0 })
    ),
  active: (accounts) =>
    Effect.map(
      Effect.orDie(sql<{ id: string }>`SELECT id FROM ${sql.literal(accountsTable)}
        WHERE id IN (SELECT value FROM json_each(${JSON.stringify(accounts)})) AND status = 'active'`),
      (rows) => new Set(rows.map(({ id }) => id))
    )
}))

/**
 * The state of a call. An `open` call has a reservation, and an `ended` call has a usage record (with an `error_type` if it failed). The books do not
 * contain an `unknown` call.
 */
export type CallState =
  | { readonly _tag: "open" }
  | { readonly _tag: "ended"; readonly error_type: string | null }
  | { readonly _tag: "unknown" }

export const stateOf = (sql: SqlClient, call: string): Effect.Effect<CallState> =>
  Effect.gen(function* () {
    const [reservation] = yield* sql`SELECT 1 FROM tollgate_ledger_reservations WHERE id = ${call}`
    if (reservation !== undefined) return { _tag: "open" } as const
    const [record] = yield* sql<{ error_type: string | null }>`
      SELECT error_type FROM tollgate_usage_records WHERE id = ${usageOf(call)}`
    return record === undefined
      ? ({ _tag: "unknown" } as const)
      : ({ _tag: "ended", error_type: record.error_type } as const)
  }).pipe(Effect.orDie)

/** Returns the calls with a reservation. */
export const openOf = (sql: SqlClient, calls: ReadonlyArray<string>): Effect.Effect<ReadonlySet<string>> =>
  calls.length === 0
    ? Effect.succeed(new Set())
    : Effect.map(
        Effect.orDie(sql<{ id: string }>`SELECT id FROM tollgate_ledger_reservations WHERE ${sql.in("id", calls)}`),
        (rows) => new Set(rows.map(({ id }) => id))
      )
