/** Shows the allowance, and the form that redeems a voucher. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import { exact } from "../../money.ts"
import { FormDialog } from "../../parts/FormDialog.tsx"
import { TextField } from "../../parts/Fields.tsx"
import { Facts, Section } from "../../parts/Page.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { When } from "../../parts/When.tsx"
import { creditTexts } from "../../texts/credit.ts"

const useAllowance = () => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["balance", tenant_id, "allowance"],
    queryFn: () => resultOf(api.GET("/v1/tenants/{tenant_id}/billing/allowance", { params: { path: { tenant_id } } }))
  })
}

/** Renders nothing if the tenant has no allowance. */
export const Allowance = () => {
  const { data } = useAllowance()
  const allowance = data?.allowance ?? undefined
  if (allowance === undefined) return null
  const { amount_usd, period, renews_at, rollover, unused_usd } = allowance
  return (
    <Section title={creditTexts.allowance}>
      <Facts
        of={[
          [creditTexts.allowanceAmount, creditTexts.allowanceAmounts[period](exact(amount_usd))],
          [creditTexts.allowanceUnused, exact(unused_usd)],
          [creditTexts.allowanceRenews, <When key="renews" at={renews_at} as="moment" />],
          [
            creditTexts.allowanceRollover,
            typeof rollover === "string"
              ? creditTexts.allowanceRollovers[rollover]
              : creditTexts.allowanceUpTo(exact(rollover.up_to_usd))
          ]
        ]}
      />
    </Section>
  )
}

const useRedeem = (onDone: () => void) => {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (code: string) => resultOf(api.POST("/v1/vouchers/redeem", { body: { code } })),
    onSuccess: ({ amount_usd }) => {
      toast(creditTexts.redeemed(exact(amount_usd)))
      onDone()
    },
    onSettled: () => {
      for (const about of ["balance", "ledger"]) void queries.invalidateQueries({ queryKey: [about] })
    }
  })
}

export const Redeem = ({ onClose }: { readonly onClose: () => void }) => {
  const [code, setCode] = useState("")
  const redeem = useRedeem(onClose)
  return (
    <FormDialog
      title={creditTexts.redeem}
      action={creditTexts.redeemGo}
      error={redeem.error}
      isPending={redeem.isPending}
      onSubmit={() => redeem.mutate(code)}
      onClose={onClose}
    >
      <TextField
        name="code"
        label={creditTexts.redeemCode}
        help={creditTexts.redeemHelp}
        value={code}
        onChange={setCode}
        isRequired
        autoFocus
      />
    </FormDialog>
  )
}
