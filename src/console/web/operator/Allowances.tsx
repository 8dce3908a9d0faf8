/** Lists all tenants' allowances with their next renewal, and the configured plans. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { exact } from "../money.ts"
import { Money } from "../parts/Money.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Pages, Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { operatorTexts } from "../texts/operator.ts"
import { provisionTexts } from "../texts/provision.ts"
import { useCursors } from "./Asking.ts"
import { TenantLink } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { rolloverText, usePlans } from "./TenantAllowance.tsx"

const f = operatorTexts.field
const t = provisionTexts.allowances

type Allowance = Schemas["Allowance"]
type Plan = Schemas["PlanLine"]

const Lines = ({ rows }: { readonly rows: ReadonlyArray<Allowance> }) => (
  <Table<Allowance>
    caption={t.title}
    rows={rows}
    rowKey={({ tenant_id }) => tenant_id}
    columns={[
      { id: "tenant", title: f.tenant, card: "title", cell: ({ tenant_id }) => <TenantLink id={tenant_id} /> },
      { id: "plan", title: t.plan, card: "plain", cell: ({ plan }) => plan ?? <span className="quiet">{t.own}</span> },
      {
        id: "terms",
        title: t.terms,
        card: "plain",
        cell: ({ amount_usd, period }) => t.per[period](exact(amount_usd))
      },
      { id: "kept", title: t.rollover, needs: "medium", cell: ({ rollover }) => rolloverText(rollover) },
      { id: "renews", title: t.renews, cell: ({ renews_at }) => <When at={renews_at} as="moment" /> },
      {
        id: "unused",
        title: t.unused,
        align: "end",
        card: "figure",
        cell: ({ unused_usd }) => <Money of={unused_usd} as="aligned" />
      }
    ]}
  />
)

const PlanLines = ({ rows }: { readonly rows: ReadonlyArray<Plan> }) => (
  <Table<Plan>
    caption={t.plans}
    rows={rows}
    rowKey={({ name }) => name}
    columns={[
      { id: "name", title: f.name, card: "title", cell: ({ name }) => <span className="operator-strong">{name}</span> },
      {
        id: "terms",
        title: t.terms,
        card: "plain",
        cell: ({ allowance }) =>
          allowance === null ? (
            <span className="quiet">{t.noAllowance}</span>
          ) : (
            t.per[allowance.period](exact(allowance.amount_usd))
          )
      },
      {
        id: "kept",
        title: t.rollover,
        cell: ({ allowance }) => (allowance === null ? null : rolloverText(allowance.rollover))
      },
      { id: "factor", title: t.factor, align: "end", cell: ({ price_factor }) => price_factor ?? t.listPrice }
    ]}
  />
)

export const Allowances = () => {
  const { cursor, hasPages, pages } = useCursors("allowances")
  const plans = usePlans()
  const allowances = useQuery({
    queryKey: ["operator", "allowances", cursor],
    queryFn: () =>
      resultOf(
        operatorApi.GET("/v1/operator/allowances", {
          params: { query: { limit: "25", ...(cursor !== undefined && { after: cursor }) } }
        })
      ),
    placeholderData: keepPreviousData
  })
  return (
    <Page title={t.title} lead={t.lead}>
      <Answer of={allowances} lines={6}>
        {({ next, records }) =>
          records.length === 0 ? (
            <Empty title={t.none}>{t.noneText}</Empty>
          ) : (
            <>
              <Lines rows={records} />
              {hasPages(next) ? <Pages {...pages(next)} /> : null}
            </>
          )
        }
      </Answer>
      <Section title={t.plans}>
        <p className="quiet">{t.plansLead}</p>
        <Answer of={plans} lines={3}>
          {(rows) => (rows.length === 0 ? <Empty title={t.noPlans} /> : <PlanLines rows={rows} />)}
        </Answer>
      </Section>
    </Page>
  )
}
