/**
 * The tokens that a call used: the upstream's figures, as far as the request can have caused them; else a count of what came.
 *
 * Where the specification is silent:
 * - A figure of an upstream is believed up to what the request can cause. A prompt may have the whole context of the model, since vendors
 *   add templates, words about tools, images and pages in their own count. An answer may have the limit that was sent, times the number of
 *   answers. A figure beyond counts as that.
 * - A figure that is missing, or no count, is replaced by a count of what came: four bytes a token of the prompt,
 *   `max_attachment_tokens` for each attachment, and of an answer a token for each short piece of text, reasoning, refusal, tool call or
 *   transcript. Both replacements are marked `estimated`. An explicit zero is believed.
 * - Tokens of a kind that is billed apart (`kernel/TokenDetails`) are believed up to what is left of their total by those before them, in
 *   the order of that list: audio that came from a cache counts as that alone. More of one kind than the total has, or audio
 *   and images in answer to a prompt without attachments, mark the record `estimated`. So does what is cached for an hour though the
 *   request did not ask for that: it counts as cached for minutes, and the log says so.
 */
import type { Nano } from "../../kernel/Money.ts"
import { completionDetails, promptDetails } from "../../kernel/TokenDetails.ts"
import type { TokenDetail, TokenDetails } from "../../kernel/TokenDetails.ts"
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"
import { priced } from "../../books/prices/Lines.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import { linesOf } from "./Model.ts"
import type { Kinds, Model } from "./Model.ts"

/** Tokens of a prompt, and of all answers to it. */
export interface Figures {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

/** The most tokens of a request. `prompt_tokens` is the bound of the prompt: an estimate from above, which is set aside. */
export interface Most extends Figures {
  /** How many tokens of the prompt a vendor is believed to have counted. */
  readonly context_tokens: number
  /** The kinds of prompt tokens. */
  readonly kinds: Kinds
}

export interface Tokens extends Figures {
  readonly usage_source: UsageSource
  /** Those of them that are billed apart; `undefined` where there are none. */
  readonly token_details: TokenDetails | undefined
}

/**
 * The tokens to charge. Each total is believed up to `most`, an explicit zero included, and a total beyond it counts as `most`. What was
 * not reported is `counted`.
 */
export const tokensOf = (reported: Usage, counted: () => Figures, most: Most): Tokens => {
  const { completion_tokens: completion, prompt_tokens: prompt } = reported
  const asItIs =
    prompt !== undefined &&
    completion !== undefined &&
    prompt <= most.context_tokens &&
    completion <= most.completion_tokens
  const prompt_tokens =
    prompt === undefined ? Math.min(counted().prompt_tokens, most.prompt_tokens) : Math.min(prompt, most.context_tokens)
  const completion_tokens = Math.min(completion ?? counted().completion_tokens, most.completion_tokens)
  const details = new Details(reported)
  details.believe(promptDetails, prompt_tokens, most.kinds)
  details.believe(completionDetails, completion_tokens, any)
  // Written out rather than spread, being made for every call.
  return {
    prompt_tokens,
    completion_tokens,
    usage_source: asItIs && !details.beyond ? "provider" : "estimated",
    token_details: details.found
  }
}

const any: Kinds = { attachments: true, hour: true }
const ofAttachments: ReadonlySet<TokenDetail> = new Set([
  "cached_audio_tokens",
  "prompt_audio_tokens",
  "prompt_image_tokens"
])
/** Vendors count audio that came from a cache among these too. */
const withCachedAudio: ReadonlySet<TokenDetail> = new Set(["cached_tokens", "prompt_audio_tokens"])

/** Reported tokens of the kinds that are billed apart, as far as they can be believed. */
class Details {
  found: { [Name in TokenDetail]?: number } | undefined
  /** Whether something was reported that cannot be. */
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

  /** `kinds`: what tokens of this total can be. */
  believe(names: ReadonlyArray<TokenDetail>, total: number, { attachments, hour }: Kinds): void {
    let left = total
    for (const name of names) {
      const tokens = this.tokensOf(name)
      if (tokens === 0) continue
      const possible = attachments || !ofAttachments.has(name)
      const tooLong = !hour && name === "cache_write_1h_tokens"
      if (!possible || tooLong || tokens > total) this.beyond = true
      const believed = possible ? Math.min(tokens, left) : 0
      if (believed === 0) continue
      left -= believed
      this.found ??= {}
      const kind = tooLong ? "cache_write_tokens" : name
      this.found[kind] = (this.found[kind] ?? 0) + believed
    }
  }
}

/** Reported figures that the request cannot have caused: a total, or a cache of an hour that it did not ask for. */
export const beyondIn = (
  { cache_write_1h_tokens, completion_tokens, prompt_tokens }: Usage,
  most: Most
): "total" | "hour" | undefined => {
  if ((prompt_tokens ?? 0) > most.context_tokens || (completion_tokens ?? 0) > most.completion_tokens) return "total"
  return !most.kinds.hour && (cache_write_1h_tokens ?? 0) > 0 ? "hour" : undefined
}

/** Without a count: four bytes a token, the usual measure of English text. */
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

export const costOf = (
  model: Model,
  { completion_tokens, prompt_tokens, token_details }: Figures & Partial<Pick<Tokens, "token_details">>
): Nano => priced(linesOf(model), { prompt_tokens, completion_tokens, units: 0, requests: 1, token_details })
