/**
 * A vendor's usage report for a call, in one form for all protocols. `undefined` is what was not reported.
 *
 * Where the specification is silent:
 * - The two totals hold all their parts, whatever the vendor's own totals leave out: Anthropic and Bedrock report input without what came
 *   from the cache or went into it, Google reports output without thoughts.
 * - A figure is a whole number from 0, or infinity (`1e999`), which the charge caps as it caps every figure that is too large.
 */
export interface Usage {
  /** All tokens of the prompt: read from a cache, written to one, or neither. */
  readonly prompt_tokens: number | undefined
  /** All tokens of the answer, thoughts included. */
  readonly completion_tokens: number | undefined
  /** Of the prompt: read from a cache. */
  readonly cached_tokens: number | undefined
  /** Of those: audio. */
  readonly cached_audio_tokens: number | undefined
  /** Of the prompt: written to a cache, for five minutes or as long as the vendor does. */
  readonly cache_write_tokens: number | undefined
  /** Of the prompt: written to a cache for an hour. */
  readonly cache_write_1h_tokens: number | undefined
  /** Of the answer: thoughts. */
  readonly reasoning_tokens: number | undefined
  readonly prompt_audio_tokens: number | undefined
  readonly completion_audio_tokens: number | undefined
  readonly prompt_image_tokens: number | undefined
  readonly completion_image_tokens: number | undefined
}

export const noUsage: Usage = {
  prompt_tokens: undefined,
  completion_tokens: undefined,
  cached_tokens: undefined,
  cached_audio_tokens: undefined,
  cache_write_tokens: undefined,
  cache_write_1h_tokens: undefined,
  reasoning_tokens: undefined,
  prompt_audio_tokens: undefined,
  completion_audio_tokens: undefined,
  prompt_image_tokens: undefined,
  completion_image_tokens: undefined
}

/** A figure that can be believed, if it is one. */
export const count = (value: unknown): number | undefined =>
  typeof value === "number" && value >= 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY)
    ? value
    : undefined

/** The sum of figures, `undefined` where the first was not reported. */
export const sum = (
  first: number | undefined,
  second: number | undefined,
  third?: number | undefined
): number | undefined => (first === undefined ? undefined : first + (second ?? 0) + (third ?? 0))

/** All that was written to a cache, for protocols that do not say for how long. */
export const written = ({ cache_write_1h_tokens, cache_write_tokens }: Usage): number | undefined =>
  cache_write_tokens === undefined ? cache_write_1h_tokens : sum(cache_write_tokens, cache_write_1h_tokens)
