/** Lists the ledger entries with their causes. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import { ReceiptText, ShieldCheck } from "lucide-react"
import { useState } from "react"
import { useLedger } from "../../app/Asking.ts"
import type { Schemas } from "../../app/Client.ts"
import { nameOfEntry } from "../../app/Entry.ts"
import { count } from "../../moments.ts"
import { Button } from "../../parts/Button.tsx"
import { Choice } from "../../parts/Choice.tsx"
import { Money } from "../../parts/Money.tsx"
import { Section } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { NumberedPages, Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { When } from "../../parts/When.tsx"
import { creditTexts } from "../../texts/credit.ts"
import { receiptTexts } from "../../texts/receipts.ts"
import { EntryReceipt, numberOf } from "../receipts/Verification.tsx"

type Entry = Schemas["LedgerEntry"]

const route = getRouteApi("/person/credit")
const perPage = 25

const filters = {
  all: undefined,
  calls: "call",
  purchases: "purchase",
  grants: "registration_bonus,signup_grant,admin,allowance,voucher",
  transfers: "transfer_escrow,transfer_release,transfer_return"
} as const
type Filter = keyof typeof filters

/** Shows the entry's name, with a link to its call or transfer, or with its reference. */
const EntryName = ({ of: entry }: { readonly of: Entry }) => {
  const { description, reference_id, source } = entry
  const name = nameOfEntry(entry)
  const words = description.toLowerCase() === name.toLowerCase() ? undefined : description
  if (source === undefined || source.startsWith("transfer")) {
    const about = words ?? creditTexts.details
    return (
      <span className="credit-what">
        {name}
        {source === undefined ? (
          <Link to="/usage" search={{ call: reference_id }}>
            {about}
          </Link>
        ) : (
          <Link to="/transfers" search={{ transfer: reference_id }}>
            {about}
          </Link>
        )}
      </span>
    )
  }
  return (
    <span className="credit-what">
      {name}
      {words === undefined ? null : <span className="quiet small">{words}</span>}
      <code className="credit-reference quiet" data-tip={reference_id}>
        {reference_id}
      </code>
    </span>
  )
}

const columns: ReadonlyArray<Column<Entry>> = [
  {
    id: "what",
    title: creditTexts.what,
    card: "title",
    cell: (entry) => <EntryName of={entry} />
  },
  {
    id: "when",
    title: creditTexts.when,
    card: "plain",
    cell: ({ created_at }) => <When at={created_at} as="moment" />
  },
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

const EntryTable = ({ entries, isStale }: { readonly entries: ReadonlyArray<Entry>; readonly isStale: boolean }) => {
  const [verified, verify] = useState<Entry>()
  const actions: Column<Entry> = {
    id: "actions",
    title: receiptTexts.title,
    isActions: true,
    cell: (entry) => (
      <Button
        kind="ghost"
        icon={ShieldCheck}
        aria-label={receiptTexts.verifyEntry(count(numberOf(entry)))}
        onPress={() => verify(entry)}
      />
    )
  }
  return (
    <>
      <Table
        caption={creditTexts.ledger}
        columns={[...columns, actions]}
        rows={entries}
        rowKey={({ id }) => id}
        isStale={isStale}
      />
      <EntryReceipt of={verified} onClose={() => verify(undefined)} />
    </>
  )
}

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
              <EntryTable entries={records} isStale={ledger.isPlaceholderData} />
              <NumberedPages page={page} perPage={perPage} shown={records.length} total={total_records} go={go} />
            </>
          )
        }
      </Answer>
    </Section>
  )
}
