/**
 * Determines the tokens that a call used. The upstream's figures count up to the request's maximum. Without them, the service estimates the tokens.
 *
 * Where the specification is silent:
 * - An upstream's figure is accepted up to the request's maximum. For a prompt, the maximum is the model's context, because vendors also count
 *   templates, tool instructions, images and pages. For the completion, it is the limit sent upstream times the number of choices. A larger figure
 *   counts as the maximum.
 * - A missing or invalid figure is replaced with an estimate. A prompt counts as one token per four bytes, plus `max_attachment_tokens` per
 *   attachment. A completion counts as one token per short delta of text, reasoning, refusal, tool call or transcript. Estimates are marked
 *   `estimated`. An explicit zero is accepted.
 * - Tokens of a separately billed kind (`kernel/TokenDetails`) are accepted up to the total minus the earlier kinds in that list, so audio read from
 *   a cache counts only once. The record is marked `estimated` in three cases: one kind exceeds the total, audio or images are reported for a prompt
 *   without attachments, or one-hour caching is reported but was not requested. In the last case, the tokens count as ordinary cache writes, and the
 *   service logs a warning.
 */
import { amountMax, fromDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { completionDetails, promptDetails } from "../../kernel/TokenDetails.ts"
import type { TokenDetail, TokenDetails } from "../../kernel/TokenDetails.ts"
import { isVendorId } from "../../kernel/VendorRequests.ts"
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"
import { priced } from "../../books/prices/Lines.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import { linesOf } from "./Model.ts"
import type { Kinds, Model } from "./Model.ts"

/** Token counts of a prompt and of all its completions. */
export interface Figures {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

/** The maximum token counts that a request can cause. `prompt_tokens` is the prompt's bound, an upper estimate for the reservation. */
export interface MaxTokens extends Figures {
  /** The maximum prompt count to accept. */
  readonly context_tokens: number
  /** The kinds of tokens that the prompt can contain. */
  readonly kinds: Kinds
}

export interface Tokens extends Figures {
  readonly usage_source: UsageSource
  /** The separately billed tokens, if there are any. The totals include them. */
  readonly token_details: TokenDetails | undefined
  /** The cost that the upstream reported. It does not affect the caller's charge. */
  readonly vendor_cost?: Nano | undefined
  readonly vendor_id?: string | undefined
}

/** Returns the tokens to charge. Each reported total counts up to `most`, and an explicit zero is accepted. `counted` supplies a missing total. */
export const tokensOf = (reported: Usage, counted: () => Figures, most: MaxTokens): Tokens => {
  const { completion_tokens: completion, prompt_tokens: prompt } = reported
  const isPlausible =
    prompt !== undefined &&
    completion !== undefined &&
    prompt <= most.context_tokens &&
    completion <= most.completion_tokens
  const prompt_tokens =
    prompt === undefined ? Math.min(counted().prompt_tokens, most.prompt_tokens) : Math.min(prompt, most.context_tokens)
  const completion_tokens = Math.min(completion ?? counted().completion_tokens, most.completion_tokens)
  const details = new Details(reported)
  details.believe(promptDetails, prompt_tokens, most.kinds)
  details.believe(completionDetails, completion_tokens, allKinds)
  // This code runs on every call, so it avoids a spread.
  return {
    prompt_tokens,
    completion_tokens,
    usage_source: isPlausible && !details.beyond ? "provider" : "estimated",
    token_details: details.found,
    vendor_cost: reported.vendor_cost === undefined ? undefined : parseCost(reported.vendor_cost),
    vendor_id: reported.vendor_id === undefined || isVendorId(reported.vendor_id) ? reported.vendor_id : undefined
  }
}

/** Parses a reported cost. Returns `undefined` for an invalid cost or one above the maximum amount. */
const parseCost = (usd: number): Nano | undefined => {
  const cost = fromDecimal(String(usd), 9)
  return cost === undefined || cost > amountMax ? undefined : cost
}

const allKinds: Kinds = { attachments: true, hour: true }
const ofAttachments: ReadonlySet<TokenDetail> = new Set([
  "cached_audio_tokens",
  "prompt_audio_tokens",
  "prompt_image_tokens"
])
/** The counts that include audio tokens read from a cache. */
const withCachedAudio: ReadonlySet<TokenDetail> = new Set(["cached_tokens", "prompt_audio_tokens"])

/** The plausible part of the reported figures for separately billed tokens. */
class Details {
  found: { [Name in TokenDetail]?: number } | undefined
  /** Whether the report contains implausible figures. */
  beyond = false
  private readonly reported: Usage

  constructor(reported: Usage) {
    this.reported = reported
  }

  private tokensOf(name: TokenDetail): number {
    const tokens = this.reported[name] ?? 0
    const others = withCachedAudio.has(name) ? this.found?.cached_audio_tokens : undefined
    return others === undefined ? tokens : Math.max(0, tokens - others)
  }

  /** Accepts tokens of these kinds within `total`. The last argument contains the possible kinds. */
  believe(names: ReadonlyArray<TokenDetail>, total: number, { attachments, hour }: Kinds): void {
    let left = total
    for (const name of names) {
      const tokens = this.tokensOf(name)
      if (tokens === 0) continue
      const possible = attachments || !ofAttachments.has(name)
      const tooLong = !hour && name === "cache_write_1h_tokens"
      if (!possible || tooLong || tokens > total) this.beyond = true
      const acceptedTokens = possible ? Math.min(tokens, left) : 0
      if (acceptedTokens === 0) continue
      left -= acceptedTokens
      this.found ??= {}
      const kind = tooLong ? "cache_write_tokens" : name
      this.found[kind] = (this.found[kind] ?? 0) + acceptedTokens
    }
  }
}

/** Returns the implausible part of reported usage: a total, or one-hour caching that was not requested. */
export const excessIn = (
  { cache_write_1h_tokens, completion_tokens, prompt_tokens }: Usage,
  most: MaxTokens
): "total" | "hour" | undefined => {
  if ((prompt_tokens ?? 0) > most.context_tokens || (completion_tokens ?? 0) > most.completion_tokens) return "total"
  return !most.kinds.hour && (cache_write_1h_tokens ?? 0) > 0 ? "hour" : undefined
}

/** The assumed number of bytes per token in estimates. It is typical of English text. */
export const bytesAToken = 4

/**
 * The maximum size, in bytes, of a string that counts as one token, because upstreams stream about one token per delta. A longer string counts as one
 * token per four bytes.
 */
const deltaBytesMax = 12

/** Estimates the tokens in a generated string of `bytes` bytes. */
export const tokensOfString = (bytes: number): number =>
  bytes === 0 ? 0 : bytes <= deltaBytesMax ? 1 : Math.round(bytes / bytesAToken)

/** Matches the start of a generated string in a response: text, refusals, reasoning, tool calls or transcripts. Quotes inside strings are escaped. */
const generated =
  /"(content|text|refusal|arguments|input|name|transcript|reasoning|reasoning_content|thinking)"\s*:\s*"/g

/**
 * Returns the end of the string that begins at `from`, or the end of the JSON. A regular expression would overflow the stack on a response of several
 * megabytes.
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
 * Estimates the tokens of a response or event from its JSON as Latin-1, one character per byte. It runs on every event, so it must be fast, and it
 * must cover all generated strings.
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
        // If there are `reasoning_details`, another member repeats their text.
        if (!json.includes('"reasoning_details"')) tokens += count
        break
      default:
        tokens += count
    }
  }
  // Some upstreams repeat the reasoning under several of these names.
  return tokens + Math.max(reasoning, reasoning_content, thinking)
}

export const costOf = (
  model: Model,
  { completion_tokens, prompt_tokens, token_details }: Figures & Partial<Pick<Tokens, "token_details">>
): Nano => priced(linesOf(model), { prompt_tokens, completion_tokens, units: 0, requests: 1, token_details })
