/**
 * Reads and writes Gemini's usage (`usageMetadata`). The completion count excludes reasoning. The prompt count excludes the results of Gemini's
 * built-in tools.
 */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, listOf, objectOf, present } from "../conversation/Json.ts"
import { count, noUsage, sum } from "../conversation/Usage.ts"
import type { Usage } from "../conversation/Usage.ts"

const ofModality = (details: unknown, modality: string): number | undefined =>
  count(objectOf(listOf(details).find((one) => objectOf(one).modality === modality)).tokenCount)

export const usageOf = (usage: unknown): Usage | undefined => {
  if (!isObject(usage)) return undefined
  const prompt = count(usage.promptTokenCount)
  const answer = count(usage.candidatesTokenCount)
  const thoughts = count(usage.thoughtsTokenCount)
  if (prompt === undefined && answer === undefined && thoughts === undefined) return undefined
  // Gemini omits the count of a completion without text. The count is then 0 if there is reasoning or if the total equals the prompt.
  const completion = answer ?? (thoughts === undefined && usage.totalTokenCount !== prompt ? undefined : 0)
  return {
    ...noUsage,
    prompt_tokens: sum(prompt, count(usage.toolUsePromptTokenCount)),
    completion_tokens: sum(completion, thoughts),
    cached_tokens: count(usage.cachedContentTokenCount),
    cached_audio_tokens: ofModality(usage.cacheTokensDetails, "AUDIO"),
    reasoning_tokens: thoughts,
    prompt_audio_tokens: ofModality(usage.promptTokensDetails, "AUDIO"),
    completion_audio_tokens: ofModality(usage.candidatesTokensDetails, "AUDIO"),
    prompt_image_tokens: ofModality(usage.promptTokensDetails, "IMAGE"),
    completion_image_tokens: ofModality(usage.candidatesTokensDetails, "IMAGE")
  }
}

const details = (audio: number | undefined, image: number | undefined): ReadonlyArray<JsonObject> | undefined => {
  const list = [
    ...(audio === undefined ? [] : [{ modality: "AUDIO", tokenCount: audio }]),
    ...(image === undefined ? [] : [{ modality: "IMAGE", tokenCount: image }])
  ]
  return list.length === 0 ? undefined : list
}

export const writeUsage = (usage: Usage): JsonObject => {
  const prompt = usage.prompt_tokens ?? 0
  const completion = usage.completion_tokens ?? 0
  return present({
    promptTokenCount: prompt,
    candidatesTokenCount: Math.max(0, completion - (usage.reasoning_tokens ?? 0)),
    thoughtsTokenCount: usage.reasoning_tokens,
    totalTokenCount: prompt + completion,
    cachedContentTokenCount: usage.cached_tokens,
    cacheTokensDetails: details(usage.cached_audio_tokens, undefined),
    promptTokensDetails: details(usage.prompt_audio_tokens, usage.prompt_image_tokens),
    candidatesTokensDetails: details(usage.completion_audio_tokens, usage.completion_image_tokens)
  })
}
