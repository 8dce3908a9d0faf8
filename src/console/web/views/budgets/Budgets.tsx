/** The tenant's budgets. Owners and admins can set any budget. Members can set budgets on their own keys. */
import { useQuery } from "@tanstack/react-query"
import { Gauge, Plus } from "lucide-react"
import { useState } from "react"
import { useKeys, useMe } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import { Button } from "../../parts/Button.tsx"
import { SelectField } from "../../parts/Fields.tsx"
import { Page } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { budgetTexts as texts } from "../../texts/budgets.ts"
import { useManages, useMembers } from "../team/asking.ts"
import { BudgetDialog, MakeBudget } from "./BudgetDialogs.tsx"
import type { Acting, Budget, FieldOf, BudgetApi } from "./BudgetDialogs.tsx"
import { BudgetTable } from "./BudgetTable.tsx"
import type { NameOf } from "./BudgetTable.tsx"

const ways = (): BudgetApi => {
  const tenant_id = tenantId()
  const one = (budget_id: string) => ({ params: { path: { tenant_id, budget_id } } })
  return {
    create: (body) => resultOf(api.POST("/v1/tenants/{tenant_id}/budgets", { params: { path: { tenant_id } }, body })),
    change: (id, body) => resultOf(api.PATCH("/v1/tenants/{tenant_id}/budgets/{budget_id}", { ...one(id), body })),
    remove: (id) => resultOf(api.DELETE("/v1/tenants/{tenant_id}/budgets/{budget_id}", one(id))),
    raise: (id, body) => resultOf(api.POST("/v1/tenants/{tenant_id}/budgets/{budget_id}/raise", { ...one(id), body })),
    queryKey: ["budgets"]
  }
}

const useBudgets = () => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["budgets", tenant_id],
    queryFn: async () =>
      (await resultOf(api.GET("/v1/tenants/{tenant_id}/budgets", { params: { path: { tenant_id } } }))).budgets,
    // Polls, because no event reports that a call has started and reserved part of a budget.
    refetchInterval: 10_000
  })
}

const Owners = ({ field, manages }: { readonly field: FieldOf; readonly manages: boolean }) => {
  const { data: keys } = useKeys()
  const { data: members } = useMembers()
  const ofKeys = (keys?.records ?? []).map(({ id, name }) => [id, name] as const)
  const ofMembers = (members ?? []).map(({ account_id, email, name }) => [account_id, name || email] as const)
  return (
    <div className="form-row">
      <SelectField
        {...field("applies_to.key")}
        label={texts.condition.key}
        isRequired={!manages}
        options={[["", manages ? texts.anyKey : ""], ...ofKeys]}
      />
      {manages ? (
        <SelectField
          {...field("applies_to.member")}
          label={texts.condition.member}
          options={[["", texts.anyMember], ...ofMembers]}
        />
      ) : null}
    </div>
  )
}

const useNameOf = (): NameOf => {
  const { data: keys } = useKeys()
  const { data: members } = useMembers()
  return (condition, value) => {
    if (condition === "key") return keys?.records.find(({ id }) => id === value)?.name ?? value
    if (condition !== "member") return value
    const member = members?.find(({ account_id }) => account_id === value)
    return member?.name || member?.email || value
  }
}

/** Returns a predicate for whether the user may change a budget. It only controls buttons; the API enforces the rule. */
const useCanEdit = (): ((budget: Budget) => boolean) => {
  const manages = useManages()
  const { data: me } = useMe()
  return ({ applies_to, by_operator, created_by }) =>
    !by_operator && (manages || (applies_to.key !== undefined && created_by === me?.account.id))
}

export const Budgets = () => {
  const budgets = useBudgets()
  const manages = useManages()
  const nameOf = useNameOf()
  const canEdit = useCanEdit()
  const [acting, act] = useState<Acting>()
  const [isMaking, setMaking] = useState(false)
  const makeButton = (
    <Button kind="primary" icon={Plus} onPress={() => setMaking(true)}>
      {texts.make}
    </Button>
  )
  return (
    <Page title={texts.title} lead={texts.lead} actions={budgets.data?.length === 0 ? null : makeButton}>
      <Answer of={budgets} lines={6}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon={Gauge} title={texts.empty} action={makeButton}>
              {texts.emptyText}
            </Empty>
          ) : (
            <BudgetTable budgets={rows} nameOf={nameOf} canEdit={canEdit} act={act} />
          )
        }
      </Answer>
      {isMaking ? (
        <MakeBudget
          ways={ways()}
          owners={(field) => <Owners field={field} manages={manages} />}
          onClose={() => setMaking(false)}
        />
      ) : null}
      <BudgetDialog acting={acting} ways={ways()} onClose={() => act(undefined)} />
    </Page>
  )
}
