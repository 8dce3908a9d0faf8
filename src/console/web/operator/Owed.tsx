/** Shows debts from refunds and disputes, and refunds of unknown payments. */
import { useQuery } from "@tanstack/react-query"
import { Undo2 } from "lucide-react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { count } from "../moments.ts"
import { sum } from "../money.ts"
import { Money } from "../parts/Money.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { TenantLink } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const t = texts.owed

type Owed = Schemas["OperatorOwed"]

const Payments = ({ rows }: { readonly rows: Owed["owed"] }) => (
  <Section
    title={t.title}
    lead={
      <>
        {t.total} <Money of={sum(rows.map(({ owed }) => owed))} as="exact" focusable />
      </>
    }
  >
    <Table
      caption={t.title}
      rows={rows}
      rowKey={({ payment_id }) => payment_id}
      columns={[
        { id: "payment", title: t.payment, card: "title", cell: ({ payment_id }) => <code>{payment_id}</code> },
        {
          id: "tenant",
          title: texts.field.tenant,
          cell: (one) => <TenantLink id={one.tenant_id} name={one.tenant_name ?? undefined} />
        },
        {
          id: "owed",
          title: texts.field.amount,
          align: "end",
          card: "figure",
          cell: ({ owed }) => <Money of={owed} as="aligned" />
        }
      ]}
    />
  </Section>
)

const Waiting = ({ rows }: { readonly rows: Owed["waiting"] }) => (
  <Section title={t.waiting} lead={t.waitingLead}>
    <Table
      caption={t.waiting}
      rows={rows}
      rowKey={({ payment_id }) => payment_id}
      columns={[
        { id: "payment", title: t.payment, card: "title", cell: ({ payment_id }) => <code>{payment_id}</code> },
        { id: "since", title: texts.field.created, cell: ({ since }) => <When at={since} /> },
        {
          id: "movements",
          title: t.movements,
          align: "end",
          cell: ({ movements }) => count(movements)
        }
      ]}
    />
  </Section>
)

export const Owed = () => {
  const owed = useQuery({
    queryKey: ["operator", "owed"],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/owed"))
  })
  return (
    <Page title={t.title} lead={t.lead}>
      <Answer of={owed} lines={6}>
        {({ owed, waiting }) => (
          <>
            {owed.length === 0 ? (
              <Empty icon={Undo2} title={t.none}>
                {t.noneText}
              </Empty>
            ) : (
              <Payments rows={owed} />
            )}
            {waiting.length === 0 ? null : <Waiting rows={waiting} />}
          </>
        )}
      </Answer>
    </Page>
  )
}
