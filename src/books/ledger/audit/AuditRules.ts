/** The rules that an audit looks at, and how a finding of each reads. */
import { usd } from "../rules/Check.ts"
import type { CheckRow } from "../rules/Check.ts"

function sumsSentence(table: string) {
  return ({ expected, found, id }: CheckRow) => `${table} says ${found} for ${id}, but the records sum to ${expected}`
}

/** By the name of the rule. */
export const sentences = {
  "balance is the sum of its entries": ({ expected, found, id }) =>
    `${id} has a balance of ${usd(found)}, but its entries sum to ${usd(expected)}`,
  "balance is that of the last entry": ({ expected, found, id }) =>
    `${id} has a balance of ${usd(found)}, but its last entry says ${usd(expected)}`,
  "giftable credit is that of the last entry": ({ expected, found, id }) =>
    `${id} may give away ${usd(found)}, but its last entry says ${usd(expected)}`,
  "funded means that credit was bought or received": ({ expected, id }) =>
    expected === "1"
      ? `${id} bought or received credit, but is not marked as funded`
      : `${id} is marked as funded, but never bought or received credit`,
  "held is the credit in escrow": ({ expected, found, id }) =>
    `${id} holds ${usd(found)} in escrow, but its open transfers come to ${usd(expected)}`,
  "credit is neither made nor lost": ({ expected, found }) =>
    `purchases and grants less charges come to ${usd(expected)}, but balances and escrow to ${usd(found)}`,
  "entries are numbered without a gap": ({ expected, found, id }) =>
    `entry ${id} has number ${found} where ${expected} should come`,
  "entries are counted": ({ expected, found, id }) => `${id} counts ${found} entries, but has ${expected}`,
  "each balance follows from the one before": ({ expected, found, id }) =>
    `entry ${id} leaves a balance of ${usd(found)}, but the one before it and its amount make ${usd(expected)}`,
  "each giftable part follows from the one before": ({ expected, found, id }) =>
    `entry ${id} leaves ${usd(found)} to give away, but the one before it and its source make ${usd(expected)}`,
  "giftable credit is part of the balance": ({ expected, found, id }) =>
    `entry ${id} says that ${usd(found)} of ${usd(expected)} may be given away`,
  "a source fits its direction": ({ expected, found, id }) =>
    `entry ${id} has the source ${found}, where ${expected} is due`,
  "a transfer pays out once": ({ expected, found, id }) =>
    `transfer ${id} shows ${found} nano-USD, but ${expected} is right`,
  "entries are in the order of time": ({ expected, found, id }) =>
    `entry ${id} was made at ${found}, before the one that precedes it (${expected})`,
  "a call has dimensions of its tenant": ({ expected, found, id }) =>
    `${id} should have dimensions of ${expected}, but has ${found}`,
  "a cost has one debit": ({ expected, found, id }) =>
    `usage record ${id} calls for ${expected} (nano-USD), but there is ${found}`,
  "a debit has one cost": ({ expected, id }) => `entry ${id} charges for ${expected}, which does not exist`,
  "the payer is an account of its tenant": ({ expected, found, id }) =>
    `usage record ${id} was paid by tenant ${found}, but its account says ${expected}`,
  "records are numbered without a gap": ({ expected, found, id }) =>
    `usage record ${id} has number ${found} where ${expected} should come`,
  "records are in the order of time": ({ expected, found, id }) =>
    `usage record ${id} was made at ${found}, before the one that precedes it (${expected})`,
  "each entry points to the one before": ({ expected, found, id }) =>
    `entry ${id} points to row ${found}, but the one before it is ${expected}`,
  "each record points to the one before": ({ expected, found, id }) =>
    `usage record ${id} points to row ${found}, but the one before it is ${expected}`,
  "tollgate_ledger_amounts names the newest entry": ({ expected, found, id }) =>
    `tollgate_ledger_amounts says that the newest entry of ${id} is row ${found}, but it is ${expected}`,
  "tollgate_usage_heads names the newest record": ({ expected, found, id }) =>
    `tollgate_usage_heads says ${found} for ${id}, but it has ${expected}`,
  "tollgate_ledger_offsets locates the entries": ({ expected, found, id }) =>
    `tollgate_ledger_offsets says ${found} for ${id}, but the entries make that ${expected}`,
  "tollgate_usage_offsets locates the records": ({ expected, found, id }) =>
    `tollgate_usage_offsets says ${found} for ${id}, but the records make that ${expected}`,
  "a watermark is the number of a record": ({ expected, found, id }) =>
    `tollgate_usage_watermarks says that the sums of ${id} go up to record ${found}, but its records are ${expected}`,
  "tollgate_usage_by_tenant sums the records": sumsSentence("tollgate_usage_by_tenant"),
  "tollgate_usage_by_caller sums the records": sumsSentence("tollgate_usage_by_caller"),
  "tollgate_usage_by_payer sums the records": sumsSentence("tollgate_usage_by_payer")
} as const satisfies Readonly<Record<string, (row: CheckRow) => string>>
export type AuditCheck = keyof typeof sentences

export type Report = (check: AuditCheck, row: CheckRow) => void
