/** Reads `scim` in the configuration: the directory that provisions people. */
import { Context, Effect, Layer, Schema } from "effect"
import type { Redacted } from "effect"
import { NonEmpty, secretOf } from "../../kernel/Setting.ts"

/** The directory's name as a provider in the rules of `registration.groups`. */
export const directory = "scim"

const Scim = Schema.Struct({
  /** The environment variable that contains the directory's bearer token. */
  token_env: NonEmpty
})

export const fields = {
  /** SCIM 2.0 at `/scim/v2`. Without this entry, every request is rejected. */
  scim: Schema.optional(Scim)
}

/** The directory's bearer token; `undefined` if there is no directory. */
export class ScimBearer extends Context.Tag("tollgate/scim/ScimBearer")<
  ScimBearer,
  { readonly token: Redacted.Redacted | undefined }
>() {
  static readonly layerNone = Layer.succeed(ScimBearer, { token: undefined })
}

/** Provides the token. Fails if its environment variable is not set. */
export const layer = ({ scim }: { readonly scim?: typeof Scim.Type | undefined }) =>
  Layer.effect(
    ScimBearer,
    Effect.map(secretOf("scim.token_env", scim?.token_env), (token) => ({ token }))
  )
