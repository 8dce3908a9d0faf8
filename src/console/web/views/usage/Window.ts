/** Converts the time window from the URL's parameters to the API's. */
import type { UsageSearch } from "../../app/Router.tsx"

export type WindowName = NonNullable<UsageSearch["window"]>

export interface Span {
  /** The start of the window (inclusive), as an ISO string. */
  readonly start: string
  /** The end of the window (exclusive), as an ISO string. */
  readonly end: string
  readonly grain: "hour" | "day"
}

const hour = 3_600_000
const dayLong = 24 * hour

export const days: Readonly<Record<Exclude<WindowName, "custom">, number>> = {
  day: 1,
  week: 7,
  month: 30,
  quarter: 90,
  year: 365
}

/** The maximum number of hourly buckets in a series: a year and a few days. */
const hoursMax = 9000

const isDay = (text: string | undefined): text is string => text !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(text)

type WindowSearch = Pick<UsageSearch, "window" | "from" | "to" | "grain">

/** Rounds up to the next multiple of `step`, so that the query is stable until then. */
const roundUp = (millis: number, step: number): number => Math.ceil((millis + 1) / step) * step

const of = (start: number, end: number, grain: Span["grain"]): Span => ({
  start: new Date(start).toISOString(),
  end: new Date(end).toISOString(),
  grain
})

/** Computes the span. `from` and `to` are the first and the last day of a custom window. `grain` applies if the span allows it. */
export const spanOf = ({ grain, ...search }: WindowSearch, now: number): Span => {
  const span = defaultSpan(search, now)
  return grain !== undefined && grainsOf(span).includes(grain) ? { ...span, grain } : span
}

/** Returns the grains that a span allows. `day` needs more than one day, and `hour` has a maximum number of buckets. */
export const grainsOf = ({ end, start }: Span): ReadonlyArray<Span["grain"]> => {
  const length = Date.parse(end) - Date.parse(start)
  return [...(length <= hoursMax * hour ? (["hour"] as const) : []), ...(length > dayLong ? (["day"] as const) : [])]
}

const defaultSpan = ({ from, to, window = "month" }: WindowSearch, now: number): Span => {
  if (window === "custom" && isDay(from)) {
    const start = Date.parse(`${from}T00:00:00Z`)
    const last = isDay(to) ? Date.parse(`${to}T00:00:00Z`) : start
    const end = Math.max(start, last) + dayLong
    return of(start, end, end - start <= 3 * dayLong ? "hour" : "day")
  }
  const length = days[window === "custom" ? "month" : window]
  if (length <= 7) {
    const end = roundUp(now, hour)
    return of(end - length * dayLong, end, "hour")
  }
  const end = roundUp(now, dayLong)
  return of(end - length * dayLong, end, "day")
}

/** Returns an ISO time's day, in the format of a date field. */
export const dayOf = (iso: string): string => iso.slice(0, 10)
