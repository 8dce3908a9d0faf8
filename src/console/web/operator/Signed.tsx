/**
 * Shows the difference between two amounts. Negative differences have the problem color. With `isTrouble`, positive
 * differences have it too.
 */
import { Money } from "../parts/Money.tsx"
import { operatorTexts as texts } from "../texts/operator.ts"

interface SignedProps {
  /** In nano-USD. */
  readonly of: bigint
  readonly isTrouble?: boolean
}

export const Signed = ({ isTrouble = false, of }: SignedProps) => {
  if (of === 0n) return <span className="quiet">{texts.ago.none}</span>
  return (
    <span className={of < 0n || isTrouble ? "operator-off" : ""}>
      <Money of={of < 0n ? -of : of} as="aligned" signed={of < 0n ? "debit" : "credit"} />
    </span>
  )
}
