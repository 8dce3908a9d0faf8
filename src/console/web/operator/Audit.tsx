/** Lists the operators' actions, newest first. The filter is part of the URL. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi } from "@tanstack/react-router"
import { History } from "lucide-react"
import { useEffect, useState } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { Badge } from "../parts/Badge.tsx"
import { Button } from "../parts/Button.tsx"
import { TextField } from "../parts/Fields.tsx"
import { Page } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Pages, Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useCursors } from "./Asking.ts"
import { PersonLink, TenantLink } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { inWords } from "../texts.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const route = getRouteApi("/operator/audit")
const t = texts.audit

type Entry = Schemas["AuditEntry"]

const textOf = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value))

const Details = ({ of: { details, subject } }: { readonly of: Entry }) => {
  const named = Object.entries(details)
  return subject === null && named.length === 0 ? null : (
    <span className="operator-details small">
      {subject === null ? null : <code className="quiet">{subject}</code>}
      {named.map(([name, value]) => (
        <span key={name}>
          <span className="quiet">{inWords(name)}:</span> {textOf(value)}
        </span>
      ))}
    </span>
  )
}

const Subject = ({ of: { account_id, tenant_id, tenant_name } }: { readonly of: Entry }) =>
  tenant_id === null && account_id === null ? null : (
    <span className="operator-details small">
      {tenant_id === null ? null : <TenantLink id={tenant_id} name={tenant_name ?? undefined} />}
      {account_id === null ? null : <PersonLink id={account_id} />}
    </span>
  )

const Entries = ({ isStale, rows }: { readonly rows: ReadonlyArray<Entry>; readonly isStale: boolean }) => (
  <Table<Entry>
    caption={t.title}
    isStale={isStale}
    rows={rows}
    rowKey={({ id }) => String(id)}
    columns={[
      { id: "at", title: texts.field.at, card: "plain", cell: ({ at }) => <When at={at} as="moment" /> },
      {
        id: "action",
        title: t.action,
        card: "title",
        cell: ({ action, result }) => (
          <span className="row wrap">
            <span className="operator-strong">{t.actions[action] ?? action}</span>
            {result === "refused" ? <Badge tone="warn">{t.refused}</Badge> : null}
          </span>
        )
      },
      {
        id: "operator",
        title: t.operator,
        card: "plain",
        cell: ({ operator, via }) => (
          <>
            {operator} <span className="quiet">· {t.vias[via] ?? via}</span>
          </>
        )
      },
      { id: "on", title: t.on, card: "plain", cell: (entry) => <Subject of={entry} /> },
      { id: "details", title: t.details, card: "plain", cell: (entry) => <Details of={entry} /> }
    ]}
  />
)

type Filter = {
  readonly operator?: string | undefined
  readonly tenant_id?: string | undefined
  readonly account_id?: string | undefined
}

const FilterForm = ({ of, onChange }: { readonly of: Filter; readonly onChange: (filter: Filter) => void }) => {
  const [draft, setDraft] = useState(of)
  useEffect(() => setDraft(of), [of])
  const field = (name: keyof Filter) => ({
    name,
    value: draft[name] ?? "",
    onChange: (value: string) => setDraft({ ...draft, [name]: value }),
    maxLength: 200
  })
  const isFiltered = Object.keys(of).length > 0
  return (
    <form
      className="operator-filter"
      onSubmit={(event) => {
        event.preventDefault()
        onChange(
          Object.fromEntries(
            Object.entries(draft).flatMap(([name, value]) => (value?.trim() ? [[name, value.trim()]] : []))
          )
        )
      }}
    >
      <TextField {...field("operator")} label={t.operator} />
      <TextField {...field("tenant_id")} label={t.tenant} />
      <TextField {...field("account_id")} label={t.person} />
      <Button type="submit">{t.filter}</Button>
      {isFiltered ? (
        <Button kind="ghost" onPress={() => onChange({})}>
          {t.clear}
        </Button>
      ) : null}
    </form>
  )
}

export const Audit = () => {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const { cursor, hasPages, pages } = useCursors(JSON.stringify(search))
  const audit = useQuery({
    queryKey: ["operator", "audit", search, cursor],
    queryFn: () => {
      const { account_id, operator, tenant_id } = search
      return resultOf(
        operatorApi.GET("/v1/operator/audit", {
          params: {
            query: {
              limit: "50",
              ...(operator !== undefined && { operator }),
              ...(tenant_id !== undefined && { tenant_id }),
              ...(account_id !== undefined && { account_id }),
              ...(cursor !== undefined && { before: cursor })
            }
          }
        })
      )
    },
    placeholderData: keepPreviousData
  })
  return (
    <Page title={t.title} lead={t.lead}>
      <FilterForm of={search} onChange={(filter) => void navigate({ search: filter, resetScroll: false })} />
      <Answer of={audit} lines={10}>
        {({ next, records }) => (
          <>
            {records.length === 0 ? (
              <Empty icon={History} title={t.none}>
                {t.noneText}
              </Empty>
            ) : (
              <Entries rows={records} isStale={audit.isPlaceholderData} />
            )}
            {hasPages(next) ? <Pages {...pages(next)} /> : null}
          </>
        )}
      </Answer>
    </Page>
  )
}
