/** Reservations of open calls, oldest first. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { Hourglass } from "lucide-react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { Badge } from "../parts/Badge.tsx"
import { Money } from "../parts/Money.tsx"
import { Page } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Pages, Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useCursors } from "./Asking.ts"
import { TenantLink } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const t = texts.reservations
const f = texts.field

type Line = Schemas["OperatorReservation"]

const Lines = ({ isStale, rows }: { readonly rows: ReadonlyArray<Line>; readonly isStale: boolean }) => (
  <Table<Line>
    caption={t.title}
    isStale={isStale}
    rows={rows}
    rowKey={({ id }) => id}
    columns={[
      { id: "at", title: f.created, card: "plain", cell: ({ at }) => <When at={at} /> },
      {
        id: "model",
        title: f.model,
        card: "title",
        cell: ({ model }) => <span className="operator-strong">{model}</span>
      },
      {
        id: "endpoint",
        title: t.endpoint,
        needs: "wide",
        cell: ({ endpoint }) => <span className="quiet">{endpoint}</span>
      },
      { id: "provider", title: f.provider, needs: "medium", cell: ({ provider }) => provider },
      {
        id: "payer",
        title: t.payer,
        cell: (line) => <TenantLink id={line.payer_tenant_id} name={line.payer_tenant_name ?? undefined} />
      },
      { id: "id", title: f.id, needs: "wide", cell: ({ id }) => <code className="quiet">{id}</code> },
      {
        id: "process",
        title: t.process,
        cell: ({ node_alive }) =>
          node_alive ? <span className="quiet">{t.alive}</span> : <Badge tone="warn">{t.gone}</Badge>
      },
      {
        id: "amount",
        title: f.amount,
        align: "end",
        card: "figure",
        cell: ({ amount }) => <Money of={amount} as="aligned" />
      }
    ]}
  />
)

export const Reservations = () => {
  const { cursor, hasPages, pages } = useCursors("reservations")
  const reservations = useQuery({
    queryKey: ["operator", "reservations", cursor],
    queryFn: () =>
      resultOf(
        operatorApi.GET("/v1/operator/reservations", {
          params: { query: { limit: "50", ...(cursor !== undefined && { after: cursor }) } }
        })
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 5000
  })
  return (
    <Page title={t.title} lead={t.lead}>
      <Answer of={reservations} lines={8}>
        {({ next, records }) => (
          <>
            {records.length === 0 ? (
              <Empty icon={Hourglass} title={t.none}>
                {t.noneText}
              </Empty>
            ) : (
              <Lines rows={records} isStale={reservations.isPlaceholderData} />
            )}
            {hasPages(next) ? <Pages {...pages(next)} /> : null}
          </>
        )}
      </Answer>
    </Page>
  )
}
