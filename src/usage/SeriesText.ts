/** The JSON of usage series: a year of hours is a hundred thousand numbers, so the text is written as it is read, without values between. */
import { toIso } from "../kernel/Moment.ts"
import { toDecimal } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { millisOf } from "./Series.ts"
import type { OneSeries, SeriesSet, Total } from "./Series.ts"

/** As `UsageSeries` says. */
export const seriesText = ({ by, end, grain, series, start, total }: SeriesSet): string =>
  `{"grain":"${grain}","by":"${by}","start_time":"${toIso(start)}","end_time":"${toIso(end)}",` +
  `"timestamps":[${timestamps(start, end, millisOf[grain])}],"series":[${series.map(one).join(",")}],"total":${totalText(total)}}`

const timestamps = (start: number, end: number, width: number): string => {
  let text = ""
  for (let at = start; at < end; at += width) text += `${at === start ? "" : ","}"${toIso(at)}"`
  return text
}

const one = ({ cost, failures, key, requests, tokens, total }: OneSeries): string =>
  `{"key":${JSON.stringify(key)},"total":${totalText(total)},"cost":[${amounts(cost)}],"requests":[${requests.join(",")}],` +
  `"failures":[${failures.join(",")}],"tokens":[${tokens.join(",")}]}`

const totalText = ({ cost, failures, requests, tokens }: Total): string =>
  `{"cost":${toDecimal(cost)},"requests":${requests},"failures":${failures},"tokens":${tokens}}`

const amounts = (column: BigInt64Array): string => {
  let text = ""
  for (let i = 0; i < column.length; i++) text += (i === 0 ? "" : ",") + amountText(column[i]!)
  return text
}
const amountText = (amount: Nano): string => (amount === 0n ? "0" : toDecimal(amount))
