/**
 * Reads Anthropic's `cost_report` and `usage_report/messages`. Amounts are cents as decimal strings. Buckets are UTC days in RFC 3339. The requests
 * require an admin key.
 */
import { Redacted } from "effect"
import { day as dayMillis, parse, toDay, toIso } from "../../kernel/Moment.ts"
import type { BillingApi } from "./BillingApi.ts"
import { amountIn, countIn, inUsd, listIn, NoBill, objectIn, textIn } from "./Bill.ts"
import type { BilledKind, BilledLine, BillWindow, Json } from "./Bill.ts"

/** The maximum number of daily buckets per page. */
const limit = 31
const cents = 2

const kinds: Readonly<Record<string, BilledKind>> = {
  uncached_input_tokens: "input",
  cache_read_input_tokens: "cached_input",
  "cache_creation.ephemeral_5m_input_tokens": "cache_write",
  "cache_creation.ephemeral_1h_input_tokens": "cache_write_1h",
  output_tokens: "output"
}

const tierOf = ({ service_tier }: Json): { readonly tier?: string } => {
  const tier = textIn(service_tier)
  return tier === undefined || tier === "standard" ? {} : { tier }
}

const costLine = (day: string, result: Json): BilledLine => {
  inUsd(result.currency)
  const kind = kinds[textIn(result.token_type) ?? ""]
  const model = textIn(result.model)
  const shared = { day, quantity: null, ...amountIn(result.amount, cents), ...tierOf(result) }
  // Searches and code execution are not tokens of a model.
  return kind === undefined || model === undefined
    ? { ...shared, model: textIn(result.description) ?? textIn(result.cost_type) ?? "unnamed", kind: "other" }
    : { ...shared, model, kind }
}

const usageLines = (day: string, result: Json): ReadonlyArray<BilledLine> => {
  const model = textIn(result.model)
  if (model === undefined) throw new NoBill("a usage result does not state its model")
  const creation = objectIn(result.cache_creation)
  const counts: ReadonlyArray<readonly [BilledKind, unknown]> = [
    ["input", result.uncached_input_tokens],
    ["cached_input", result.cache_read_input_tokens],
    ["cache_write", creation.ephemeral_5m_input_tokens],
    ["cache_write_1h", creation.ephemeral_1h_input_tokens],
    ["output", result.output_tokens]
  ]
  return counts.flatMap(([kind, value]) => {
    const quantity = countIn(value)
    return quantity === 0 ? [] : [{ day, model, kind, quantity, amount: null, resolution: 1n, ...tierOf(result) }]
  })
}

/** Returns the day of a bucket. Throws `NoBill` unless the bucket is a full UTC day inside the window. */
const dayOf = ({ ending_at, starting_at }: Json, { first, last }: BillWindow): string => {
  const [start, end] = [parse(textIn(starting_at) ?? ""), parse(textIn(ending_at) ?? "")]
  if (start === undefined || end === undefined || start % dayMillis !== 0 || end - start !== dayMillis)
    throw new NoBill("a bucket is not a UTC day")
  const day = toDay(start)
  if (day < first || day > last) throw new NoBill(`a bucket of ${day} is outside ${first} to ${last}`)
  return day
}

export const anthropic: BillingApi = {
  base_url: "https://api.anthropic.com/v1",
  reports: ["cost_report", "usage_report/messages"],
  closes_after_ms: dayMillis / 2,
  days_max: 365,
  headers: (key) => ({ "x-api-key": Redacted.value(key), "anthropic-version": "2023-06-01" }),
  path: (report, { first, last }, page) => {
    const query = new URLSearchParams({
      starting_at: toIso(parse(first)!),
      ending_at: toIso(parse(last)! + dayMillis),
      bucket_width: "1d",
      limit: String(limit)
    })
    for (const field of report === "cost_report" ? ["description"] : ["model", "service_tier"])
      query.append("group_by[]", field)
    if (page !== null) query.set("page", page)
    return `/organizations/${report}?${query}`
  },
  read: (report, window, _, body) => {
    const { data, has_more, next_page } = objectIn(body)
    const lines = listIn(data, "data").flatMap((bucket) => {
      const day = dayOf(bucket, window)
      return listIn(bucket.results, "results").flatMap((result) =>
        report === "cost_report" ? [costLine(day, result)] : usageLines(day, result)
      )
    })
    const next = textIn(next_page)
    if (has_more === true && next === undefined)
      throw new NoBill("a page reports more pages but does not identify the next one")
    return { lines, next: has_more === true ? next! : null }
  }
}
