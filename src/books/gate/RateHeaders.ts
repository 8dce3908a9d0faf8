/** Response headers about the rate limits of a call, by the names that clients of the models' protocols read. */
import { toIso } from "../../kernel/Moment.ts"
import type { Rate, Rates } from "../ledger/rules/Budget.ts"

type Headers = Readonly<Record<string, string>>

/** Rates, and the instant from which their headers count seconds. */
export interface RatesAt extends Rates {
  readonly at: number
}

const none: Headers = {}

/** The headers of OpenAI's protocols: `x-ratelimit-remaining-requests`. Times are durations like `1m30s`. */
export const rateHeaders = (rates: RatesAt | undefined): Headers =>
  rates === undefined
    ? none
    : { ...openAi("requests", rates.requests, rates.at), ...openAi("tokens", rates.tokens, rates.at) }

const openAi = (unit: string, rate: Rate | undefined, now: number): Headers =>
  rate === undefined
    ? none
    : {
        [`x-ratelimit-limit-${unit}`]: `${rate.limit}`,
        [`x-ratelimit-remaining-${unit}`]: `${rate.remaining}`,
        ...(rate.resets_at > 0 && { [`x-ratelimit-reset-${unit}`]: durationOf(rate.resets_at - now) })
      }

/** The headers of Anthropic's protocol: `anthropic-ratelimit-requests-remaining`. Times are instants. */
export const anthropicRateHeaders = (rates: Rates | undefined): Headers =>
  rates === undefined ? none : { ...anthropic("requests", rates.requests), ...anthropic("tokens", rates.tokens) }

const anthropic = (unit: string, rate: Rate | undefined): Headers =>
  rate === undefined
    ? none
    : {
        [`anthropic-ratelimit-${unit}-limit`]: `${rate.limit}`,
        [`anthropic-ratelimit-${unit}-remaining`]: `${rate.remaining}`,
        ...(rate.resets_at > 0 && { [`anthropic-ratelimit-${unit}-reset`]: toIso(rate.resets_at) })
      }

/** The names of all headers about rate limits. */
export const rateHeaderNames: ReadonlyArray<string> = ["requests", "tokens"].flatMap((unit) =>
  ["limit", "remaining", "reset"].flatMap((field) => [
    `x-ratelimit-${field}-${unit}`,
    `anthropic-ratelimit-${unit}-${field}`
  ])
)

/** Whether a header, by its lower-case name, is about rate limits. */
export const isRateHeader = (name: string): boolean =>
  name.startsWith("x-ratelimit-") || name.startsWith("anthropic-ratelimit-")

/** `1h5m`, `12s`, `0s`: whole seconds, rounded up. */
const durationOf = (millis: number): string => {
  const seconds = Math.max(0, Math.ceil(millis / 1_000))
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60]
  const text = parts.map((part, place) => (part === 0 ? "" : `${part}${"hms"[place]}`)).join("")
  return text === "" ? "0s" : text
}
