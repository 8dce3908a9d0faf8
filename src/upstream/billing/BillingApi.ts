/** A vendor's billing API as pure functions: the request of a page, and the lines and the next page in its answer. */
import type { Redacted } from "effect"
import type { BilledLine, BillWindow } from "./Bill.ts"

export interface BillPage {
  readonly lines: ReadonlyArray<BilledLine>
  /** The cursor of the next page; null after the last one. */
  readonly next: string | null
}

export interface BillingApi {
  /** The address in production. */
  readonly base_url: string
  /** The reports that together are the bill. */
  readonly reports: ReadonlyArray<string>
  /** How long after the end of a UTC day its bill may still change, in milliseconds. A later day is not closed. */
  readonly closes_after_ms: number
  /** The maximum number of days before today that the vendor reports. */
  readonly days_max: number
  readonly headers: (key: Redacted.Redacted) => Readonly<Record<string, string>>
  /** The path and query of a page; `page` is the cursor in the answer before it. */
  readonly path: (report: string, window: BillWindow, page: string | null) => string
  /** Reads a page. Throws `NoBill`. */
  readonly read: (report: string, window: BillWindow, page: string | null, body: unknown) => BillPage
}
