/**
 * Reads the calls of a period in record order, with the facts that their vendors reported, to compare them with vendors' bills. Reading in slices
 * needs constant memory and does not delay other work.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { withDimensions } from "../../books/ledger/rows/Dimensions.ts"
import { lastRow } from "../../books/ledger/totals/ProviderTotals.ts"
import { hour } from "../../kernel/Moment.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { inSlices } from "../../kernel/Pieces.ts"
import type { TokenDetails } from "../../kernel/TokenDetails.ts"
import { vendorRequestsOf } from "../../kernel/VendorRequests.ts"
import type { VendorRequests } from "../../kernel/VendorRequests.ts"

export interface VendorCall {
  readonly usage_id: string
  readonly at: number
  readonly model: string
  readonly provider: string
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  readonly token_details: TokenDetails | undefined
  readonly cost: Nano
  readonly success: boolean
  readonly error_type: string | null
  readonly requests: VendorRequests
}

interface Row extends Omit<VendorCall, "cost" | "success" | "token_details" | "requests"> {
  readonly cost: string
  readonly success: number
  readonly token_details: string | null
  readonly vendor_request: string | null
}

/** The allowance for clock skew between nodes: a later row can have an earlier time. */
const slack = hour

/** Finds the first row at or after `at` by bisection. Rows are written in chronological order, apart from the slack. */
const firstRow = (sql: SqlClient, at: number, end: number) =>
  Effect.gen(function* () {
    let [low, high] = [0, end + 1]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const [row] = yield* sql<{ readonly seq: number; readonly at: number }>`
        SELECT seq, at FROM tollgate_usage_records WHERE seq >= ${middle} ORDER BY seq LIMIT 1`
      if (row === undefined || row.at >= at) high = middle
      else low = row.seq + 1
    }
    return low
  })

const callOf = ({ cost, success, token_details, vendor_request, ...row }: Row): VendorCall => ({
  ...row,
  token_details: token_details === null ? undefined : (JSON.parse(token_details) as TokenDetails),
  cost: fromRow(cost),
  success: success === 1,
  requests: vendorRequestsOf(vendor_request)
})

/** Passes the calls from `from` (inclusive) to `to` (exclusive) to `use`. */
export const eachVendorCall = (sql: SqlClient, from: number, to: number, use: (call: VendorCall) => void) =>
  Effect.gen(function* () {
    const end = yield* lastRow(sql)
    const first = yield* firstRow(sql, from - slack, end)
    const last = yield* firstRow(sql, to + slack, end)
    yield* inSlices({ from: first, to: last }, (piece) =>
      Effect.map(
        sql<Row>`SELECT r.id AS usage_id, r.at, d.model, d.provider, r.prompt_tokens, r.completion_tokens, r.units,
            r.token_details, CAST(r.cost AS TEXT) AS cost, r.success, r.error_type, r.vendor_request
          FROM tollgate_usage_records r ${sql.literal(withDimensions)}
          WHERE r.seq >= ${piece.from} AND r.seq < ${piece.to} ORDER BY r.seq`,
        (rows) => {
          for (const row of rows) if (row.at >= from && row.at < to) use(callOf(row))
        }
      )
    )
  }).pipe(Effect.orDie)
