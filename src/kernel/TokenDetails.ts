/**
 * The kinds of tokens that vendors bill separately. A token belongs to at most one kind, so cached audio counts neither as cached tokens nor as
 * prompt audio.
 */

export const promptDetails = [
  /** Audio read from the vendor's cache. */
  "cached_audio_tokens",
  /** Other tokens read from the cache. */
  "cached_tokens",
  /** Tokens written to the cache for the vendor's default lifetime. */
  "cache_write_tokens",
  /** Tokens written to the cache for an hour. */
  "cache_write_1h_tokens",
  "prompt_audio_tokens",
  "prompt_image_tokens"
] as const

export const completionDetails = ["reasoning_tokens", "completion_audio_tokens", "completion_image_tokens"] as const

export const detailNames = [...promptDetails, ...completionDetails] as const
export type TokenDetail = (typeof detailNames)[number]

/** The token count of each kind. A missing kind means 0. */
export type TokenDetails = { readonly [Name in TokenDetail]?: number }
