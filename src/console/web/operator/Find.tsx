/** Searches by id, by reference, or by the prefix of a name, address or key. An empty search shows the newest tenants. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi, useRouter } from "@tanstack/react-router"
import { Search as SearchIcon } from "lucide-react"
import { useEffect, useState } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { TextField } from "../parts/Fields.tsx"
import { Badge } from "../parts/Badge.tsx"
import { Money } from "../parts/Money.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Pages, Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useAct } from "./Acts.tsx"
import { useCursors, useSearch } from "./Asking.ts"
import { CallLines, KeyTable, PersonTable, TenantLink, TenantTable } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const route = getRouteApi("/operator/find")
const f = texts.field

/** The length of a key's public prefix. The rest is secret, so the page neither sends it nor puts it into the URL. */
const keyLength = 20
const redactKey = (text: string): string =>
  /^\w+-\w+-[0-9a-f]{12,}$/i.test(text.trim()) ? text.trim().slice(0, keyLength) : text

interface TableOf<Line> {
  readonly rows: ReadonlyArray<Line>
  readonly names: ReadonlyMap<string, string>
}

const Transfers = ({ names, rows }: TableOf<Schemas["OperatorTransferLine"]>) => (
  <Table
    caption={texts.find.transfers}
    rows={rows}
    rowKey={({ id }) => id}
    columns={[
      { id: "to", title: texts.find.recipient, card: "title", cell: ({ recipient_email }) => recipient_email },
      {
        id: "from",
        title: texts.find.sender,
        cell: ({ sender_tenant_id: id }) => <TenantLink id={id} name={names.get(id)} />
      },
      { id: "id", title: f.id, needs: "wide", cell: ({ id }) => <code className="quiet">{id}</code> },
      { id: "at", title: f.at, card: "plain", cell: ({ created_at }) => <When at={created_at} /> },
      { id: "status", title: f.status, card: "plain", cell: ({ status }) => <Badge>{status}</Badge> },
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

const Payments = ({ names, rows }: TableOf<Schemas["OperatorPaymentLine"]>) => (
  <Table
    caption={texts.find.payments}
    rows={rows}
    rowKey={({ at, id, tenant_id }) => `${id} ${tenant_id} ${at}`}
    columns={[
      { id: "id", title: f.id, card: "title", cell: ({ id }) => <code>{id}</code> },
      { id: "tenant", title: f.tenant, cell: ({ tenant_id: id }) => <TenantLink id={id} name={names.get(id)} /> },
      { id: "source", title: texts.find.source, card: "plain", cell: ({ source }) => texts.find.sources[source] },
      { id: "at", title: f.at, card: "plain", cell: ({ at }) => <When at={at} /> },
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

const SearchResults = ({ of }: { readonly of: Schemas["OperatorFound"] }) => {
  const [act, dialog] = useAct()
  const { calls, keys, payments, people, tenants, transfers } = of
  const names = new Map(Object.entries(of.tenant_names))
  const parts = [
    [texts.find.people, people.length, <PersonTable key="people" rows={people} />],
    [texts.find.tenants, tenants.length, <TenantTable key="tenants" rows={tenants} />],
    [
      texts.find.keys,
      keys.length,
      <KeyTable key="keys" rows={keys} names={names} onRevoke={(key) => act({ kind: "revokeKey", of: key })} />
    ],
    [texts.find.calls, calls.length, <CallLines key="calls" rows={calls} names={names} />],
    [texts.find.transfers, transfers.length, <Transfers key="transfers" rows={transfers} names={names} />],
    [texts.find.payments, payments.length, <Payments key="payments" rows={payments} names={names} />]
  ] as const
  const found = parts.filter(([, length]) => length > 0)
  return (
    <>
      {found.length === 0 ? (
        <Empty icon={SearchIcon} title={texts.find.nothing}>
          {texts.find.nothingText}
        </Empty>
      ) : (
        found.map(([title, , table]) => (
          <Section key={title} title={title}>
            {table}
          </Section>
        ))
      )}
      {dialog}
    </>
  )
}

const Newest = () => {
  const { cursor, hasPages, pages } = useCursors("tenants")
  const tenants = useQuery({
    queryKey: ["operator", "tenants", cursor],
    queryFn: () =>
      resultOf(
        operatorApi.GET("/v1/operator/tenants", {
          params: { query: { limit: "25", ...(cursor !== undefined && { before: cursor }) } }
        })
      ),
    placeholderData: keepPreviousData
  })
  return (
    <Section title={texts.find.newest}>
      <Answer of={tenants} lines={8}>
        {({ next, records }) =>
          records.length === 0 ? (
            <Empty title={texts.find.noTenants} />
          ) : (
            <>
              <TenantTable rows={records} />
              {hasPages(next) ? <Pages {...pages(next)} /> : null}
            </>
          )
        }
      </Answer>
    </Section>
  )
}

/** The debounce delay of the search, in milliseconds. */
const searchDelay = 250

export const Find = () => {
  const { q = "" } = route.useSearch()
  const navigate = route.useNavigate()
  const router = useRouter()
  const [text, setText] = useState(q)
  const found = useSearch(q)
  useEffect(() => setText(q), [q])
  useEffect(() => {
    const question = text.trim()
    if (question === q.trim()) return
    const { pathname } = router.latestLocation
    const timer = setTimeout(() => {
      // The user has followed a link in the meantime.
      if (router.latestLocation.pathname !== pathname) return
      void navigate({ search: question === "" ? {} : { q: question }, replace: true, resetScroll: false })
    }, searchDelay)
    return () => clearTimeout(timer)
  }, [text, q, navigate, router])
  return (
    <Page title={texts.find.title}>
      <TextField
        name="q"
        type="search"
        label={texts.find.label}
        help={texts.find.help}
        placeholder={texts.find.placeholder}
        value={text}
        maxLength={200}
        autoFocus
        onChange={(value) => setText(redactKey(value))}
      />
      {q === "" ? (
        <Newest />
      ) : (
        <Answer of={found} lines={6}>
          {(of) => <SearchResults of={of} />}
        </Answer>
      )}
    </Page>
  )
}
