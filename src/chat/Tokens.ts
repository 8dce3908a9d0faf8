/** What an upstream says that a call used, believed only as far as it can be true, and what is said where it says nothing. */
import type { Nano } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import type { UsageSource } from "../ledger/Transaction.ts"
import type { PriceLine } from "../prices/PriceVersions.ts"
import type { Model } from "./Model.ts"

export interface Tokens {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly usage_source: UsageSource
}

/** More tokens than any call has; a figure above it is nonsense. */
const tokensMax = 1_000_000_000

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= tokensMax ? value : undefined

/**
 * The usage object of a chat or completion answer. An explicit zero is believed; a missing, negative, fractional or absurd
 * figure is not, and gives `undefined`.
 */
export const ofProvider = (usage: unknown): Tokens | undefined => {
  if (typeof usage !== "object" || usage === null) return undefined
  const { completion_tokens, prompt_tokens } = usage as Record<string, unknown>
  const prompt = count(prompt_tokens)
  const completion = completion_tokens === undefined ? 0 : count(completion_tokens)
  return prompt === undefined || completion === undefined
    ? undefined
    : { prompt_tokens: prompt, completion_tokens: completion, usage_source: "provider" }
}

/** Where nobody counted: four bytes a token, the usual measure of English text. */
export const bytesAToken = 4

export const estimated = (prompt_bytes: number, completion_tokens: number): Tokens => ({
  prompt_tokens: Math.ceil(prompt_bytes / bytesAToken),
  completion_tokens,
  usage_source: "estimated"
})

export const costOf = (model: Model, { completion_tokens, prompt_tokens }: Tokens): Nano =>
  charge([
    { units: prompt_tokens, price: model.prompt_price },
    { units: completion_tokens, price: model.completion_price }
  ])

/** The same as the version of a price is made of. */
export const priceLines = (model: Model): ReadonlyArray<PriceLine> => [
  { quantity: "prompt_tokens", unit: "token", price: model.prompt_price },
  { quantity: "completion_tokens", unit: "token", price: model.completion_price }
]
