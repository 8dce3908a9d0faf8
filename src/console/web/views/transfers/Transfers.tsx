/** The transfers view: pending transfers to the user, received and sent transfers, and the form that sends credit. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { ArrowLeftRight, Send as SendIcon } from "lucide-react"
import { useMembership } from "../../app/Asking.ts"
import { day, relative } from "../../moments.ts"
import { Badge } from "../../parts/Badge.tsx"
import type { Tone } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { Money } from "../../parts/Money.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { NumberedPages, Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { TabsOf } from "../../parts/TabsOf.tsx"
import { useNow, When } from "../../parts/When.tsx"
import { transfersTexts } from "../../texts/transfers.ts"
import { endOf, perPage, useTransfers } from "./asking.ts"
import type { Side, Transfer } from "./asking.ts"
import { Answering } from "./Decisions.tsx"
import { Send } from "./Send.tsx"
import { StoryDialog } from "./StoryDialog.tsx"

const route = getRouteApi("/person/transfers")

const tones: Readonly<Record<Transfer["status"], Tone>> = {
  pending: "warn",
  accepted: "good",
  declined: "bad",
  revoked: "plain",
  expired: "plain"
}

const Waiting = () => {
  const { data } = useTransfers("received", 1, "pending")
  if (data === undefined || data.records.length === 0) return null
  return (
    <Section title={transfersTexts.waiting} lead={transfersTexts.landed}>
      <ul className="transfers-waiting">
        {data.records.map((transfer) => (
          <li key={transfer.id} className="transfers-card">
            <div className="stack">
              <p className="quiet">{transfersTexts.sendsYou(transfer.sender.name || transfer.sender.email)}</p>
              <p className="transfers-amount">
                <Money of={transfer.amount} as="exact" focusable />
              </p>
              {transfer.message === null ? null : <q className="transfers-message">{transfer.message}</q>}
              <p className="quiet small">{transfersTexts.by(day(transfer.expires_at))}</p>
            </div>
            <Answering of={transfer} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

const Next = ({ of: transfer, side }: { readonly of: Transfer; readonly side: Side }) => {
  const now = useNow()
  const { status } = transfer
  if (status === "pending") {
    const until = relative(transfer.expires_at, now)
    return side === "sent" ? transfersTexts.nextOf.pending(until) : transfersTexts.nextOf.pendingForYou(until)
  }
  return <When at={endOf(transfer)} />
}

const columnsOf = (side: Side): ReadonlyArray<Column<Transfer>> => [
  {
    id: "who",
    title: transfersTexts.who[side],
    card: "title",
    cell: ({ message, recipient_email, sender }) => (
      <>
        {side === "sent" ? recipient_email : sender.name || sender.email}
        {message === null ? null : <span className="quiet small transfers-note"> {message}</span>}
      </>
    )
  },
  {
    id: "state",
    title: transfersTexts.state,
    card: "plain",
    cell: ({ status }) => <Badge tone={tones[status]}>{transfersTexts.states[status]}</Badge>
  },
  { id: "next", title: transfersTexts.next, card: "plain", cell: (transfer) => <Next of={transfer} side={side} /> },
  {
    id: "created",
    title: transfersTexts.created,
    needs: "medium",
    cell: ({ created_at }) => <When at={created_at} as="moment" />
  },
  {
    id: "amount",
    title: transfersTexts.amount,
    align: "end",
    card: "figure",
    cell: ({ amount }) => <Money of={amount} />
  }
]

const columns = { sent: columnsOf("sent"), received: columnsOf("received") }

const List = ({ side }: { readonly side: Side }) => {
  const { page: text } = route.useSearch()
  const navigate = useNavigate()
  const page = Math.max(1, Number(text ?? 1) || 1)
  const transfers = useTransfers(side, page)
  const go = (to: number): void =>
    void navigate({ to: "/transfers", search: { tab: side, page: String(to) }, resetScroll: false })
  return (
    <Answer of={transfers} lines={5}>
      {({ records, total_records }) =>
        total_records === 0 ? (
          <Empty
            icon={ArrowLeftRight}
            title={side === "sent" ? transfersTexts.sentEmpty : transfersTexts.receivedEmpty}
          >
            {side === "sent" ? transfersTexts.sentEmptyText : transfersTexts.receivedEmptyText}
          </Empty>
        ) : (
          <>
            <Table
              caption={transfersTexts[side]}
              columns={columns[side]}
              rows={records}
              rowKey={({ id }) => id}
              isStale={transfers.isPlaceholderData}
              onOpen={({ id }) =>
                void navigate({
                  to: "/transfers",
                  search: (search) => ({ ...search, tab: side, transfer: id }),
                  resetScroll: false
                })
              }
            />
            <NumberedPages page={page} perPage={perPage} shown={records.length} total={total_records} go={go} />
          </>
        )
      }
    </Answer>
  )
}

export const Transfers = () => {
  const { send, tab = "received", transfer } = route.useSearch()
  const navigate = useNavigate()
  const membership = useMembership()
  const go = (search: { readonly tab?: string; readonly send?: string; readonly transfer?: string }): void =>
    void navigate({ to: "/transfers", search, resetScroll: false })
  const manages = membership !== undefined && membership.role !== "member"
  return (
    <Page
      title={transfersTexts.title}
      lead={transfersTexts.lead}
      actions={
        manages ? (
          <Button kind="primary" icon={SendIcon} onPress={() => go({ tab, send: "yes" })}>
            {transfersTexts.send}
          </Button>
        ) : null
      }
    >
      <Waiting />
      {membership?.role === "member" ? <p className="quiet small">{transfersTexts.roleText}</p> : null}
      <TabsOf
        label={transfersTexts.title}
        selected={tab === "sent" ? "sent" : "received"}
        onSelect={(id) => go({ tab: id })}
        tabs={(["received", "sent"] as const).map((side) => ({
          id: side,
          title:
            side === "sent" && membership !== undefined && !membership.is_home
              ? `${transfersTexts.sent} · ${membership.tenant_name}`
              : transfersTexts[side],
          content: <List side={side} />
        }))}
      />
      {send === "yes" && manages ? (
        <Send onClose={() => go({ tab })} onSent={({ id }) => go({ tab: "sent", transfer: id })} />
      ) : null}
      {transfer === undefined ? null : <StoryDialog id={transfer} onClose={() => go({ tab })} />}
    </Page>
  )
}
