/** The operator's view of a person: identities, memberships, keys, sign-ins, passkeys and actions. */
import { useQuery } from "@tanstack/react-query"
import { getRouteApi } from "@tanstack/react-router"
import { LogOut, Pause, Play, Trash2 } from "lucide-react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { Badge } from "../parts/Badge.tsx"
import { Button, ButtonLink } from "../parts/Button.tsx"
import { Copy } from "../parts/Copy.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Answer, Empty, Failed, Loading } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import type { Column } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { texts as common } from "../texts.ts"
import { useAct } from "./Acts.tsx"
import type { Act } from "./Acts.tsx"
import { KeyTable, Status, TenantLink } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const route = getRouteApi("/operator/people/$account_id")
const t = texts.person
const f = texts.field

type Detail = Schemas["OperatorPerson"]

const tenantNames = ({ memberships }: Detail): ReadonlyMap<string, string> =>
  new Map(memberships.map(({ tenant_id, tenant_name }) => [tenant_id, tenant_name]))

const PersonFacts = ({ of }: { readonly of: Detail }) => (
  <Facts
    of={[
      [
        f.id,
        <span key="id" className="row">
          <code>{of.id}</code> <Copy text={of.id} />
        </span>
      ],
      [
        f.mail,
        <span key="mail" className="row wrap">
          {of.email} {of.email_verified ? null : <Badge tone="warn">{t.unverified}</Badge>}
        </span>
      ],
      [t.home, <TenantLink key="home" id={of.home_tenant_id} name={tenantNames(of).get(of.home_tenant_id)} />],
      [f.created, <When key="since" at={of.created_at} as="moment" />],
      ...(of.suspended_at === null
        ? []
        : [[t.suspendedAt, <When key="suspended" at={of.suspended_at} as="moment" />] as const])
    ]}
  />
)

const Identities = ({ rows }: { readonly rows: Detail["identities"] }) => (
  <Table
    caption={t.identities}
    rows={rows}
    rowKey={({ provider, provider_id }) => `${provider} ${provider_id}`}
    columns={[
      { id: "provider", title: f.provider, card: "title", cell: ({ provider }) => provider },
      { id: "mail", title: f.mail, card: "plain", cell: ({ email }) => email },
      { id: "id", title: f.id, cell: ({ provider_id }) => <code className="quiet">{provider_id}</code> }
    ]}
  />
)

const Memberships = ({ rows }: { readonly rows: Detail["memberships"] }) => (
  <Table
    caption={t.memberships}
    rows={rows}
    rowKey={({ tenant_id }) => tenant_id}
    columns={[
      {
        id: "tenant",
        title: f.tenant,
        card: "title",
        cell: ({ tenant_id, tenant_name }) => <TenantLink id={tenant_id} name={tenant_name} />
      },
      {
        id: "kind",
        title: t.kind,
        card: "plain",
        cell: ({ is_home }) => <span className="quiet">{is_home ? common.tenant.home : common.tenant.team}</span>
      },
      { id: "role", title: texts.tenant.role, card: "plain", cell: ({ role }) => common.tenant.roles[role] },
      { id: "status", title: f.status, align: "end", cell: ({ status }) => <Status of={status} /> }
    ]}
  />
)

const SignIns = ({ rows }: { readonly rows: Detail["sign_ins"] }) =>
  rows.length === 0 ? (
    <Empty title={t.noSignIns} />
  ) : (
    <Table
      caption={t.signIns}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          id: "client",
          title: t.client,
          card: "title",
          cell: ({ application, client_id }) => (
            <>
              <code>{client_id}</code> {application ? <Badge>{t.held}</Badge> : null}
            </>
          )
        },
        {
          id: "at",
          title: f.at,
          card: "plain",
          align: "end",
          cell: ({ signed_in_at }) => <When at={signed_in_at} as="moment" />
        }
      ]}
    />
  )

type Passkey = Schemas["Passkey"]

const usePasskeys = (account_id: string) =>
  useQuery({
    queryKey: ["operator", "person", account_id, "passkeys"],
    queryFn: async () =>
      (
        await resultOf(
          operatorApi.GET("/v1/operator/people/{account_id}/passkeys", { params: { path: { account_id } } })
        )
      ).passkeys
  })

const passkeyColumns = (onDelete: (passkey: Passkey) => void): ReadonlyArray<Column<Passkey>> => [
  { id: "name", title: f.name, card: "title", cell: ({ name }) => name },
  { id: "created", title: f.created, card: "plain", cell: ({ created_at }) => <When at={created_at} as="moment" /> },
  {
    id: "used",
    title: t.lastUsed,
    cell: ({ last_used_at }) =>
      last_used_at === null ? <span className="quiet">{t.never}</span> : <When at={last_used_at} as="moment" />
  },
  {
    id: "act",
    title: common.app.more,
    isActions: true,
    cell: (passkey) => (
      <Button
        kind="ghost"
        icon={Trash2}
        aria-label={`${texts.act.deletePasskey}: ${passkey.name}`}
        onPress={() => onDelete(passkey)}
      />
    )
  }
]

const Passkeys = ({
  account_id,
  onDelete
}: {
  readonly account_id: string
  readonly onDelete: (of: Passkey) => void
}) => (
  <Section title={t.passkeys}>
    <Answer of={usePasskeys(account_id)} lines={2}>
      {(all) =>
        all.length === 0 ? (
          <Empty title={t.noPasskeys} />
        ) : (
          <Table caption={t.passkeys} rows={all} rowKey={({ id }) => id} columns={passkeyColumns(onDelete)} />
        )
      }
    </Answer>
  </Section>
)

const Actions = ({ act, of }: { readonly of: Detail; readonly act: (act: Act) => void }) => {
  const named = { id: of.id, name: of.name || of.email }
  return (
    <>
      <Button icon={LogOut} onPress={() => act({ kind: "endSignIns", of: named })}>
        {texts.act.endSignIns}
      </Button>
      {of.status === "active" ? (
        <Button icon={Pause} onPress={() => act({ kind: "suspendPerson", of: named })}>
          {texts.act.suspend}
        </Button>
      ) : (
        <Button icon={Play} onPress={() => act({ kind: "activatePerson", of: named })}>
          {texts.act.activate}
        </Button>
      )}
    </>
  )
}

export const Person = () => {
  const { account_id } = route.useParams()
  const [act, dialog] = useAct()
  const person = useQuery({
    queryKey: ["operator", "person", account_id],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/people/{account_id}", { params: { path: { account_id } } }))
  })
  const of = person.data
  if (of === undefined) {
    return (
      <Page title={f.person}>
        {person.error === null ? (
          <Loading lines={8} />
        ) : (
          <Failed error={person.error} retry={() => void person.refetch()} />
        )}
      </Page>
    )
  }
  return (
    <Page
      title={of.name || of.email}
      lead={
        <>
          {f.person} · <Status of={of.status} />
        </>
      }
      actions={<Actions of={of} act={act} />}
    >
      <div className="operator-columns">
        <Section
          title={texts.tenant.facts}
          actions={
            <ButtonLink to="/operator/audit" search={{ account_id }} kind="ghost">
              {texts.tenant.audit}
            </ButtonLink>
          }
        >
          <PersonFacts of={of} />
        </Section>
        <Section title={t.identities}>
          <Identities rows={of.identities} />
        </Section>
      </div>
      <Section title={t.memberships}>
        <Memberships rows={of.memberships} />
      </Section>
      <Section title={t.keys}>
        {of.keys.length === 0 ? (
          <Empty title={t.noKeys} />
        ) : (
          <KeyTable
            rows={of.keys}
            names={tenantNames(of)}
            without="person"
            onRevoke={(key) => act({ kind: "revokeKey", of: key })}
          />
        )}
      </Section>
      <Section title={t.signIns}>
        <SignIns rows={of.sign_ins} />
      </Section>
      <Passkeys account_id={account_id} onDelete={(of) => act({ kind: "deletePasskey", of, account_id })} />
      {dialog}
    </Page>
  )
}
