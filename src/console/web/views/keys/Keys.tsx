/** Lists the tenant's keys with their limits and spending, and lets users create, change and revoke them. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { getRouteApi } from "@tanstack/react-router"
import { KeyRound, Pencil, Plus, Trash2 } from "lucide-react"
import { useState } from "react"
import { useKeys } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { nano } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Button, ButtonLink } from "../../parts/Button.tsx"
import { Confirm } from "../../parts/Dialog.tsx"
import { Money } from "../../parts/Money.tsx"
import { Page } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { useNow, When } from "../../parts/When.tsx"
import { texts } from "../../texts.ts"
import { ChangeKey, MakeKey, pairsOf } from "./KeyForm.tsx"

export type Key = Schemas["Application"]

const route = getRouteApi("/person/keys")

const Spent = ({ of }: { readonly of: Key }) => {
  const { spending_limit_period: period, spending_limit_usd: limit, spent_usd: spent } = of
  if (limit === undefined || spent === undefined) return <span className="quiet">{texts.keys.noLimit}</span>
  const share = nano(limit) === 0n ? 1 : Number((nano(spent) * 1000n) / nano(limit)) / 1000
  return (
    <span className="keys-spent">
      <span>
        <Money of={spent} /> <span className="quiet">{texts.keys.of}</span> <Money of={limit} />
        {period === "month" ? <span className="quiet"> · {texts.keys.periods.month}</span> : null}
      </span>
      <span className="keys-gauge" aria-hidden>
        <span style={{ width: `${Math.min(100, share * 100)}%` }} data-full={share >= 0.9 || undefined} />
      </span>
    </span>
  )
}

const Ends = ({ at }: { readonly at: string | undefined }) => {
  const now = useNow()
  if (at === undefined) return <span className="quiet">{texts.keys.never}</span>
  return Date.parse(at) <= now ? <Badge tone="bad">{texts.keys.ended}</Badge> : <When at={at} />
}

const Revoke = ({ of, onClose }: { readonly of: Key | undefined; readonly onClose: () => void }) => {
  const tenant_id = tenantId()
  const queries = useQueryClient()
  const revoke = useMutation({
    mutationFn: ({ id }: Key) =>
      resultOf(
        api.DELETE("/v1/tenants/{tenant_id}/applications/{application_id}", {
          params: { path: { tenant_id, application_id: id } }
        })
      ),
    onSuccess: async (_, { name }) => {
      await queries.invalidateQueries({ queryKey: ["keys"] })
      toast(texts.keys.revoked(name))
      onClose()
    }
  })
  return (
    <Confirm
      title={texts.keys.revokeTitle(of?.name ?? "")}
      action={texts.keys.revoke}
      isOpen={of !== undefined}
      isPending={revoke.isPending}
      error={revoke.error}
      onConfirm={() => {
        if (of !== undefined) revoke.mutate(of)
      }}
      onClose={onClose}
    >
      {texts.keys.revokeText}
    </Confirm>
  )
}

type Acting = { readonly kind: "change" | "revoke"; readonly key: Key } | undefined

/** `act` opens the dialog for a row's button. */
const columnsOf = (act: (acting: Acting) => void): ReadonlyArray<Column<Key>> => [
  {
    id: "name",
    title: texts.keys.name,
    card: "title",
    cell: ({ created_by, description, name, tags }) => (
      <span className="keys-name">
        {name}
        {created_by === undefined ? null : <span className="quiet small">{texts.keys.createdBy(created_by.name)}</span>}
        {description === "" ? null : <span className="quiet small">{description}</span>}
        {tags === undefined ? null : <span className="quiet small">{pairsOf(tags)}</span>}
      </span>
    )
  },
  { id: "key", title: texts.keys.key, cell: ({ key_prefix }) => <code>{key_prefix}…</code> },
  { id: "spent", title: texts.keys.spent, cell: (key) => <Spent of={key} /> },
  {
    id: "models",
    title: texts.keys.models,
    needs: "wide",
    cell: ({ allowed_models }) =>
      allowed_models === undefined ? <span className="quiet">{texts.keys.allModels}</span> : allowed_models.join(", ")
  },
  {
    id: "used",
    title: texts.keys.lastUsed,
    cell: ({ last_used_at }) =>
      last_used_at === null ? <span className="quiet">{texts.keys.never}</span> : <When at={last_used_at} />
  },
  { id: "ends", title: texts.keys.ends, needs: "medium", cell: ({ expires_at }) => <Ends at={expires_at} /> },
  { id: "made", title: texts.keys.created, needs: "wide", cell: ({ created_at }) => <When at={created_at} /> },
  {
    id: "actions",
    title: texts.app.more,
    isActions: true,
    cell: (key) => (
      <>
        <Button
          kind="ghost"
          icon={Pencil}
          aria-label={`${texts.keys.change}: ${key.name}`}
          onPress={() => act({ kind: "change", key })}
        />
        <Button
          kind="ghost"
          icon={Trash2}
          aria-label={`${texts.keys.revoke}: ${key.name}`}
          onPress={() => act({ kind: "revoke", key })}
        />
      </>
    )
  }
]

export const Keys = () => {
  const keys = useKeys()
  const { make } = route.useSearch()
  const navigate = route.useNavigate()
  const [acting, act] = useState<Acting>()
  const setMaking = (isMaking: boolean): void =>
    void navigate({ search: isMaking ? { make: "yes" } : {}, replace: !isMaking })
  const makeButton = (
    <Button kind="primary" icon={Plus} onPress={() => setMaking(true)}>
      {texts.keys.make}
    </Button>
  )
  return (
    <Page
      title={texts.keys.title}
      lead={texts.keys.lead}
      actions={
        <>
          <ButtonLink to="/runs">{texts.keys.runs}</ButtonLink>
          {keys.data?.records.length === 0 ? null : makeButton}
        </>
      }
    >
      <Answer of={keys} lines={6}>
        {({ records }) =>
          records.length === 0 ? (
            <Empty icon={KeyRound} title={texts.keys.empty} action={makeButton}>
              {texts.keys.emptyText}
            </Empty>
          ) : (
            <Table caption={texts.keys.title} columns={columnsOf(act)} rows={records} rowKey={({ id }) => id} />
          )
        }
      </Answer>
      <MakeKey isOpen={make !== undefined} onClose={() => setMaking(false)} />
      <ChangeKey of={acting?.kind === "change" ? acting.key : undefined} onClose={() => act(undefined)} />
      <Revoke of={acting?.kind === "revoke" ? acting.key : undefined} onClose={() => act(undefined)} />
    </Page>
  )
}
