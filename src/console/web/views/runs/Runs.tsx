/** The runs of the user's keys, newest first. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi, Link } from "@tanstack/react-router"
import { Workflow } from "lucide-react"
import { useKeys } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Page } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { Pages, Table } from "../../parts/Table.tsx"
import { useNow, When } from "../../parts/When.tsx"
import { texts as common } from "../../texts.ts"
import { runTexts as texts } from "../../texts/budgets.ts"
import { Gauges } from "../budgets/Gauges.tsx"

export type RunLine = Schemas["Run"]
const route = getRouteApi("/person/runs")
const perPage = 25

/** Returns a run's state. `ended` means that it ended before its expiry. */
export const stateOf = ({ ended_at, expires_at }: RunLine, now: number): keyof typeof texts.states =>
  ended_at !== null && Date.parse(ended_at) < Date.parse(expires_at)
    ? "ended"
    : Date.parse(expires_at) <= now
      ? "expired"
      : "open"

export const State = ({ of }: { readonly of: RunLine }) => {
  const state = stateOf(of, useNow())
  return <Badge tone={state === "open" ? "good" : "plain"}>{texts.states[state]}</Badge>
}

interface RunTableProps {
  readonly caption: string
  readonly runs: ReadonlyArray<RunLine>
  readonly isStale?: boolean
}

export const RunTable = ({ runs, ...props }: RunTableProps) => {
  const { data: keys } = useKeys()
  const keyName = (id: string) => keys?.records.find((key) => key.id === id)?.name ?? id
  return (
    <Table
      {...props}
      rows={runs}
      rowKey={({ id }) => id}
      columns={[
        {
          id: "name",
          title: texts.name,
          card: "title",
          cell: ({ id, name }) => (
            <Link to="/runs/$run_id" params={{ run_id: id }}>
              {name || texts.unnamed}
            </Link>
          )
        },
        { id: "state", title: texts.state, cell: (run) => <State of={run} /> },
        { id: "key", title: texts.key, needs: "medium", cell: ({ application_id }) => keyName(application_id) },
        { id: "used", title: texts.limits, cell: (run) => <Gauges of={run} /> },
        { id: "created", title: texts.created, needs: "wide", cell: ({ created_at }) => <When at={created_at} /> },
        { id: "expires", title: texts.expires, needs: "medium", cell: ({ expires_at }) => <When at={expires_at} /> }
      ]}
    />
  )
}

export const Runs = () => {
  const tenant_id = tenantId()
  const { page: typed } = route.useSearch()
  const navigate = route.useNavigate()
  const page = Math.max(1, Number(typed) || 1)
  const runs = useQuery({
    queryKey: ["runs", tenant_id, page],
    queryFn: () =>
      resultOf(api.GET("/v1/runs", { params: { query: { page: String(page), per_page: String(perPage) } } })),
    placeholderData: keepPreviousData
  })
  const go = (to: number) => () => void navigate({ search: { page: String(to) } })
  return (
    <Page title={texts.title} lead={texts.lead}>
      <Answer of={runs} lines={6}>
        {({ records, total_pages, total_records }) =>
          records.length === 0 ? (
            <Empty icon={Workflow} title={texts.empty}>
              {texts.emptyText}
            </Empty>
          ) : (
            <>
              <RunTable caption={texts.title} runs={records} isStale={runs.isPlaceholderData} />
              {total_pages > 1 ? (
                <Pages
                  onPrevious={page > 1 ? go(page - 1) : undefined}
                  onNext={page < total_pages ? go(page + 1) : undefined}
                >
                  {common.table.position(
                    count((page - 1) * perPage + 1),
                    count((page - 1) * perPage + records.length),
                    count(total_records)
                  )}
                </Pages>
              ) : null}
            </>
          )
        }
      </Answer>
    </Page>
  )
}
