/** The operator's view of a tenant: balance, members, keys, calls, ledger entries and actions. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi } from "@tanstack/react-router"
import { Gift, Pause, Play, Receipt } from "lucide-react"
import { useState } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { nameOfEntry } from "../app/Entry.ts"
import { count } from "../moments.ts"
import { Button, ButtonLink } from "../parts/Button.tsx"
import { Copy } from "../parts/Copy.tsx"
import { Money } from "../parts/Money.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Answer, Empty, Failed, Loading } from "../parts/States.tsx"
import { NumberedPages, Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { texts as common } from "../texts.ts"
import { useAct } from "./Acts.tsx"
import type { Act } from "./Acts.tsx"
import { useTenant } from "./Asking.ts"
import { CallLines, KeyTable, PersonLink, Status } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { MakeKey } from "./Provision.tsx"
import { TenantAllowance } from "./TenantAllowance.tsx"
import { operatorTexts as texts } from "../texts/operator.ts"

const route = getRouteApi("/operator/tenants/$tenant_id")
const t = texts.tenant
const f = texts.field

type Detail = Schemas["OperatorTenant"]

const parts = ["giftable", "granted", "held", "reserved", "available"] as const

const Balance = ({ of: { money } }: { readonly of: Detail }) => (
  <div className="stack">
    <p className="operator-balance money-large">
      <Money of={money.balance} as="exact" focusable />
    </p>
    <div className="operator-money">
      <Facts of={parts.map((part) => [t.parts[part], <Money key={part} of={money[part]} as="aligned" />] as const)} />
    </div>
  </div>
)

const TenantFacts = ({ of }: { readonly of: Detail }) => (
  <Facts
    of={[
      [
        f.id,
        <span key="id" className="row">
          <code>{of.id}</code> <Copy text={of.id} />
        </span>
      ],
      [f.created, <When key="since" at={of.created_at} as="moment" />],
      [t.plan, of.plan.plan === "none" ? of.plan.plan : t.planOf(of.plan.plan, of.plan.status, count(of.plan.seats))],
      [t.funded, of.has_been_funded ? t.yes : t.no],
      [t.openCalls, count(of.open_calls)]
    ]}
  />
)

const Members = ({ rows }: { readonly rows: Detail["members"] }) => (
  <Table
    caption={t.members}
    rows={rows}
    rowKey={({ account_id }) => account_id}
    columns={[
      {
        id: "name",
        title: f.name,
        card: "title",
        cell: ({ account_id, email, name }) => <PersonLink id={account_id} name={name || email} />
      },
      { id: "mail", title: f.mail, card: "plain", cell: ({ email }) => <span className="quiet">{email}</span> },
      { id: "role", title: t.role, card: "plain", cell: ({ role }) => common.tenant.roles[role] },
      { id: "status", title: f.status, align: "end", cell: ({ status }) => <Status of={status} /> }
    ]}
  />
)

const Keys = ({ act, of }: { readonly of: Detail; readonly act: (act: Act) => void }) =>
  of.keys.length === 0 ? (
    <Empty title={t.noKeys} />
  ) : (
    <>
      <KeyTable
        rows={of.keys}
        names={new Map(of.members.map(({ account_id, email, name }) => [account_id, name || email]))}
        without="tenant"
        onRevoke={(key) => act({ kind: "revokeKey", of: key })}
        more={[
          {
            id: "limit",
            title: t.limit,
            needs: "medium",
            cell: ({ spending_limit_usd, spent_usd }) =>
              spending_limit_usd === undefined ? (
                <span className="quiet">{common.keys.noLimit}</span>
              ) : (
                <>
                  <Money of={spent_usd ?? 0} /> <span className="quiet">{t.of}</span> <Money of={spending_limit_usd} />
                </>
              )
          }
        ]}
      />
      {of.total_keys > of.keys.length ? <p className="quiet small">{t.moreKeys(count(of.total_keys))}</p> : null}
    </>
  )

const callsPerPage = 15

const Calls = ({ tenant_id }: { readonly tenant_id: string }) => {
  const [page, setPage] = useState(1)
  const calls = useQuery({
    queryKey: ["operator", "usage", tenant_id, page],
    queryFn: () =>
      resultOf(
        operatorApi.GET("/v1/operator/tenants/{tenant_id}/usage", {
          params: { path: { tenant_id }, query: { page: String(page), per_page: String(callsPerPage) } }
        })
      ),
    placeholderData: keepPreviousData
  })
  return (
    <Section title={t.calls}>
      <Answer of={calls} lines={5}>
        {({ records, total_records }) =>
          records.length === 0 ? (
            <Empty title={t.noCalls} />
          ) : (
            <>
              <CallLines
                isOfOne
                isStale={calls.isPlaceholderData}
                rows={records.map((call) => ({ ...call, state: "ended" as const }))}
              />
              <NumberedPages
                page={page}
                perPage={callsPerPage}
                shown={records.length}
                total={total_records}
                go={setPage}
              />
            </>
          )
        }
      </Answer>
    </Section>
  )
}

const perPage = 25

const Ledger = ({ tenant_id }: { readonly tenant_id: string }) => {
  const [page, setPage] = useState(1)
  const ledger = useQuery({
    queryKey: ["operator", "ledger", tenant_id, page],
    queryFn: () =>
      resultOf(
        operatorApi.GET("/v1/operator/tenants/{tenant_id}/ledger", {
          params: { path: { tenant_id }, query: { page: String(page), per_page: String(perPage) } }
        })
      ),
    placeholderData: keepPreviousData
  })
  return (
    <Section title={t.ledger}>
      <Answer of={ledger} lines={8}>
        {({ records, total_records }) =>
          records.length === 0 ? (
            <Empty title={t.noLedger} />
          ) : (
            <>
              <Table<Schemas["LedgerEntry"]>
                caption={t.ledger}
                isStale={ledger.isPlaceholderData}
                rows={records}
                rowKey={({ id }) => id}
                columns={[
                  {
                    id: "what",
                    title: common.call.line,
                    card: "title",
                    cell: nameOfEntry
                  },
                  {
                    id: "description",
                    title: t.description,
                    card: "plain",
                    cell: ({ description }) => <span className="quiet">{description}</span>
                  },
                  {
                    id: "at",
                    title: f.at,
                    card: "plain",
                    cell: ({ created_at }) => <When at={created_at} as="moment" />
                  },
                  {
                    id: "amount",
                    title: f.amount,
                    align: "end",
                    card: "figure",
                    cell: ({ amount, type }) => <Money of={amount} as="aligned" signed={type} />
                  },
                  {
                    id: "after",
                    title: t.after,
                    align: "end",
                    needs: "medium",
                    cell: ({ balance }) => <Money of={balance} as="aligned" />
                  }
                ]}
              />
              <NumberedPages page={page} perPage={perPage} shown={records.length} total={total_records} go={setPage} />
            </>
          )
        }
      </Answer>
    </Section>
  )
}

const Actions = ({ act, of }: { readonly of: Detail; readonly act: (act: Act) => void }) => (
  <>
    <Button icon={Gift} onPress={() => act({ kind: "grant", of })}>
      {texts.act.grant}
    </Button>
    <Button icon={Receipt} onPress={() => act({ kind: "purchase", of })}>
      {texts.act.purchase}
    </Button>
    {of.status === "closed" ? null : of.status === "active" ? (
      <Button icon={Pause} onPress={() => act({ kind: "suspendTenant", of })}>
        {texts.act.suspend}
      </Button>
    ) : (
      <Button icon={Play} onPress={() => act({ kind: "activateTenant", of })}>
        {texts.act.activate}
      </Button>
    )}
  </>
)

export const Tenant = () => {
  const { tenant_id } = route.useParams()
  const tenant = useTenant(tenant_id)
  const [act, dialog] = useAct()
  const of = tenant.data
  if (of === undefined) {
    return (
      <Page title={f.tenant}>
        {tenant.error === null ? (
          <Loading lines={8} />
        ) : (
          <Failed error={tenant.error} retry={() => void tenant.refetch()} />
        )}
      </Page>
    )
  }
  return (
    <Page
      title={of.name}
      lead={
        <>
          {f.tenant} · <Status of={of.status} />
        </>
      }
      actions={<Actions of={of} act={act} />}
    >
      <div className="operator-columns">
        <Section title={t.balance}>
          <Balance of={of} />
        </Section>
        <Section
          title={t.facts}
          actions={
            <ButtonLink to="/operator/audit" search={{ tenant_id }} kind="ghost">
              {t.audit}
            </ButtonLink>
          }
        >
          <TenantFacts of={of} />
        </Section>
      </div>
      <Section title={t.members}>
        <Members rows={of.members} />
      </Section>
      <TenantAllowance tenant_id={tenant_id} />
      <Section title={t.keys} actions={<MakeKey tenant_id={tenant_id} />}>
        <Keys of={of} act={act} />
      </Section>
      <Calls key={`calls ${tenant_id}`} tenant_id={tenant_id} />
      <Ledger key={`ledger ${tenant_id}`} tenant_id={tenant_id} />
      {dialog}
    </Page>
  )
}
