/** The response headers for a call's rate limits, in the formats of the model protocols. */
import { toIso } from "../../kernel/Moment.ts"
import type { Rate, Rates } from "../ledger/rules/Budget.ts"

type Headers = Readonly<Record<string, string>>

/** Rates at the Unix time `at`, in milliseconds. Durations in headers count from `at`. */
export interface RatesAt extends Rates {
  readonly at: number
}

const none: Headers = {}

/** Builds a unit's header names. Called only at startup, because every metered call with a budget sends the headers. */
const namesOf = (name: (field: string) => string) => ({
  limit: name("limit"),
  remaining: name("remaining"),
  reset: name("reset")
})
type Names = ReturnType<typeof namesOf>

const openAi = {
  requests: namesOf((field) => `x-ratelimit-${field}-requests`),
  tokens: namesOf((field) => `x-ratelimit-${field}-tokens`)
}

const anthropic = {
  requests: namesOf((field) => `anthropic-ratelimit-requests-${field}`),
  tokens: namesOf((field) => `anthropic-ratelimit-tokens-${field}`)
}

/** Builds the headers of OpenAI's protocols, such as `x-ratelimit-remaining-requests`. Times are durations such as `1m30s`. */
export const rateHeaders = (rates: RatesAt | undefined): Headers => {
  if (rates === undefined) return none
  const headers: Record<string, string> = {}
  const reset = ({ resets_at }: Rate) => durationOf(resets_at - rates.at)
  add(headers, openAi.requests, rates.requests, reset)
  add(headers, openAi.tokens, rates.tokens, reset)
  return headers
}

/** Builds the headers of Anthropic's protocol, such as `anthropic-ratelimit-requests-remaining`. Times are RFC 3339 timestamps. */
export const anthropicRateHeaders = (rates: Rates | undefined): Headers => {
  if (rates === undefined) return none
  const headers: Record<string, string> = {}
  const reset = ({ resets_at }: Rate) => toIso(resets_at)
  add(headers, anthropic.requests, rates.requests, reset)
  add(headers, anthropic.tokens, rates.tokens, reset)
  return headers
}

const add = (
  headers: Record<string, string>,
  names: Names,
  rate: Rate | undefined,
  reset: (rate: Rate) => string
): void => {
  if (rate === undefined) return
  headers[names.limit] = `${rate.limit}`
  headers[names.remaining] = `${rate.remaining}`
  if (rate.resets_at > 0) headers[names.reset] = reset(rate)
}

/** Returns whether a header contains a rate limit. `name` must be in lower case. */
export const isRateHeader = (name: string): boolean =>
  name.startsWith("x-ratelimit-") || name.startsWith("anthropic-ratelimit-")

/** Formats a duration in whole seconds, rounded up, such as `1h5m`, `12s` or `0s`. */
const durationOf = (millis: number): string => {
  const seconds = Math.max(0, Math.ceil(millis / 1_000))
  const [hours, minutes, rest] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60]
  const text = (hours > 0 ? `${hours}h` : "") + (minutes > 0 ? `${minutes}m` : "")
  return rest > 0 || text === "" ? `${text}${rest}s` : text
}
