/** Compares a vendor's bill with the metered calls and the charges: sums, causes of drift, days, models, and individual differences. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi, Link } from "@tanstack/react-router"
import { Scale } from "lucide-react"
import type { ReactNode } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { count, percent } from "../moments.ts"
import { exact, usd } from "../money.ts"
import { Choice } from "../parts/Choice.tsx"
import { Code } from "../parts/Code.tsx"
import { SelectField, TextField } from "../parts/Fields.tsx"
import { Money } from "../parts/Money.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import type { Column } from "../parts/Table.tsx"
import { useNow, When } from "../parts/When.tsx"
import { operatorTexts } from "../texts/operator.ts"
import { reconciliationTexts as t } from "../texts/reconciliations.ts"
import { Differences } from "./Differences.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { causesOf, coverageOf, drift, groupsOf, totalOf } from "./reconciled.ts"
import type { Grouping, CauseSum, Group, Period } from "./reconciled.ts"
import { Signed } from "./Signed.tsx"

const route = getRouteApi("/operator/reconciliations")

type Vendor = Schemas["ReconciledVendor"]

const dayLong = 86_400_000
const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)
const daysShown = 30

const isOneOf = <K extends string>(all: Readonly<Record<K, unknown>>, value: string | undefined): value is K =>
  value !== undefined && Object.hasOwn(all, value)

type Search = ReturnType<typeof route.useSearch>
type Change = (change: Search) => void

const useChange = (): Change => {
  const navigate = route.useNavigate()
  return (change) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })
}

/** Reads the search parameters. By default, the period ends with the vendor's last compared day. */
const useViewState = (vendor: Vendor) => {
  const search = route.useSearch()
  const last = vendor.last_day ?? dayOf(useNow() - dayLong)
  const to = search.to ?? last
  return {
    last,
    to,
    vendor: vendor.vendor,
    from: search.from ?? dayOf(Date.parse(to) - (daysShown - 1) * dayLong),
    by: isOneOf(t.groups, search.by) ? search.by : "day",
    cause: isOneOf(t.causes, search.cause) ? search.cause : undefined,
    model: search.model
  } as const
}
type ViewState = ReturnType<typeof useViewState>

interface BarProps {
  readonly vendors: ReadonlyArray<Vendor>
  readonly shown: ViewState
  readonly change: Change
}

const Bar = ({ change, shown: { from, last, to, vendor }, vendors }: BarProps) => {
  const length = String(Math.round((Date.parse(to) - Date.parse(from)) / dayLong) + 1)
  return (
    <div className="operator-filter operator-days">
      <SelectField
        name="vendor"
        label={t.vendor}
        value={vendor}
        options={vendors.map(({ vendor }) => [vendor, vendor] as const)}
        onChange={(vendor) => change({ vendor, from: undefined, to: undefined, cause: undefined, model: undefined })}
      />
      <Choice
        label={t.window}
        value={to === last && isOneOf(t.windows, length) ? length : ""}
        options={Object.entries(t.windows)}
        onChange={(days) => change({ from: dayOf(Date.parse(last) - (Number(days) - 1) * dayLong), to: last })}
      />
      <TextField name="from" type="date" label={t.from} value={from} onChange={(from) => change({ from })} />
      <TextField name="to" type="date" label={t.to} value={to} onChange={(to) => change({ to })} />
    </div>
  )
}

const Figure = ({ children, name }: { readonly name: keyof typeof t.help; readonly children: ReactNode }) => (
  <div className="operator-figure">
    <dt className="operator-figure-name">{t[name]}</dt>
    <dd className="operator-figure-value">{children}</dd>
    <dd className="quiet small">{t.help[name]}</dd>
  </div>
)

const Figures = ({ causes, of }: { readonly of: Period; readonly causes: ReadonlyArray<CauseSum> }) => {
  const total = totalOf(of)
  return (
    <>
      <dl className="operator-figures">
        <Figure name="billed">
          <Money of={total.billed} />
        </Figure>
        <Figure name="charged">
          <Money of={total.charged} />
        </Figure>
        <Figure name="expected">
          <Money of={total.expected} />
        </Figure>
        <Figure name="drift">
          <Signed of={drift(total)} isTrouble />
        </Figure>
        <Figure name="coverage">{percent(coverageOf(total.billed, causes))}</Figure>
      </dl>
      <p className="quiet small">
        {t.comparedAt} <When at={of.days[0]!.reconciled_at} />
      </p>
    </>
  )
}

/** Shows the drift that has no known cause. */
const Explained = ({ causes }: { readonly causes: ReadonlyArray<CauseSum> }) => {
  const unexplained = causes.find(({ cause }) => cause === "unexplained")
  if (unexplained === undefined) return <p className="quiet">{t.explained}</p>
  return <p className="operator-off">{t.unexplained(exact(usd(unexplained.amount)))}</p>
}

const Reasons = ({ causes }: { readonly causes: ReadonlyArray<CauseSum> }) => (
  <Section title={t.reasons} lead={t.reasonsLead}>
    {causes.length === 0 ? (
      <p className="quiet">{t.agrees}</p>
    ) : (
      <>
        <Table<CauseSum>
          caption={t.reasons}
          rows={causes}
          rowKey={({ cause }) => cause}
          columns={[
            {
              id: "cause",
              title: t.cause,
              card: "title",
              cell: ({ cause }) => (
                <span className="operator-lines">
                  <Link
                    to="/operator/reconciliations"
                    search={(before) => ({ ...before, cause })}
                    resetScroll={false}
                    aria-label={t.showCause(t.causes[cause].name)}
                  >
                    {t.causes[cause].name}
                  </Link>
                  <span className="quiet small">{t.causes[cause].text}</span>
                </span>
              )
            },
            { id: "lines", title: t.lines, align: "end", cell: ({ lines }) => count(lines) },
            {
              id: "sum",
              title: t.sum,
              align: "end",
              card: "figure",
              cell: ({ amount, cause }) => <Signed of={amount} isTrouble={cause !== "rounding"} />
            }
          ]}
        />
        <Explained causes={causes} />
      </>
    )}
  </Section>
)

/** Links to the differences of the group's day and model, if it has either. */
const GroupName = ({ of }: { readonly of: Group }) => {
  const { day, model, name } = of
  if (day === undefined && model === undefined) return name
  return (
    <Link
      to="/operator/reconciliations"
      search={(before) => ({
        ...before,
        ...(day !== undefined && { from: day, to: day }),
        ...(model !== undefined && { model })
      })}
      resetScroll={false}
    >
      {name}
    </Link>
  )
}

/** Shows each day's coverage. The service does not compute the coverage of single models. */
const coverageColumn = ({ days }: Period, total: Group, causes: ReadonlyArray<CauseSum>): Column<Group> => {
  const shares = new Map(days.map(({ coverage, day }) => [day, coverage]))
  return {
    id: "coverage",
    title: t.coverage,
    align: "end",
    needs: "medium",
    cell: (group) => percent(group === total ? coverageOf(total.billed, causes) : (shares.get(group.key) ?? 1))
  }
}

const Groups = ({ by, of }: { readonly of: Period; readonly by: Grouping }) => {
  const total: Group = { ...totalOf(of), key: "", name: t.total, day: undefined, model: undefined }
  return (
    <Table<Group>
      caption={t.table}
      rows={[total, ...groupsOf(of.rows, by)]}
      rowKey={({ key }) => key}
      isTotal={(row) => row === total}
      columns={[
        {
          id: "name",
          title: by === "row" ? t.row : t.groups[by],
          card: "title",
          cell: (group) => <GroupName of={group} />
        },
        {
          id: "requests",
          title: operatorTexts.field.requests,
          align: "end",
          needs: "medium",
          cell: ({ requests }) => count(requests)
        },
        { id: "billed", title: t.billed, align: "end", cell: ({ billed }) => <Money of={billed} as="aligned" /> },
        { id: "charged", title: t.charged, align: "end", cell: ({ charged }) => <Money of={charged} as="aligned" /> },
        {
          id: "expected",
          title: t.expected,
          align: "end",
          needs: "medium",
          cell: ({ expected }) => <Money of={expected} as="aligned" />
        },
        ...(by === "day" ? [coverageColumn(of, total, causesOf(of.days))] : []),
        {
          id: "drift",
          title: t.drift,
          align: "end",
          card: "figure",
          cell: (group) => <Signed of={drift(group)} isTrouble />
        }
      ]}
    />
  )
}

const NoDays = ({ of: { api, vendor } }: { readonly of: Vendor }) => (
  <>
    <Empty icon={Scale} title={t.noDays}>
      {api === null ? t.byFile : t.byLoop}
    </Empty>
    <Code of={`tollgate reconcile --vendor ${vendor} --from DAY --to DAY${api === null ? " --file bill.csv" : ""}`} />
  </>
)

const OfVendor = ({ vendor, vendors }: { readonly vendor: Vendor; readonly vendors: ReadonlyArray<Vendor> }) => {
  const shown = useViewState(vendor)
  const change = useChange()
  const { by, cause, from, model, to } = shown
  const period = useQuery({
    queryKey: ["operator", "reconciliations", vendor.vendor, from, to],
    queryFn: () =>
      resultOf(
        operatorApi.GET("/v1/operator/reconciliations/{vendor}", {
          params: { path: { vendor: vendor.vendor }, query: { from, to } }
        })
      ),
    placeholderData: keepPreviousData
  })
  return (
    <>
      <Bar vendors={vendors} shown={shown} change={change} />
      <Answer of={period} lines={10}>
        {(of) => {
          if (of.days.length === 0) return <NoDays of={vendor} />
          const causes = causesOf(of.days)
          return (
            <>
              <Figures of={of} causes={causes} />
              <Reasons causes={causes} />
              <Section
                title={t.table}
                actions={
                  <Choice
                    label={t.by}
                    value={by}
                    options={(["day", "model", "row"] as const).map((name) => [name, t.groups[name]] as const)}
                    onChange={(by) => change({ by })}
                  />
                }
              >
                <Groups of={of} by={by} />
                {of.truncated ? <p className="quiet">{t.truncated}</p> : null}
              </Section>
              <Differences asked={{ vendor: vendor.vendor, from, to, cause, model }} causes={causes} change={change} />
            </>
          )
        }}
      </Answer>
    </>
  )
}

/** Queries the vendors. They are part of the response for a period, so this requests a period of one day. */
const useVendors = () => {
  const today = dayOf(useNow())
  return useQuery({
    queryKey: ["operator", "reconciliations", "vendors", today],
    queryFn: async () =>
      (
        await resultOf(
          operatorApi.GET("/v1/operator/reconciliations", { params: { query: { from: today, to: today } } })
        )
      ).vendors
  })
}

export const Reconciliations = () => {
  const { vendor: name } = route.useSearch()
  const vendors = useVendors()
  return (
    <Page title={t.title} lead={t.lead}>
      <Answer of={vendors} lines={10}>
        {(all) => {
          const vendor = all.find(({ vendor }) => vendor === name) ?? all.find(({ last_day }) => last_day !== null)
          const shown = vendor ?? all[0]
          return shown === undefined ? (
            <Empty icon={Scale} title={t.noVendors}>
              {t.noVendorsText}
            </Empty>
          ) : (
            <OfVendor key={shown.vendor} vendor={shown} vendors={all} />
          )
        }}
      </Answer>
    </Page>
  )
}
