/**
 * The billing APIs of the sandbox's model vendor. They serve its bill (`Bills`) in the formats of OpenAI, Anthropic and OpenRouter. A lever makes the
 * bill wrong.
 */
import { Effect, Schema } from "effect"
import { day as dayMillis, parse, toDay, toIso } from "../kernel/Moment.ts"
import { divideHalfUp, fromDecimal, toDecimal } from "../kernel/Money.ts"
import { mistakeNames, mistakes, priceWith } from "./Bills.ts"
import type { BillRow, Bills } from "./Bills.ts"
import { vendorPriceOf } from "./Chat.ts"
import { json, reader, Refusal } from "./Outside.ts"
import type { Answer, Lever, Make, Received, Route } from "./Outside.ts"

/** The number of days per page, small enough that a month takes several pages. */
const pageDays = 7

const readMistake = reader(
  Schema.Struct({
    mistake: Schema.NullOr(
      Schema.Literal(...mistakeNames).annotations({ message: () => `null, or one of ${mistakeNames.join(", ")}` })
    )
  })
)

const authorize = ({ headers }: Received): void => {
  if (headers.authorization === undefined && headers["x-api-key"] === undefined)
    throw new Refusal(json(401, { error: { message: "an admin key is required" } }))
}

type Kind = "input" | "cached" | "output"

/** Returns an amount in nano-USD. Prices have 18 decimal places per token. */
const amountOf = (bills: Bills, row: Pick<BillRow, "model" | Kind>, kind: Kind): bigint => {
  const offer = vendorPriceOf(row.model) ?? { prompt_usd_per_million: "1", completion_usd_per_million: "1" }
  const text = kind === "output" ? offer.completion_usd_per_million : offer.prompt_usd_per_million
  const list = fromDecimal(text, 12)!
  // A cached token costs a tenth of the price.
  const price = priceWith(bills.mistake(), kind, kind === "cached" ? list / 10n : list)
  const nano = divideHalfUp(BigInt(row[kind]) * price, 1_000_000_000n)
  return bills.mistake() === "cents" ? divideHalfUp(nano, 100_000n) * 100_000n : nano
}

const kinds: ReadonlyArray<Kind> = ["input", "cached", "output"]
const used = (row: Pick<BillRow, "cached">): ReadonlyArray<Kind> =>
  kinds.filter((kind) => kind !== "cached" || row.cached > 0)

/** Returns a charge that no call caused, if the mistake adds one. */
const other = (bills: Bills): { readonly name: string; readonly nano: bigint } | undefined =>
  bills.mistake() === "tax"
    ? { name: "Sales tax", nano: 1_000_000n }
    : bills.mistake() === "credit"
      ? { name: "Promotional credit", nano: -2_000_000n }
      : undefined

const rowsOn = (bills: Bills, day: string): ReadonlyArray<BillRow> => bills.rows().filter((row) => row.day === day)

interface Page {
  readonly days: ReadonlyArray<number>
  readonly next: string | null
}

/** Lists the days from `from` (or the page's cursor) up to, but not including, `to`. */
const pageOf = (from: number, to: number, cursor: string | null): Page => {
  const start = cursor === null ? from : Number(cursor.slice("page_".length))
  const end = Math.min(to, start + pageDays * dayMillis)
  const days = Array.from({ length: Math.max(0, (end - start) / dayMillis) }, (_, i) => start + i * dayMillis)
  return { days, next: end < to ? `page_${end}` : null }
}

// ---- OpenAI ---------------------------------------------------------------------------------------------------------------

const openAiItem = { input: "input", cached: "cached input", output: "output" } as const

const openAiCosts = (bills: Bills, day: string): ReadonlyArray<object> => {
  const item = (line_item: string, nano: bigint) => ({
    object: "organization.costs.result",
    amount: { value: Number(toDecimal(nano)), currency: "usd" },
    line_item,
    project_id: null
  })
  const rows = rowsOn(bills, day)
  const extra = rows.length === 0 ? undefined : other(bills)
  return [
    ...rows.flatMap((row) =>
      used(row).map((kind) => item(`${row.model}, ${openAiItem[kind]}`, amountOf(bills, row, kind)))
    ),
    ...(extra === undefined ? [] : [item(extra.name, extra.nano)])
  ]
}

const openAiUsage = (bills: Bills, day: string): ReadonlyArray<object> =>
  rowsOn(bills, day).map(({ cached, input, model, output, requests, tier }) => ({
    object: "organization.usage.completions.result",
    input_tokens: input + cached,
    input_cached_tokens: cached,
    output_tokens: output,
    num_model_requests: requests,
    model,
    batch: tier === "batch"
  }))

const openAi = (bills: Bills, results: typeof openAiCosts, { query }: Received): Answer => {
  const [from, to] = [Number(query.get("start_time")) * 1_000, Number(query.get("end_time")) * 1_000]
  const { days, next } = pageOf(from, to, query.get("page"))
  const data = days.map((start) => ({
    object: "bucket",
    start_time: start / 1_000,
    end_time: (start + dayMillis) / 1_000,
    results: results(bills, toDay(start))
  }))
  return json(200, { object: "page", data, has_more: next !== null, next_page: next })
}

// ---- Anthropic --------------------------------------------------------------------------------------------------------------

const tokenTypes = {
  input: "uncached_input_tokens",
  cached: "cache_read_input_tokens",
  output: "output_tokens"
} as const

/** Formats an amount in cents, with all its digits. */
const cents = (nano: bigint): string => toDecimal(nano * 100n)

const anthropicCosts = (bills: Bills, day: string): ReadonlyArray<object> => {
  const rows = rowsOn(bills, day)
  const extra = rows.length === 0 ? undefined : other(bills)
  return [
    ...rows.flatMap((row) =>
      used(row).map((kind) => ({
        currency: "USD",
        amount: cents(amountOf(bills, row, kind)),
        cost_type: "tokens",
        description: `${row.model} Usage`,
        model: row.model,
        service_tier: row.tier ?? "standard",
        token_type: tokenTypes[kind]
      }))
    ),
    ...(extra === undefined
      ? []
      : [{ currency: "USD", amount: cents(extra.nano), cost_type: "other", description: extra.name, model: null }])
  ]
}

const anthropicUsage = (bills: Bills, day: string): ReadonlyArray<object> =>
  rowsOn(bills, day).map(({ cached, input, model, output, tier }) => ({
    uncached_input_tokens: input,
    cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: 0 },
    cache_read_input_tokens: cached,
    output_tokens: output,
    model,
    service_tier: tier ?? "standard"
  }))

const anthropic = (bills: Bills, results: typeof anthropicCosts, { query }: Received): Answer => {
  const [from, to] = [parse(query.get("starting_at") ?? "") ?? 0, parse(query.get("ending_at") ?? "") ?? 0]
  const { days, next } = pageOf(from, to, query.get("page"))
  const data = days.map((start) => ({
    starting_at: toIso(start),
    ending_at: toIso(start + dayMillis),
    results: results(bills, toDay(start))
  }))
  return json(200, { data, has_more: next !== null, next_page: next })
}

// ---- OpenRouter -------------------------------------------------------------------------------------------------------------

const totalOf = (bills: Bills, row: Pick<BillRow, "model" | Kind>): number =>
  Number(toDecimal(used(row).reduce((sum, kind) => sum + amountOf(bills, row, kind), 0n)))

const openRouter = (bills: Bills, { query }: Received): Answer => {
  const day = query.get("date") ?? ""
  const data = rowsOn(bills, day).map((row) => ({
    date: row.day,
    model: row.model,
    usage: totalOf(bills, row),
    requests: row.requests,
    prompt_tokens: row.input + row.cached,
    completion_tokens: row.output,
    reasoning_tokens: 0
  }))
  return json(200, { data })
}

const generation = (bills: Bills, { query }: Received): Answer => {
  const call = bills.call(query.get("id") ?? "")
  if (call === undefined) return json(404, { error: { message: "Generation not found", code: 404 } })
  const { at, cached, id, input, model, output } = call
  return json(200, {
    data: {
      id,
      model,
      created_at: toIso(at),
      native_tokens_prompt: input + cached,
      native_tokens_cached: cached,
      native_tokens_completion: output,
      total_cost: totalOf(bills, call)
    }
  })
}

const lever = (bills: Bills): Lever => ({
  method: "POST",
  path: "/control/bill",
  does: `Makes the model vendor's bill wrong, or correct again (null): ${mistakeNames.map((name) => `${name} ${mistakes[name]}`).join("; ")}`,
  body: { mistake: "input_price" },
  answer: ({ body }) => {
    const { mistake } = readMistake(body)
    bills.setMistake(mistake ?? undefined)
    return json(200, { mistake })
  }
})

export const make: Make = ({ bills }) => {
  const route = (path: string, answer: (received: Received) => Answer): Route => ({
    method: "GET",
    path: `/billing${path}`,
    answer: (received) => {
      authorize(received)
      return answer(received)
    }
  })
  return Effect.succeed({
    routes: [
      route("/openai/organization/costs", (received) => openAi(bills, openAiCosts, received)),
      route("/openai/organization/usage/completions", (received) => openAi(bills, openAiUsage, received)),
      route("/anthropic/organizations/cost_report", (received) => anthropic(bills, anthropicCosts, received)),
      route("/anthropic/organizations/usage_report/messages", (received) => anthropic(bills, anthropicUsage, received)),
      route("/openrouter/activity", (received) => openRouter(bills, received)),
      route("/openrouter/generation", (received) => generation(bills, received))
    ],
    levers: [lever(bills)],
    configuration: {}
  })
}
