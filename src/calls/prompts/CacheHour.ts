/**
 * Detects requests for one-hour caching by the vendor (`"cache_control": { "ttl": "1h" }`) and rejects them if one-hour writes have no price. Vendors
 * bill these writes separately.
 *
 * Where the specification is silent:
 * - If a model has a price for cache writes but none for one-hour writes, a request for one-hour caching is rejected, and the error identifies the
 *   field. The client can request five minutes instead, or the operator can set `cache_write_1h_usd_per_million`. `tollgate models` lists the models
 *   that lack this price. The service does not shorten one hour to five minutes, because a client that continues later would then pay for a second
 *   write. Upstreams are still tried if their protocol has no cache breakpoints. (Claude Code requests five minutes by default.
 *   `ENABLE_PROMPT_CACHING_1H` and some of its settings change that.)
 * - If a model has no price for any cache write, one-hour writes are charged at the prompt price.
 */
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { inAnyCase } from "./Extras.ts"
import { hourPriceOf } from "./Model.ts"
import type { Model } from "./Model.ts"
import type { ValidPrompt } from "./Prompt.ts"

const mentions = new WeakMap<ValidPrompt, boolean>()

/** Returns whether a prompt might request one-hour caching: its JSON contains `"1h"` or an escape sequence that could hide it. */
const mentionsAnHour = (prompt: ValidPrompt): boolean => {
  if (prompt.long !== undefined) return prompt.long.mentions_an_hour
  let mentioned = mentions.get(prompt)
  if (mentioned === undefined) {
    const json = prompt.json ?? Buffer.from(JSON.stringify(prompt.body))
    mentioned = mentionsAnHourIn(json)
    mentions.set(prompt, mentioned)
  }
  return mentioned
}

export const mentionsAnHourIn = (json: Buffer): boolean => json.includes('"1h"') || json.includes("\\u00")

/** Returns whether one-hour caching may be charged. The prompt is searched only if one-hour writes have a separate price. */
export const mayBeAnHour = (model: Model, prompt: ValidPrompt): boolean => {
  switch (hourPriceOf(model)) {
    case "own":
      return mentionsAnHour(prompt)
    case "prompt":
      return true
    case "unknown":
      return false
  }
}

const rule =
  'this model has no price for one-hour caching; request five minutes ("5m") or ask the operator to set cache_write_1h_usd_per_million'

/** Rejects one-hour caching without a price. Returns `undefined` if one-hour caching has a price or is not requested. */
export const unpricedHour = (model: Model, prompt: ValidPrompt): InvalidRequest | undefined => {
  if (hourPriceOf(model) !== "unknown" || !mentionsAnHour(prompt)) return undefined
  const field = prompt.long === undefined ? hourIn(prompt.body) : prompt.long.hour_field
  return field === undefined ? undefined : InvalidRequest.of(field, rule)
}

/** Returns whether a value is a tool's arguments or a schema, where `cache_control` is not a cache breakpoint. */
const isClientData = (name: string, value: unknown): boolean =>
  name === "input_schema" ||
  name === "parameters" ||
  name === "schema" ||
  // In a Responses request, `input` is an array. In a tool call, it is an object.
  (name === "input" && !Array.isArray(value))

/**
 * Returns the field in a cache breakpoint that requests one hour. A breakpoint is `cache_control` or, at some gateways, any object with the type
 * `ephemeral`.
 */
const hourOf = (name: string, value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const fields = Object.entries(value).map(([field, one]) => [field, inAnyCase(field), one] as const)
  const isMark =
    inAnyCase(name) === "cache_control" || fields.some(([, is, one]) => is === "type" && one === "ephemeral")
  return isMark ? fields.find(([, is, one]) => is === "ttl" && one === "1h")?.[0] : undefined
}

/** Returns the path of the first field in a value that requests one hour. */
export const hourIn = (value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  for (const [name, one] of Object.entries(value)) {
    if (isClientData(name, one)) continue
    const found = hourOf(name, one) ?? hourIn(one)
    if (found !== undefined) return `${name}.${found}`
  }
  return undefined
}
