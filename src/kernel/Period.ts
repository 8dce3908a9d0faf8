/** Weeks and months of UTC, counted: each has a number, so that "once in a period" is a key in a table. */
import { Schema } from "effect"
import { day, toDate, toDay } from "./Moment.ts"

export const Period = Schema.Literal("week", "month").annotations({ identifier: "Period" })
export type Period = typeof Period.Type

/** 1970 began on a Thursday, three days after a Monday. */
const daysBefore = 3

/** The number of the period that an instant lies in. Weeks begin on Monday. */
export const numberOf = (period: Period, millis: number): number => {
  if (period === "week") return Math.floor((Math.floor(millis / day) + daysBefore) / 7)
  const date = toDate(millis)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

/** The first instant of a period. */
export const startOf = (period: Period, number: number): number =>
  period === "week" ? (number * 7 - daysBefore) * day : Date.UTC(Math.floor(number / 12), number % 12)

/** The name of a period: `2026-11`, or the Monday that a week begins with: `2026-11-23`. */
export const nameOf = (period: Period, number: number): string =>
  toDay(startOf(period, number)).slice(0, period === "week" ? 10 : 7)
