/** Shows usage and cost over time, split by one dimension, and the list of calls. The view's state is part of the URL. */
import { getRouteApi, useCanGoBack, useRouter } from "@tanstack/react-router"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { ChartColumn, X } from "lucide-react"
import { useEffect, useState } from "react"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { UsageSearch } from "../../app/Router.tsx"
import { bookDays, count } from "../../moments.ts"
import { Button } from "../../parts/Button.tsx"
import { Choice } from "../../parts/Choice.tsx"
import { TextField } from "../../parts/Fields.tsx"
import { Money } from "../../parts/Money.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { Pages } from "../../parts/Table.tsx"
import type { Sorting } from "../../parts/Table.tsx"
import { useNow } from "../../parts/When.tsx"
import { texts } from "../../texts.ts"
import { CallDialog } from "./CallDialog.tsx"
import { CallTable } from "./CallTable.tsx"
import type { CallSort } from "./CallTable.tsx"
import { ExportButtons } from "./Export.tsx"
import { SeriesPlot, useNames, useSeries } from "./Series.tsx"
import type { Measure, SeriesBy } from "./Series.tsx"
import { dayOf, grainsOf, spanOf } from "./Window.ts"
import type { Span, WindowName } from "./Window.ts"

const route = getRouteApi("/person/usage")

const windows: ReadonlyArray<WindowName> = ["day", "week", "month", "quarter", "year", "custom"]
const dimensions = ["model", "application", "account", "payer", "endpoint", "provider", "end_user", "run"] as const
const choices = [...dimensions, "tag"] as const
const measures: ReadonlyArray<Measure> = ["cost", "requests", "tokens", "failures"]

const isOneOf = <K extends string>(all: ReadonlyArray<K>, value: string | undefined): value is K =>
  all.some((one) => one === value)

/** Returns the chosen dimension: `tag` if the URL names a tag (`tag:<name>`), and `model` by default. */
const choiceOf = ({ by }: UsageSearch): (typeof choices)[number] =>
  isOneOf(dimensions, by) ? by : by?.startsWith("tag:") === true ? "tag" : "model"

/** Returns the chosen dimension as the API expects it. Until the user has entered a valid tag name, returns `model`. */
const byOf = (search: UsageSearch): SeriesBy => {
  const { by } = search
  return by !== undefined && /^tag:[\w.-]{1,64}$/.test(by)
    ? by
    : choiceOf(search) === "tag"
      ? "model"
      : choiceOf(search)
}

/** Returns the key that the URL's filter selects in this dimension. */
const chosenIn = (search: UsageSearch, by: SeriesBy): string | undefined => {
  if (isOneOf(dimensions, by)) return search[by]
  const start = `${by.slice("tag:".length)}=`
  return search.tag?.startsWith(start) === true ? search.tag.slice(start.length) : undefined
}

const choosing = (by: SeriesBy, key: string | undefined): UsageSearch => {
  if (isOneOf(dimensions, by)) return { [by]: key }
  // The API cannot filter for calls without the tag.
  return { tag: key === undefined || key === "" ? undefined : `${by.slice("tag:".length)}=${key}` }
}

type Change = (change: UsageSearch) => void

const useSearchState = (): readonly [UsageSearch, Change] => {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const change: Change = (change) =>
    void navigate({
      search: (before) => ({ ...before, ...change }),
      replace: change.call === undefined,
      resetScroll: false
    })
  return [search, change]
}

interface PartProps {
  readonly search: UsageSearch
  readonly change: Change
  readonly span: Span
}

const WindowBar = ({ change, search, span }: PartProps) => {
  const window = isOneOf(windows, search.window) ? search.window : "month"
  const by = choiceOf(search)
  const lastDay = dayOf(new Date(Date.parse(span.end) - 1).toISOString())
  return (
    <div className="usage-bar">
      <Choice
        label={texts.usage.window.label}
        value={window}
        options={windows.map((name) => [name, texts.usage.window[name]] as const)}
        onChange={(name) =>
          change({
            window: name,
            grain: undefined,
            ...(name === "custom" && { from: dayOf(span.start), to: lastDay })
          })
        }
      />
      {window === "custom" ? (
        <div className="usage-dates">
          <TextField
            name="from"
            label={texts.usage.from}
            type="date"
            value={search.from ?? ""}
            onChange={(from) => change({ from })}
          />
          <TextField
            name="to"
            label={texts.usage.to}
            type="date"
            value={search.to ?? ""}
            onChange={(to) => change({ to })}
          />
        </div>
      ) : null}
      <div className="push row usage-by">
        <span className="quiet small">{texts.usage.by.label}</span>
        <Choice
          label={texts.usage.by.label}
          value={by}
          options={choices.map((name) => [name, texts.usage.by[name]] as const)}
          onChange={(name) => change({ by: name === "tag" ? "tag:" : name })}
        />
        {by === "tag" ? (
          <TextField
            name="tag"
            label={texts.usage.tagName}
            value={search.by?.slice("tag:".length) ?? ""}
            onChange={(name) => change({ by: `tag:${name}` })}
          />
        ) : null}
      </div>
    </div>
  )
}

const Over = ({ change, search, span }: PartProps) => {
  const by = byOf(search)
  const measure = isOneOf(measures, search.plot) ? search.plot : "cost"
  const series = useSeries(span, by)
  return (
    <Answer of={series} lines={8}>
      {(data) => (
        <div className="stack" style={{ opacity: series.isPlaceholderData ? 0.55 : 1 }}>
          <div className="usage-totals">
            {measures.map((name) => (
              <button
                key={name}
                type="button"
                className="usage-total"
                aria-pressed={measure === name}
                onClick={() => change({ plot: name })}
              >
                <span className="usage-total-name">{texts.usage.plot[name]}</span>
                <span className="usage-total-value">
                  {name === "cost" ? <Money of={data.total.cost} as="aligned" /> : count(data.total[name])}
                </span>
              </button>
            ))}
          </div>
          <SeriesPlot
            data={data}
            measure={measure}
            chosen={{ key: chosenIn(search, by), choose: (key) => change(choosing(by, key)) }}
            onBucket={(seconds) => {
              const day = dayOf(new Date(seconds * 1000).toISOString())
              change({ window: "custom", from: day, to: day })
            }}
          />
          {data.total.requests === 0 ? null : (
            <div className="row wrap between">
              <p className="quiet small">{texts.usage.inUtc}</p>
              {grainsOf(span).length < 2 ? null : (
                <Choice
                  label={texts.usage.grain.label}
                  value={data.grain}
                  options={grainsOf(span).map((grain) => [grain, texts.usage.grain[grain]] as const)}
                  onChange={(grain) => change({ grain })}
                />
              )}
            </div>
          )}
        </div>
      )}
    </Answer>
  )
}

const perPage = 50

const states = ["all", "ok", "failed"] as const

const Narrowed = ({ change, search }: { readonly search: UsageSearch; readonly change: Change }) => {
  const nameOf = useNames(search.account !== undefined)
  return choices.map((by) => {
    const key = search[by]
    if (key === undefined) return null
    const words = `${texts.usage.by[by]}: ${nameOf(by, key)}`
    return (
      <Button key={by} icon={X} aria-label={texts.usage.without(words)} onPress={() => change({ [by]: undefined })}>
        {words}
      </Button>
    )
  })
}

const filterOf = (search: UsageSearch) => ({
  ...labelsOf(search),
  ...dimensionsOf(search)
})

const labelsOf = ({ end_user, run, tag }: UsageSearch) => ({
  ...(tag !== undefined && { tag }),
  ...(end_user !== undefined && { end_user }),
  ...(run !== undefined && { run })
})

const dimensionsOf = ({ account, application, endpoint, model, payer, provider, state }: UsageSearch) => ({
  ...(model !== undefined && { model }),
  ...(provider !== undefined && { provider }),
  ...(endpoint !== undefined && { endpoint }),
  ...(account !== undefined && { account_id: account }),
  ...(application !== undefined && { application_id: application }),
  ...(payer !== undefined && { billing_source_tenant_id: payer }),
  ...(state !== undefined && { success: state === "ok" ? ("true" as const) : ("false" as const) })
})

/** Returns a page of records and the functions that move to the adjacent pages. Paging neither repeats nor skips calls. */
const useRecords = (span: Span, sorting: Sorting<CallSort>, filter: ReturnType<typeof filterOf>) => {
  const tenant_id = tenantId()
  // The visited pages' cursors. The last one belongs to the current page.
  const [cursors, setCursors] = useState<ReadonlyArray<string>>([])
  const question = `${span.start} ${span.end} ${sorting.by} ${sorting.direction} ${JSON.stringify(filter)}`
  useEffect(() => setCursors([]), [question])
  const cursor = cursors.at(-1)
  const page = useQuery({
    queryKey: ["usage", tenant_id, "records", question, cursor],
    queryFn: () =>
      resultOf(
        api.GET("/v1/tenants/{tenant_id}/usage", {
          params: {
            path: { tenant_id },
            query: {
              start_date: span.start,
              end_date: span.end,
              sort: sorting.by,
              direction: sorting.direction,
              per_page: String(perPage),
              ...filter,
              ...(cursor !== undefined && { cursor })
            }
          }
        })
      ),
    placeholderData: keepPreviousData
  })
  return {
    page,
    before: cursors.length * perPage,
    previous: cursors.length === 0 ? undefined : () => setCursors(cursors.slice(0, -1)),
    next: (cursor: string | null) => (cursor === null ? undefined : () => setCursors([...cursors, cursor]))
  }
}

const Calls = ({ change, search, span }: PartProps) => {
  const filter = filterOf(search)
  const isNarrowed = Object.keys(filter).length > 0
  // If there is a filter, the API sorts only by time.
  const sorting: Sorting<CallSort> = {
    by: isNarrowed ? "timestamp" : (search.sort ?? "timestamp"),
    direction: search.direction ?? "desc"
  }
  const { before, next, page, previous } = useRecords(span, sorting, filter)
  return (
    <Section
      title={texts.usage.records}
      lead={bookDays(span.start, Date.parse(span.end) - 1)}
      actions={
        <>
          <Narrowed search={search} change={change} />
          <Choice
            label={texts.usage.state}
            value={isOneOf(states, search.state) ? search.state : "all"}
            options={states.map((one) => [one, texts.usage.states[one]] as const)}
            onChange={(one) => change({ state: one === "all" ? undefined : one })}
          />
        </>
      }
    >
      <Answer of={page} lines={10}>
        {({ next_cursor, records, total_records }) =>
          records.length === 0 ? (
            <Empty icon={ChartColumn} title={texts.usage.noRecords}>
              {isNarrowed ? texts.usage.noneNarrowed : texts.usage.noRecordsText}
            </Empty>
          ) : (
            <>
              <CallTable
                calls={records}
                sorting={sorting}
                {...(!isNarrowed && {
                  onSort: ({ by, direction }: Sorting<CallSort>) => change({ sort: by, direction })
                })}
                onOpen={({ id }) => change({ call: id })}
                isStale={page.isPlaceholderData}
              />
              <Pages onPrevious={previous} onNext={next(next_cursor)}>
                {texts.table.position(count(before + 1), count(before + records.length), count(total_records))}
              </Pages>
            </>
          )
        }
      </Answer>
    </Section>
  )
}

export const Usage = () => {
  const [search, change] = useSearchState()
  const span = spanOf(search, useNow())
  const part = { search, change, span }
  const canGoBack = useCanGoBack()
  const { history } = useRouter()
  // Returns to the view that opened the call. If the user opened the URL directly, only closes the dialog.
  const close = (): void => (canGoBack ? history.back() : change({ call: undefined }))
  return (
    <Page title={texts.usage.title} actions={<ExportButtons span={span} />}>
      <WindowBar {...part} />
      <Over {...part} />
      <Calls {...part} />
      <CallDialog id={search.call} onClose={close} />
    </Page>
  )
}
