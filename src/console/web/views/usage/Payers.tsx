/** Who paid one's own calls: each source with its sums, and its share of them as a bar. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { Users } from "lucide-react"
import { useMemberships } from "../../app/Asking.ts"
import { api, resultOf } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { count, percent } from "../../moments.ts"
import { nano } from "../../money.ts"
import { Money } from "../../parts/Money.tsx"
import { Section } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import { texts } from "../../texts.ts"
import type { Span } from "./Window.ts"

type Source = Schemas["PayerUsage"]["sources"][number]

const shareOf = ({ total_cost }: Source, total: bigint): number =>
  total === 0n ? 0 : Number((nano(total_cost) * 1000n) / total) / 1000

const Share = ({ of }: { readonly of: number }) => (
  <span className="usage-share">
    <span className="usage-share-bar" aria-hidden>
      <span style={{ width: `${of * 100}%` }} />
    </span>
    {percent(of)}
  </span>
)

export const Payers = ({ span }: { readonly span: Span }) => {
  const { data: memberships } = useMemberships()
  const names = new Map((memberships ?? []).map(({ tenant_id, tenant_name }) => [tenant_id, tenant_name]))
  const usage = useQuery({
    queryKey: ["usage", "payers", span.start, span.end],
    queryFn: () =>
      resultOf(
        api.GET("/v1/me/billing-sources/usage", {
          params: { query: { start_date: span.start, end_date: new Date(Date.parse(span.end) - 1).toISOString() } }
        })
      ),
    placeholderData: keepPreviousData
  })
  return (
    <Section title={texts.usage.payers} lead={texts.usage.payersLead}>
      <Answer of={usage}>
        {({ sources, totals }) =>
          sources.length === 0 ? (
            <Empty icon={Users} title={texts.usage.noRecords} />
          ) : (
            <Table<Source>
              caption={texts.usage.payers}
              rows={sources}
              rowKey={({ billing_account_id }) => billing_account_id}
              columns={[
                {
                  id: "payer",
                  title: texts.usage.by.payer,
                  card: "title",
                  cell: ({ kind, tenant_id }) => names.get(tenant_id) ?? texts.tenant[kind === "own" ? "home" : "team"]
                },
                {
                  id: "share",
                  title: texts.usage.share,
                  card: "plain",
                  cell: (source) => <Share of={shareOf(source, nano(totals.total_cost))} />
                },
                {
                  id: "requests",
                  title: texts.usage.plot.requests,
                  align: "end",
                  cell: ({ total_requests }) => count(total_requests)
                },
                {
                  id: "tokens",
                  title: texts.usage.tokens,
                  align: "end",
                  cell: ({ total_tokens }) => count(total_tokens)
                },
                {
                  id: "cost",
                  title: texts.usage.cost,
                  align: "end",
                  card: "figure",
                  cell: ({ total_cost }) => <Money of={total_cost} as="aligned" />
                }
              ]}
            />
          )
        }
      </Answer>
    </Section>
  )
}
