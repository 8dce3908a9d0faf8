/**
 * What is known of payments: those that were credited, and their refunds and disputes (`Movement`). The rows, and the statements that
 * change them.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { TenantId } from "../kernel/Ids.ts"
import { day } from "../kernel/Moment.ts"
import { fromRow } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { paginated } from "../kernel/Page.ts"
import type { Paged, PageOf } from "../kernel/Page.ts"
import type { LedgerContract } from "../ledger/Ledger.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import type { Movement } from "./Movement.ts"
import type { Owed, Purchase, Waiting } from "./Payment.ts"
import type { BookedPayment } from "./Purchases.ts"

/** How long, and of how many refunds and disputes, the facts of payments that are not known are kept. */
const waitMax = 90 * day
const waitingMax = 10_000

/** What is known of a payment. `payment` is absent until it was credited. */
export interface Known {
  readonly payment: { readonly tenant_id: TenantId; readonly amount: Nano; readonly due: Nano } | undefined
  readonly movements: ReadonlyArray<Movement>
}

const offline = "offline_"

/** The id of a payment that was paid another way. */
export const offlineId = (reference: string): string => `${offline}${reference}`

export interface NewPayment {
  readonly id: string
  readonly tenant_id: string
  readonly kind: "checkout" | "auto_reload" | "offline"
  readonly amount: Nano
  /** What of it is to be taken back. */
  readonly due: Nano
  readonly created_at: number
}

interface PaymentRow extends Pick<NewPayment, "id" | "kind" | "created_at"> {
  readonly amount: string
  readonly due: string
}

interface MovementRow {
  readonly payment_id: string
  readonly id: string
  readonly kind: Movement["kind"]
  readonly amount: string
  readonly returned: number
  readonly heard_at: number
}

/** Refunds and disputes as they are listed: of a total of refunds only what is beyond the single ones. */
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

export const make = (sql: SqlClient, ledger: LedgerContract) => {
  const find = Effect.fnUntraced(function* (id: string): Effect.fn.Return<Known> {
    const [payment] = yield* Effect.orDie(
      sql<{ tenant_id: TenantId; amount: string; due: string }>`
        SELECT tenant_id, CAST(amount AS TEXT) AS amount, CAST(due AS TEXT) AS due
        FROM tollgate_payments_payments WHERE id = ${id}`
    )
    const rows = yield* Effect.orDie(
      sql<{ id: string; kind: Movement["kind"]; amount: string; returned: number }>`
        SELECT id, kind, CAST(amount AS TEXT) AS amount, returned
        FROM tollgate_payments_movements WHERE payment_id = ${id} ORDER BY id`
    )
    return {
      payment: payment && { ...payment, amount: fromRow(payment.amount), due: fromRow(payment.due) },
      movements: rows.map((row) => ({ ...row, amount: fromRow(row.amount), returned: row.returned === 1 }))
    }
  })

  /**
   * Refuses the transaction if anything more is known of the payment when it runs. What is due is compared too: `find` reads the payment
   * before the movements, and an event may have been booked between.
   */
  const unchanged = (id: string, { movements, payment }: Known): Statement => {
    const text = movements.map(({ amount, id, returned }) => `${id} ${amount} ${returned ? 1 : 0}`).join("\n")
    return statement(
      sql`SELECT 1 WHERE COALESCE((SELECT CAST(due AS TEXT) FROM tollgate_payments_payments WHERE id = ${id}), '') = ${payment === undefined ? "" : String(payment.due)}
        AND COALESCE((SELECT string_agg(id || ' ' || amount || ' ' || returned, ${"\n"} ORDER BY id)
          FROM tollgate_payments_movements WHERE payment_id = ${id}), '') = ${text}`,
      1
    )
  }

  /** Refuses the transaction if the payment is known. */
  const addPayment = ({ amount, created_at, due, id, kind, tenant_id }: NewPayment): Statement =>
    statement(
      sql`INSERT INTO tollgate_payments_payments (id, tenant_id, kind, amount, due, created_at)
        VALUES (${id}, ${tenant_id}, ${kind}, ${amount}, ${due}, ${created_at}) ON CONFLICT DO NOTHING RETURNING id`,
      1
    )

  const setDue = (id: string, due: Nano): Statement =>
    statement(sql`UPDATE tollgate_payments_payments SET due = ${due} WHERE id = ${id}`)

  const putMovement = (payment_id: string, { amount, id, kind, returned }: Movement, now: number): Statement =>
    statement(sql`INSERT INTO tollgate_payments_movements (payment_id, id, kind, amount, returned, heard_at)
      VALUES (${payment_id}, ${id}, ${kind}, ${amount}, ${returned ? 1 : 0}, ${now})
      ON CONFLICT (payment_id, id) DO UPDATE SET amount = excluded.amount, returned = excluded.returned`)

  const unknown = sql.literal("payment_id NOT IN (SELECT id FROM tollgate_payments_payments)")

  /** Deletes the oldest facts of payments that are not known: those may be another service's, and must not fill the disk. */
  const forget = (now: number): ReadonlyArray<Statement> => [
    statement(sql`DELETE FROM tollgate_payments_movements WHERE ${unknown} AND heard_at < ${now - waitMax}`),
    statement(sql`DELETE FROM tollgate_payments_movements WHERE (payment_id, id) IN (
      SELECT payment_id, id FROM tollgate_payments_movements WHERE ${unknown} ORDER BY heard_at DESC LIMIT 9223372036854775807 OFFSET ${waitingMax})`)
  ]

  /**
   * What was taken back for payments and not given back since, by payment. A debit refers to the payment or one of its movements, a
   * credit that gives back to a movement.
   */
  const takenBack = Effect.fnUntraced(function* (payments: ReadonlyArray<string>) {
    const movements = yield* Effect.orDie(
      sql<{ payment_id: string; id: string }>`SELECT payment_id, id FROM tollgate_payments_movements
        WHERE payment_id IN (SELECT value FROM json_each(${JSON.stringify(payments)}))`
    )
    const byReference = new Map<string, Array<string>>(payments.map((id) => [id, [id]]))
    for (const { id, payment_id } of movements) {
      if (id !== payment_id) byReference.set(id, [...(byReference.get(id) ?? []), payment_id])
    }
    const taken = new Map(payments.map((id) => [id, 0n]))
    for (const { amount, reference_id, type } of yield* ledger.purchases([...byReference.keys()])) {
      for (const payment of byReference.get(reference_id) ?? []) {
        // The credit of the payment itself.
        if (type === "credit" && reference_id === payment) continue
        taken.set(payment, taken.get(payment)! + (type === "debit" ? amount : -amount))
      }
    }
    return taken
  })

  /** A page of a tenant's payments, newest first. */
  const page = Effect.fnUntraced(function* (tenant: TenantId, asked: PageOf): Effect.fn.Return<Paged<Purchase>> {
    const { page, per_page } = asked
    const [all] = yield* Effect.orDie(
      sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_payments_payments WHERE tenant_id = ${tenant}`
    )
    const payments = yield* Effect.orDie(
      sql<PaymentRow>`SELECT id, kind, CAST(amount AS TEXT) AS amount, CAST(due AS TEXT) AS due, created_at
        FROM tollgate_payments_payments WHERE tenant_id = ${tenant}
        ORDER BY created_at DESC, id DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}`
    )
    const ids = payments.map(({ id }) => id)
    const movements = yield* Effect.orDie(
      sql<MovementRow>`SELECT payment_id, id, kind, CAST(amount AS TEXT) AS amount, returned, heard_at
        FROM tollgate_payments_movements WHERE payment_id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))
        ORDER BY heard_at, id`
    )
    const taken = yield* takenBack(ids)
    const records = payments.map(({ amount, created_at, due, id, kind }): Purchase => {
      const taken_back = taken.get(id)!
      const owed = fromRow(due) - taken_back
      return {
        id,
        kind,
        amount: fromRow(amount),
        created_at,
        taken_back,
        owed: owed > 0n ? owed : 0n,
        movements: shown(movements.filter(({ payment_id }) => payment_id === id))
      }
    })
    return paginated(asked, all?.n ?? 0, records)
  })

  const owed = Effect.gen(function* () {
    const due = yield* Effect.orDie(
      sql<{ tenant_id: TenantId; id: string; due: string }>`
        SELECT tenant_id, id, CAST(due AS TEXT) AS due FROM tollgate_payments_payments WHERE due > 0`
    )
    const taken = yield* takenBack(due.map(({ id }) => id))
    return due
      .map(({ due, id, tenant_id }): Owed => ({ tenant_id, payment_id: id, owed: fromRow(due) - taken.get(id)! }))
      .filter(({ owed }) => owed > 0n)
  })

  const waiting: Effect.Effect<ReadonlyArray<Waiting>> = Effect.orDie(
    sql<Waiting>`SELECT payment_id, count(*) AS movements, min(heard_at) AS since FROM tollgate_payments_movements
      WHERE ${unknown} GROUP BY payment_id ORDER BY since`
  )

  const payments = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
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

  return { find, unchanged, addPayment, setDue, putMovement, forget, takenBack, page, payments, owed, waiting }
}
