/**
 * What a call used: what the upstream says, believed as far as the request can have caused it; else what came, counted.
 *
 * Where the specification is silent:
 * - A figure of an upstream is believed up to what the request can cause: the bound of the prompt, and the limit that was sent times the
 *   number of answers. One beyond counts as that. In place of one that is missing or no count stands what came: four bytes a token of
 *   the prompt, `max_attachment_tokens` for each attachment, and of an answer a token for each short piece of text, reasoning, refusal,
 *   tool call or transcript. Either is marked `estimated`. An explicit zero is believed.
 */
import type { Nano } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import type { UsageSource } from "../ledger/Transaction.ts"
import type { PriceLine } from "../prices/PriceVersions.ts"
import type { Model } from "./Model.ts"

/** Tokens of a prompt, and of all answers to it. */
export interface Figures {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

export interface Tokens extends Figures {
  readonly usage_source: UsageSource
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY)

/**
 * The tokens to charge. Each figure of the usage object is believed up to `most`, an explicit zero included; one beyond it counts as
 * `most`, and in place of one that is missing or no count (negative, a fraction, a text) stands what is `counted`, if need be.
 */
export const tokensOf = (usage: unknown, counted: () => Figures, most: Figures): Tokens => {
  const reported: Partial<Record<keyof Figures, unknown>> = typeof usage === "object" && usage !== null ? usage : {}
  let usage_source: UsageSource = "provider"
  const figure = (name: keyof Figures): number => {
    const value = reported[name]
    if (isCount(value) && value <= most[name]) return value
    usage_source = "estimated"
    return isCount(value) ? most[name] : Math.min(counted()[name], most[name])
  }
  // Written out rather than spread, being made for every call.
  const prompt_tokens = figure("prompt_tokens")
  const completion_tokens = figure("completion_tokens")
  return { prompt_tokens, completion_tokens, usage_source }
}

/** Whether the usage object has a figure that the request cannot have caused. */
export const isBeyond = (usage: unknown, most: Figures): boolean => {
  const reported: Partial<Record<keyof Figures, unknown>> = typeof usage === "object" && usage !== null ? usage : {}
  return (
    (isCount(reported.prompt_tokens) && reported.prompt_tokens > most.prompt_tokens) ||
    (isCount(reported.completion_tokens) && reported.completion_tokens > most.completion_tokens)
  )
}

/** Where nobody counted: four bytes a token, the usual measure of English text. */
export const bytesAToken = 4

/** A piece of text up to this long is one token, the way upstreams send them; a longer one has a token for each four bytes. */
const pieceBytesMax = 12

/** The tokens of a generated string of so many bytes. */
export const tokensOfString = (bytes: number): number =>
  bytes === 0 ? 0 : bytes <= pieceBytesMax ? 1 : Math.round(bytes / bytesAToken)

/**
 * The strings of an answer that were generated: text, refusals, what was thought, what tools are called with, what is spoken. Words
 * inside a string are not taken for names: their quotes are escaped.
 */
const generated =
  /"(content|text|refusal|arguments|input|name|transcript|reasoning|reasoning_content|thinking)"\s*:\s*"/g

/**
 * Where the string ends that begins at `from`: at its closing quote, or with the text. It is looked for by hand, since an expression
 * that repeats a choice for each byte runs out of stack where an answer is megabytes long.
 */
const endOfString = (json: string, from: number): number => {
  for (let quote = json.indexOf('"', from); quote !== -1; quote = json.indexOf('"', quote + 1)) {
    let escapes = 0
    while (json[quote - 1 - escapes] === "\\") escapes++
    if (escapes % 2 === 0) return quote
  }
  return json.length
}

/**
 * Tokens in an answer, or in an event of one, by its JSON as Latin-1, a character for each byte. It is a rough count, and made for
 * every event, whether or not it will be needed: what is asked of it is to miss nothing, and to cost little.
 */
export const tokensIn = (json: string): number => {
  let tokens = 0
  let reasoning = 0
  let reasoning_content = 0
  let thinking = 0
  generated.lastIndex = 0
  for (let found = generated.exec(json); found !== null; found = generated.exec(json)) {
    const from = generated.lastIndex
    const end = endOfString(json, from)
    generated.lastIndex = end + 1
    const count = tokensOfString(end - from)
    switch (found[1]) {
      case "reasoning":
        reasoning += count
        break
      case "reasoning_content":
        reasoning_content += count
        break
      case "thinking":
        thinking += count
        break
      case "text":
        // Beside such details the same thoughts stand under another name too.
        if (!json.includes('"reasoning_details"')) tokens += count
        break
      default:
        tokens += count
    }
  }
  // Some upstreams say what they think under several of these names at once.
  return tokens + Math.max(reasoning, reasoning_content, thinking)
}

export const costOf = (model: Model, { completion_tokens, prompt_tokens }: Figures): Nano =>
  charge([
    { units: prompt_tokens, price: model.prompt_price },
    { units: completion_tokens, price: model.completion_price },
    { units: 1, price: model.request_price }
  ])

/** The same as the version of a price is made of. */
export const priceLines = (model: Model): ReadonlyArray<PriceLine> => [
  { quantity: "prompt_tokens", unit: "token", price: model.prompt_price },
  { quantity: "completion_tokens", unit: "token", price: model.completion_price },
  ...(model.request_price === 0n
    ? []
    : [{ quantity: "requests", unit: "request", price: model.request_price } as const])
]
