/**
 * The `usage` of an answer of chat and text completions.
 *
 * Where the specification is silent:
 * - An upstream whose `total_tokens` is the sum of its two figures and of tokens that it names besides (thoughts, what came from a cache or
 *   went into it) counts those outside of the two, and they are added.
 */
import { count, noUsage } from "../protocols/Usage.ts"
import type { Usage } from "../protocols/Usage.ts"

type Fields = Readonly<Record<string, unknown>>

const none: Fields = {}

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : none)

/** The names that upstreams have for what came from a cache: beside the totals, where it is not among the details. */
const cachedNames = [
  "cached_tokens",
  "prompt_cache_hit_tokens",
  "cache_read_input_tokens",
  "num_cached_tokens"
] as const
const writeNames = ["cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens"] as const

const firstOf = (names: ReadonlyArray<string>, ...places: ReadonlyArray<Fields>): number | undefined => {
  for (const place of places)
    for (const name of names) {
      const found = count(place[name])
      if (found !== undefined) return found
    }
  return undefined
}

/** Of what was written to a cache, that which stays for an hour. */
const hourOf = (usage: Fields, details: Fields): number | undefined =>
  count(fieldsOf(details["cache_creation"] ?? usage["cache_creation"])["ephemeral_1h_input_tokens"])

/** Reads the `usage` of an answer. */
export const usageOf = (usage: unknown): Usage => {
  if (typeof usage !== "object" || usage === null) return noUsage
  const fields = usage as Fields
  const prompt = fieldsOf(fields["prompt_tokens_details"] ?? fields["input_tokens_details"])
  const completion = fieldsOf(fields["completion_tokens_details"] ?? fields["output_tokens_details"])
  const cached = firstOf(cachedNames, prompt, fields)
  const written = firstOf(writeNames, prompt, fields)
  const hour = hourOf(fields, prompt)
  const reasoning = count(completion["reasoning_tokens"] ?? fields["reasoning_tokens"])
  const { completion: answer, prompt: asked } = whole(fields, (cached ?? 0) + (written ?? 0), reasoning ?? 0)
  return {
    prompt_tokens: asked,
    completion_tokens: answer,
    cached_tokens: cached,
    cache_write_tokens: written === undefined ? undefined : Math.max(0, written - (hour ?? 0)),
    cache_write_1h_tokens: hour,
    reasoning_tokens: reasoning,
    prompt_audio_tokens: count(prompt["audio_tokens"]),
    completion_audio_tokens: count(completion["audio_tokens"]),
    prompt_image_tokens: count(prompt["image_tokens"]),
    completion_image_tokens: count(completion["image_tokens"])
  }
}

/** The totals, with what the upstream's own sum says that it counts outside of them. */
const whole = (fields: Fields, cache: number, reasoning: number) => {
  const prompt = count(fields["prompt_tokens"])
  const completion = count(fields["completion_tokens"])
  const total = count(fields["total_tokens"])
  if (prompt === undefined || completion === undefined || total === undefined) return { prompt, completion }
  const outside = total - prompt - completion
  if (!(outside > 0) || outside === Number.POSITIVE_INFINITY) return { prompt, completion }
  if (outside === reasoning) return { prompt, completion: completion + reasoning }
  if (outside === cache) return { prompt: prompt + cache, completion }
  if (outside === cache + reasoning) return { prompt: prompt + cache, completion: completion + reasoning }
  return { prompt, completion }
}
