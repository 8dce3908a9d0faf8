/** A tenant's allowance, under its own terms or those of a plan. The operator can set or end it. */
import { useQuery } from "@tanstack/react-query"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { exact } from "../money.ts"
import { Button } from "../parts/Button.tsx"
import { MoneyField, SelectField } from "../parts/Fields.tsx"
import { Facts, Section } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { When } from "../parts/When.tsx"
import { provisionTexts } from "../texts/provision.ts"
import { decimal, serializer } from "./amounts.ts"
import { useEnding } from "./Ending.tsx"
import { Making } from "./Making.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { periodOf } from "./Provision.tsx"

const t = provisionTexts.allowances

type Allowance = Schemas["Allowance"]

export const rolloverText = (rollover: Allowance["rollover"]): string =>
  typeof rollover === "string" ? t.rollovers[rollover] : t.upTo(exact(rollover.up_to_usd))

export const usePlans = () =>
  useQuery({
    queryKey: ["operator", "plans"],
    queryFn: async () => (await resultOf(operatorApi.GET("/v1/operator/plans"))).plans
  })

const useAllowance = (tenant_id: string) =>
  useQuery({
    queryKey: ["operator", "allowance", tenant_id],
    queryFn: async (): Promise<Allowance | null> => {
      const params = { query: { tenant_id, limit: "1" } }
      return (await resultOf(operatorApi.GET("/v1/operator/allowances", { params }))).records[0] ?? null
    }
  })

const empty: Readonly<Record<"plan" | "amount" | "period" | "rollover", string>> = {
  plan: "",
  amount: "",
  period: "month",
  rollover: "none"
}

const SetAllowance = ({ tenant_id }: { readonly tenant_id: string }) => {
  const plans = usePlans().data ?? []
  const withTerms = plans.filter(({ allowance }) => allowance !== null)
  const options = [["", t.ownTerms], ...withTerms.map(({ name }) => [name, name] as const)] as const
  return (
    <Making
      title={t.set}
      first={empty}
      fields={(field, { plan }) => (
        <>
          {withTerms.length === 0 ? null : <SelectField {...field("plan")} label={t.plan} options={options} />}
          {plan !== "" ? null : (
            <>
              <div className="form-row">
                <MoneyField {...field("amount")} label={provisionTexts.allowance} isRequired autoFocus maxLength={24} />
                <SelectField
                  {...field("period")}
                  label={provisionTexts.period}
                  options={(["month", "week"] as const).map((period) => [period, provisionTexts.periods[period]])}
                />
              </div>
              <SelectField
                {...field("rollover")}
                label={t.rollover}
                options={(["none", "all"] as const).map((rollover) => [rollover, t.rollovers[rollover]])}
              />
            </>
          )}
        </>
      )}
      make={({ amount, period, plan, rollover }) => {
        const typed = decimal(amount)
        const own = {
          amount_usd: Number(typed),
          period: periodOf(period),
          rollover: rollover === "all" ? ("all" as const) : ("none" as const)
        }
        return resultOf(
          operatorApi.PUT("/v1/operator/tenants/{tenant_id}/allowance", {
            params: { path: { tenant_id } },
            body: plan === "" ? own : { plan },
            bodySerializer: serializer({ amount_usd: typed })
          })
        )
      }}
      said={({ amount_usd, period }) => t.saved(t.per[period](exact(amount_usd)))}
    />
  )
}

const Terms = ({ of }: { readonly of: Allowance }) => (
  <Facts
    of={[
      [t.terms, t.per[of.period](exact(of.amount_usd))],
      [t.plan, of.plan ?? t.own],
      [t.rollover, rolloverText(of.rollover)],
      [t.unused, exact(of.unused_usd)],
      [t.renews, <When key="renews" at={of.renews_at} as="moment" />]
    ]}
  />
)

export const TenantAllowance = ({ tenant_id }: { readonly tenant_id: string }) => {
  const allowance = useAllowance(tenant_id)
  const [end, dialog] = useEnding<string>({
    title: () => `${t.end}?`,
    text: t.endText,
    action: t.end,
    end: (id) =>
      resultOf(
        operatorApi.DELETE("/v1/operator/tenants/{tenant_id}/allowance", { params: { path: { tenant_id: id } } })
      )
  })
  return (
    <Section
      title={provisionTexts.allowance}
      actions={
        <>
          {allowance.data == null ? null : (
            <Button kind="ghost" onPress={() => end(tenant_id)}>
              {t.end}
            </Button>
          )}
          <SetAllowance tenant_id={tenant_id} />
        </>
      }
    >
      <Answer of={allowance} lines={3}>
        {(of) => (of === null ? <Empty title={t.noneOfTenant} /> : <Terms of={of} />)}
      </Answer>
      {dialog}
    </Section>
  )
}
