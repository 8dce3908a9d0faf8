/** The ledger: every change of the balance, with what it came from. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import { ReceiptText } from "lucide-react"
import { useLedger } from "../../app/Asking.ts"
import type { Schemas } from "../../app/Client.ts"
import { Choice } from "../../parts/Choice.tsx"
import { Money } from "../../parts/Money.tsx"
import { Section } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { NumberedPages, Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { When } from "../../parts/When.tsx"
import { creditTexts } from "../../texts/credit.ts"

type Entry = Schemas["LedgerEntry"]

const route = getRouteApi("/person/credit")
const perPage = 25

/** The sources of each choice. */
const filters = {
  all: undefined,
  calls: "call",
  purchases: "purchase",
  grants: "registration_bonus,signup_grant,admin",
  transfers: "transfer_escrow,transfer_release,transfer_return"
} as const
type Filter = keyof typeof filters

const nameOf = ({ source, type }: Entry): string =>
  source === "purchase" && type === "debit" ? creditTexts.sources.refund : creditTexts.sources[source ?? "call"]

/** Where the entry comes from: the call's record, the transfer, or the reference of whoever booked it. */
const Source = ({ of: { reference_id, source } }: { readonly of: Entry }) => {
  if (source === undefined) {
    return (
      <Link to="/usage" search={{ call: reference_id }}>
        {creditTexts.openCall}
      </Link>
    )
  }
  if (source.startsWith("transfer")) {
    return (
      <Link to="/transfers" search={{ transfer: reference_id }}>
        {creditTexts.openTransfer}
      </Link>
    )
  }
  return (
    <code className="credit-reference quiet" data-tip={reference_id}>
      {reference_id}
    </code>
  )
}

const columns: ReadonlyArray<Column<Entry>> = [
  {
    id: "what",
    title: creditTexts.what,
    card: "title",
    cell: (entry) => (
      <>
        {nameOf(entry)}
        {entry.description.toLowerCase() === nameOf(entry).toLowerCase() ? null : (
          <span className="quiet small"> {entry.description}</span>
        )}
      </>
    )
  },
  {
    id: "when",
    title: creditTexts.when,
    card: "plain",
    cell: ({ created_at }) => <When at={created_at} as="moment" />
  },
  { id: "source", title: creditTexts.source, card: "plain", cell: (entry) => <Source of={entry} /> },
  {
    id: "amount",
    title: creditTexts.entryAmount,
    align: "end",
    card: "figure",
    cell: ({ amount, type }) => <Money of={amount} as="aligned" signed={type} />
  },
  {
    id: "after",
    title: creditTexts.after,
    align: "end",
    needs: "medium",
    cell: ({ balance }) => <Money of={balance} as="aligned" />
  }
]

export const Entries = () => {
  const { page: text, source } = route.useSearch()
  const filter: Filter = source !== undefined && source in filters ? (source as Filter) : "all"
  const navigate = useNavigate()
  const page = Math.max(1, Number(text ?? 1) || 1)
  const ledger = useLedger(page, perPage, filters[filter])
  const go = (to: number, by: Filter = filter): void =>
    void navigate({
      to: "/credit",
      search: { ...(to > 1 && { page: String(to) }), ...(by !== "all" && { source: by }) },
      resetScroll: false
    })
  return (
    <Section
      title={creditTexts.ledger}
      lead={creditTexts.ledgerLead}
      actions={
        <Choice
          label={creditTexts.ledgerFilter}
          value={filter}
          options={(Object.keys(filters) as ReadonlyArray<Filter>).map(
            (name) => [name, creditTexts.ledgerFilters[name]] as const
          )}
          onChange={(by) => go(1, by)}
        />
      }
    >
      <Answer of={ledger} lines={6}>
        {({ records, total_records }) =>
          records.length === 0 ? (
            <Empty icon={ReceiptText} title={filter === "all" ? creditTexts.ledgerEmpty : creditTexts.ledgerNone}>
              {creditTexts.ledgerEmptyText}
            </Empty>
          ) : (
            <>
              <Table
                caption={creditTexts.ledger}
                columns={columns}
                rows={records}
                rowKey={({ id }) => id}
                isStale={ledger.isPlaceholderData}
              />
              <NumberedPages page={page} perPage={perPage} shown={records.length} total={total_records} go={go} />
            </>
          )
        }
      </Answer>
    </Section>
  )
}
