/** A vendor's figures, accepted up to the maximum that the request can cause. */
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"

export interface Figure {
  readonly count: number
  readonly usage_source: UsageSource
}

/**
 * The figure to charge: the vendor's, up to `most`. A larger one counts as `most`. `estimate` replaces a missing or invalid one. In both cases the
 * figure is marked as estimated. An explicit zero is accepted.
 */
export const believed = (reported: unknown, most: number, estimate: number): Figure => {
  const isCount = typeof reported === "number" && Number.isInteger(reported) && reported >= 0
  if (isCount && reported <= most) return { count: reported, usage_source: "provider" }
  return { count: isCount ? most : Math.min(estimate, most), usage_source: "estimated" }
}

/** Estimates four bytes per token, which is usual for English text. */
export const tokensEstimated = (bytes: number): number => Math.ceil(bytes / 4)
