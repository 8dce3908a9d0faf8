/**
 * Reads OpenRouter's `activity` and `generation`. `activity` lists the tokens and one amount for each model, for the last 30 completed days. Each
 * request returns one UTC day and requires a management key. `generation` describes one call by its id.
 */
import { Redacted } from "effect"
import { day as dayMillis, parse, toDay } from "../../kernel/Moment.ts"
import type { BillingApi, BillPage } from "./BillingApi.ts"
import { amountIn, countIn, listIn, NoBill, objectIn, textIn } from "./Bill.ts"
import type { BilledLine, Json } from "./Bill.ts"

const activityLines = (day: string, item: Json): ReadonlyArray<BilledLine> => {
  const model = textIn(item.model)
  if (model === undefined) throw new NoBill("an activity does not state its model")
  if (textIn(item.date)?.slice(0, 10) !== day) throw new NoBill(`an activity does not belong to ${day}`)
  const shared = { day, model, amount: null, resolution: 1n } as const
  return [
    { ...shared, kind: "input", quantity: countIn(item.prompt_tokens), requests: countIn(item.requests) },
    { ...shared, kind: "output", quantity: countIn(item.completion_tokens) },
    { ...shared, kind: "all", quantity: null, ...amountIn(item.usage) }
  ]
}

/** Reads the lines of one call. `native` tokens, counted by the model's own tokenizer, are the ones that are billed. */
const generationLines = (body: unknown): ReadonlyArray<BilledLine> => {
  const data = objectIn(objectIn(body).data)
  const [call, model, at] = [textIn(data.id), textIn(data.model), parse(textIn(data.created_at) ?? "")]
  if (call === undefined || model === undefined || at === undefined)
    throw new NoBill("a generation lacks its id, model or time")
  const cached = countIn(data.native_tokens_cached)
  const prompt = countIn(data.native_tokens_prompt)
  const shared = { day: toDay(at), model, call, amount: null, resolution: 1n } as const
  return [
    { ...shared, kind: "input", quantity: Math.max(0, prompt - cached), requests: 1 },
    { ...shared, kind: "cached_input", quantity: Math.min(cached, prompt) },
    { ...shared, kind: "output", quantity: countIn(data.native_tokens_completion) },
    { ...shared, kind: "all", quantity: null, ...amountIn(data.total_cost) }
  ]
}

const dayAfter = (day: string): string => toDay(parse(day)! + dayMillis)

export const openRouter: BillingApi = {
  base_url: "https://openrouter.ai/api/v1",
  reports: ["activity"],
  closes_after_ms: dayMillis / 24,
  days_max: 30,
  headers: (key) => ({ authorization: `Bearer ${Redacted.value(key)}` }),
  // The day is the cursor, because a request returns one day.
  path: (_, { first }, page) => `/activity?date=${page ?? first}`,
  read: (_, { first, last }, page, body): BillPage => {
    const day = page ?? first
    const lines = listIn(objectIn(body).data, "data").flatMap((item) => activityLines(day, item))
    return { lines, next: day < last ? dayAfter(day) : null }
  },
  call: { path: (id) => `/generation?id=${encodeURIComponent(id)}`, read: generationLines }
}
