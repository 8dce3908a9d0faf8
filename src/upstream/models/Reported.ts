/** Figures of a vendor, believed as far as the request can have caused them. */
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"

export interface Figure {
  readonly count: number
  readonly usage_source: UsageSource
}

/**
 * The figure to charge: the vendor's, up to `most`. One beyond it counts as `most`; in place of one that is missing or no count stands
 * the `estimate`. Either is marked estimated. An explicit zero is believed.
 */
export const believed = (reported: unknown, most: number, estimate: number): Figure => {
  const isCount = typeof reported === "number" && Number.isInteger(reported) && reported >= 0
  if (isCount && reported <= most) return { count: reported, usage_source: "provider" }
  return { count: isCount ? most : Math.min(estimate, most), usage_source: "estimated" }
}

/** Without a count: four bytes a token, the usual measure of English text. */
export const tokensEstimated = (bytes: number): number => Math.ceil(bytes / 4)
