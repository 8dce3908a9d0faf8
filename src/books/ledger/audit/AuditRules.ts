/** The rules that an audit checks, with the sentences for their findings. */
import { usd } from "../rules/Check.ts"
import type { CheckRow } from "../rules/Check.ts"

function sumsSentence(table: string) {
  return ({ expected, found, id }: CheckRow) => `${table} states ${found} for ${id}, but the records sum to ${expected}`
}

export const sentences = {
  "balance is the sum of its entries": ({ expected, found, id }) =>
    `${id} has a balance of ${usd(found)}, but its entries sum to ${usd(expected)}`,
  "balance is that of the last entry": ({ expected, found, id }) =>
    `${id} has a balance of ${usd(found)}, but its last entry states ${usd(expected)}`,
  "giftable credit is that of the last entry": ({ expected, found, id }) =>
    `${id} has ${usd(found)} giftable credit, but its last entry states ${usd(expected)}`,
  "funded means that credit was bought or received": ({ expected, id }) =>
    expected === "1"
      ? `${id} has bought or received credit, but is not marked as funded`
      : `${id} is marked as funded, but has never bought or received credit`,
  "held is the credit in escrow": ({ expected, found, id }) =>
    `${id} holds ${usd(found)} in escrow, but its open transfers sum to ${usd(expected)}`,
  "credit is neither made nor lost": ({ expected, found }) =>
    `purchases and grants minus charges are ${usd(expected)}, but balances and escrow are ${usd(found)}`,
  "entries are numbered without a gap": ({ expected, found, id }) =>
    `entry ${id} has number ${found} instead of ${expected}`,
  "entries are counted": ({ expected, found, id }) => `${id} counts ${found} entries, but there are ${expected}`,
  "each balance follows from the one before": ({ expected, found, id }) =>
    `entry ${id} has a balance of ${usd(found)}, but the previous entry and its amount give ${usd(expected)}`,
  "each giftable part follows from the one before": ({ expected, found, id }) =>
    `entry ${id} has ${usd(found)} giftable credit, but the previous entry and its source give ${usd(expected)}`,
  "giftable credit is part of the balance": ({ expected, found, id }) =>
    `entry ${id} has ${usd(found)} giftable credit of a balance of ${usd(expected)}`,
  "a source fits its direction": ({ expected, found, id }) =>
    `entry ${id} has the source ${found}, expected: ${expected}`,
  "a transfer pays out once": ({ expected, found, id }) =>
    `transfer ${id} has ${found} nano-USD, expected: ${expected}`,
  "entries are in the order of time": ({ expected, found, id }) =>
    `entry ${id} is dated ${found}, earlier than the previous entry (${expected})`,
  "a call has dimensions of its tenant": ({ expected, found, id }) =>
    `${id} should have dimensions of ${expected}, but has ${found}`,
  "a cost has one debit": ({ expected, found, id }) =>
    `usage record ${id} requires ${expected} (nano-USD), but has ${found}`,
  "a debit has one cost": ({ expected, id }) => `entry ${id} charges for ${expected}, but no such record exists`,
  "the payer is an account of its tenant": ({ expected, found, id }) =>
    `usage record ${id} was paid by tenant ${found}, but its billing account belongs to ${expected}`,
  "records are numbered without a gap": ({ expected, found, id }) =>
    `usage record ${id} has number ${found} instead of ${expected}`,
  "records are in the order of time": ({ expected, found, id }) =>
    `usage record ${id} is dated ${found}, earlier than the previous record (${expected})`,
  "each entry points to the one before": ({ expected, found, id }) =>
    `entry ${id} points to row ${found}, but the previous entry is ${expected}`,
  "each record points to the one before": ({ expected, found, id }) =>
    `usage record ${id} points to row ${found}, but the previous record is ${expected}`,
  "tollgate_ledger_amounts names the newest entry": ({ expected, found, id }) =>
    `tollgate_ledger_amounts states that the newest entry of ${id} is row ${found}, but it is ${expected}`,
  "tollgate_usage_heads names the newest record": ({ expected, found, id }) =>
    `tollgate_usage_heads states ${found} for ${id}, but should state ${expected}`,
  "tollgate_ledger_offsets locates the entries": ({ expected, found, id }) =>
    `tollgate_ledger_offsets states ${found} for ${id}, but the entries require ${expected}`,
  "tollgate_usage_offsets locates the records": ({ expected, found, id }) =>
    `tollgate_usage_offsets states ${found} for ${id}, but the records require ${expected}`,
  "a watermark is the number of a record": ({ expected, found, id }) =>
    `tollgate_usage_watermarks states that the rollups of ${id} include record ${found}, but its records are ${expected}`,
  "tollgate_usage_by_tenant sums the records": sumsSentence("tollgate_usage_by_tenant"),
  "tollgate_usage_by_caller sums the records": sumsSentence("tollgate_usage_by_caller"),
  "tollgate_usage_by_payer sums the records": sumsSentence("tollgate_usage_by_payer")
} as const satisfies Readonly<Record<string, (row: CheckRow) => string>>
export type AuditCheck = keyof typeof sentences

export type Report = (check: AuditCheck, row: CheckRow) => void
