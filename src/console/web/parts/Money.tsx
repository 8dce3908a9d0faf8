/**
 * An amount in USD. `short` shows three significant digits, `aligned` up to six decimal places for use in a column, and `exact` all digits. The
 * tooltip and the screen-reader text always have all digits. Digits after the cents are dimmed.
 */
import { exact, nano, parts, shortDigits, usd } from "../money.ts"
import type { Usd } from "../money.ts"

interface MoneyProps {
  /** An amount in USD as in the contract, or a `bigint` in nano-USD. */
  readonly of: Usd | bigint
  readonly as?: "short" | "aligned" | "exact"
  /** Adds the sign of a ledger entry. */
  readonly signed?: "credit" | "debit"
  /** Makes the amount focusable. Set this unless the amount is in a focusable row. */
  readonly focusable?: boolean
}

const alignedDigits = 6

export const Money = ({ as = "short", focusable = false, of, signed }: MoneyProps) => {
  const amount = typeof of === "bigint" ? usd(of) : of
  const all = exact(amount)
  const maxDigits = as === "exact" ? 9 : as === "aligned" ? alignedDigits : shortDigits(amount)
  const tiny = as === "aligned" && nano(amount) > 0n && nano(amount) < 500n
  const shown = parts(tiny ? "0.000001" : amount, 2, maxDigits)
  const sign = signed === undefined ? "" : signed === "credit" ? "+" : "\u2212"
  const missing = as === "aligned" ? alignedDigits - 2 - shown.rest.length : 0
  return (
    <span
      className={`money${signed === "credit" ? " money-credit" : ""}`}
      data-tip={all}
      {...(focusable && { tabIndex: 0 })}
    >
      <span className="sr-only">{sign + all}</span>
      <span aria-hidden>
        {sign}
        {tiny ? "<" : ""}
        {shown.head}
        <span className="money-rest">{shown.rest}</span>
        {missing > 0 ? <span className="money-pad">{"0".repeat(missing)}</span> : null}
        {shown.tail}
      </span>
    </span>
  )
}
