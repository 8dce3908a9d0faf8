/** Reads payments with their refunds and disputes (`Movement`), and builds the statements that change them. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import { day } from "../../kernel/Moment.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { paginated } from "../../kernel/Page.ts"
import type { Paged, PageOf } from "../../kernel/Page.ts"
import { debts, purchaseEntries } from "../../books/ledger/rows/Relations.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { Movement } from "./Movement.ts"
import type { Owed, Purchase, Waiting } from "./Payment.ts"
import type { BookedPayment } from "./Purchases.ts"

/** For refunds and disputes of unknown payments: the retention period in milliseconds, and the maximum number. */
const waitMax = 90 * day
const waitingMax = 10_000

interface KnownPayment {
  readonly tenant_id: TenantId
  readonly amount: Nano
  readonly due: Nano
  /** The part of `due` that the books have applied. Null or different from `due` if an earlier version of the service wrote `due`. */
  readonly followed: Nano | null
}

/** A payment with its refunds and disputes. `payment` is `undefined` until it is credited. */
export interface Known {
  readonly payment: KnownPayment | undefined
  readonly movements: ReadonlyArray<Movement>
}

const offline = "offline_"

export const offlineId = (reference: string): string => `${offline}${reference}`

export interface NewPayment {
  readonly id: string
  readonly tenant_id: string
  readonly kind: "checkout" | "auto_reload" | "offline"
  readonly amount: Nano
  /** The amount to take back. */
  readonly due: Nano
  readonly created_at: number
}

interface PaymentRow extends Pick<NewPayment, "id" | "kind" | "created_at"> {
  readonly amount: string
  readonly due: string
  readonly taken: string
}

interface MovementRow {
  readonly payment_id: string
  readonly id: string
  readonly kind: Movement["kind"]
  readonly amount: string
  readonly returned: number
  readonly heard_at: number
}

/**
 * Selects payments, each with the amount taken back and not returned since (`taken`) and the amount that the account owes (`owed`). Debits refer to
 * the payment or to one of its movements; credits that return an amount refer to a movement.
 */
export const followedOf = `(SELECT p.id, p.due, p.followed,
    (SELECT CAST(COALESCE(SUM(CASE e.type WHEN 'debit' THEN e.amount ELSE -e.amount END), 0) AS bigint)
      FROM (SELECT p.id AS reference_id UNION SELECT m.id FROM tollgate_payments_movements m WHERE m.payment_id = p.id) r
      CROSS JOIN ${purchaseEntries} e ON e.reference_id = r.reference_id
      WHERE e.type = 'debit' OR e.reference_id <> p.id) AS taken,
    (SELECT CAST(COALESCE(SUM(d.amount), 0) AS bigint) FROM ${debts} d WHERE d.payment_id = p.id) AS owed
  FROM tollgate_payments_payments p)`

/** Prepares refunds and disputes for display. For a total of refunds, only its excess over the single refunds is shown. */
const shown = (rows: ReadonlyArray<MovementRow>): Purchase["movements"] => {
  const single = rows.reduce((sum, { amount, kind }) => (kind === "refund" ? sum + fromRow(amount) : sum), 0n)
  return rows
    .map(({ amount, heard_at, id, kind, returned }) => ({
      id,
      kind: kind === "total" ? ("refund" as const) : kind,
      amount: kind === "total" ? fromRow(amount) - single : fromRow(amount),
      returned: returned === 1,
      at: heard_at
    }))
    .filter(({ amount }) => amount > 0n)
}

export const make = (sql: SqlClient) => ({
  find: (id: string) => find(sql, id),
  unchanged: (id: string, known: Known) => unchangedGuard(sql, id, known),
  /** Inserts a payment. Fails the transaction if the payment already exists. */
  addPayment: ({ amount, created_at, due, id, kind, tenant_id }: NewPayment): Statement =>
    statement(
      sql`INSERT INTO tollgate_payments_payments (id, tenant_id, kind, amount, due, followed, created_at)
        VALUES (${id}, ${tenant_id}, ${kind}, ${amount}, ${due}, ${due}, ${created_at}) ON CONFLICT DO NOTHING RETURNING id`,
      1
    ),
  setDue: (id: string, due: Nano): Statement =>
    statement(sql`UPDATE tollgate_payments_payments SET due = ${due}, followed = ${due} WHERE id = ${id}`),
  putMovement: (payment_id: string, { amount, id, kind, returned }: Movement, now: number): Statement =>
    statement(sql`INSERT INTO tollgate_payments_movements (payment_id, id, kind, amount, returned, heard_at)
      VALUES (${payment_id}, ${id}, ${kind}, ${amount}, ${returned ? 1 : 0}, ${now})
      ON CONFLICT (payment_id, id) DO UPDATE SET amount = excluded.amount, returned = excluded.returned`),
  forget: (now: number) => forget(sql, now),
  followed: (payment: string) => appliedAmount(sql, payment),
  unfollowed: unappliedIds(sql),
  page: (tenant: TenantId, pageQuery: PageOf) => page(sql, tenant, pageQuery),
  payments: (ids: ReadonlyArray<string>) => payments(sql, ids),
  owed: owed(sql),
  waiting: unknownPayments(sql)
})

const find = Effect.fnUntraced(function* (sql: SqlClient, id: string): Effect.fn.Return<Known> {
  const [payment] = yield* Effect.orDie(
    sql<{ tenant_id: TenantId; amount: string; due: string; followed: string | null }>`
      SELECT tenant_id, CAST(amount AS TEXT) AS amount, CAST(due AS TEXT) AS due, CAST(followed AS TEXT) AS followed
      FROM tollgate_payments_payments WHERE id = ${id}`
  )
  const rows = yield* Effect.orDie(
    sql<{ id: string; kind: Movement["kind"]; amount: string; returned: number }>`
      SELECT id, kind, CAST(amount AS TEXT) AS amount, returned
      FROM tollgate_payments_movements WHERE payment_id = ${id} ORDER BY id`
  )
  return {
    payment: payment && {
      tenant_id: payment.tenant_id,
      amount: fromRow(payment.amount),
      due: fromRow(payment.due),
      followed: payment.followed === null ? null : fromRow(payment.followed)
    },
    movements: rows.map((row) => ({ ...row, amount: fromRow(row.amount), returned: row.returned === 1 }))
  }
})

/**
 * Builds a guard that fails the transaction if the payment has changed since `find` read it. The guard also compares the due amount, because `find`
 * reads the payment before its movements and an event could be booked in between.
 */
const unchangedGuard = (sql: SqlClient, id: string, { movements, payment }: Known): Statement => {
  const text = movements.map(({ amount, id, returned }) => `${id} ${amount} ${returned ? 1 : 0}`).join("\n")
  return statement(
    sql`SELECT 1 WHERE COALESCE((SELECT due || ' ' || COALESCE(CAST(followed AS TEXT), '') FROM tollgate_payments_payments WHERE id = ${id}), '')
        = ${payment === undefined ? "" : `${payment.due} ${payment.followed ?? ""}`}
      AND COALESCE((SELECT string_agg(id || ' ' || amount || ' ' || returned, ${"\n"} ORDER BY id)
        FROM tollgate_payments_movements WHERE payment_id = ${id}), '') = ${text}`,
    1
  )
}

const ofUnknown = "payment_id NOT IN (SELECT id FROM tollgate_payments_payments)"

/**
 * Deletes movements of unknown payments after 90 days, and the oldest beyond 10,000. They may belong to another service and must not fill the disk.
 */
const forget = (sql: SqlClient, now: number): ReadonlyArray<Statement> => [
  statement(
    sql`DELETE FROM tollgate_payments_movements WHERE ${sql.literal(ofUnknown)} AND heard_at < ${now - waitMax}`
  ),
  statement(sql`DELETE FROM tollgate_payments_movements WHERE (payment_id, id) IN (SELECT payment_id, id
    FROM tollgate_payments_movements WHERE ${sql.literal(ofUnknown)} ORDER BY heard_at DESC LIMIT 9223372036854775807 OFFSET ${waitingMax})`)
]

/** Reads, in one statement, the part of a payment that was taken back and not returned since, plus the amount owed. */
const appliedAmount = Effect.fnUntraced(function* (sql: SqlClient, payment: string): Effect.fn.Return<Nano> {
  const [row] = yield* Effect.orDie(
    sql<{
      found: string
    }>`SELECT CAST(taken + owed AS TEXT) AS found FROM ${sql.literal(followedOf)} p WHERE p.id = ${payment}`
  )
  return fromRow(row!.found)
})

/** Finds payments with a due amount that an earlier version of the service wrote. */
const unappliedIds = (sql: SqlClient): Effect.Effect<ReadonlyArray<string>> =>
  Effect.orDie(
    sql<{ id: string }>`SELECT id FROM tollgate_payments_payments WHERE due > 0 AND followed IS DISTINCT FROM due`
  ).pipe(Effect.map((rows) => rows.map(({ id }) => id)))

const page = Effect.fnUntraced(function* (
  sql: SqlClient,
  tenant: TenantId,
  pageQuery: PageOf
): Effect.fn.Return<Paged<Purchase>> {
  const { page, per_page } = pageQuery
  const [all] = yield* Effect.orDie(
    sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_payments_payments WHERE tenant_id = ${tenant}`
  )
  const payments = yield* Effect.orDie(
    sql<PaymentRow>`SELECT p.id, p.kind, CAST(p.amount AS TEXT) AS amount, CAST(f.due AS TEXT) AS due,
        CAST(f.taken AS TEXT) AS taken, p.created_at
      FROM (SELECT id, kind, amount, created_at FROM tollgate_payments_payments WHERE tenant_id = ${tenant}
        ORDER BY created_at DESC, id DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}) p
      CROSS JOIN ${sql.literal(followedOf)} f ON f.id = p.id ORDER BY p.created_at DESC, p.id DESC`
  )
  const ids = payments.map(({ id }) => id)
  const movements = yield* Effect.orDie(
    sql<MovementRow>`SELECT payment_id, id, kind, CAST(amount AS TEXT) AS amount, returned, heard_at
      FROM tollgate_payments_movements WHERE payment_id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))
      ORDER BY heard_at, id`
  )
  const records = payments.map((payment) =>
    purchaseOf(
      payment,
      movements.filter(({ payment_id }) => payment_id === payment.id)
    )
  )
  return paginated(pageQuery, all?.n ?? 0, records)
})

const purchaseOf = (
  { amount, created_at, due, id, kind, taken }: PaymentRow,
  movements: ReadonlyArray<MovementRow>
): Purchase => {
  const taken_back = fromRow(taken)
  const owed = fromRow(due) - taken_back
  return {
    id,
    kind,
    amount: fromRow(amount),
    created_at,
    taken_back,
    owed: owed > 0n ? owed : 0n,
    movements: shown(movements)
  }
}

const owed = (sql: SqlClient): Effect.Effect<ReadonlyArray<Owed>> =>
  Effect.orDie(
    sql<{ tenant_id: TenantId; payment_id: string; owed: string }>`
      SELECT p.tenant_id, p.id AS payment_id, CAST(f.due - f.taken AS TEXT) AS owed
      FROM tollgate_payments_payments p CROSS JOIN ${sql.literal(followedOf)} f ON f.id = p.id
      WHERE p.due > 0 AND f.due > f.taken`
  ).pipe(Effect.map((rows) => rows.map((row) => ({ ...row, owed: fromRow(row.owed) }))))

const unknownPayments = (sql: SqlClient): Effect.Effect<ReadonlyArray<Waiting>> =>
  Effect.orDie(
    sql<Waiting>`SELECT payment_id, count(*) AS movements, min(heard_at) AS since FROM tollgate_payments_movements
      WHERE ${sql.literal(ofUnknown)} GROUP BY payment_id ORDER BY since`
  )

const payments = Effect.fnUntraced(function* (sql: SqlClient, ids: ReadonlyArray<string>) {
  const wanted = JSON.stringify(ids.flatMap((id) => [id, offlineId(id)]))
  const rows = yield* sql<Omit<BookedPayment, "amount"> & { readonly amount: string }>`
    SELECT id, tenant_id, kind, CAST(amount AS TEXT) AS amount, created_at FROM tollgate_payments_payments
    WHERE id IN (SELECT value FROM json_each(${wanted})) ORDER BY created_at DESC, id`
  return rows.map((row): BookedPayment => ({
    ...row,
    id: row.kind === "offline" ? row.id.slice(offline.length) : row.id,
    amount: fromRow(row.amount)
  }))
}, Effect.orDie)
