/** Saved payment methods. */
import { useMutation } from "@tanstack/react-query"
import { CreditCard, Plus } from "lucide-react"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { Section } from "../../parts/Page.tsx"
import { advice, Answer, Empty } from "../../parts/States.tsx"
import { creditTexts } from "../../texts/credit.ts"
import { isUnconfigured, methodName, useManages, useMethods, useReload } from "./asking.ts"
import type { Method } from "./asking.ts"

const two = (month: number): string => String(month).padStart(2, "0")

const Line = ({ isUsed, method }: { readonly isUsed: boolean; readonly method: Method }) => {
  const { exp_month, exp_year } = method
  return (
    <li className="credit-method">
      <CreditCard size={16} strokeWidth={1.75} aria-hidden />
      <span>{methodName(method)}</span>
      {exp_month === null || exp_year === null ? null : (
        <span className="quiet small">{creditTexts.methodEnds(`${two(exp_month)}/${exp_year}`)}</span>
      )}
      {isUsed ? <Badge tone="accent">{creditTexts.methodUsed}</Badge> : null}
    </li>
  )
}

/** Returns a mutation that opens the processor's page for adding a payment method. */
export const useSetup = () => {
  const tenant_id = tenantId()
  return useMutation({
    mutationFn: () =>
      resultOf(api.POST("/v1/tenants/{tenant_id}/billing/payment-methods/setup", { params: { path: { tenant_id } } })),
    onSuccess: ({ setup_url }) => location.assign(setup_url)
  })
}

export const Methods = () => {
  const methods = useMethods()
  const { data: reload } = useReload()
  const setup = useSetup()
  const manages = useManages()
  const add =
    manages === true ? (
      <Button icon={Plus} isPending={setup.isPending || setup.isSuccess} onPress={() => setup.mutate()}>
        {creditTexts.methodsAdd}
      </Button>
    ) : null
  const isOff = isUnconfigured(methods.error)
  return (
    <Section title={creditTexts.methods} lead={creditTexts.methodsLead} actions={isOff ? null : add}>
      {setup.error === null ? null : (
        <p className="field-error" role="alert">
          {advice(setup.error)}
        </p>
      )}
      {isOff ? (
        <Empty title={creditTexts.methodsOff}>{creditTexts.methodsOffText}</Empty>
      ) : (
        <Answer of={methods} lines={2}>
          {(all) =>
            all.length === 0 ? (
              <Empty title={creditTexts.methodsNone}>{creditTexts.methodsNoneText}</Empty>
            ) : (
              <ul className="credit-methods">
                {all.map((method) => (
                  <Line
                    key={method.id}
                    method={method}
                    isUsed={reload?.auto_reload.enabled === true && reload.auto_reload.payment_method_id === method.id}
                  />
                ))}
              </ul>
            )
          }
        </Answer>
      )}
    </Section>
  )
}
