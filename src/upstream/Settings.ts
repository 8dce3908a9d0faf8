/** The upstreams of the configuration file: `upstreams`, by their names. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { Address, NonEmpty, Seconds, secretOf } from "../kernel/Setting.ts"
import type { ConfigProblem } from "../kernel/Setting.ts"
import { keyHeaders } from "./Credential.ts"
import type { AwsCredential } from "./Credential.ts"
import { protocolNames, usualProtocols } from "./Protocol.ts"
import { Upstreams } from "./Upstreams.ts"

const SpokenProtocol = Schema.Literal(...protocolNames).annotations({
  message: () => ({ message: `one of ${protocolNames.join(", ")}`, override: true })
})

const KeyHeader = Schema.Literal(...keyHeaders).annotations({
  message: () => ({ message: `one of ${keyHeaders.join(", ")}`, override: true })
})

/** Names and values that go with every request; no credential. */
const Texts = Schema.optional(Schema.Record({ key: NonEmpty, value: Schema.String }))

/** Requests are signed by an AWS access key. Each entry but the region is the name of an environment variable. */
const AwsEntry = Schema.Struct({
  region: NonEmpty,
  access_key_id_env: Schema.optionalWith(NonEmpty, { default: () => "AWS_ACCESS_KEY_ID" }),
  secret_access_key_env: Schema.optionalWith(NonEmpty, { default: () => "AWS_SECRET_ACCESS_KEY" }),
  /** Of temporary credentials. */
  session_token_env: Schema.optional(NonEmpty)
})

const UpstreamEntry = Schema.Struct({
  base_url: Address,
  /** The environment variable that holds its key. */
  api_key_env: Schema.optional(NonEmpty),
  /** The key itself; for addresses that need no secret, like a local server. */
  api_key: Schema.optional(Schema.String),
  /** In which header it reads the key; the one that the vendor of the request's protocol reads, unless it says so. */
  credential: Schema.optional(KeyHeader),
  /** Instead of a key. */
  aws: Schema.optional(AwsEntry),
  headers: Texts,
  /** Added to every address: Azure's `api-version`. */
  query: Texts,
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
      Effect.forEach(Object.entries(upstreams), ([name, { api_key, api_key_env, aws, ...settings }]) =>
        Effect.map(
          Effect.all([secretOf(`upstreams.${name}.api_key_env`, api_key_env), awsOf(name, aws)]),
          ([key, signs]) => [name, { ...settings, aws: signs, api_key: key ?? Redacted.make(api_key ?? "") }] as const
        )
      ),
      (entries) => Upstreams.layer(Object.fromEntries(entries))
    )
  )

const awsOf = (
  name: string,
  entry: typeof AwsEntry.Type | undefined
): Effect.Effect<AwsCredential | undefined, ConfigProblem> => {
  if (entry === undefined) return Effect.succeed(undefined)
  const secret = (field: "access_key_id_env" | "secret_access_key_env" | "session_token_env") =>
    secretOf(`upstreams.${name}.aws.${field}`, entry[field])
  return Effect.map(
    Effect.all([secret("access_key_id_env"), secret("secret_access_key_env"), secret("session_token_env")]),
    ([access_key_id, secret_access_key, session_token]) => ({
      region: entry.region,
      access_key_id: access_key_id!,
      secret_access_key: secret_access_key!,
      session_token
    })
  )
}
