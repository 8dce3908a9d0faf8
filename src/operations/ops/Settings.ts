/**
 * Controls access to `/metrics`, as configured in `metrics`.
 *
 * Where the specification is silent:
 * - Without `metrics`, anyone who can reach the port may read `/metrics`. With `token_env`, `/metrics` requires the bearer token in that variable,
 *   and rejects other tokens with the error texts of the routes for user tokens.
 */
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { createHash, timingSafeEqual } from "node:crypto"
import { NonEmpty, secretOf } from "../../kernel/Setting.ts"
import { InvalidToken, MissingAuthorization } from "../../people/credentials/Problems.ts"

const Entry = Schema.Struct({
  /** The environment variable with the bearer token that readers of `/metrics` must send. */
  token_env: NonEmpty
})

export const fields = { metrics: Schema.optional(Entry) }

export class MetricsAccess extends Context.Tag("tollgate/ops/MetricsAccess")<
  MetricsAccess,
  { readonly check: (authorization: string | undefined) => Effect.Effect<void, MissingAuthorization | InvalidToken> }
>() {}

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest()

/** Provides the access rule. Fails if the environment variable for the token is not set. */
export const layer = ({ metrics }: { readonly metrics?: typeof Entry.Type | undefined }) =>
  Layer.effect(
    MetricsAccess,
    Effect.map(secretOf("metrics.token_env", metrics?.token_env), (token) => {
      if (token === undefined) return { check: () => Effect.void }
      const expected = digestOf(Redacted.value(token))
      const check = (authorization = ""): Effect.Effect<void, MissingAuthorization | InvalidToken> => {
        if (authorization === "") return new MissingAuthorization()
        const bearer = /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ""
        // Compares digests, because `timingSafeEqual` requires equal lengths.
        return timingSafeEqual(digestOf(bearer), expected) ? Effect.void : new InvalidToken()
      }
      return { check }
    })
  )
