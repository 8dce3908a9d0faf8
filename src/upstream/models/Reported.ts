/** A vendor's figures, accepted up to what the request can cause. */
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"

export interface Figure {
  readonly count: number
  readonly usage_source: UsageSource
}

/**
 * The figure to charge: the vendor's, up to `most`. A larger one counts as `most`. One that is missing or not a count is replaced by `estimate`.
 * Both are marked estimated. An explicit zero is accepted.
 */
export const believed = (reported: unknown, most: number, estimate: number): Figure => {
  const isCount = typeof reported === "number" && Number.isInteger(reported) && reported >= 0
  if (isCount && reported <= most) return { count: reported, usage_source: "provider" }
  return { count: isCount ? most : Math.min(estimate, most), usage_source: "estimated" }
}

/** An estimate of four bytes per token, usual for English text. */
export const tokensEstimated = (bytes: number): number => Math.ceil(bytes / 4)
