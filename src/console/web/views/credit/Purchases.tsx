/** Lists purchases with their refunds and disputes. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { exact, nano } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Money } from "../../parts/Money.tsx"
import { Section } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { NumberedPages, Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { When } from "../../parts/When.tsx"
import { creditTexts } from "../../texts/credit.ts"
import { isUnconfigured } from "./asking.ts"

type Purchase = Schemas["Purchase"]

const perPage = 10

/** Shows a purchase's refunds and disputes, and the amount still owed. */
const Movements = ({ of: { movements, owed } }: { readonly of: Purchase }) => (
  <span className="credit-movements">
    {movements.map(({ amount, at, id, kind, returned }) => (
      <span key={id}>
        {creditTexts.movements[kind](exact(amount))} <When at={at} />
        {returned ? ` ${creditTexts.movementReturned}` : ""}
      </span>
    ))}
    {nano(owed) === 0n ? null : <Badge tone="bad">{creditTexts.owed(exact(owed))}</Badge>}
  </span>
)

const columns: ReadonlyArray<Column<Purchase>> = [
  { id: "kind", title: creditTexts.what, card: "title", cell: ({ kind }) => creditTexts.purchaseKinds[kind] },
  {
    id: "when",
    title: creditTexts.when,
    card: "plain",
    cell: ({ created_at }) => <When at={created_at} as="moment" />
  },
  { id: "after", title: creditTexts.movementsTitle, card: "plain", cell: (purchase) => <Movements of={purchase} /> },
  {
    id: "reference",
    title: creditTexts.reference,
    needs: "wide",
    cell: ({ id }) => (
      <code className="credit-reference quiet" data-tip={id}>
        {id}
      </code>
    )
  },
  {
    id: "amount",
    title: creditTexts.entryAmount,
    align: "end",
    card: "figure",
    cell: ({ amount }) => <Money of={amount} />
  }
]

export const Purchases = () => {
  const tenant_id = tenantId()
  const [page, setPage] = useState(1)
  const purchases = useQuery({
    // A purchase changes the balance, so ledger events invalidate this query.
    queryKey: ["ledger", tenant_id, "payments", page],
    queryFn: () =>
      resultOf(
        api.GET("/v1/tenants/{tenant_id}/billing/payments", {
          params: { path: { tenant_id }, query: { page: String(page), per_page: String(perPage) } }
        })
      ),
    placeholderData: keepPreviousData,
    retry: (failures, error) => failures < 2 && !isUnconfigured(error)
  })
  if (isUnconfigured(purchases.error)) return null
  return (
    <Section title={creditTexts.purchases}>
      <Answer of={purchases} lines={2}>
        {({ records, total_records }) =>
          total_records === 0 ? (
            <p className="quiet">{creditTexts.purchasesNone}</p>
          ) : (
            <>
              <Table
                caption={creditTexts.purchases}
                columns={columns}
                rows={records}
                rowKey={({ id }) => id}
                isStale={purchases.isPlaceholderData}
              />
              <NumberedPages page={page} perPage={perPage} shown={records.length} total={total_records} go={setPage} />
            </>
          )
        }
      </Answer>
    </Section>
  )
}
