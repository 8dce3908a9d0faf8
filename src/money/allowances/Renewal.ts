/** Grants an allowance for the current period once, with the rollover from the last grant. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect, Option } from "effect"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import type { BalanceTooLarge, BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { lastAllowance, unmovedSince } from "../../books/ledger/rows/LastAllowance.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { nameOf, numberOf, startOf } from "../../kernel/Period.ts"
import { keepOf } from "./Allowance.ts"
import type { Terms } from "./Allowance.ts"
import type { Reading, Row } from "./Reading.ts"

const name = "allowances"
const pageMax = 500
/** The maximum number of concurrent renewals. The writer commits them together. */
const concurrency = 32
/** The maximum pause. The clock can jump forward, so the job reads it at least this often. */
const pauseMax = Duration.minutes(1)

export interface Parts {
  readonly sql: SqlClient
  readonly ledger: LedgerContract
  readonly reading: Reading
}

export const make = (parts: Parts, waker: Loop.Waker) => {
  const { reading } = parts

  /**
   * Grants the current period if it is due and the billing account is active. Retries if another process changes or grants the allowance
   * concurrently.
   */
  const renew = (tenant: TenantId): Effect.Effect<void, BalanceTooLarge | BooksUnavailable> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const row = yield* reading.one(tenant)
      if (row?.terms === undefined) return
      const number = numberOf(row.terms.period, now)
      // The clock was set back to a time before the allowance began.
      if (number < numberOf(row.terms.period, row.began_at)) return
      if (yield* reading.isGranted(tenant, row.terms.period, number)) return
      const account = yield* parts.ledger.accountOfTenant(tenant)
      if (Option.isNone(account) || account.value.status !== "active") return
      yield* grant(parts, row, row.terms, number, now)
    }).pipe(
      Effect.catchTags({ Conflict: () => renew(tenant), AccountMissing: Effect.die }),
      Effect.withSpan("Allowances.renew")
    )

  const renewDue = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const numbers = { week: numberOf("week", now), month: numberOf("month", now) }
    let failed = 0
    for (let tenant = ""; ;) {
      const rows = yield* reading.ungranted(tenant, numbers, pageMax)
      failed += yield* Loop.each(
        name,
        rows,
        ({ tenant_id }) => tenant_id,
        ({ tenant_id }) => renew(tenant_id),
        { concurrency }
      )
      if (rows.length < pageMax) return { failed }
      tenant = rows.at(-1)!.tenant_id
    }
  })

  const turn = Effect.gen(function* () {
    yield* renewDue
    const now = yield* Clock.currentTimeMillis
    const next = Math.min(startOf("week", numberOf("week", now) + 1), startOf("month", numberOf("month", now) + 1))
    return Math.min(next - now, Duration.toMillis(pauseMax))
  })

  const job: Loop.Job = { name, turn, waker }
  return { job, renew, renewDue }
}

export type Renewal = ReturnType<typeof make>

/** Returns a grant's reference, unique per tenant and period. */
const referenceOf = (tenant: TenantId, { period }: Terms, number: number): string =>
  `alw_${tenant.slice(tenant.indexOf("_") + 1)}_${nameOf(period, number)}`

const grant = Effect.fnUntraced(function* (
  { ledger, reading, sql }: Parts,
  row: Row,
  terms: Terms,
  number: number,
  now: number
) {
  const { era, revision, tenant_id } = row
  const account = billingAccountOf(tenant_id)
  const before = yield* reading.lastGrant(tenant_id)
  const last = before?.era === era ? yield* lastAllowance(sql, account, before.reference) : undefined
  const reference = referenceOf(tenant_id, terms, number)
  const once = statement(
    sql`INSERT INTO tollgate_allowances_grants (tenant_id, period, number, era, reference, amount, place, at)
      VALUES (${tenant_id}, ${terms.period}, ${number}, ${era}, ${reference}, ${terms.amount_usd}, ${(before?.place ?? 0) + 1}, ${now})
      ON CONFLICT DO NOTHING RETURNING place`,
    1
  )
  const unchanged = statement(
    sql`SELECT 1 AS unchanged FROM tollgate_allowances_allowances
      WHERE tenant_id = ${tenant_id} AND revision = ${revision} AND ended_at IS NULL`,
    1
  )
  const posting = {
    account,
    amount: terms.amount_usd,
    last,
    keep: keepOf(terms.rollover),
    reference,
    description: `allowance of ${toDecimal(terms.amount_usd)} USD for ${terms.period === "week" ? "the week of " : ""}${nameOf(terms.period, number)}`
  }
  yield* ledger.renew(posting, [once, unchanged, ...(last === undefined ? [] : [unmovedSince(sql, account, last)])])
})
