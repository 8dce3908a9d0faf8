/** An export of the calls that a tenant's billing account paid for: its query, and the calls that its rows show. */
import { Schema } from "effect"
import type { Nano } from "../../kernel/Money.ts"
import type { TokenDetails } from "../../kernel/TokenDetails.ts"
import type { ChargedCallRow } from "../../books/ledger/rows/ChargedCalls.ts"
import type { PriceLine } from "../../books/prices/Lines.ts"

export const exportFormats = ["csv", "focus"] as const
export type ExportFormat = (typeof exportFormats)[number]

/** A string that `Query.ts` validates, because each error has specific wording. */
const text = (description: string) => Schema.optionalWith(Schema.String.annotations({ description }), { exact: true })

export interface ExportQuery extends Schema.Schema.Type<typeof ExportQuery> {}
export const ExportQuery = Schema.Struct({
  format: Schema.optionalWith(
    Schema.String.annotations({
      jsonSchema: {
        type: "string",
        enum: [...exportFormats],
        description: "`csv` (default): a row per call. `focus`: rows of FOCUS 1.2, one per call and price line"
      }
    }),
    { exact: true }
  ),
  from: text("RFC 3339 time, or a date (its start in UTC); the first instant of the period. Default: the first call"),
  to: text(
    "RFC 3339 time, or a date (its start in UTC); the first instant after the period. Default: the time of the request"
  )
})

/** A charged call with the current names of its caller and key. Money is in nano-USD; times are Unix times in milliseconds. */
export interface ExportedCall extends Omit<
  ChargedCallRow,
  "number" | "charge" | "uncollected" | "token_details" | "tags" | "success" | "request_id"
> {
  readonly entry_id: string
  /** The amount of the ledger entry. It is above 0. */
  readonly charge: Nano
  readonly uncollected: Nano
  readonly token_details: TokenDetails | undefined
  /** The tags as a JSON object; empty if the call has none. */
  readonly tags: string
  readonly success: boolean
  readonly request_id: string
  /** Empty if the account or the key no longer exists. */
  readonly account_name: string
  readonly account_email: string
  readonly application_name: string
  /** The lines of the call's price version. Empty if the version is unknown. */
  readonly lines: ReadonlyArray<PriceLine>
}

/** The facts that all rows of an export share. */
export interface ExportHead {
  readonly billing_account_id: string
  readonly tenant_name: string
  readonly service_name: string
}

/** A format of rows. Each text ends with a line break. */
export interface RowFormat {
  readonly header: string
  readonly rows: (call: ExportedCall) => string
}
