/**
 * Price lines, and the division of a call's figures among them. No token is charged twice. The tokens on lines for details (cached tokens, reasoning)
 * are subtracted from the totals, and the lines for the totals charge the remaining tokens.
 *
 * Where the specification is silent:
 * - Tokens of a kind without its own line are charged like the kind that contains them. One-hour cache writes use the line for cache writes, and
 *   cached audio uses the line for cached tokens, if there is one. All other kinds count as prompt or completion tokens.
 * - A line with `above` replaces the line for the same quantity if the prompt has more than `above` tokens. The line then applies to all tokens of
 *   the call.
 */
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { Line, UnitPrice } from "../../kernel/Price.ts"
import { detailNames } from "../../kernel/TokenDetails.ts"
import type { TokenDetail, TokenDetails } from "../../kernel/TokenDetails.ts"

/** A figure of a call that a line can charge. */
export type Quantity = "prompt_tokens" | "completion_tokens" | "units" | "requests" | TokenDetail

/** A price for each unit of a quantity. */
export interface PriceLine {
  readonly quantity: Quantity
  /** The name of one unit, such as `token`, `second` or `image`. */
  readonly unit: string
  readonly price: UnitPrice
  /** If set, the line applies only to calls whose prompt has more tokens than this. */
  readonly above?: number | undefined
  /** The factors that the price includes, as decimals; absent for the list price. */
  readonly factors?: ReadonlyArray<string> | undefined
}

export interface Figures {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  readonly requests: number
  readonly token_details?: TokenDetails | undefined
}

export interface Billed extends Line {
  readonly line: PriceLine
}

/** The containing kind of each token kind. Its line applies to kinds without a line. */
const wholeOf: { readonly [Name in TokenDetail]: Quantity } = {
  cached_audio_tokens: "cached_tokens",
  cached_tokens: "prompt_tokens",
  cache_write_tokens: "prompt_tokens",
  cache_write_1h_tokens: "cache_write_tokens",
  prompt_audio_tokens: "prompt_tokens",
  prompt_image_tokens: "prompt_tokens",
  reasoning_tokens: "completion_tokens",
  completion_audio_tokens: "completion_tokens",
  completion_image_tokens: "completion_tokens"
}

const isDetail = (quantity: Quantity): quantity is TokenDetail => Object.hasOwn(wholeOf, quantity)

/** Returns the lines that apply to a prompt of this length. */
export const linesAt = (lines: ReadonlyArray<PriceLine>, prompt_tokens: number): ReadonlyArray<PriceLine> => {
  if (!lines.some(({ above }) => above !== undefined)) return lines
  const chosen = new Map<Quantity, PriceLine>()
  for (const line of lines) {
    const { above = -1, quantity } = line
    if (above < prompt_tokens && above >= (chosen.get(quantity)?.above ?? -1)) chosen.set(quantity, line)
  }
  return [...chosen.values()]
}

/** Returns the lines that apply to a call, each with its units. Together, they cover each token at most once. */
export const billed = (lines: ReadonlyArray<PriceLine>, figures: Figures): ReadonlyArray<Billed> => {
  const counting = linesAt(lines, figures.prompt_tokens)
  const details = figures.token_details
  const unitsOf = details === undefined ? undefined : spread(counting, figures, details)
  return counting.map((line) => {
    const { price, quantity } = line
    const units = unitsOf?.get(quantity) ?? (isDetail(quantity) ? 0 : figures[quantity])
    return { line, units, price }
  })
}

/** Divides the tokens among the lines. */
const spread = (lines: ReadonlyArray<PriceLine>, figures: Figures, details: TokenDetails): Map<Quantity, number> => {
  const units = new Map<Quantity, number>([
    ["prompt_tokens", figures.prompt_tokens],
    ["completion_tokens", figures.completion_tokens]
  ])
  const has = (quantity: Quantity) => lines.some((line) => line.quantity === quantity)
  for (const name of detailNames) {
    const tokens = details[name] ?? 0
    if (tokens === 0) continue
    let own: Quantity = name
    while (isDetail(own) && !has(own)) own = wholeOf[own]
    if (!isDetail(own)) continue
    const whole = totalOf(own)
    units.set(own, (units.get(own) ?? 0) + tokens)
    units.set(whole, units.get(whole)! - tokens)
  }
  return units
}

const totalOf = (detail: TokenDetail): Quantity => {
  let whole: Quantity = detail
  while (isDetail(whole)) whole = wholeOf[whole]
  return whole
}

export const priced = (lines: ReadonlyArray<PriceLine>, figures: Figures): Nano => charge(billed(lines, figures))

/** The display names of token units. Other quantities use the line's unit. */
export const unitWords: { readonly [Q in Quantity]?: string } = {
  prompt_tokens: "prompt token",
  completion_tokens: "completion token",
  cached_audio_tokens: "cached prompt audio token",
  cached_tokens: "cached prompt token",
  cache_write_tokens: "cache write token",
  cache_write_1h_tokens: "1-hour cache write token",
  prompt_audio_tokens: "prompt audio token",
  prompt_image_tokens: "prompt image token",
  reasoning_tokens: "reasoning token",
  completion_audio_tokens: "completion audio token",
  completion_image_tokens: "completion image token"
}
