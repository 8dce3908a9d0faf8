/**
 * OpenRouter's `activity`, one request per UTC day: tokens and one amount by model, for the last 30 completed days; and `generation`, which
 * describes one call. The activity needs a management key.
 */
import { Redacted } from "effect"
import { day as dayMillis, parse, toDay } from "../../kernel/Moment.ts"
import type { BillingApi, BillPage } from "./BillingApi.ts"
import { amountIn, countIn, listIn, NoBill, objectIn, textIn } from "./Bill.ts"
import type { BilledLine, Json } from "./Bill.ts"

const activityLines = (day: string, item: Json): ReadonlyArray<BilledLine> => {
  const model = textIn(item.model)
  if (model === undefined) throw new NoBill("an activity names no model")
  if (textIn(item.date)?.slice(0, 10) !== day) throw new NoBill(`an activity is not of ${day}`)
  const shared = { day, model, amount: null, resolution: 1n } as const
  return [
    { ...shared, kind: "input", quantity: countIn(item.prompt_tokens), requests: countIn(item.requests) },
    { ...shared, kind: "output", quantity: countIn(item.completion_tokens) },
    { ...shared, kind: "all", quantity: null, ...amountIn(item.usage) }
  ]
}

const dayAfter = (day: string): string => toDay(parse(day)! + dayMillis)

export const openRouter: BillingApi = {
  base_url: "https://openrouter.ai/api/v1",
  reports: ["activity"],
  closes_after_ms: dayMillis / 24,
  days_max: 30,
  headers: (key) => ({ authorization: `Bearer ${Redacted.value(key)}` }),
  // The day is the cursor, because a request reports one day.
  path: (_, { first }, page) => `/activity?date=${page ?? first}`,
  read: (_, { first, last }, page, body): BillPage => {
    const day = page ?? first
    const lines = listIn(objectIn(body).data, "data").flatMap((item) => activityLines(day, item))
    return { lines, next: day < last ? dayAfter(day) : null }
  }
}

export const generationPath = (id: string): string => `/generation?id=${encodeURIComponent(id)}`

/** The lines of one call. `native` tokens are those of the model. They are the ones billed. */
export const generationLines = (body: unknown): ReadonlyArray<BilledLine> => {
  const data = objectIn(objectIn(body).data)
  const [call, model, at] = [textIn(data.id), textIn(data.model), parse(textIn(data.created_at) ?? "")]
  if (call === undefined || model === undefined || at === undefined)
    throw new NoBill("a generation has no id, model or time")
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
