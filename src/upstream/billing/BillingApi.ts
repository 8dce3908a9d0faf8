/** A vendor's billing API as pure functions, which build the request for a page and read the lines and the next cursor from its response. */
import type { Redacted } from "effect"
import type { BilledLine, BillWindow } from "./Bill.ts"

export interface BillPage {
  readonly lines: ReadonlyArray<BilledLine>
  /** The cursor of the next page; null on the last page. */
  readonly next: string | null
}

export interface CallApi {
  /** Builds the path and query. `id` is the vendor's id of the call. */
  readonly path: (id: string) => string
  /** Throws `NoBill` if the response cannot be read. */
  readonly read: (body: unknown) => ReadonlyArray<BilledLine>
}

export interface BillingApi {
  readonly base_url: string
  /** The reports that together make up the bill. */
  readonly reports: ReadonlyArray<string>
  /** How long a UTC day's bill can change after the end of the day, in milliseconds. The day is closed afterwards. */
  readonly closes_after_ms: number
  /** How many days before today the vendor reports. */
  readonly days_max: number
  readonly headers: (key: Redacted.Redacted) => Readonly<Record<string, string>>
  /** Builds the path and query of a page. `page` is the cursor from the previous response; null for the first page. */
  readonly path: (report: string, window: BillWindow, page: string | null) => string
  /** Throws `NoBill` if the page cannot be read. */
  readonly read: (report: string, window: BillWindow, page: string | null, body: unknown) => BillPage
  /** The request for one call, if the reports list no calls but the vendor describes a call by its id. */
  readonly call?: CallApi
}
