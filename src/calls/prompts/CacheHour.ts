/**
 * Requests to keep something in a vendor's cache for an hour (`"cache_control": { "ttl": "1h" }`): vendors bill such a write apart.
 *
 * Where the specification is silent:
 * - Where writes to a cache have a price but those for an hour have none, a request that asks for an hour is refused by the field's name:
 *   no price is guessed. The client can ask for five minutes instead, or the operator can set `cache_write_1h_usd_per_million`; `tollgate
 *   models` lists the models that lack it. Five minutes are not sent in place of the hour: a client that comes back later would pay for a
 *   second write that it wanted to save. An upstream whose protocol has no such marks is asked all the same. (Claude Code asks for five
 *   minutes, unless `ENABLE_PROMPT_CACHING_1H` or a setting of its own says otherwise.)
 * - Where no write has a price, those for an hour cost what any token of the prompt costs.
 */
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { inAnyCase } from "./Extras.ts"
import { hourPriceOf } from "./Model.ts"
import type { Model } from "./Model.ts"
import type { ValidPrompt } from "./Prompt.ts"

const mentions = new WeakMap<ValidPrompt, boolean>()

/** Whether the text of a request can ask for an hour: it contains `"1h"`, or a text with an escaped letter. */
const mentionsAnHour = (prompt: ValidPrompt): boolean => {
  let mentioned = mentions.get(prompt)
  if (mentioned === undefined) {
    const json = prompt.json ?? Buffer.from(JSON.stringify(prompt.body))
    mentioned = json.includes('"1h"') || json.includes("\\u00")
    mentions.set(prompt, mentioned)
  }
  return mentioned
}

/** Whether what the vendor writes to its cache may be there for an hour. Where that costs what any token does, it is not looked for. */
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

/** Why a request cannot be charged that asks for an hour; `undefined` where it can be, or does not ask. */
export const unpricedHour = (model: Model, prompt: ValidPrompt): InvalidRequest | undefined => {
  if (hourPriceOf(model) !== "unknown" || !mentionsAnHour(prompt)) return undefined
  const field = hourIn(prompt.body)
  return field === undefined ? undefined : InvalidRequest.of(field, rule)
}

/** Arguments and descriptions of tools, and the schema of an answer: a `cache_control` in there is not one. */
const isClients = (name: string, value: unknown): boolean =>
  name === "input_schema" ||
  name === "parameters" ||
  name === "schema" ||
  // The input of responses is a list; that of a tool's call is an object.
  (name === "input" && !Array.isArray(value))

/** The key of a cache mark: `cache_control`, or another name for a value that says `ephemeral`, which gateways accept. */
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
