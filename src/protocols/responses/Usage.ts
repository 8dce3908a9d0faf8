/** Reads and writes the usage in OpenAI's Responses protocol. */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, objectOf, present } from "../conversation/Json.ts"
import { count, totalCacheWrites } from "../conversation/Usage.ts"
import type { Usage } from "../conversation/Usage.ts"

export const usageOf = (usage: unknown): Usage | undefined => {
  if (!isObject(usage)) return undefined
  const prompt_tokens = count(usage.input_tokens)
  const completion_tokens = count(usage.output_tokens)
  if (prompt_tokens === undefined && completion_tokens === undefined) return undefined
  const input = objectOf(usage.input_tokens_details)
  const output = objectOf(usage.output_tokens_details)
  // This code runs on every call, so it avoids a spread.
  return {
    prompt_tokens,
    completion_tokens,
    cached_tokens: count(input.cached_tokens),
    cached_audio_tokens: undefined,
    cache_write_tokens: count(input.cache_write_tokens),
    cache_write_1h_tokens: undefined,
    reasoning_tokens: count(output.reasoning_tokens),
    prompt_audio_tokens: count(input.audio_tokens),
    completion_audio_tokens: count(output.audio_tokens),
    prompt_image_tokens: count(input.image_tokens),
    completion_image_tokens: count(output.image_tokens)
  }
}

export const writeUsage = (usage: Usage): JsonObject => {
  const input_tokens = usage.prompt_tokens ?? 0
  const output_tokens = usage.completion_tokens ?? 0
  return {
    input_tokens,
    input_tokens_details: present({
      cached_tokens: usage.cached_tokens ?? 0,
      cache_write_tokens: totalCacheWrites(usage),
      audio_tokens: usage.prompt_audio_tokens,
      image_tokens: usage.prompt_image_tokens
    }),
    output_tokens,
    output_tokens_details: present({
      reasoning_tokens: usage.reasoning_tokens ?? 0,
      audio_tokens: usage.completion_audio_tokens,
      image_tokens: usage.completion_image_tokens
    }),
    total_tokens: input_tokens + output_tokens
  }
}
