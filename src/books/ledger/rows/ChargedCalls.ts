/** Reads a billing account's charges, each with the call's usage record. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type { Effect } from "effect"
import type { Range } from "../../../kernel/Pieces.ts"
import { withDimensions } from "./Dimensions.ts"
import { entriesAmong } from "./RowLinks.ts"

/** A charge and its call. Amounts are nano-USD as decimal strings. An absent property of the call is an empty string or null. */
export interface ChargedCallRow {
  /** The ledger entry number. */
  readonly number: number
  readonly at: number
  readonly charge: string
  readonly usage_id: string
  readonly uncollected: string
  readonly account_id: string
  /** The tenant of the caller's credential. */
  readonly tenant_id: string
  readonly application_id: string
  readonly usage_type: "inference" | "tool"
  readonly endpoint: string
  readonly model: string
  readonly provider: string
  readonly price: string
  readonly billing_source_kind: "own" | "team"
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  readonly token_details: string | null
  readonly usage_source: string
  readonly latency_ms: number
  readonly success: number
  readonly request_id: string | null
  readonly run_id: string
  readonly tags: string
  readonly end_user: string
}

const columns = `e.number, e.at, CAST(e.amount AS TEXT) AS charge, r.id AS usage_id, CAST(r.uncollected AS TEXT) AS uncollected,
  d.account_id, r.tenant_id, d.application_id, d.usage_type, d.endpoint, d.model, d.provider, d.price, d.billing_source_kind,
  r.prompt_tokens, r.completion_tokens, r.units, r.token_details, r.usage_source, r.latency_ms, r.success, r.request_id,
  d.run_id, d.tags, d.end_user`

const withRecords = `CROSS JOIN tollgate_usage_records r ON r.id = e.reference_id ${withDimensions}`

/** Reads the charges among the account's entries in a range of entry numbers, in ascending order. */
export const chargedCalls = (
  sql: SqlClient,
  account: string,
  range: Range
): Effect.Effect<ReadonlyArray<ChargedCallRow>, SqlError> =>
  sql<ChargedCallRow>`SELECT ${sql.literal(columns)} FROM ${entriesAmong(sql, account, range, withRecords)}
    AND e.source IS NULL ORDER BY e.number`
