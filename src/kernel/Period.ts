/** Numbered weeks and months in UTC. The number serves as the key for anything that happens once per period. */
import { Schema } from "effect"
import { day, toDate, toDay } from "./Moment.ts"

export const Period = Schema.Literal("week", "month").annotations({ identifier: "Period" })
export type Period = typeof Period.Type

/** 1 January 1970 was a Thursday, three days after a Monday. */
const daysBefore = 3

/** Returns the period number at the time `millis`. Weeks begin on Monday. */
export const numberOf = (period: Period, millis: number): number => {
  if (period === "week") return Math.floor((Math.floor(millis / day) + daysBefore) / 7)
  const date = toDate(millis)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

/** Returns a period's first instant, as Unix time in milliseconds. */
export const startOf = (period: Period, number: number): number =>
  period === "week" ? (number * 7 - daysBefore) * day : Date.UTC(Math.floor(number / 12), number % 12)

/** Returns a period's name: `2026-11` for a month, or the date of its Monday for a week, such as `2026-11-23`. */
export const nameOf = (period: Period, number: number): string =>
  toDay(startOf(period, number)).slice(0, period === "week" ? 10 : 7)
