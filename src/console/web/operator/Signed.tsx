/** A difference of amounts. What is trouble has colour: what is below zero, or, of an invoice, every difference. */
import { Money } from "../parts/Money.tsx"
import { operatorTexts as texts } from "../texts/operator.ts"

interface SignedProps {
  /** Nano-USD. */
  readonly of: bigint
  /** Whether what is above zero is trouble as well. */
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
