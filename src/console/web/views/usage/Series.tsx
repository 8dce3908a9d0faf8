/** Plots usage over time, split by one dimension. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { useKeys, useMemberships } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { bookDay, bookHour, count, shortCount, tickDay, tickHour, tickMonth } from "../../moments.ts"
import { approximate, plotted } from "../../money.ts"
import { Money } from "../../parts/Money.tsx"
import { Plot } from "../../parts/Plot.tsx"
import type { PlotProps } from "../../parts/Plot.tsx"
import { texts } from "../../texts.ts"
import type { Span } from "./Window.ts"

type Series = Schemas["UsageSeries"]
export type SeriesBy = Series["by"]
/** The length of a day in seconds. */
const dayLong = 86_400
export type Measure = "cost" | "requests" | "tokens" | "failures"

export const useSeries = (span: Span, by: SeriesBy) => {
  const tenant_id = tenantId()
  const { end: end_time, grain, start: start_time } = span
  return useQuery({
    queryKey: ["usage", tenant_id, "series", start_time, end_time, grain, by],
    queryFn: (): Promise<Series> =>
      resultOf(
        api.GET("/v1/tenants/{tenant_id}/usage/series", {
          params: { path: { tenant_id }, query: { start_time, end_time, grain, by, top: "8" } }
        })
      ),
    placeholderData: keepPreviousData
  })
}

/** Returns the names of this tenant's members by account id. The map is empty until they have loaded. */
const useMemberNames = (isWanted: boolean): ReadonlyMap<string, string> => {
  const tenant_id = tenantId()
  const { data } = useQuery({
    queryKey: ["members", tenant_id],
    enabled: isWanted,
    queryFn: async () =>
      (await resultOf(api.GET("/v1/tenants/{tenant_id}/members", { params: { path: { tenant_id } } }))).members
  })
  return useMemo(() => new Map((data ?? []).map(({ account_id, email, name }) => [account_id, name || email])), [data])
}

type NameOf = (by: SeriesBy, key: string | null) => string

/** Returns a function that names a series. Members are queried only if `wantsMembers` is set. */
export const useNames = (wantsMembers: boolean): NameOf => {
  const { data: keys } = useKeys()
  const members = useMemberNames(wantsMembers)
  const { data: memberships } = useMemberships()
  return useMemo(() => {
    const applications = new Map((keys?.records ?? []).map(({ id, name }) => [id, name]))
    return (by, key) => {
      if (key === null) return texts.plot.rest
      if (by === "none") return texts.plot.total
      if (by === "application") return key === "" ? texts.usage.token : (applications.get(key) ?? key)
      if (by === "account") return members.get(key) ?? key
      if (key === "" && (by === "end_user" || by === "run" || by.startsWith("tag:"))) return texts.usage.noLabel
      if (by === "payer") return memberships?.find(({ tenant_id }) => tenant_id === key)?.tenant_name ?? key
      return key
    }
  }, [keys, members, memberships])
}

interface SeriesPlotProps {
  readonly data: Series
  readonly measure: Measure
  readonly height?: number
  /** Called with the start of the selected bucket, as Unix time in seconds. */
  readonly onBucket?: (seconds: number) => void
  readonly chosen?: PlotProps["chosen"]
}

export const SeriesPlot = ({ chosen, data, height, measure, onBucket }: SeriesPlotProps) => {
  const nameOf = useNames(data.by === "account")
  const times = useMemo(() => data.timestamps.map((at) => Date.parse(at) / 1000), [data])
  const shown = useMemo(
    () =>
      data.series.map((one) => ({
        key: one.key ?? "…rest",
        name: nameOf(data.by, one.key),
        isRest: one.key === null,
        values: measure === "cost" ? one.cost.map(approximate) : one[measure]
      })),
    [data, measure, nameOf]
  )
  const totals = useMemo(() => new Map(data.series.map(({ key, total }) => [key ?? "…rest", total])), [data])
  const length = times.length > 1 ? times.at(-1)! - times[0]! : dayLong
  const tick = length < 3 * dayLong ? tickHour : length < 200 * dayLong ? tickDay : tickMonth
  if (shown.length === 0 || data.total.requests === 0) return <p className="quiet">{texts.home.noSpending}</p>
  return (
    <Plot
      title={texts.usage.plot[measure]}
      times={times}
      series={shown}
      isWhole={measure !== "cost"}
      format={measure === "cost" ? plotted : shortCount}
      formatTime={(seconds) => (data.grain === "hour" ? bookHour : bookDay)(seconds * 1000)}
      formatTick={(seconds) => tick(seconds * 1000)}
      {...(height !== undefined && { height })}
      {...(onBucket !== undefined && { onBucket })}
      {...(chosen !== undefined && { chosen })}
      total={(key) => {
        const total = totals.get(key)
        if (total === undefined) return null
        return measure === "cost" ? <Money of={total.cost} as="aligned" /> : count(total[measure])
      }}
    />
  )
}
