/**
 * Reads and writes usage in Anthropic's Messages protocol. `input_tokens` excludes cache reads and writes.
 *
 * Where the specification is silent:
 * - If the cache writes that a vendor reports for each lifetime add up to less than its reported total, the remainder counts as five-minute writes.
 *   (A stream reports the figures for each lifetime only at its start, and some vendors send 0 there.)
 */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, objectOf } from "../conversation/Json.ts"
import { count, sum } from "../conversation/Usage.ts"
import type { Usage } from "../conversation/Usage.ts"

export const usageOf = (usage: unknown): Usage | undefined => {
  if (!isObject(usage)) return undefined
  const input = count(usage.input_tokens)
  const completion_tokens = count(usage.output_tokens)
  if (input === undefined && completion_tokens === undefined) return undefined
  const cached_tokens = count(usage.cache_read_input_tokens)
  const creation = count(usage.cache_creation_input_tokens)
  const { ephemeral_1h_input_tokens, ephemeral_5m_input_tokens } = objectOf(usage.cache_creation)
  const hour = count(ephemeral_1h_input_tokens)
  const minutes = count(ephemeral_5m_input_tokens)
  const split = hour !== undefined || minutes !== undefined
  const isLess = creation !== undefined && (minutes ?? 0) + (hour ?? 0) < creation
  const rest = isLess ? creation - (hour ?? 0) : split ? minutes : creation
  return {
    prompt_tokens: sum(input, cached_tokens, (rest ?? 0) + (hour ?? 0)),
    completion_tokens,
    cached_tokens,
    cached_audio_tokens: undefined,
    cache_write_tokens: rest,
    cache_write_1h_tokens: hour,
    reasoning_tokens: count(objectOf(usage.output_tokens_details).thinking_tokens),
    prompt_audio_tokens: undefined,
    completion_audio_tokens: undefined,
    prompt_image_tokens: undefined,
    completion_image_tokens: undefined
  }
}

/** Returns the prompt tokens that were neither read from nor written to a cache; 0 if a vendor's figures are inconsistent. */
const uncached = (usage: Usage): number =>
  Math.max(
    0,
    (usage.prompt_tokens ?? 0) -
      (usage.cached_tokens ?? 0) -
      (usage.cache_write_tokens ?? 0) -
      (usage.cache_write_1h_tokens ?? 0)
  )

export const writeUsage = (usage: Usage): JsonObject => {
  const minutes = usage.cache_write_tokens ?? 0
  const hour = usage.cache_write_1h_tokens ?? 0
  return {
    input_tokens: uncached(usage),
    cache_creation_input_tokens: minutes + hour,
    cache_read_input_tokens: usage.cached_tokens ?? 0,
    ...(usage.cache_write_1h_tokens === undefined
      ? undefined
      : { cache_creation: { ephemeral_5m_input_tokens: minutes, ephemeral_1h_input_tokens: hour } }),
    output_tokens: usage.completion_tokens ?? 0,
    ...(usage.reasoning_tokens === undefined
      ? undefined
      : { output_tokens_details: { thinking_tokens: usage.reasoning_tokens } })
  }
}
