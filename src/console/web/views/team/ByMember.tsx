/** Shows the team's spending by member. */
import { useQuery } from "@tanstack/react-query"
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { ChartColumn } from "lucide-react"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { Refusal } from "../../app/Refusal.ts"
import { count, percent } from "../../moments.ts"
import { approximate } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import { ButtonLink } from "../../parts/Button.tsx"
import { Choice } from "../../parts/Choice.tsx"
import { Money } from "../../parts/Money.tsx"
import { Section } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { texts } from "../../texts.ts"
import { teamTexts } from "../../texts/team.ts"
import { windowOf } from "./asking.ts"

type Usage = Schemas["TeamUsage"]
type Row = Usage["members"][number]
type Days = keyof typeof teamTexts.windows

const route = getRouteApi("/person/team")

const columnsOf = (total: number): ReadonlyArray<Column<Row>> => [
  {
    id: "member",
    title: teamTexts.member,
    card: "title",
    cell: ({ email, in_roster, is_viewer, name }) => (
      <span className="team-name">
        {name || email}
        {is_viewer ? <Badge tone="accent">{teamTexts.you}</Badge> : null}
        {in_roster ? null : <span className="quiet small">{teamTexts.formerly}</span>}
      </span>
    )
  },
  {
    id: "share",
    title: teamTexts.share,
    cell: ({ totals }) => {
      const share = total === 0 ? 0 : approximate(totals.total_cost) / total
      return (
        <span className="team-share">
          <span className="team-bar" aria-hidden>
            <span style={{ width: `${100 * share}%` }} />
          </span>
          {percent(share)}
        </span>
      )
    }
  },
  { id: "requests", title: teamTexts.requests, align: "end", cell: ({ totals }) => count(totals.total_requests) },
  {
    id: "tokens",
    title: teamTexts.tokens,
    align: "end",
    needs: "medium",
    cell: ({ totals }) => count(totals.total_tokens)
  },
  {
    id: "cost",
    title: teamTexts.cost,
    card: "figure",
    align: "end",
    cell: ({ totals }) => <Money of={totals.total_cost} as="aligned" />
  }
]

const isUnplanned = (error: unknown): boolean => error instanceof Refusal && error.code === "team_plan_required"

const Figures = ({ of: { members, totals } }: { readonly of: Usage }) => {
  const { total_cost, total_requests, total_tokens } = totals
  return (
    <div className="stack">
      <dl className="team-figures">
        <div>
          <dt>{teamTexts.cost}</dt>
          <dd>
            <Money of={total_cost} focusable />
          </dd>
        </div>
        <div>
          <dt>{teamTexts.requests}</dt>
          <dd>{count(total_requests)}</dd>
        </div>
        <div>
          <dt>{teamTexts.tokens}</dt>
          <dd>{count(total_tokens)}</dd>
        </div>
      </dl>
      {total_requests === 0 ? (
        <p className="quiet">{teamTexts.usageNone}</p>
      ) : (
        <Table
          caption={teamTexts.usage}
          columns={columnsOf(approximate(total_cost))}
          rows={members.toSorted(
            (one, other) => approximate(other.totals.total_cost) - approximate(one.totals.total_cost)
          )}
          rowKey={({ account_id }) => account_id}
        />
      )}
    </div>
  )
}

export const ByMember = () => {
  const { days = "30" } = route.useSearch()
  const navigate = useNavigate()
  const chosen: Days = days in teamTexts.windows ? (days as Days) : "30"
  const tenant_id = tenantId()
  const usage = useQuery({
    queryKey: ["usage", "team", tenant_id, chosen],
    queryFn: () =>
      resultOf(
        api.GET("/v1/tenants/{tenant_id}/usage/team", {
          params: { path: { tenant_id }, query: windowOf(Number(chosen)) }
        })
      )
  })
  if (isUnplanned(usage.error)) {
    return (
      <Empty
        title={teamTexts.needsPlan}
        action={
          <ButtonLink to="/usage" icon={ChartColumn}>
            {texts.nav.usage}
          </ButtonLink>
        }
      >
        {teamTexts.needsPlanText}
      </Empty>
    )
  }
  return (
    <Section
      title={teamTexts.usage}
      lead={teamTexts.usageLead(Number(chosen))}
      actions={
        <>
          <Choice
            label={teamTexts.usageWindow}
            options={Object.entries(teamTexts.windows) as ReadonlyArray<[Days, string]>}
            value={chosen}
            onChange={(to) =>
              void navigate({ to: "/team", search: { tab: "usage", days: to }, replace: true, resetScroll: false })
            }
          />
          <ButtonLink to="/usage" search={{ by: "account" }} icon={ChartColumn}>
            {teamTexts.asPlot}
          </ButtonLink>
        </>
      }
    >
      <Answer of={usage} lines={5}>
        {(found) => <Figures of={found} />}
      </Answer>
    </Section>
  )
}
