/** Shows all tenants' charges next to the costs that vendors reported, by day, provider and model. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi } from "@tanstack/react-router"
import { ChartColumn } from "lucide-react"
import { useMemo } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { bookDay, count, shortCount, tickDay } from "../moments.ts"
import { approximate, nano, plotted } from "../money.ts"
import { Choice } from "../parts/Choice.tsx"
import { TextField } from "../parts/Fields.tsx"
import { Money } from "../parts/Money.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Plot } from "../parts/Plot.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import type { Column } from "../parts/Table.tsx"
import { useNow } from "../parts/When.tsx"
import { texts as common } from "../texts.ts"
import { operatorApi } from "./OperatorSession.ts"
import { Signed } from "./Signed.tsx"
import { operatorTexts as texts } from "../texts/operator.ts"

const route = getRouteApi("/operator/costs")
const t = texts.costs

type Row = Schemas["OperatorCosts"]["rows"][number]
type Grouping = keyof typeof t.groups
type Measure = keyof typeof t.measures

const dayLong = 86_400_000
const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** The sum of several rows. Amounts are in nano-USD. */
interface Sum {
  readonly name: string
  readonly requests: number
  readonly failures: number
  readonly tokens: number
  readonly charged: bigint
  readonly uncollected: bigint
  /** `cost` and `margin` cover only the rows with a reported cost. */
  readonly cost: bigint | undefined
  readonly margin: bigint
}

const nothing = { requests: 0, failures: 0, tokens: 0, charged: 0n, uncollected: 0n, margin: 0n }

const plus = (sum: Sum, row: Row): Sum => ({
  name: sum.name,
  requests: sum.requests + row.requests,
  failures: sum.failures + row.failures,
  tokens: sum.tokens + row.prompt_tokens + row.completion_tokens,
  charged: nano(row.charged) + sum.charged,
  uncollected: sum.uncollected + nano(row.uncollected),
  cost: row.vendor_cost === null ? sum.cost : (sum.cost ?? 0n) + nano(row.vendor_cost),
  margin: sum.margin + (row.vendor_cost === null ? 0n : nano(row.charged) - nano(row.vendor_cost))
})

const nameOf = ({ day, model, provider }: Row, by: Grouping): string => {
  switch (by) {
    case "day":
      return bookDay(day)
    case "provider":
      return provider
    case "model":
      return model
    case "row":
      return `${bookDay(day)} · ${provider} · ${model}`
  }
}

const sumsOf = (rows: ReadonlyArray<Row>, nameOf: (row: Row) => string): ReadonlyArray<Sum> => {
  const sums = new Map<string, Sum>()
  for (const row of rows) {
    const name = nameOf(row)
    sums.set(name, plus(sums.get(name) ?? { ...nothing, name, cost: undefined }, row))
  }
  return [...sums.values()]
}

const seriesMax = 8
const restKey = "\u2026rest"

const valueOf = (row: Row, measure: Measure): number => {
  if (measure === "requests") return row.requests
  return approximate(measure === "charged" ? row.charged : (row.vendor_cost ?? 0))
}

/** Returns the days, a series for each of the top models by `measure`, and a series for the sum of all other models. */
const useSeries = ({ from, rows, to }: Schemas["OperatorCosts"], measure: Measure) =>
  useMemo(() => {
    const days: Array<string> = []
    for (let at = Date.parse(from); at <= Date.parse(to); at += dayLong) days.push(dayOf(at))
    const index = new Map(days.map((day, at) => [day, at]))
    const models = new Map<string, { total: number; values: Array<number> }>()
    for (const row of rows) {
      const model = models.get(row.model) ?? { total: 0, values: days.map(() => 0) }
      const value = valueOf(row, measure)
      const at = index.get(row.day)
      if (at !== undefined) model.values[at]! += value
      model.total += value
      models.set(row.model, model)
    }
    const sorted = [...models].toSorted(([, a], [, b]) => b.total - a.total)
    const named = sorted.slice(0, seriesMax).map(([name, { values }]) => ({ key: name, name, values }))
    const rest = sorted.slice(seriesMax)
    const restValues = days.map((_, at) => rest.reduce((sum, [, { values }]) => sum + values[at]!, 0))
    return {
      times: days.map((day) => Date.parse(day) / 1000),
      series:
        rest.length === 0
          ? named
          : [...named, { key: restKey, name: common.plot.rest, values: restValues, isRest: true }]
    }
  }, [from, to, rows, measure])

const CostPlot = ({ measure, of }: { readonly of: Schemas["OperatorCosts"]; readonly measure: Measure }) => {
  const { series, times } = useSeries(of, measure)
  const sums = useMemo(() => {
    const named = new Set(series.map(({ key }) => key))
    const keyOf = ({ model }: Row): string => (named.has(model) ? model : restKey)
    return new Map(sumsOf(of.rows, keyOf).map((sum) => [sum.name, sum]))
  }, [of, series])
  return (
    <Plot
      title={t.measures[measure]}
      times={times}
      series={series}
      isWhole={measure === "requests"}
      format={measure === "requests" ? shortCount : plotted}
      formatTime={(seconds) => bookDay(seconds * 1000)}
      formatTick={(seconds) => tickDay(seconds * 1000)}
      total={(key) => {
        const sum = sums.get(key)
        if (sum === undefined) return null
        if (measure === "requests") return count(sum.requests)
        return <Money of={measure === "charged" ? sum.charged : (sum.cost ?? 0n)} />
      }}
    />
  )
}

const Margin = ({ of: { cost, margin } }: { readonly of: Sum }) =>
  cost === undefined ? (
    <span className="quiet">{texts.ago.none}</span>
  ) : (
    <span data-tip={t.marginHelp}>
      <Signed of={margin} />
    </span>
  )

const costColumns: ReadonlyArray<Column<Sum>> = [
  {
    id: "cost",
    title: t.vendorCost,
    align: "end",
    cell: ({ cost }) =>
      cost === undefined ? <span className="quiet">{t.unknown}</span> : <Money of={cost} as="aligned" />
  },
  { id: "margin", title: t.margin, align: "end", needs: "medium", cell: (sum) => <Margin of={sum} /> }
]

const Figures = ({ by, rows }: { readonly rows: ReadonlyArray<Row>; readonly by: Grouping }) => {
  const sums = useMemo(() => {
    const groups = sumsOf(rows, (row) => nameOf(row, by))
    return by === "provider" || by === "model"
      ? groups.toSorted((a, b) => (b.charged > a.charged ? 1 : b.charged < a.charged ? -1 : 0))
      : groups.toReversed()
  }, [rows, by])
  const total = sumsOf(rows, () => t.total)
  const hasCost = total.some(({ cost }) => cost !== undefined)
  return (
    <Table<Sum>
      caption={t.table}
      rows={[...total, ...sums]}
      rowKey={({ name }) => name}
      isTotal={(row) => row === total[0]}
      columns={[
        {
          id: "name",
          title: by === "row" ? t.row : t.groups[by],
          card: "title",
          cell: ({ name }) => name
        },
        {
          id: "requests",
          title: texts.field.requests,
          align: "end",
          needs: "medium",
          cell: ({ requests }) => count(requests)
        },
        {
          id: "failures",
          title: texts.field.failures,
          align: "end",
          needs: "wide",
          cell: ({ failures }) => (failures === 0 ? <span className="quiet">{texts.ago.none}</span> : count(failures))
        },
        {
          id: "tokens",
          title: t.tokens,
          align: "end",
          needs: "wide",
          cell: ({ tokens }) => (tokens === 0 ? <span className="quiet">{texts.ago.none}</span> : count(tokens))
        },
        ...(hasCost ? costColumns : []),
        {
          id: "uncollected",
          title: t.uncollected,
          align: "end",
          needs: "wide",
          cell: ({ uncollected }) =>
            uncollected === 0n ? (
              <span className="quiet">{texts.ago.none}</span>
            ) : (
              <Money of={uncollected} as="aligned" />
            )
        },
        {
          id: "charged",
          title: t.charged,
          align: "end",
          card: "figure",
          cell: ({ charged }) => <Money of={charged} as="aligned" />
        }
      ]}
    />
  )
}

const isOneOf = <K extends string>(all: Readonly<Record<K, string>>, value: string | undefined): value is K =>
  value !== undefined && Object.hasOwn(all, value)

type Change = (change: ReturnType<typeof route.useSearch>) => void

/** Reads the search parameters. By default, shows the last seven days by model. */
const useViewState = () => {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const change: Change = (change) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })
  const today = dayOf(useNow())
  const to = search.to ?? today
  const shown = {
    today,
    to,
    from: search.from ?? dayOf(Date.parse(to) - 6 * dayLong),
    by: isOneOf(t.groups, search.by) ? search.by : "model",
    measure: isOneOf(t.measures, search.plot) ? search.plot : "charged"
  } as const
  return { change, shown }
}
type ViewState = ReturnType<typeof useViewState>["shown"]

interface PartProps {
  readonly shown: ViewState
  readonly change: Change
}

const WindowBar = ({ change, shown: { from, to, today } }: PartProps) => {
  const length = String(Math.round((Date.parse(to) - Date.parse(from)) / dayLong) + 1)
  return (
    <div className="operator-filter operator-days">
      <Choice
        label={t.window}
        value={to === today && isOneOf(t.windows, length) ? length : ""}
        options={Object.entries(t.windows)}
        onChange={(days) => change({ from: dayOf(Date.parse(today) - (Number(days) - 1) * dayLong), to: today })}
      />
      <TextField name="from" type="date" label={t.from} value={from} onChange={(from) => change({ from })} />
      <TextField name="to" type="date" label={t.to} value={to} onChange={(to) => change({ to })} />
    </div>
  )
}

interface CostsProps extends PartProps {
  readonly of: Schemas["OperatorCosts"]
}

const PlotSection = ({ change, of, shown: { measure } }: CostsProps) => (
  <Section
    title={t.measures[measure]}
    lead={t.byModel}
    actions={
      <Choice
        label={t.measure}
        value={measure}
        options={(["charged", "cost", "requests"] as const).map((name) => [name, t.measures[name]] as const)}
        onChange={(plot) => change({ plot })}
      />
    }
  >
    <CostPlot of={of} measure={measure} />
  </Section>
)

const FiguresSection = ({ change, of, shown: { by } }: CostsProps) => (
  <Section
    title={t.table}
    actions={
      <Choice
        label={t.by}
        value={by}
        options={(["day", "provider", "model", "row"] as const).map((name) => [name, t.groups[name]] as const)}
        onChange={(by) => change({ by })}
      />
    }
  >
    <Figures rows={of.rows} by={by} />
    {of.rows.every(({ vendor_cost }) => vendor_cost === null) ? <p className="quiet small">{t.noCost}</p> : null}
    {of.truncated ? <p className="quiet">{t.truncated}</p> : null}
  </Section>
)

export const Costs = () => {
  const part = useViewState()
  const { from, to } = part.shown
  const costs = useQuery({
    queryKey: ["operator", "costs", from, to],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/costs", { params: { query: { from, to } } })),
    placeholderData: keepPreviousData
  })
  return (
    <Page title={t.title} lead={t.lead}>
      <WindowBar {...part} />
      <Answer of={costs} lines={10}>
        {(of) =>
          of.rows.length === 0 ? (
            <Empty icon={ChartColumn} title={t.none}>
              {t.noneText}
            </Empty>
          ) : (
            <>
              <PlotSection of={of} {...part} />
              <FiguresSection of={of} {...part} />
            </>
          )
        }
      </Answer>
    </Page>
  )
}
