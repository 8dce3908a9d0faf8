/**
 * The known models with their limits and prices. The file is read on demand and not cached, because a service needs only the models in its
 * configuration.
 */
import { read } from "./CatalogueFile.ts"
import type { CatalogueDocument, Price, PriceFields, Stored } from "./Document.ts"
import { nearest } from "../../kernel/Likeness.ts"

export interface KnownModel extends Stored {
  /** `vendor/model`. */
  readonly id: string
  readonly vendor: string
  /** The vendor's name for the model. */
  readonly model: string
  readonly host: string | undefined
}

export interface Catalogue extends Pick<CatalogueDocument, "day" | "sources"> {
  readonly models: ReadonlyArray<KnownModel>
  readonly find: (id: string) => KnownModel | undefined
  /** Finds a model among the vendors with this upstream's name or host. */
  readonly findAt: (
    upstream: { readonly name: string; readonly base_url: string },
    model: string
  ) => KnownModel | undefined
  /** Returns the most similar ids, possibly none. */
  readonly near: (id: string) => ReadonlyArray<string>
}

export const open = (): Catalogue => {
  const { day, sources, vendors } = JSON.parse(read()) as CatalogueDocument
  const models = Object.entries(vendors).flatMap(([vendor, { host, models }]) =>
    Object.entries(models).map(([model, stored]): KnownModel => ({
      ...stored,
      id: `${vendor}/${model}`,
      vendor,
      model,
      host
    }))
  )
  const byId = new Map(models.map((model) => [model.id, model]))
  const names = Object.entries(vendors)
  return {
    day,
    sources,
    models,
    find: (id) => byId.get(id),
    findAt: ({ base_url, name }, model) => {
      const at = hostOf(base_url)
      const found = names.filter(([vendor, { host }]) => vendor === name || (host !== undefined && host === at))
      return found.map(([vendor]) => byId.get(`${vendor}/${model}`)).find((one) => one !== undefined)
    },
    near: (id) =>
      nearest(
        id,
        models.map(({ id }) => id),
        0.5
      )
  }
}

export const hostOf = (address: string): string | undefined =>
  URL.canParse(address) ? new URL(address).hostname : undefined

/** Converts a price to the configuration's field names. */
export const settingOf = ({ long_context, ...fields }: Price) => ({
  ...namesOf(fields),
  ...(long_context !== undefined && {
    long_context: long_context.map(({ above_prompt_tokens, ...tier }) => ({ above_prompt_tokens, ...namesOf(tier) }))
  })
})

const namesOf = (fields: PriceFields) =>
  Object.fromEntries(Object.entries(fields).map(([name, usd]) => [`${name}_usd_per_million`, usd]))
