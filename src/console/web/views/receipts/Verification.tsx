/**
 * The button that verifies a charge's receipt, and the dialog that verifies a ledger entry's receipt. The verifier is loaded on first use.
 */
import { useQueryClient } from "@tanstack/react-query"
import { ShieldCheck } from "lucide-react"
import { lazy, Suspense, useState } from "react"
import type { Schemas } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { nano } from "../../money.ts"
import { Button } from "../../parts/Button.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Loading } from "../../parts/States.tsx"
import { receiptTexts as texts } from "../../texts/receipts.ts"
import type { Subject } from "./checking.ts"

const ReceiptOf = lazy(async () => ({ default: (await import("./ReceiptOf.tsx")).ReceiptOf }))

const Loaded = ({ of }: { readonly of: Subject }) => (
  <Suspense fallback={<Loading lines={3} />}>
    <ReceiptOf of={of} />
  </Suspense>
)

const ofCharge = ({ charged_usd, payer, usage_id }: Schemas["Explanation"]): Subject => ({
  of: { usage_id },
  states: {
    account: payer.billing_account_id,
    amount: nano(charged_usd),
    reference: usage_id,
    source: "call",
    type: "debit"
  }
})

/** Renders nothing for a free call, because it has no ledger entry. */
export const ChargeReceipt = ({ of }: { readonly of: Schemas["Explanation"] }) => {
  const queries = useQueryClient()
  const [isAsked, ask] = useState(false)
  if (nano(of.charged_usd) === 0n) return null
  const verify = (): void => (isAsked ? void queries.invalidateQueries({ queryKey: ["receipt"] }) : ask(true))
  return (
    <section className="receipt" aria-label={texts.title}>
      <p className="quiet small">{texts.lead}</p>
      <div className="row">
        <Button icon={ShieldCheck} onPress={verify}>
          {isAsked ? texts.again : texts.verify}
        </Button>
      </div>
      {isAsked ? <Loaded of={ofCharge(of)} /> : null}
    </section>
  )
}

type Entry = Schemas["LedgerEntry"]

/** Returns the entry number at the end of an entry's id. */
export const numberOf = ({ id }: Pick<Entry, "id">): number => Number(id.slice(id.lastIndexOf("_") + 1))

const ofEntry = (entry: Entry): Subject => ({
  of: { number: numberOf(entry) },
  states: {
    account: entry.billing_account_id,
    amount: nano(entry.amount),
    balance: nano(entry.balance),
    number: numberOf(entry),
    reference: entry.reference_id,
    source: entry.source ?? "call",
    type: entry.type
  }
})

interface EntryReceiptProps {
  /** The dialog is open unless this is `undefined`. */
  readonly of: Entry | undefined
  readonly onClose: () => void
}

export const EntryReceipt = ({ of, onClose }: EntryReceiptProps) => (
  <Dialog
    title={of === undefined ? texts.title : texts.entryTitle(count(numberOf(of)))}
    isOpen={of !== undefined}
    onClose={onClose}
    wide
  >
    <p className="quiet small">{texts.lead}</p>
    {of === undefined ? null : <Loaded of={ofEntry(of)} />}
  </Dialog>
)
