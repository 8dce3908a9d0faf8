/** Providers of a tool: who can be asked for it, as the configuration lists them. The first is asked unless a caller picks. */
import { Either, Schema } from "effect"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"

export interface Provider {
  /** What callers pick it by. */
  readonly id: string
  readonly name: string
  readonly description: string
  /** The name of its upstream in the configuration. */
  readonly upstream: string
}

/** As the documented routes list them. */
export const ProviderNames = Schema.Struct({ providers: Schema.Array(Schema.String) }).annotations({
  identifier: "ProviderNames"
})

/** As the routes below `/v1/tools` list them. */
export const ProviderList = Schema.Struct({
  providers: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String, description: Schema.String }))
}).annotations({ identifier: "ProviderList" })

export const namesOf = (providers: ReadonlyArray<Provider>) => ({ providers: providers.map(({ id }) => id) })

export const listOf = (providers: ReadonlyArray<Provider>) => ({
  providers: providers.map(({ description, id, name }) => ({ id, name, description }))
})

/** The provider that a caller asks for, or the first. */
export const pick = <P extends Provider>(
  providers: ReadonlyArray<P>,
  asked: string | undefined
): Either.Either<P, InvalidRequest> => {
  const found = asked === undefined || asked === "" ? providers[0] : providers.find(({ id }) => id === asked)
  if (found !== undefined) return Either.right(found)
  const rule = providers.length === 0 ? "none is configured here" : `one of ${providers.map(({ id }) => id).join(", ")}`
  return Either.left(InvalidRequest.of("provider", rule))
}
