/** The operator's budgets: for all tenants combined, for one tenant, and for each tenant on a plan or each new tenant. */
import { useQuery } from "@tanstack/react-query"
import { Plus } from "lucide-react"
import { useState } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { count } from "../moments.ts"
import { Button } from "../parts/Button.tsx"
import { SelectField, TextField } from "../parts/Fields.tsx"
import { Page } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import type { Column } from "../parts/Table.tsx"
import { budgetTexts as texts } from "../texts/budgets.ts"
import { BudgetDialog, MakeBudget } from "../views/budgets/BudgetDialogs.tsx"
import type { Acting, Draft, FieldOf, BudgetApi } from "../views/budgets/BudgetDialogs.tsx"
import { BudgetTable } from "../views/budgets/BudgetTable.tsx"
import { TenantLink } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"

type Budget = Schemas["OperatorBudget"]
type Scope = Budget["scope"]

const one = (budget_id: string) => ({ params: { path: { budget_id } } })

const scopeIn = ({ scope, scopeId }: Draft): Scope =>
  scope === "tenant"
    ? { tenant: scopeId.trim() }
    : scope === "plan"
      ? { plan: scopeId.trim() }
      : (scope as "everyone" | "each_new_tenant")

const ways: BudgetApi = {
  create: (body, draft) =>
    resultOf(operatorApi.POST("/v1/operator/budgets", { body: { ...body, scope: scopeIn(draft) } })),
  change: (id, body) => resultOf(operatorApi.PATCH("/v1/operator/budgets/{budget_id}", { ...one(id), body })),
  remove: (id) => resultOf(operatorApi.DELETE("/v1/operator/budgets/{budget_id}", one(id))),
  raise: (id, body) => resultOf(operatorApi.POST("/v1/operator/budgets/{budget_id}/raise", { ...one(id), body })),
  queryKey: ["operator", "budgets"]
}

const ScopeOf = ({ of }: { readonly of: Scope }) => {
  if (typeof of === "string") return texts.scopes[of]
  if ("tenant" in of) return <TenantLink id={of.tenant} name={of.tenant} />
  return `${texts.scopes.plan}: ${of.plan}`
}

const scopeColumn: Column<Budget> = {
  id: "scope",
  title: texts.scope,
  cell: ({ scope, tenants }) => (
    <span className="budgets-lines">
      <ScopeOf of={scope} />
      {tenants === undefined ? null : <span className="quiet small">{texts.tenants(count(tenants))}</span>}
    </span>
  )
}

const scopeFields = (field: FieldOf, { scope }: Draft) => (
  <>
    <SelectField {...field("scope")} label={texts.scope} options={Object.entries(texts.scopes)} />
    {scope === "tenant" || scope === "plan" ? (
      <TextField
        {...field("scopeId")}
        name={`scope.${scope}`}
        label={texts.scopeOf[scope]}
        isRequired
        maxLength={200}
      />
    ) : null}
  </>
)

export const OperatorBudgets = () => {
  const [acting, act] = useState<Acting>()
  const [isMaking, setMaking] = useState(false)
  const budgets = useQuery({
    queryKey: ways.queryKey,
    queryFn: async () => (await resultOf(operatorApi.GET("/v1/operator/budgets"))).budgets,
    refetchInterval: 10_000
  })
  return (
    <Page
      title={texts.title}
      lead={texts.operatorLead}
      actions={
        <Button icon={Plus} onPress={() => setMaking(true)}>
          {texts.make}
        </Button>
      }
    >
      <Answer of={budgets} lines={6}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title={texts.empty} />
          ) : (
            <BudgetTable
              budgets={rows}
              nameOf={(_, value) => value}
              canEdit={() => true}
              act={act}
              extra={scopeColumn}
            />
          )
        }
      </Answer>
      {isMaking ? <MakeBudget ways={ways} owners={scopeFields} onClose={() => setMaking(false)} /> : null}
      <BudgetDialog acting={acting} ways={ways} onClose={() => act(undefined)} />
    </Page>
  )
}
