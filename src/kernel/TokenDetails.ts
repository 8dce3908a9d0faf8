/**
 * Of the tokens of a call those that vendors bill apart. Each token is of one kind at the most: audio that came from a cache is neither
 * counted as other cached tokens nor as other audio.
 */

/** Of the tokens of a prompt. */
export const promptDetails = [
  /** Audio that was read from a cache of the vendor. */
  "cached_audio_tokens",
  /** Read from such a cache. */
  "cached_tokens",
  /** Written to such a cache, for minutes or as long as the vendor does. */
  "cache_write_tokens",
  /** Written to it for an hour. */
  "cache_write_1h_tokens",
  "prompt_audio_tokens",
  "prompt_image_tokens"
] as const

/** Of the tokens of an answer. */
export const completionDetails = ["reasoning_tokens", "completion_audio_tokens", "completion_image_tokens"] as const

export const detailNames = [...promptDetails, ...completionDetails] as const
export type TokenDetail = (typeof detailNames)[number]

/** How many of each kind; a kind that is missing has none. */
export type TokenDetails = { readonly [Name in TokenDetail]?: number }
