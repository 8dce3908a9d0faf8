/**
 * Requests to cache something at the vendor for an hour (`"cache_control": { "ttl": "1h" }`). Vendors bill such writes separately.
 *
 * Where the specification is silent:
 * - If cache writes have a price but one-hour writes have none, a request for an hour is refused by the field's name. No price is guessed. The client
 *   can request five minutes instead, or the operator can set `cache_write_1h_usd_per_million`. `tollgate models` lists the models without that
 *   price. The service does not replace an hour by five minutes, because a client that returns later would pay for a second write. An upstream whose
 *   protocol has no cache marks is still tried. (Claude Code requests five minutes, unless `ENABLE_PROMPT_CACHING_1H` or one of its settings says
 *   otherwise.)
 * - If no write has a price, one-hour writes cost the same as any prompt token.
 */
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { inAnyCase } from "./Extras.ts"
import { hourPriceOf } from "./Model.ts"
import type { Model } from "./Model.ts"
import type { ValidPrompt } from "./Prompt.ts"

const mentions = new WeakMap<ValidPrompt, boolean>()

/** Whether a request can contain a request for an hour: its text contains `"1h"` or an escaped letter. */
const mentionsAnHour = (prompt: ValidPrompt): boolean => {
  let mentioned = mentions.get(prompt)
  if (mentioned === undefined) {
    const json = prompt.json ?? Buffer.from(JSON.stringify(prompt.body))
    mentioned = json.includes('"1h"') || json.includes("\\u00")
    mentions.set(prompt, mentioned)
  }
  return mentioned
}

/** Whether the vendor may cache something for an hour. The request is searched only if that has its own price. */
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
  'this model has no price for a cache of an hour: ask for five minutes ("5m"), or let the operator set cache_write_1h_usd_per_million'

/** The reason for refusing a request for an hour without a price; `undefined` if it has a price or does not ask for an hour. */
export const unpricedHour = (model: Model, prompt: ValidPrompt): InvalidRequest | undefined => {
  if (hourPriceOf(model) !== "unknown" || !mentionsAnHour(prompt)) return undefined
  const field = hourIn(prompt.body)
  return field === undefined ? undefined : InvalidRequest.of(field, rule)
}

/** Whether a value is the client's own data: arguments, descriptions or schemas. A `cache_control` in it is not a cache mark. */
const isClients = (name: string, value: unknown): boolean =>
  name === "input_schema" ||
  name === "parameters" ||
  name === "schema" ||
  // In `responses`, the request's input is a list; a tool call's input is an object.
  (name === "input" && !Array.isArray(value))

/** The field of a cache mark that asks for an hour. The mark is `cache_control`, or any value of type `ephemeral`, which gateways accept. */
const hourOf = (name: string, value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const fields = Object.entries(value).map(([field, one]) => [field, inAnyCase(field), one] as const)
  const isMark =
    inAnyCase(name) === "cache_control" || fields.some(([, is, one]) => is === "type" && one === "ephemeral")
  return isMark ? fields.find(([, is, one]) => is === "ttl" && one === "1h")?.[0] : undefined
}

/** The first field of a value that asks for an hour. */
const hourIn = (value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  for (const [name, one] of Object.entries(value)) {
    if (isClients(name, one)) continue
    const found = hourOf(name, one) ?? hourIn(one)
    if (found !== undefined) return `${name}.${found}`
  }
  return undefined
}
