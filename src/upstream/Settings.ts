/** The upstreams of the configuration file: `upstreams`, by their names. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { Address, NonEmpty, Seconds, secretOf } from "../kernel/Setting.ts"
import { protocolNames, usualProtocols } from "./Protocol.ts"
import { Upstreams } from "./Upstreams.ts"

const SpokenProtocol = Schema.Literal(...protocolNames).annotations({
  message: () => ({ message: `one of ${protocolNames.join(", ")}`, override: true })
})

const UpstreamEntry = Schema.Struct({
  base_url: Address,
  /** The environment variable that holds its key. */
  api_key_env: Schema.optional(NonEmpty),
  /** The key itself; for addresses that need no secret, like a local server. */
  api_key: Schema.optional(Schema.String),
  /** How long it may stay silent before it counts as unreachable. */
  silence_ms_max: Schema.optionalWith(Seconds, { default: () => 300_000 }).pipe(Schema.fromKey("timeout_seconds")),
  /** The protocols in which it can be asked for models. */
  speaks: Schema.optionalWith(Schema.NonEmptyArray(SpokenProtocol), { default: () => usualProtocols as never }),
  /** Whether callers may go on from responses that it has kept. They are kept by its key, not by who calls here. */
  keeps_responses: Schema.optionalWith(Schema.Boolean, { default: () => false })
})
type UpstreamEntry = typeof UpstreamEntry.Type

export const fields = {
  upstreams: Schema.optionalWith(Schema.Record({ key: NonEmpty, value: UpstreamEntry }), { default: () => ({}) })
}

/** Fails where the variable of a key is not set. */
export const layer = ({ upstreams }: { readonly upstreams: { readonly [name: string]: UpstreamEntry } }) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.forEach(Object.entries(upstreams), ([name, { api_key, api_key_env, ...settings }]) =>
        Effect.map(
          secretOf(`upstreams.${name}.api_key_env`, api_key_env),
          (key) => [name, { ...settings, api_key: key ?? Redacted.make(api_key ?? "") }] as const
        )
      ),
      (entries) => Upstreams.layer(Object.fromEntries(entries))
    )
  )
