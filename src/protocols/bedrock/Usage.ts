/** Reads and writes the usage of Bedrock's Converse. `inputTokens` excludes cache reads and writes. */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, listOf, objectOf, present } from "../conversation/Json.ts"
import { count, noUsage, sum, totalCacheWrites } from "../conversation/Usage.ts"
import type { Usage } from "../conversation/Usage.ts"

const writtenFor = (details: unknown, ttl: string): number | undefined =>
  count(objectOf(listOf(details).find((one) => objectOf(one).ttl === ttl)).inputTokens)

export const usageOf = (usage: unknown): Usage | undefined => {
  if (!isObject(usage)) return undefined
  const input = count(usage.inputTokens)
  const completion_tokens = count(usage.outputTokens)
  if (input === undefined && completion_tokens === undefined) return undefined
  const cached_tokens = count(usage.cacheReadInputTokens)
  const all = count(usage.cacheWriteInputTokens)
  const hour = writtenFor(usage.cacheDetails, "1h")
  return {
    ...noUsage,
    prompt_tokens: sum(input, cached_tokens, all),
    completion_tokens,
    cached_tokens,
    cache_write_tokens: all === undefined || hour === undefined ? all : Math.max(0, all - hour),
    cache_write_1h_tokens: hour
  }
}

export const writeUsage = (usage: Usage): JsonObject => {
  const all = totalCacheWrites(usage)
  const prompt = usage.prompt_tokens ?? 0
  const outputTokens = usage.completion_tokens ?? 0
  const hour = usage.cache_write_1h_tokens
  return present({
    inputTokens: Math.max(0, prompt - (usage.cached_tokens ?? 0) - (all ?? 0)),
    outputTokens,
    totalTokens: prompt + outputTokens,
    cacheReadInputTokens: usage.cached_tokens,
    cacheWriteInputTokens: all,
    cacheDetails: hour === undefined ? undefined : [{ ttl: "1h", inputTokens: hour }]
  })
}
