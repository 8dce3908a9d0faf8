/**
 * Completes configuration entries that refer to a model in the catalogue: `{ "catalogue": "openai/gpt-…" }`.
 *
 * Where the specification is silent:
 * - The entry's other fields override those of the catalogue. The model's id is its id in the catalogue unless the entry sets another.
 * - A `price` that contains a prompt or completion price replaces the catalogue's entire price. If it contains neither, its lines are added to the
 *   catalogue's lines or replace them: `"price": { "cache_write_1h_usd_per_million": "6" }`. The same rule applies to each part of its
 *   `long_context`.
 * - Without `upstreams`, the model is served by the only upstream with the vendor's name or host. An upstream without a `model` uses the vendor's
 *   name for the model.
 * - If the catalogue lacks a model's price or limit, the entry must state it. Otherwise, the entry is refused.
 * - `{ "catalogue": "openai/*" }` stands for every model in the catalogue whose id begins with `openai/` and whose price and limits are known. The
 *   entry's other settings apply to each of these models. A separate entry for one of them takes precedence.
 * - Prices come from the catalogue of the running version. They change when the service is upgraded or the entry changes. Earlier charges state the
 *   version of their price.
 */
import { hostOf, open, settingOf } from "./Catalogue.ts"
import type { Catalogue, KnownModel } from "./Catalogue.ts"

type Fields = Readonly<Record<string, unknown>>

export interface Issue {
  readonly path: ReadonlyArray<string | number>
  readonly message: string
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isOfCatalogue = (entry: unknown): entry is Fields => isFields(entry) && Object.hasOwn(entry, "catalogue")

/** Completes the document's entries and reports their errors. Reads the catalogue only if an entry refers to it. */
export const withEntries = (
  document: unknown
): { readonly document: unknown; readonly issues: ReadonlyArray<Issue> } => {
  if (!isFields(document) || !Array.isArray(document["models"]) || !document["models"].some(isOfCatalogue))
    return { document, issues: [] }
  const catalogue = open()
  const upstreams = isFields(document["upstreams"]) ? document["upstreams"] : {}
  const issues: Array<Issue> = []
  const entries = expanded(document["models"], catalogue, issues)
  const models = entries.map(({ entry, place: i }) => {
    if (!isOfCatalogue(entry) || isWildcard(entry["catalogue"])) return entry
    const { catalogue: id, ...beside } = entry
    const known = typeof id === "string" ? catalogue.find(id) : undefined
    if (known === undefined) {
      issues.push({ path: ["models", i, "catalogue"], message: unknownModel(catalogue, id) })
      return entry
    }
    const requested = upstreamsOf(known, upstreams)
    const whole = wholeEntry(known, beside, requested)
    const messages = [
      ...missing(known, whole),
      ...(beside["upstreams"] === undefined ? ambiguous(known, requested) : [])
    ]
    issues.push(...messages.map((message) => ({ path: ["models", i, "catalogue"], message })))
    return whole
  })
  return { document: { ...document, models }, issues }
}

const isWildcard = (id: unknown): id is string => typeof id === "string" && id.endsWith("*")

/** An entry with its index in the file, for error messages. */
interface Placed {
  readonly entry: unknown
  readonly place: number
}

/**
 * Replaces each wildcard with its models. The first model takes the wildcard's place. The others are appended, so that the following entries keep
 * their indexes.
 */
const expanded = (
  entries: ReadonlyArray<unknown>,
  catalogue: Catalogue,
  issues: Array<Issue>
): ReadonlyArray<Placed> => {
  const taken = new Set(
    entries.flatMap((entry) => {
      if (!isFields(entry)) return []
      return [entry["id"], entry["catalogue"]].filter((id) => typeof id === "string")
    })
  )
  const others: Array<Placed> = []
  const own = entries.map((entry, i): Placed => {
    const unchanged = { entry, place: i }
    if (!isOfCatalogue(entry)) return unchanged
    const { catalogue: wildcard, ...beside } = entry
    if (!isWildcard(wildcard)) return unchanged
    if (beside["id"] !== undefined)
      issues.push({ path: ["models", i, "id"], message: "must be absent if the entry stands for several models" })
    const beginning = wildcard.slice(0, -1)
    const alike = catalogue.models.filter(({ id }) => id.startsWith(beginning))
    const found = alike.filter((known) => !taken.has(known.id) && missing(known, { ...known, ...beside }).length === 0)
    if (found.length === 0) issues.push({ path: ["models", i, "catalogue"], message: nothingAlike(alike, wildcard) })
    const [first = unchanged, ...rest] = found.map(({ id }): Placed => {
      taken.add(id)
      return { entry: { catalogue: id, ...beside }, place: i }
    })
    others.push(...rest)
    return first
  })
  return [...own, ...others]
}

const nothingAlike = (alike: ReadonlyArray<KnownModel>, wildcard: string): string =>
  alike.length === 0
    ? `the catalogue contains no model ${wildcard}: "tollgate models" lists the known models`
    : `every model that matches ${wildcard} has its own entry or lacks a price: remove this entry`

const unknownModel = (catalogue: Catalogue, id: unknown): string => {
  if (typeof id !== "string") return "must be the id of a model, such as openai/gpt-4.1"
  const near = catalogue.near(id)
  const hint = near.length === 0 ? `"tollgate models" lists them` : `similar ids are ${near.join(", ")}`
  return `the catalogue of ${catalogue.day} does not contain this model: ${hint}`
}

const wholeEntry = (known: KnownModel, beside: Fields, asked: ReadonlyArray<string>): Fields => {
  const { context_length, id, input_modalities, limit_field, max_output_tokens, name, price, vendor } = known
  const { max_added_tokens, max_attachment_tokens, max_tool_tokens } = known
  const route = Array.isArray(beside["upstreams"])
    ? beside["upstreams"].map((one: unknown) => (isFields(one) ? { model: known.model, ...one } : one))
    : asked.map((upstream) => ({ upstream, model: known.model }))
  return {
    id,
    name,
    owned_by: vendor,
    ...(input_modalities !== undefined && { input_modalities }),
    ...(context_length !== undefined && { context_length }),
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    ...(limit_field !== undefined && { limit_field }),
    ...(max_added_tokens !== undefined && { max_added_tokens }),
    ...(max_tool_tokens !== undefined && { max_tool_tokens }),
    ...(max_attachment_tokens !== undefined && { max_attachment_tokens }),
    ...beside,
    ...(price !== undefined && { price: priceWith(settingOf(price), beside["price"]) }),
    upstreams: route
  }
}

const isWholePrice = (price: Fields): boolean =>
  price["prompt_usd_per_million"] !== undefined || price["completion_usd_per_million"] !== undefined

const priceWith = (known: Fields, beside: unknown): unknown => {
  if (beside === undefined) return known
  if (!isFields(beside) || isWholePrice(beside)) return beside
  const { long_context = [], ...lines } = beside
  const tiers = tiersWith(known["long_context"] ?? [], long_context)
  return { ...known, ...lines, ...(isEmpty(tiers) ? undefined : { long_context: tiers }) }
}

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0

/** Combines and sorts the tiers for longer prompts. Returns an invalid value unchanged, so that the schema rejects it. */
const tiersWith = (known: unknown, beside: unknown): unknown => {
  if (!Array.isArray(known) || !Array.isArray(beside) || !beside.every(isFields)) return beside
  const tiers = new Map<unknown, Fields>()
  for (const tier of [...known, ...beside] as ReadonlyArray<Fields>) {
    const above = tier["above_prompt_tokens"]
    tiers.set(above, { ...tiers.get(above), ...tier })
  }
  return [...tiers.values()].toSorted(
    (one, other) => Number(one["above_prompt_tokens"]) - Number(other["above_prompt_tokens"])
  )
}

/** Returns the names of the upstreams with the vendor's name or host. */
const upstreamsOf = ({ host, vendor }: KnownModel, upstreams: Fields): ReadonlyArray<string> =>
  Object.entries(upstreams).flatMap(([name, upstream]) => {
    const address = isFields(upstream) ? upstream["base_url"] : undefined
    const isAtHost = host !== undefined && typeof address === "string" && hostOf(address) === host
    return name === vendor || isAtHost ? [name] : []
  })

/** Returns a message for each required value that neither the entry nor the catalogue states. */
const missing = ({ id }: KnownModel, entry: Fields): ReadonlyArray<string> =>
  ["price", "context_length", "max_output_tokens"]
    .filter((field) => entry[field] === undefined)
    .map((field) => `the catalogue states no ${field} for ${id}: add it to this entry`)

/** Returns a message unless exactly one upstream has the vendor's name or host. */
const ambiguous = ({ host, vendor }: KnownModel, asked: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (asked.length === 1) return []
  const which = host === undefined ? `the name ${vendor}` : `the name ${vendor} or the host ${host}`
  const found = asked.length === 0 ? "no upstream has" : "several upstreams have"
  return [`${found} ${which}: add "upstreams": [{ "upstream": "…" }] to this entry`]
}
