/** Limits the usage that a vendor reports to the maximum that the request can cause. */
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"

export interface Figure {
  readonly count: number
  readonly usage_source: UsageSource
}

/**
 * Determines the count to charge. The vendor's count is used up to the maximum, even if it is zero. A missing or invalid count is replaced with
 * `estimate`, up to the same maximum. A reduced or replaced count is marked as estimated.
 */
export const chargeableCount = (reported: unknown, most: number, estimate: number): Figure => {
  const isCount = typeof reported === "number" && Number.isInteger(reported) && reported >= 0
  if (isCount && reported <= most) return { count: reported, usage_source: "provider" }
  return { count: isCount ? most : Math.min(estimate, most), usage_source: "estimated" }
}

/** Estimates the token count at four bytes per token, which is typical of English text. */
export const tokensEstimated = (bytes: number): number => Math.ceil(bytes / 4)
