/** The first view, with the balance, its recent changes, spending and current calls. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { KeyRound, Radio } from "lucide-react"
import { useAmounts, useLedger } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { nameOfEntry } from "../../app/Entry.ts"
import { nano } from "../../money.ts"
import { ButtonLink } from "../../parts/Button.tsx"
import { Money } from "../../parts/Money.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import { useNow, When } from "../../parts/When.tsx"
import { texts } from "../../texts.ts"
import { CallTable } from "../usage/CallTable.tsx"
import { SeriesPlot, useSeries } from "../usage/Series.tsx"
import { days, spanOf } from "../usage/Window.ts"
import { Attention } from "./Attention.tsx"

type Part = keyof typeof texts.home.parts

const Bar = ({ of }: { readonly of: ReadonlyArray<readonly [Part, bigint]> }) => {
  const total = of.reduce((sum, [, amount]) => sum + amount, 0n)
  if (total === 0n) return null
  return (
    <div className="home-bar" aria-hidden>
      {of
        .filter(([, amount]) => amount > 0n)
        .map(([part, amount]) => (
          // Thousandths are precise enough for a bar.
          <span
            key={part}
            className={`home-share home-${part}`}
            style={{ flexGrow: Number((amount * 1000n) / total) + 4 }}
          />
        ))}
    </div>
  )
}

const Parts = ({ of }: { readonly of: ReadonlyArray<readonly [Part, bigint]> }) => (
  <dl className="home-parts">
    {of.map(([part, amount]) => (
      <div key={part} className="home-part" data-tip={texts.home.partsHelp[part]}>
        <dt>
          <span className={`home-dot home-${part}`} aria-hidden />
          {texts.home.parts[part]}
        </dt>
        <dd>
          <Money of={amount} as="aligned" />
        </dd>
      </div>
    ))}
  </dl>
)

/** Shows the balance, its parts, and the amount reserved by open calls. */
const Balance = ({ of }: { readonly of: Schemas["Amounts"] }) => {
  const owned = (["giftable", "granted"] as const).map((part) => [part, nano(of[part])] as const)
  const held = ["held", nano(of.held)] as const
  return (
    <div className="home-balance">
      <p className="home-figure money-large">
        <Money of={of.balance} as="exact" focusable />
      </p>
      <Bar of={[...owned, held]} />
      <Parts
        of={[
          ...owned,
          held,
          ["reserved", nano(of.reserved)],
          ...(nano(of.reserved) === 0n ? [] : [["available", nano(of.available)] as const])
        ]}
      />
    </div>
  )
}

type Entry = Schemas["LedgerEntry"]

const Changes = () => {
  const ledger = useLedger(1, 7)
  return (
    <Answer of={ledger} lines={6}>
      {({ records }) =>
        records.length === 0 ? (
          <Empty title={texts.home.noChanges} />
        ) : (
          <Table<Entry>
            caption={texts.home.changes}
            rows={records}
            rowKey={({ id }) => id}
            columns={[
              {
                id: "what",
                title: texts.call.line,
                card: "title",
                cell: nameOfEntry
              },
              {
                id: "about",
                title: texts.home.about,
                card: "plain",
                cell: (entry) => {
                  const { description } = entry
                  return description.toLowerCase() === nameOfEntry(entry).toLowerCase() ? null : (
                    <span className="quiet">{description}</span>
                  )
                }
              },
              {
                id: "when",
                title: texts.usage.when,
                card: "plain",
                cell: ({ created_at }) => <When at={created_at} />
              },
              {
                id: "amount",
                title: texts.call.amount,
                align: "end",
                card: "figure",
                cell: ({ amount, type }) => <Money of={amount} as="aligned" signed={type} />
              }
            ]}
          />
        )
      }
    </Answer>
  )
}

const Spending = () => {
  const span = spanOf({ window: "month" }, useNow())
  const series = useSeries(span, "model")
  return (
    <Section
      title={texts.home.spending}
      lead={texts.home.spendingLead(days.month)}
      actions={
        <ButtonLink to="/usage" kind="ghost">
          {texts.nav.usage}
        </ButtonLink>
      }
    >
      <Answer of={series} lines={8}>
        {(data) => <SeriesPlot data={data} measure="cost" height={200} />}
      </Answer>
    </Section>
  )
}

const shownCalls = 10

const Calls = () => {
  const tenant_id = tenantId()
  const navigate = useNavigate()
  const calls = useQuery({
    queryKey: ["usage", tenant_id, "newest"],
    queryFn: () =>
      resultOf(
        api.GET("/v1/tenants/{tenant_id}/usage", {
          params: { path: { tenant_id }, query: { per_page: String(shownCalls) } }
        })
      ),
    placeholderData: keepPreviousData
  })
  return (
    <Section
      title={texts.home.calls}
      lead={texts.home.callsLead}
      actions={
        <ButtonLink to="/usage" kind="ghost">
          {texts.home.allCalls}
        </ButtonLink>
      }
    >
      <Answer of={calls} lines={6}>
        {({ records }) =>
          records.length === 0 ? (
            <Empty
              icon={Radio}
              title={texts.home.noCalls}
              action={
                <ButtonLink to="/keys" search={{ make: "yes" }} kind="primary" icon={KeyRound}>
                  {texts.home.makeKey}
                </ButtonLink>
              }
            >
              {texts.home.noCallsText}
            </Empty>
          ) : (
            <CallTable calls={records} onOpen={({ id }) => void navigate({ to: "/usage", search: { call: id } })} />
          )
        }
      </Answer>
    </Section>
  )
}

export const Home = () => {
  const amounts = useAmounts()
  return (
    <Page title={texts.home.title}>
      <Attention />
      <div className="home-columns">
        <Section title={texts.home.balance}>
          <Answer of={amounts} lines={4}>
            {(of) => <Balance of={of} />}
          </Answer>
        </Section>
        <Section title={texts.home.changes}>
          <Changes />
        </Section>
      </div>
      <Spending />
      <Calls />
    </Page>
  )
}
