/**
 * A call's usage as the vendor reports it, in a form common to all protocols. `undefined` means that a figure was not reported.
 *
 * Where the specification is silent:
 * - The two totals include all their parts, even where a vendor's totals exclude some. Anthropic and Bedrock exclude cache reads and writes from the
 *   input, and Google excludes reasoning from the output.
 * - A figure is a non-negative integer or infinity (`1e999`). The charge caps figures at the request's maximum.
 */
export interface Usage {
  /** All prompt tokens, including cached tokens. */
  readonly prompt_tokens: number | undefined
  /** All completion tokens, including reasoning. */
  readonly completion_tokens: number | undefined
  /** Prompt tokens that were read from a cache. */
  readonly cached_tokens: number | undefined
  readonly cached_audio_tokens: number | undefined
  /** Prompt tokens that were written to a cache for five minutes, or for the vendor's default lifetime. */
  readonly cache_write_tokens: number | undefined
  readonly cache_write_1h_tokens: number | undefined
  readonly reasoning_tokens: number | undefined
  readonly prompt_audio_tokens: number | undefined
  readonly completion_audio_tokens: number | undefined
  readonly prompt_image_tokens: number | undefined
  readonly completion_image_tokens: number | undefined
  /** The cost in USD that the vendor reports for this call. */
  readonly vendor_cost?: number | undefined
  /** The vendor's call id, if it reports a cost. */
  readonly vendor_id?: string | undefined
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

/** Returns the value if it is a valid figure, otherwise `undefined`. */
export const count = (value: unknown): number | undefined =>
  typeof value === "number" && value >= 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY)
    ? value
    : undefined

/** Adds figures. Returns `undefined` if the first was not reported. */
export const sum = (
  first: number | undefined,
  second: number | undefined,
  third?: number | undefined
): number | undefined => (first === undefined ? undefined : first + (second ?? 0) + (third ?? 0))

/** Returns all tokens written to a cache, for protocols that do not distinguish cache lifetimes. */
export const totalCacheWrites = ({ cache_write_1h_tokens, cache_write_tokens }: Usage): number | undefined =>
  cache_write_tokens === undefined ? cache_write_1h_tokens : sum(cache_write_tokens, cache_write_1h_tokens)
