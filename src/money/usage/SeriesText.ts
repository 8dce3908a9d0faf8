/**
 * Formats usage series as JSON. A year of hours contains a hundred thousand numbers. Therefore, the text is built directly from the columns, and the
 * code yields to other work between long columns.
 */
import { Effect } from "effect"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal, usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { turn } from "../../kernel/Pieces.ts"
import { exactMax } from "../../books/ledger/totals/Varints.ts"
import { longMin, millisOf } from "./Series.ts"
import type { OneSeries, SeriesSet, Total } from "./Series.ts"

export const seriesText = Effect.fnUntraced(function* ({ by, end, grain, series, start, total }: SeriesSet) {
  const texts: Array<string> = []
  for (const each of series) texts.push(yield* one(each))
  return (
    `{"grain":"${grain}","by":"${by}","start_time":"${toIso(start)}","end_time":"${toIso(end)}",` +
    `"timestamps":[${timestamps(start, end, millisOf[grain])}],"series":[${texts.join(",")}],"total":${totalText(total)}}`
  )
})

const timestamps = (start: number, end: number, width: number): string => {
  let text = ""
  for (let at = start; at < end; at += width) text += `${at === start ? "" : ","}"${toIso(at)}"`
  return text
}

const one = Effect.fnUntraced(function* ({ cost, failures, key, requests, tokens, total }: OneSeries) {
  const isLong = cost.length > longMin
  if (isLong) yield* turn
  const costs = amounts(cost)
  if (isLong) yield* turn
  const counts = [requests, failures, tokens].map((column) => column.join(","))
  return (
    `{"key":${JSON.stringify(key)},"total":${totalText(total)},"cost":[${costs}],"requests":[${counts[0]}],` +
    `"failures":[${counts[1]}],"tokens":[${counts[2]}]}`
  )
})

const totalText = ({ cost, failures, requests, tokens }: Total): string =>
  `{"cost":${toDecimal(cost)},"requests":${requests},"failures":${failures},"tokens":${tokens}}`

const amounts = (column: BigInt64Array): string => {
  let text = ""
  for (let i = 0; i < column.length; i++) text += (i === 0 ? "" : ",") + amountText(column[i]!)
  return text
}

const nanos = Number(usd)

/** Formats an amount like `toDecimal`. Uses doubles while they are exact, because they take a quarter of the time. */
export const amountText = (amount: Nano): string => {
  const number = Number(amount)
  if (number < 0 || number > exactMax) return toDecimal(amount)
  const whole = Math.floor(number / nanos)
  let fraction = number - whole * nanos
  if (fraction === 0) return String(whole)
  let digits = 9
  for (; fraction % 10 === 0; digits--) fraction /= 10
  return `${whole}.${String(fraction).padStart(digits, "0")}`
}
