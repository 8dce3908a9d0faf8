/** Accepts a vendor's figures up to the maximum that the request can cause. */
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"

export interface Figure {
  readonly count: number
  readonly usage_source: UsageSource
}

/**
 * Decides the figure to charge. This is the vendor's figure if it is at most `most`; an explicit zero is accepted. A larger figure counts as `most`,
 * and a missing or invalid one is replaced with `estimate`. In both cases the figure is marked as estimated.
 */
export const believed = (reported: unknown, most: number, estimate: number): Figure => {
  const isCount = typeof reported === "number" && Number.isInteger(reported) && reported >= 0
  if (isCount && reported <= most) return { count: reported, usage_source: "provider" }
  return { count: isCount ? most : Math.min(estimate, most), usage_source: "estimated" }
}

/** Estimates the number of tokens at four bytes each, which is usual for English text. */
export const tokensEstimated = (bytes: number): number => Math.ceil(bytes / 4)
