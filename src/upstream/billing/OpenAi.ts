/**
 * Reads OpenAI's `organization/costs` and `organization/usage/completions`. The costs list amounts by line item, and the usage lists tokens by model.
 * Buckets are UTC days with bounds in seconds since 1970. The requests require an admin key.
 */
import { Redacted } from "effect"
import { day as dayMillis, parse, toDay } from "../../kernel/Moment.ts"
import type { BillingApi } from "./BillingApi.ts"
import { amountIn, countIn, inUsd, listIn, NoBill, objectIn, textIn } from "./Bill.ts"
import type { BilledKind, BilledLine, BillWindow, Json } from "./Bill.ts"

/** The maximum number of daily buckets per page, by report. */
const limits: Readonly<Record<string, number>> = { costs: 180, "usage/completions": 31 }

const secondsOf = (day: string): number => parse(day)! / 1_000

/** The kinds by the words after the model in a line item, such as `gpt-5, cached input`. */
const kinds: Readonly<Record<string, BilledKind>> = {
  input: "input",
  "cached input": "cached_input",
  output: "output",
  requests: "request"
}

const itemOf = (item: string): { readonly model: string; readonly kind: BilledKind } => {
  const comma = item.lastIndexOf(", ")
  const kind = comma === -1 ? undefined : kinds[item.slice(comma + 2).toLowerCase()]
  return kind === undefined ? { model: item, kind: "other" } : { model: item.slice(0, comma), kind }
}

const costLine = (day: string, result: Json): BilledLine => {
  const { currency, value } = objectIn(result.amount)
  inUsd(currency)
  const { kind, model } = itemOf(textIn(result.line_item) ?? "unnamed")
  return { day, model, kind, quantity: null, ...amountIn(value) }
}

const usageLines = (day: string, result: Json): ReadonlyArray<BilledLine> => {
  const model = textIn(result.model)
  if (model === undefined) throw new NoBill("a usage result does not state its model")
  const cached = countIn(result.input_cached_tokens)
  const input = countIn(result.input_tokens)
  if (cached > input) throw new NoBill("a usage result reports more cached tokens than input tokens")
  const shared = { day, model, amount: null, resolution: 1n, ...(result.batch === true && { tier: "batch" }) }
  return [
    { ...shared, kind: "input", quantity: input - cached, requests: countIn(result.num_model_requests) },
    ...(cached === 0 ? [] : [{ ...shared, kind: "cached_input", quantity: cached } as const]),
    { ...shared, kind: "output", quantity: countIn(result.output_tokens) }
  ]
}

/** Returns the day of a bucket. Throws `NoBill` unless the bucket is a full UTC day inside the window. */
const dayOf = ({ end_time, start_time }: Json, { first, last }: BillWindow): string => {
  const [start, end] = [countIn(start_time) * 1_000, countIn(end_time) * 1_000]
  if (start % dayMillis !== 0 || end - start !== dayMillis) throw new NoBill("a bucket is not a UTC day")
  const day = toDay(start)
  if (day < first || day > last) throw new NoBill(`a bucket of ${day} is outside ${first} to ${last}`)
  return day
}

export const openAi: BillingApi = {
  base_url: "https://api.openai.com/v1",
  reports: ["costs", "usage/completions"],
  closes_after_ms: dayMillis / 2,
  days_max: 365,
  headers: (key) => ({ authorization: `Bearer ${Redacted.value(key)}` }),
  path: (report, { first, last }, page) => {
    const query = new URLSearchParams({
      start_time: String(secondsOf(first)),
      end_time: String(secondsOf(last) + dayMillis / 1_000),
      bucket_width: "1d",
      limit: String(limits[report])
    })
    for (const field of report === "costs" ? ["line_item"] : ["model", "batch"]) query.append("group_by", field)
    if (page !== null) query.set("page", page)
    return `/organization/${report}?${query}`
  },
  read: (report, window, _, body) => {
    const { data, has_more, next_page } = objectIn(body)
    const lines = listIn(data, "data").flatMap((bucket) => {
      const day = dayOf(bucket, window)
      return listIn(bucket.results, "results").flatMap((result) =>
        report === "costs" ? [costLine(day, result)] : usageLines(day, result)
      )
    })
    const next = textIn(next_page)
    if (has_more === true && next === undefined)
      throw new NoBill("a page reports more pages but does not identify the next one")
    return { lines, next: has_more === true ? next! : null }
  }
}
