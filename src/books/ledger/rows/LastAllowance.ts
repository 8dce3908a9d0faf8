/**
 * Reads an allowance's last grant before the transaction that renews it (`rules/Renewing`), and guards the transaction against later changes. A
 * partial index covers the entries other than charges.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { fromRow } from "../../../kernel/Money.ts"
import type { Nano } from "../../../kernel/Money.ts"
import { othersAfter, signed } from "../rules/Renewing.ts"
import type { Moved } from "../rules/Renewing.ts"
import { statement } from "../rules/Transaction.ts"
import type { LastAllowance, Statement } from "../rules/Transaction.ts"

/** Reads the last grant of the allowance with this reference; `undefined` if there is none. */
export const lastAllowance = Effect.fnUntraced(function* (sql: SqlClient, account: string, reference: string) {
  const [grant] = yield* sql<{ number: number; amount: string; balance: string }>`
    SELECT number, CAST(amount AS TEXT) AS amount, CAST(balance AS TEXT) AS balance FROM tollgate_ledger_entries
    WHERE billing_account_id = ${account} AND source IS NOT NULL AND source = 'allowance' AND type = 'credit'
      AND reference_id = ${reference} ORDER BY number DESC LIMIT 1`
  if (grant === undefined) return undefined
  const rows = yield* sql<{ number: number; amount: string; type: Moved["type"]; source: Moved["source"] }>`
    SELECT number, CAST(amount AS TEXT) AS amount, type, source FROM tollgate_ledger_entries
    WHERE billing_account_id = ${account} AND source IS NOT NULL AND number > ${grant.number} ORDER BY number`
  const since = rows.map((row) => ({ ...row, amount: fromRow(row.amount) }))
  return {
    amount: fromRow(grant.amount),
    chargeless: since.reduce((sum, one) => sum + signed(one), fromRow(grant.balance)),
    others: since.reduce(othersAfter, 0n as Nano),
    entries: since.at(-1)?.number ?? grant.number
  } satisfies LastAllowance
}, Effect.orDie)

/** Builds a guard statement for a renewal. It matches only if the account has no newer entries except charges since the grant was read. */
export const unmovedSince = (sql: SqlClient, account: string, { entries }: LastAllowance): Statement =>
  statement(
    sql`SELECT 1 AS unmoved WHERE NOT EXISTS (SELECT 1 FROM tollgate_ledger_entries
      WHERE billing_account_id = ${account} AND source IS NOT NULL AND number > ${entries})`,
    1
  )
