/**
 * The audit log. An entry records the operator, action, target, time and result. It commits in the action's transaction. The entry of a refused
 * action, or of an action without a transaction, is written on its own (`AuditLog`). Entries never change.
 */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { storable } from "../../storage/database/Text.ts"
import { Via } from "./Operator.ts"
import type { Operator } from "./Operator.ts"

export interface Act {
  readonly action: string
  readonly tenant_id?: string | undefined
  readonly account_id?: string | undefined
  /** A further identifier of the target, such as a reference, an email address, or the id of a key, session or client. */
  readonly subject?: string | undefined
  /** Amounts are in nano-USD here and in decimal USD in the log. */
  readonly details?: Readonly<Record<string, string | number | boolean | bigint | undefined>>
}

export const Result = Schema.Literal("done", "refused")

export const AuditEntry = Schema.Struct({
  id: Schema.Int,
  at: Moment,
  operator: Schema.String,
  via: Via,
  action: Schema.String,
  tenant_id: Schema.NullOr(Schema.String),
  /** The tenant's current name; null if the entry has no tenant or the tenant does not exist. */
  tenant_name: Schema.NullOr(Schema.String),
  account_id: Schema.NullOr(Schema.String),
  subject: Schema.NullOr(Schema.String),
  result: Result,
  details: Schema.Record({ key: Schema.String, value: Schema.Unknown })
}).annotations({ identifier: "AuditEntry" })
export interface AuditEntry extends Schema.Schema.Type<typeof AuditEntry> {}

export const entry = (
  { name, via }: Operator,
  { account_id, action, details = {}, subject, tenant_id }: Act,
  at: number,
  result: typeof Result.Type = "done"
): Statement => ({
  text: `INSERT INTO tollgate_operator_audit (at, operator, via, action, tenant_id, account_id, subject, result, details)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  params: [
    at,
    storable(name),
    via,
    action,
    storedOrNull(tenant_id),
    storedOrNull(account_id),
    storedOrNull(subject),
    result,
    storable(JSON.stringify(details, (_, value: unknown) => (typeof value === "bigint" ? toDecimal(value) : value)))
  ]
})

const storedOrNull = (text: string | undefined): string | null => (text === undefined ? null : storable(text))
