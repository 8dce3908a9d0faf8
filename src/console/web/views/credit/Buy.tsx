/** Buys credit: the user enters an amount and pays on the processor's page, and the console waits for the confirmation. */
import { useMutation } from "@tanstack/react-query"
import { CircleDollarSign } from "lucide-react"
import { useEffect, useState } from "react"
import { useBillingAccount } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import { exact, nano } from "../../money.ts"
import { Button } from "../../parts/Button.tsx"
import { Choice } from "../../parts/Choice.tsx"
import { FormDialog } from "../../parts/FormDialog.tsx"
import { TextField } from "../../parts/Fields.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { creditTexts } from "../../texts/credit.ts"

/** The storage key for this tab's open checkout. The value is not secret. */
const storageName = "console.checkout"
/** How long a saved checkout remains valid, in milliseconds. */
const checkoutLifetime = 3_600_000

interface Checkout {
  readonly tenant: string
  readonly amount: number
  /** The balance before the payment, in nano-USD. */
  readonly balance: string
  readonly at: number
}

const savedCheckout = (): Checkout | undefined => {
  const text = sessionStorage.getItem(storageName)
  const found = text === null ? undefined : (JSON.parse(text) as Checkout)
  return found !== undefined && found.tenant === tenantId() && Date.now() - found.at < checkoutLifetime
    ? found
    : undefined
}

const amounts = ["10", "25", "50", "100"] as const

export const Buy = ({ onClose }: { readonly onClose: () => void }) => {
  const tenant_id = tenantId()
  const { data: account } = useBillingAccount()
  const [amount, setAmount] = useState("25")
  const buy = useMutation({
    mutationFn: () =>
      resultOf(
        api.POST("/v1/tenants/{tenant_id}/billing/checkout", {
          params: { path: { tenant_id } },
          body: { amount_credits: Number(amount) }
        })
      ),
    onSuccess: ({ checkout_url }) => {
      const balance = nano(account?.credits ?? 0).toString()
      const begun: Checkout = { tenant: tenant_id, amount: Number(amount), balance, at: Date.now() }
      sessionStorage.setItem(storageName, JSON.stringify(begun))
      location.assign(checkout_url)
    }
  })
  return (
    <FormDialog
      title={creditTexts.buy}
      action={creditTexts.buyGo}
      error={buy.error}
      isPending={buy.isPending || buy.isSuccess}
      onSubmit={() => buy.mutate()}
      onClose={onClose}
    >
      <Choice
        label={creditTexts.buyAmount}
        options={amounts.map((one) => [one, `$${one}`] as const)}
        value={amount as (typeof amounts)[number]}
        onChange={setAmount}
      />
      <TextField
        name="amount_credits"
        label={creditTexts.buyAmount}
        help={creditTexts.buyAmountHelp}
        value={amount}
        onChange={setAmount}
        inputMode="numeric"
        before="$"
        behind="USD"
        isRequired
        autoFocus
      />
      <p className="quiet">{creditTexts.buyText}</p>
    </FormDialog>
  )
}

/** Shows a notice for an open checkout until the balance rises or the user dismisses it. */
export const Arrival = () => {
  const { data: account } = useBillingAccount()
  const [pendingCheckout, setPendingCheckout] = useState(savedCheckout)
  const arrived =
    pendingCheckout !== undefined && account !== undefined && nano(account.credits) > BigInt(pendingCheckout.balance)
  const end = (): void => {
    sessionStorage.removeItem(storageName)
    setPendingCheckout(undefined)
  }
  useEffect(() => {
    if (!arrived) return
    toast(creditTexts.arrived(exact(pendingCheckout.amount)))
    end()
  }, [arrived, pendingCheckout])
  if (pendingCheckout === undefined || arrived) return null
  return (
    <div className="credit-note row" role="status">
      <CircleDollarSign size={18} strokeWidth={1.5} aria-hidden />
      <p>
        <strong>{creditTexts.waiting(exact(pendingCheckout.amount))}</strong> {creditTexts.waitingText}
      </p>
      <Button kind="ghost" onPress={end}>
        {creditTexts.dismiss}
      </Button>
    </div>
  )
}
