/** When the loop looks for thresholds that were reached: in time before the period ends, whose end hides them. */
import { Duration } from "effect"
import { expect, it } from "vitest"
import { pauseAt } from "../../../src/money/budgets/Notices.ts"

const at = (seconds: number) => Duration.toMillis(pauseAt(Date.UTC(2026, 10, 26, 12, 7) + seconds * 1_000))

it("is 5 seconds within a minute", () => {
  expect([at(0), at(30), at(54.75)]).toEqual([5_000, 5_000, 5_000])
})

it("ends shortly before the minute does", () => {
  expect([at(55), at(57), at(59.5)]).toEqual([4_750, 2_750, 250])
})

it("is 5 seconds again right before the end", () => {
  expect([at(59.75), at(59.9)]).toEqual([5_000, 5_000])
})
