/**
 * Reads and writes the usage in chat completions of OpenAI and compatible servers.
 *
 * Where the specification is silent:
 * - If `total_tokens` is the sum of prompt, completion and another reported figure, the upstream counts that figure separately, so it is added. This
 *   applies to reasoning (xAI) and to cache reads and writes.
 * - A cost that the upstream reports (OpenRouter's `cost`) is recorded for the operator. It does not affect the caller's charge.
 * - Cache reads have other names at DeepSeek (`prompt_cache_hit_tokens`), Moonshot (`cached_tokens`) and other vendors.
 */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, objectOf, present } from "../conversation/Json.ts"
import { count, totalCacheWrites } from "../conversation/Usage.ts"
import type { Usage } from "../conversation/Usage.ts"

/** Vendors' names for cache reads and writes, in the prompt details or next to the totals. */
const cachedNames = [
  "cached_tokens",
  "prompt_cache_hit_tokens",
  "cache_read_input_tokens",
  "cached_prompt_text_tokens",
  "num_cached_tokens"
] as const
const writeNames = ["cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens"] as const

const firstOf = (names: ReadonlyArray<string>, details: JsonObject, usage: JsonObject): number | undefined => {
  for (const place of [details, usage])
    for (const name of names) {
      const found = count(place[name])
      if (found !== undefined) return found
    }
  return undefined
}

/** Returns `undefined` if neither total was reported. `id` is the response's id. */
export const usageOf = (usage: unknown, id?: unknown): Usage | undefined => {
  if (!isObject(usage)) return undefined
  const prompt = count(usage.prompt_tokens)
  const completion = count(usage.completion_tokens)
  if (prompt === undefined && completion === undefined) return undefined
  const details = objectOf(usage.prompt_tokens_details)
  const answer = objectOf(usage.completion_tokens_details)
  const cached = firstOf(cachedNames, details, usage)
  const creation = firstOf(writeNames, details, usage)
  const hour = count(objectOf(details.cache_creation ?? usage.cache_creation).ephemeral_1h_input_tokens)
  const reasoning = count(answer.reasoning_tokens ?? usage.reasoning_tokens)
  const cache = (cached ?? 0) + (creation ?? 0)
  const outside = separateCounts(usage, (prompt ?? 0) + (completion ?? 0), cache, reasoning ?? 0)
  const cost = costIn(usage)
  return {
    prompt_tokens: outside.cache ? prompt! + cache : prompt,
    completion_tokens: outside.reasoning ? completion! + reasoning! : completion,
    cached_tokens: cached,
    cached_audio_tokens: count(objectOf(details.cached_tokens_details).audio_tokens),
    cache_write_tokens: creation === undefined ? undefined : tokenDifference(creation, hour ?? 0),
    cache_write_1h_tokens: hour,
    reasoning_tokens: reasoning,
    prompt_audio_tokens: count(details.audio_tokens),
    completion_audio_tokens: count(answer.audio_tokens),
    prompt_image_tokens: count(details.image_tokens),
    completion_image_tokens: count(answer.image_tokens),
    ...(cost !== undefined && { vendor_cost: cost, ...(typeof id === "string" && { vendor_id: id }) })
  }
}

/** Returns the cost in USD that OpenRouter reports. Another vendor's `cost` can be an object. */
const costIn = ({ cost }: JsonObject): number | undefined =>
  typeof cost === "number" && cost >= 0 && cost < Number.POSITIVE_INFINITY ? cost : undefined

/** Returns the difference, or 0 if it is negative or both figures are infinite. */
const tokenDifference = (tokens: number, part: number): number => (tokens > part ? tokens - part : 0)

/** Determines whether the upstream's total counts reasoning and cache tokens in addition to prompt and completion. */
const separateCounts = (usage: JsonObject, figures: number, cache: number, reasoning: number) => {
  const complete = count(usage.prompt_tokens) !== undefined && count(usage.completion_tokens) !== undefined
  const more = complete ? (count(usage.total_tokens) ?? 0) - figures : 0
  const isOutside = more > 0 && more < Number.POSITIVE_INFINITY
  const both = isOutside && more === cache + reasoning
  return {
    reasoning: reasoning > 0 && isOutside && (more === reasoning || both),
    cache: cache > 0 && isOutside && (more === cache || both) && more !== reasoning
  }
}

export const writeUsage = (usage: Usage): JsonObject => {
  const prompt_tokens = usage.prompt_tokens ?? 0
  const completion_tokens = usage.completion_tokens ?? 0
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: present({
      cached_tokens: usage.cached_tokens ?? 0,
      cached_tokens_details:
        usage.cached_audio_tokens === undefined ? undefined : { audio_tokens: usage.cached_audio_tokens },
      cache_write_tokens: totalCacheWrites(usage),
      audio_tokens: usage.prompt_audio_tokens,
      image_tokens: usage.prompt_image_tokens
    }),
    completion_tokens_details: present({
      reasoning_tokens: usage.reasoning_tokens ?? 0,
      audio_tokens: usage.completion_audio_tokens,
      image_tokens: usage.completion_image_tokens
    })
  }
}
