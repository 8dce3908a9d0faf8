/**
 * The export's own format: one row per charged call.
 *
 * Where the specification is silent:
 * - An export contains the charges of the tenant's ledger: the calls that its billing account paid for, including calls made with other tenants'
 *   credentials. It omits calls that cost nothing. The sum of `charge_usd` equals the ledger's debits for calls in the same period.
 * - Rows follow the order of the ledger: by time, then by entry number.
 * - Lines end with CR LF (RFC 4180), and there is no byte order mark. Amounts have nine decimal places. An absent value is an empty cell.
 * - Key and member names are current. They are empty for deleted keys and accounts.
 * - A value that a spreadsheet would read as a formula (it begins with `=`, `+`, `-`, `@`, tab, line break, or a full-width form of them) is prefixed
 *   with an apostrophe, because members and their clients choose names, end users and request ids. The CSV and FOCUS formats both do this, although
 *   FOCUS asks for unchanged strings. Tags are a JSON object, which begins with a brace, and are never changed.
 */
import { cell } from "../../kernel/CsvCell.ts"
import { toIso } from "../../kernel/Moment.ts"
import { usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { detailNames } from "../../kernel/TokenDetails.ts"
import type { ExportedCall, ExportHead, RowFormat } from "./Export.ts"

/** Formats a non-negative amount in USD with nine decimal places. */
const nineDecimals = (amount: Nano): string => `${amount / usd}.${(amount % usd).toString().padStart(9, "0")}`

const columns = [
  "time",
  "usage_id",
  "ledger_entry_id",
  "usage_type",
  "endpoint",
  "model",
  "provider",
  "charge_usd",
  "uncollected_usd",
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  ...detailNames,
  "units",
  "usage_source",
  "success",
  "latency_ms",
  "account_id",
  "account_name",
  "account_email",
  "tenant_id",
  "application_id",
  "application_name",
  "run_id",
  "end_user",
  "tags",
  "request_id",
  "billing_account_id",
  "billing_source_kind"
] as const

const rowOf = (call: ExportedCall, { billing_account_id }: ExportHead): string =>
  [
    toIso(call.at),
    cell(call.usage_id),
    cell(call.entry_id),
    call.usage_type,
    cell(call.endpoint),
    cell(call.model),
    cell(call.provider),
    nineDecimals(call.charge),
    nineDecimals(call.uncollected),
    call.prompt_tokens,
    call.completion_tokens,
    call.prompt_tokens + call.completion_tokens,
    ...detailNames.map((name) => call.token_details?.[name] ?? 0),
    call.units,
    call.usage_source,
    call.success,
    call.latency_ms,
    cell(call.account_id),
    cell(call.account_name),
    cell(call.account_email),
    cell(call.tenant_id),
    cell(call.application_id),
    cell(call.application_name),
    cell(call.run_id),
    cell(call.end_user),
    cell(call.tags),
    cell(call.request_id),
    cell(billing_account_id),
    call.billing_source_kind
  ].join(",") + "\r\n"

export const csvFormat = (head: ExportHead): RowFormat => ({
  header: `${columns.join(",")}\r\n`,
  rows: (call) => rowOf(call, head)
})
