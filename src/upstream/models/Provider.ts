/** The configured providers of a tool. The first is used unless a caller selects another. */
import { Either, Schema } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import * as Price from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { NonEmpty } from "../../kernel/Setting.ts"

export interface Provider {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly upstream: string
}

export const providerFields = {
  /** Callers select the provider by this name. */
  id: NonEmpty,
  name: Schema.optional(NonEmpty),
  description: Schema.optionalWith(Schema.String, { default: () => "" }),
  /** The configured name of the provider's upstream. */
  upstream: NonEmpty
} as const

export const modelFields = {
  /** Callers select the model by this name. */
  id: NonEmpty,
  /** The upstream's name for the model; the id by default. */
  model: Schema.optional(NonEmpty)
} as const

/** Sets the name of a provider or model without a name to its id. */
export const named = <E extends { readonly id: string; readonly name?: string | undefined }>(entry: E) => ({
  ...entry,
  name: entry.name ?? entry.id
})

export const ProviderNames = Schema.Struct({ providers: Schema.Array(Schema.String) }).annotations({
  identifier: "ProviderNames"
})

/** The response of the routes below `/v1/tools`. */
export const ProviderList = Schema.Struct({
  providers: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String, description: Schema.String }))
}).annotations({ identifier: "ProviderList" })

/** The models for speech or transcription, in the order of the configuration. */
export const ToolModelList = Schema.Struct({
  models: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      /** The model's provider. A model that several providers offer is listed once for each provider. */
      provider: Schema.String,
      provider_name: Schema.String,
      unit: Schema.Literal("character", "second"),
      unit_price_usd: Schema.Number,
      /** Whether this model is the default for calls that name neither a model nor a provider. */
      default: Schema.Boolean
    }).annotations({ identifier: "ToolModelEntry" })
  )
}).annotations({ identifier: "ToolModelList" })

export const modelsOf = (
  providers: ReadonlyArray<
    Provider & { readonly models: ReadonlyArray<{ readonly id: string; readonly price: UnitPrice }> }
  >,
  unit: "character" | "second"
): (typeof ToolModelList.Type)["models"] =>
  providers.flatMap(({ id: provider, models, name }, place) =>
    models.map(({ id, price }, i) => ({
      id,
      provider,
      provider_name: name,
      unit,
      unit_price_usd: Number(Price.toDecimal(price)),
      default: place === 0 && i === 0
    }))
  )

export const namesOf = (providers: ReadonlyArray<Provider>) => ({ providers: idsOf(providers) })

export const listOf = (providers: ReadonlyArray<Provider>) => ({
  providers: providers.map(({ description, id, name }) => ({ id, name, description }))
})

/** No provider has this name. Over HTTP, this is an `InvalidRequest` for the field `provider`. */
export class UnknownProvider extends InvalidRequest {
  readonly provider: string
  readonly providers: ReadonlyArray<string>

  // @effect-diagnostics-next-line overriddenSchemaConstructor:off -- it is constructed from a name but decoded as an InvalidRequest
  constructor(provider: string, providers: ReadonlyArray<string>) {
    super(oneOf("provider", providers))
    this.provider = provider
    this.providers = providers
  }
}

/** No model has this name. Over HTTP, this is an `InvalidRequest` for the field `model`. */
export class UnknownModel extends InvalidRequest {
  readonly model: string
  readonly models: ReadonlyArray<string>

  // @effect-diagnostics-next-line overriddenSchemaConstructor:off -- it is constructed from a name but decoded as an InvalidRequest
  constructor(model: string, models: ReadonlyArray<string>) {
    super(oneOf("model", models))
    this.model = model
    this.models = models
  }
}

const oneOf = (field: string, names: ReadonlyArray<string>) => {
  const rule = names.length === 0 ? "none is configured" : `must be one of ${names.join(", ")}`
  return { field, rule, message: `${field}: ${rule}` }
}

/** Selects the requested provider, or the first one if the caller requests none. */
export const pick = <P extends Provider>(
  providers: ReadonlyArray<P>,
  name: string | undefined
): Either.Either<P, UnknownProvider> => {
  const found = name === undefined || name === "" ? providers[0] : providers.find(({ id }) => id === name)
  if (found !== undefined) return Either.right(found)
  return Either.left(new UnknownProvider(name ?? "", idsOf(providers)))
}

/** Selects the requested model, or the first one if the caller requests none. */
export const pickModel = <M extends { readonly id: string }>(
  models: ReadonlyArray<M>,
  name: string | undefined
): Either.Either<M, UnknownModel> => {
  const found = name === undefined || name === "" ? models[0] : models.find(({ id }) => id === name)
  return found === undefined ? Either.left(new UnknownModel(name ?? "", idsOf(models))) : Either.right(found)
}

/** Finds the first provider that offers this model, for callers that request no provider. */
export const withModel = <P extends Provider & { readonly models: ReadonlyArray<{ readonly id: string }> }>(
  providers: ReadonlyArray<P>,
  model: string
): Either.Either<P, UnknownModel> => {
  const found = providers.find(({ models }) => models.some(({ id }) => id === model))
  if (found !== undefined) return Either.right(found)
  return Either.left(new UnknownModel(model, [...new Set(providers.flatMap(({ models }) => idsOf(models)))]))
}

const idsOf = (named: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> => named.map(({ id }) => id)
