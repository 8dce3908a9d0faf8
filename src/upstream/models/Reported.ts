/** Limits the usage that a vendor reports to the most that the request can cause. */
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"

export interface Figure {
  readonly count: number
  readonly usage_source: UsageSource
}

/**
 * Decides which count to charge. The vendor's count is used if it is at most `most`, even if it is zero. A larger count is reduced to `most`. A
 * missing or invalid count is replaced with `estimate`, but with no more than `most`. A reduced or replaced count is marked as estimated.
 */
export const believed = (reported: unknown, most: number, estimate: number): Figure => {
  const isCount = typeof reported === "number" && Number.isInteger(reported) && reported >= 0
  if (isCount && reported <= most) return { count: reported, usage_source: "provider" }
  return { count: isCount ? most : Math.min(estimate, most), usage_source: "estimated" }
}

/** Estimates the number of tokens at four bytes per token, as is typical of English text. */
export const tokensEstimated = (bytes: number): number => Math.ceil(bytes / 4)
