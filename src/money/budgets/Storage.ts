/** Rows with a budget's creator, revision and raises, and the notices sent. The books contain its terms and counters. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { BudgetId, BudgetRaise, OpenRaise } from "./Budget.ts"

export const perTenantMax = 100
/** The maximum number of budgets that a member who is neither owner nor admin may create in one tenant. */
export const perMemberMax = 20
export const ofOperatorMax = 200
export const raisesMax = 20
/** The maximum number of raises retained per budget, including expired ones. */
const raisesRetained = 200

export interface Row {
  readonly id: BudgetId
  /** Null for a budget that covers all tenants. */
  readonly tenant_id: string | null
  readonly key_id: string | null
  readonly created_by: string
  readonly by_operator: number
  /** The template that created the budget, if any. */
  readonly template_id: string | null
  /** The template revision that the budget follows. */
  readonly template_revision: number | null
  /** Incremented by each change to the row. */
  readonly revision: number
}

export const make = (sql: SqlClient) => ({
  ...makeReads(sql),
  ...rooms(sql),
  ...makeWrites(sql),
  ...raiseStatements(sql)
})

export type Storage = ReturnType<typeof make>

const makeReads = (sql: SqlClient) => ({
  find: (id: BudgetId): Effect.Effect<Row | undefined> =>
    Effect.map(Effect.orDie(sql<Row>`SELECT * FROM tollgate_budgets_budgets WHERE id = ${id}`), ([row]) => row),

  /** The operator's budgets except those created from templates, oldest first. */
  ofOperator: Effect.orDie(
    sql<Row>`SELECT * FROM tollgate_budgets_budgets WHERE by_operator = 1 AND template_id IS NULL ORDER BY id`
  )
})

/** Builds statements that fail the transaction if the limit on budgets is reached. */
const rooms = (sql: SqlClient) => ({
  tenantHasRoom: (tenant: string): Statement =>
    statement(
      sql`SELECT 1 AS has_room WHERE (SELECT count(*) FROM tollgate_budgets_budgets
        WHERE tenant_id = ${tenant} AND by_operator = 0) < ${sql.literal(String(perTenantMax))}`,
      1
    ),

  memberHasRoom: (tenant: string, account: string): Statement =>
    statement(
      sql`SELECT 1 AS has_room WHERE (SELECT count(*) FROM tollgate_budgets_budgets
        WHERE tenant_id = ${tenant} AND by_operator = 0 AND created_by = ${account}) < ${sql.literal(String(perMemberMax))}`,
      1
    ),

  operatorHasRoom: statement(
    sql`SELECT 1 AS has_room WHERE (SELECT count(*) FROM tollgate_budgets_budgets
      WHERE by_operator = 1 AND template_id IS NULL) + (SELECT count(*) FROM tollgate_budgets_templates) < ${sql.literal(String(ofOperatorMax))}`,
    1
  )
})

const insertStatement = (
  sql: SqlClient,
  { by_operator, created_by, id, key_id, revision, template_id, template_revision, tenant_id }: Row
) => sql`INSERT INTO tollgate_budgets_budgets
  (id, tenant_id, key_id, created_by, by_operator, template_id, template_revision, revision)
  VALUES (${id}, ${tenant_id}, ${key_id}, ${created_by}, ${by_operator}, ${template_id}, ${template_revision}, ${revision})`

const makeWrites = (sql: SqlClient) => ({
  insert: (row: Row): Statement => statement(sql`${insertStatement(sql, row)}`),

  /** Inserts the row. Fails the transaction if the tenant already has the template's budget. */
  insertOnce: (row: Row): Statement =>
    statement(sql`${insertStatement(sql, row)} ON CONFLICT DO NOTHING RETURNING id`, 1),

  /** Records a change to the budget. Fails the transaction if the budget has changed since `row` was read. */
  change: ({ id, revision }: Row): Statement =>
    statement(
      sql`UPDATE tollgate_budgets_budgets SET revision = revision + 1
        WHERE id = ${id} AND revision = ${revision} RETURNING id`,
      1
    ),

  /** Deletes the budget with its raises and notices. Fails the transaction if the budget has changed since `row` was read. */
  remove: ({ id, revision }: Row): ReadonlyArray<Statement> => [
    statement(sql`DELETE FROM tollgate_budgets_budgets WHERE id = ${id} AND revision = ${revision} RETURNING id`, 1),
    statement(sql`DELETE FROM tollgate_budgets_raises WHERE budget_id = ${id}`),
    statement(sql`DELETE FROM tollgate_budgets_notices WHERE budget_id = ${id}`)
  ]
})

const raiseStatements = (sql: SqlClient) => ({
  raise: (row: Row, { until, usd }: BudgetRaise, created_by: string, now: number): ReadonlyArray<Statement> => [
    statement(sql`INSERT INTO tollgate_budgets_raises (budget_id, number, usd, until, created_by, created_at)
      VALUES (${row.id}, ${row.revision}, ${usd}, ${until}, ${created_by}, ${now})`),
    statement(sql`DELETE FROM tollgate_budgets_raises WHERE budget_id = ${row.id} AND until <= ${now} AND number <= (
      SELECT number FROM tollgate_budgets_raises WHERE budget_id = ${row.id}
      ORDER BY number DESC LIMIT 1 OFFSET ${sql.literal(String(raisesRetained))})`)
  ],

  /** Reads the raises that have not expired, by budget. */
  raises: (ids: ReadonlyArray<string>, now: number): Effect.Effect<ReadonlyMap<string, ReadonlyArray<OpenRaise>>> =>
    Effect.map(
      Effect.orDie(
        sql<RaiseRow>`SELECT budget_id, CAST(usd AS TEXT) AS usd, until, created_by, created_at
          FROM tollgate_budgets_raises
          WHERE budget_id IN (SELECT value FROM json_each(${JSON.stringify(ids)})) AND until > ${now}
          ORDER BY budget_id, number`
      ),
      (rows) => {
        const found = new Map<string, Array<OpenRaise>>()
        for (const { budget_id, usd, ...raise } of rows) {
          const list = found.get(budget_id)
          if (list === undefined) found.set(budget_id, [{ ...raise, usd: fromRow(usd) }])
          else list.push({ ...raise, usd: fromRow(usd) })
        }
        return found
      }
    )
})

interface RaiseRow extends Omit<OpenRaise, "usd"> {
  readonly budget_id: string
  readonly usd: string
}
