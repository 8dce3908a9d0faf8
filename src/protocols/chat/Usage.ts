/**
 * The usage of chat completions, as OpenAI and compatible servers report it.
 *
 * Where the specification is silent:
 * - Some vendors (xAI) leave thoughts out of `completion_tokens`; where their total shows that, thoughts are added.
 * - What was read from a cache has other names at DeepSeek (`prompt_cache_hit_tokens`) and Moonshot (`cached_tokens`).
 */
import type { JsonObject } from "../Conversation.ts"
import { isObject, objectOf, present } from "../Json.ts"
import { count, sum, written } from "../Usage.ts"
import type { Usage } from "../Usage.ts"

export const usageOf = (usage: unknown): Usage | undefined => {
  if (!isObject(usage)) return undefined
  const prompt_tokens = count(usage.prompt_tokens)
  const completion = count(usage.completion_tokens)
  if (prompt_tokens === undefined && completion === undefined) return undefined
  const prompt = objectOf(usage.prompt_tokens_details)
  const answer = objectOf(usage.completion_tokens_details)
  const reasoning_tokens = count(answer.reasoning_tokens)
  const apart =
    reasoning_tokens !== undefined &&
    reasoning_tokens > 0 &&
    usage.total_tokens === (prompt_tokens ?? 0) + (completion ?? 0) + reasoning_tokens
  return {
    prompt_tokens,
    completion_tokens: apart ? sum(completion, reasoning_tokens) : completion,
    cached_tokens: count(prompt.cached_tokens) ?? count(usage.prompt_cache_hit_tokens) ?? count(usage.cached_tokens),
    cache_write_tokens: count(prompt.cache_write_tokens) ?? count(usage.cache_creation_input_tokens),
    cache_write_1h_tokens: undefined,
    reasoning_tokens,
    prompt_audio_tokens: count(prompt.audio_tokens),
    completion_audio_tokens: count(answer.audio_tokens),
    prompt_image_tokens: count(prompt.image_tokens),
    completion_image_tokens: count(answer.image_tokens)
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
      cache_write_tokens: written(usage),
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
