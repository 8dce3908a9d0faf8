/** Computes budget periods in UTC, independently of the service. */
import type { BudgetPeriod } from "./Story.ts"

/** Returns the start of the period that contains this time. */
export const periodStart = (period: BudgetPeriod, wall: number): number => {
  if (period === "total") return 0
  const date = new Date(wall)
  if (period === "minute") return date.setUTCSeconds(0, 0)
  if (period === "hour") return date.setUTCMinutes(0, 0, 0)
  date.setUTCHours(0, 0, 0, 0)
  if (period === "month") return date.setUTCDate(1)
  // A week starts on Monday.
  if (period === "week") return date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7))
  return date.getTime()
}
