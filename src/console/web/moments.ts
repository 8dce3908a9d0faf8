/** Formats times and counts in the user's language and time zone. */

const dateTime = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "long"
})
const yearDay = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" })
const clockTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" })
const relativeTime = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" })

type Instant = string | number | Date
const dateOf = (at: Instant): Date => (at instanceof Date ? at : new Date(at))

/** Returns a formatter that adds the year unless it is the current year. */
const withYear = (options: Intl.DateTimeFormatOptions): ((at: Instant) => string) => {
  const short = new Intl.DateTimeFormat(undefined, options)
  const whole = new Intl.DateTimeFormat(undefined, { ...options, year: "numeric" })
  const yearOf = (date: Date): number => (options.timeZone === "UTC" ? date.getUTCFullYear() : date.getFullYear())
  return (at) => {
    const date = dateOf(at)
    return (yearOf(date) === yearOf(new Date()) ? short : whole).format(date)
  }
}

/** Formats a time with its seconds and time zone, for tooltips. */
export const exactly = (at: Instant): string => dateTime.format(dateOf(at))
export const day = (at: Instant): string => yearDay.format(dateOf(at))
/** Formats a UTC day, such as "Mon, Jan 5". */
export const bookDay = withYear({ weekday: "short", month: "short", day: "numeric", timeZone: "UTC" })
export const time = (at: Instant): string => clockTime.format(dateOf(at))
export const dayAndTime = withYear({ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" })

const steps = [
  [60, 1, "second"],
  [3600, 60, "minute"],
  [86_400, 3600, "hour"],
  [7 * 86_400, 86_400, "day"]
] as const

/** Formats a time as "3 min. ago" or "in 2 days", or as a date if it is at least a week away. */
export const relative = (at: Instant, now: number): string => {
  const seconds = (dateOf(at).getTime() - now) / 1000
  const away = Math.abs(seconds)
  for (const [below, unit, name] of steps) {
    if (away < below) return relativeTime.format(Math.round(seconds / unit), name)
  }
  return day(at)
}

const whole = new Intl.NumberFormat(undefined)
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 })

export const count = (value: number): string => whole.format(value)
/** Formats a count. Counts of 10,000 or more are abbreviated, such as "1.2M". */
export const shortCount = (value: number): string =>
  Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value)

const percentage = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 })
export const percent = (share: number): string => percentage.format(share)

/** Duration units, each with the upper bound of its range and its length, both in milliseconds. */
const durations = [
  [1000, 1, "millisecond"],
  [120_000, 1000, "second"],
  [2 * 3_600_000, 60_000, "minute"],
  [2 * 86_400_000, 3_600_000, "hour"],
  [Infinity, 86_400_000, "day"]
] as const

/** Formats milliseconds as "840 ms", "12.4 sec" or "3 min". */
export const duration = (millis: number): string => {
  const [, length, unit] = durations.find(([below]) => millis < below) ?? durations[4]
  const value = millis / length
  const maximumFractionDigits = unit !== "millisecond" && value < 100 ? 1 : 0
  return new Intl.NumberFormat(undefined, { style: "unit", unit, maximumFractionDigits }).format(value)
}

/** Formats bytes as "840 B" or "12.4 kB". */
export const fileSize = (bytes: number): string => {
  const [unit, divisor] =
    bytes < 1000
      ? (["byte", 1] as const)
      : bytes < 1_000_000
        ? (["kilobyte", 1000] as const)
        : (["megabyte", 1_000_000] as const)
  return new Intl.NumberFormat(undefined, { style: "unit", unit, maximumFractionDigits: 1 }).format(bytes / divisor)
}

/** Formats a UTC hour, such as "Jan 5, 03:00 PM". */
export const bookHour = withYear({
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  timeZone: "UTC"
})

const utcDays = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "numeric",
  timeZone: "UTC"
})
/** Formats a range of UTC days: "Jan 5 – 6, 2027". */
export const bookDays = (first: Instant, last: Instant): string => utcDays.formatRange(dateOf(first), dateOf(last))

const monthDay = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" })
const monthYear = new Intl.DateTimeFormat(undefined, { month: "short", year: "numeric", timeZone: "UTC" })
const hourMinute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", timeZone: "UTC" })
/** Formats for axis labels, in UTC. */
export const tickMonth = (at: Instant): string => monthYear.format(dateOf(at))
export const tickDay = (at: Instant): string => monthDay.format(dateOf(at))
export const tickHour = (at: Instant): string => hourMinute.format(dateOf(at))
