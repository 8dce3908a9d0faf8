/** Tables of tenants, people, keys and calls that several operator views share. */
import { useNavigate } from "@tanstack/react-router"
import { Link } from "@tanstack/react-router"
import { Ban } from "lucide-react"
import { useState } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { Badge } from "../parts/Badge.tsx"
import { Button } from "../parts/Button.tsx"
import { Money } from "../parts/Money.tsx"
import { Table } from "../parts/Table.tsx"
import type { Column } from "../parts/Table.tsx"
import { useNow, When } from "../parts/When.tsx"
import { inWords, texts as common } from "../texts.ts"
import { CallDialog } from "../views/usage/CallDialog.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const f = texts.field

/** Shows a status as a badge, or `active` as plain text. */
export const Status = ({ of }: { readonly of: string }) =>
  of === "active" ? (
    <span className="quiet">{texts.states[of]}</span>
  ) : (
    <Badge tone={of === "suspended" ? "bad" : "plain"}>{texts.states[of] ?? of}</Badge>
  )

interface LinkOf {
  readonly id: string
  /** Defaults to the id. */
  readonly name?: string | undefined
}

export const TenantLink = ({ id, name }: LinkOf) => (
  <Link to="/operator/tenants/$tenant_id" params={{ tenant_id: id }} className={name === undefined ? "mono" : ""}>
    {name ?? id}
  </Link>
)

export const PersonLink = ({ id, name }: LinkOf) => (
  <Link to="/operator/people/$account_id" params={{ account_id: id }} className={name === undefined ? "mono" : ""}>
    {name ?? id}
  </Link>
)

export const Maybe = ({ at }: { readonly at: string | null }) =>
  at === null ? <span className="quiet">{texts.ago.never}</span> : <When at={at} />

type TenantLine = Schemas["OperatorTenantLine"]

export const TenantTable = ({ rows }: { readonly rows: ReadonlyArray<TenantLine> }) => {
  const navigate = useNavigate()
  return (
    <Table<TenantLine>
      caption={texts.find.tenants}
      rows={rows}
      rowKey={({ id }) => id}
      onOpen={({ id }) => void navigate({ to: "/operator/tenants/$tenant_id", params: { tenant_id: id } })}
      columns={[
        { id: "name", title: f.name, card: "title", cell: ({ id, name }) => <TenantLink id={id} name={name} /> },
        {
          id: "mail",
          title: f.mail,
          card: "plain",
          cell: ({ owner_email }) => <span className="quiet">{owner_email ?? texts.ago.none}</span>
        },
        { id: "id", title: f.id, needs: "wide", card: "none", cell: ({ id }) => <code className="quiet">{id}</code> },
        { id: "since", title: f.created, needs: "medium", cell: ({ created_at }) => <When at={created_at} /> },
        { id: "status", title: f.status, cell: ({ status }) => <Status of={status} /> },
        {
          id: "balance",
          title: f.balance,
          align: "end",
          card: "figure",
          cell: ({ balance }) => <Money of={balance} as="aligned" />
        }
      ]}
    />
  )
}

type PersonLine = Schemas["OperatorPersonLine"]

export const PersonTable = ({ rows }: { readonly rows: ReadonlyArray<PersonLine> }) => {
  const navigate = useNavigate()
  return (
    <Table<PersonLine>
      caption={texts.find.people}
      rows={rows}
      rowKey={({ id }) => id}
      onOpen={({ id }) => void navigate({ to: "/operator/people/$account_id", params: { account_id: id } })}
      columns={[
        { id: "name", title: f.name, card: "title", cell: ({ id, name }) => <PersonLink id={id} name={name || id} /> },
        {
          id: "mail",
          title: f.mail,
          card: "plain",
          cell: ({ email, email_verified }) => (
            <>
              <span className="quiet">{email}</span>{" "}
              {email_verified ? null : <Badge tone="warn">{texts.find.unverified}</Badge>}
            </>
          )
        },
        { id: "id", title: f.id, needs: "wide", card: "none", cell: ({ id }) => <code className="quiet">{id}</code> },
        { id: "since", title: f.created, needs: "medium", cell: ({ created_at }) => <When at={created_at} /> },
        { id: "status", title: f.status, align: "end", cell: ({ status }) => <Status of={status} /> }
      ]}
    />
  )
}

type KeyLine = Schemas["OperatorKeyLine"]

const Ends = ({ at }: { readonly at: string | null }) => {
  const now = useNow()
  if (at === null) return <span className="quiet">{texts.ago.never}</span>
  return Date.parse(at) <= now ? <Badge>{common.keys.ended}</Badge> : <When at={at} />
}

interface KeyTableProps<K extends KeyLine> {
  readonly rows: ReadonlyArray<K>
  readonly onRevoke: (key: K) => void
  /** Omits a column if all keys belong to one tenant or person. */
  readonly without?: "tenant" | "person"
  /** The names of tenants or people, by id. */
  readonly names?: ReadonlyMap<string, string>
  readonly more?: ReadonlyArray<Column<K>>
}

const noNames: ReadonlyMap<string, string> = new Map()

export const KeyTable = <K extends KeyLine>({
  more = [],
  names = noNames,
  onRevoke,
  rows,
  without
}: KeyTableProps<K>) => (
  <Table<K>
    caption={texts.find.keys}
    rows={rows}
    rowKey={({ id }) => id}
    columns={[
      { id: "name", title: f.name, card: "title", cell: ({ name }) => <span className="operator-strong">{name}</span> },
      { id: "key", title: f.key, cell: ({ key_prefix }) => <code>{key_prefix}…</code> },
      ...(without === "tenant"
        ? []
        : [
            {
              id: "tenant",
              title: f.tenant,
              cell: ({ tenant_id }: K) => <TenantLink id={tenant_id} name={names.get(tenant_id)} />
            }
          ]),
      ...(without === "person"
        ? []
        : [
            {
              id: "person",
              title: f.person,
              needs: "medium" as const,
              cell: ({ account_id }: K) => <PersonLink id={account_id} name={names.get(account_id)} />
            }
          ]),
      ...more,
      { id: "used", title: f.lastUsed, cell: ({ last_used_at }) => <Maybe at={last_used_at} /> },
      { id: "ends", title: f.ends, needs: "medium", cell: ({ expires_at }) => <Ends at={expires_at} /> },
      {
        id: "actions",
        title: f.actions,
        isActions: true,
        cell: (key) => (
          <Button
            kind="ghost"
            icon={Ban}
            aria-label={`${texts.act.revoke}: ${key.name}`}
            onPress={() => onRevoke(key)}
          />
        )
      }
    ]}
  />
)

export type CallLine = Schemas["OperatorOpenCall"] | Schemas["OperatorEndedCall"]

const CallState = ({ of }: { readonly of: CallLine }) => {
  if (of.state === "open") return <Badge tone="accent">{f.open}</Badge>
  if (!of.success) return <Badge tone="bad">{inWords(of.error_type ?? common.usage.failed)}</Badge>
  return <span className="quiet">{common.usage.ok}</span>
}

interface CallLinesProps {
  readonly rows: ReadonlyArray<CallLine>
  readonly isStale?: boolean
  /** Omits the tenant column if all calls belong to one tenant. */
  readonly isOfOne?: boolean
  readonly names?: ReadonlyMap<string, string>
}

export const explain = (usage_id: string) =>
  resultOf(operatorApi.GET("/v1/operator/usage/{usage_id}/explain", { params: { path: { usage_id } } }))

/** Shows a table of calls. Opening a finished call shows its explanation. */
export const CallLines = (props: CallLinesProps) => {
  const [opened, open] = useState<string>()
  return (
    <>
      <CallRows {...props} onOpen={({ id, state }) => open(state === "ended" ? id : undefined)} />
      <CallDialog id={opened} explain={explain} onClose={() => open(undefined)} />
    </>
  )
}

const CallRows = ({
  isOfOne = false,
  isStale = false,
  names = noNames,
  onOpen,
  rows
}: CallLinesProps & { readonly onOpen: (call: CallLine) => void }) => (
  <Table<CallLine>
    isStale={isStale}
    onOpen={onOpen}
    caption={texts.find.calls}
    rows={rows}
    rowKey={({ id }) => id}
    columns={[
      {
        id: "model",
        title: f.model,
        card: "title",
        cell: ({ model }) => <span className="operator-strong">{model}</span>
      },
      { id: "at", title: f.at, card: "plain", cell: ({ timestamp }) => <When at={timestamp} as="moment" /> },
      ...(isOfOne
        ? []
        : [
            {
              id: "tenant",
              title: f.tenant,
              cell: ({ tenant_id }: CallLine) => <TenantLink id={tenant_id} name={names.get(tenant_id)} />
            }
          ]),
      ...(isOfOne
        ? [
            {
              id: "endpoint",
              title: common.usage.endpoint,
              cell: (call: CallLine) => <span className="quiet">{call.state === "open" ? "" : call.endpoint}</span>
            }
          ]
        : []),
      { id: "id", title: f.id, needs: "wide", card: "none", cell: ({ id }) => <code className="quiet">{id}</code> },
      { id: "state", title: f.status, cell: (call) => <CallState of={call} /> },
      {
        id: "cost",
        title: common.usage.cost,
        align: "end",
        card: "figure",
        cell: (call) => <Money of={call.state === "open" ? call.reserved_usd : call.cost} as="aligned" />
      }
    ]}
  />
)
