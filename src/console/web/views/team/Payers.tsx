/**
 * Shows who pays for the user's calls: the payers in charging order, the reason for each position, their available credit, and the amounts that they
 * have paid.
 */
import { useQuery } from "@tanstack/react-query"
import { Pin, PinOff } from "lucide-react"
import { useMemberships } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { nano } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { Money } from "../../parts/Money.tsx"
import { Section } from "../../parts/Page.tsx"
import { advice, Answer } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { texts } from "../../texts.ts"
import { teamTexts } from "../../texts/team.ts"
import { useChange, windowOf } from "./asking.ts"

type Sources = Schemas["BillingSources"]
type Source = Schemas["BillingSource"]

const days = 30

/** Explains a source's position in the order and whether it can pay. */
const reasonFor = (source: Source, { selection, sources }: Sources): string => {
  const isPinned = selection?.mode === "pinned" && selection.billing_account_id === source.billing_account_id
  const isEmpty = nano(source.credits.balance) === 0n
  const barred = source.role === "member" && source.member_spend_enabled === false
  if (!source.available && source.kind === "team") {
    if (barred) return teamTexts.why.teamBarred
    return isEmpty ? teamTexts.why.empty : teamTexts.why.ownBlocks
  }
  if (isPinned) return teamTexts.why.pinned
  if (source.kind === "team") return teamTexts.why.team
  // This source has credit but is unavailable, because the tenant's members are not allowed to spend it.
  if (!source.available && source.role === "member" && !isEmpty && sources.length > 1) return teamTexts.why.barred
  return isEmpty ? `${teamTexts.why.own} ${teamTexts.why.empty}` : teamTexts.why.own
}

const choose = (body: Schemas["BillingSourceSelection"]): Promise<Sources> =>
  resultOf(api.PUT("/v1/me/billing-source", { body }))

const PayerRow = ({ all, at, of: source }: { readonly all: Sources; readonly at: number; readonly of: Source }) => {
  const { billing_account_id, credits, kind, role, selected, tenant_name } = source
  const { selection } = all
  const isPinned = selection?.mode === "pinned" && selection.billing_account_id === billing_account_id
  const pin = useChange(choose, () => toast(isPinned ? teamTexts.unpinDone : teamTexts.pinDone(tenant_name)))
  const press = (): void =>
    pin.mutate(isPinned ? { mode: "automatic" } : { mode: "pinned", billing_account_id }, {
      onError: (error) => toast(advice(error), "bad")
    })
  return (
    <li className="team-place" data-out={!source.available || undefined}>
      <span className="team-place-at" aria-hidden>
        {at}
      </span>
      <div className="team-place-words">
        <p className="row wrap">
          <strong>{tenant_name}</strong>
          <span className="quiet small">
            {kind === "own" ? (source.is_home ? texts.tenant.home : texts.tenant.team) : texts.tenant.team} ·{" "}
            {texts.tenant.roles[role]}
          </span>
          {selected && source.available ? <Badge tone="good">{teamTexts.payersFirst}</Badge> : null}
          {isPinned ? <Badge tone="accent">{teamTexts.payersPinned}</Badge> : null}
          {source.available ? null : <Badge tone="warn">{teamTexts.payersUnavailable}</Badge>}
        </p>
        <p className="quiet">{reasonFor(source, all)}</p>
      </div>
      <span className="team-place-balance">
        <Money of={credits.balance} focusable />
      </span>
      <div className="team-place-action">
        {isPinned || source.available ? (
          <Button icon={isPinned ? PinOff : Pin} isPending={pin.isPending} onPress={press}>
            {isPinned ? teamTexts.payersUnpin : teamTexts.payersPin}
          </Button>
        ) : null}
      </div>
    </li>
  )
}

const Order = () => {
  const sources = useQuery({
    queryKey: ["payers", tenantId(), "sources"],
    queryFn: () => resultOf(api.GET("/v1/me/billing-sources"))
  })
  return (
    <Section title={teamTexts.payers} lead={teamTexts.payersLead}>
      <Answer of={sources} lines={4}>
        {(all) => (
          <>
            {all.selection_required ? <p className="team-note">{teamTexts.payersRequired}</p> : null}
            <ol className="team-places">
              {all.sources.map((source, index) => (
                <PayerRow key={source.billing_account_id} all={all} at={index + 1} of={source} />
              ))}
            </ol>
            <p className="quiet small">{teamTexts.payersNote}</p>
          </>
        )}
      </Answer>
    </Section>
  )
}

const Capacity = () => {
  const capacity = useQuery({
    queryKey: ["payers", tenantId(), "capacity"],
    queryFn: () => resultOf(api.GET("/v1/me/billing-sources/capacity"))
  })
  return (
    <Section title={teamTexts.capacity}>
      <Answer of={capacity} lines={2}>
        {({ total_balance, total_held }) => (
          <dl className="team-figures">
            <div>
              <dt>{teamTexts.capacityTotal}</dt>
              <dd>
                <Money of={total_balance} as="exact" focusable />
              </dd>
            </div>
            <div>
              <dt>{teamTexts.capacityHeld}</dt>
              <dd>
                <Money of={total_held} as="exact" focusable />
              </dd>
            </div>
          </dl>
        )}
      </Answer>
    </Section>
  )
}

type Paid = Schemas["PayerUsage"]["sources"][number]

const Paid = () => {
  const { data: memberships } = useMemberships()
  const usage = useQuery({
    queryKey: ["usage", "payers", tenantId()],
    queryFn: () => resultOf(api.GET("/v1/me/billing-sources/usage", { params: { query: windowOf(days) } }))
  })
  const columns: ReadonlyArray<Column<Paid>> = [
    {
      id: "source",
      title: teamTexts.source,
      card: "title",
      cell: ({ tenant_id }) => memberships?.find((one) => one.tenant_id === tenant_id)?.tenant_name ?? teamTexts.gone
    },
    { id: "requests", title: teamTexts.requests, align: "end", cell: ({ total_requests }) => count(total_requests) },
    { id: "tokens", title: teamTexts.tokens, align: "end", cell: ({ total_tokens }) => count(total_tokens) },
    {
      id: "cost",
      title: teamTexts.cost,
      card: "figure",
      align: "end",
      cell: ({ total_cost }) => <Money of={total_cost} as="aligned" />
    }
  ]
  return (
    <Section title={teamTexts.paid} lead={teamTexts.paidLead(days)}>
      <Answer of={usage} lines={3}>
        {({ sources }) =>
          sources.length === 0 ? (
            <p className="quiet">{teamTexts.paidNone}</p>
          ) : (
            <Table
              caption={teamTexts.paid}
              columns={columns}
              rows={sources}
              rowKey={({ billing_account_id, kind }) => `${billing_account_id} ${kind}`}
            />
          )
        }
      </Answer>
    </Section>
  )
}

export const Payers = () => (
  <div className="team-sections">
    <Order />
    <Capacity />
    <Paid />
  </div>
)
