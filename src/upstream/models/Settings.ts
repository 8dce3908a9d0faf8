/** The `upstreams` in the configuration file, by name. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { createPrivateKey } from "node:crypto"
import { Address, ConfigProblem, NonEmpty, Seconds, secretOf } from "../../kernel/Setting.ts"
import type { EntraClient, GoogleAccount } from "./AccessTokens.ts"
import { keyHeaders } from "./Credential.ts"
import type { AwsCredential } from "./Credential.ts"
import { protocolNames, usualProtocols } from "./Protocol.ts"
import { Upstreams } from "./Upstreams.ts"

const SpokenProtocol = Schema.Literal(...protocolNames).annotations({
  message: () => ({ message: `must be one of ${protocolNames.join(", ")}`, override: true })
})

const KeyHeader = Schema.Literal(...keyHeaders).annotations({
  message: () => ({ message: `must be one of ${keyHeaders.join(", ")}`, override: true })
})

/** At most 23 days, because Node's timers cannot run for more than 24. */
const TotalSeconds = Seconds.pipe(
  Schema.lessThanOrEqualTo(2_000_000_000, { message: () => "must be at most 2000000 seconds" })
)

/** Names and values to add to every request. They must not be credentials. */
const Texts = Schema.optional(Schema.Record({ key: NonEmpty, value: Schema.String }))

/** Signs requests with an AWS access key. Each field except `region` is the name of an environment variable. */
const AwsEntry = Schema.Struct({
  region: NonEmpty,
  access_key_id_env: Schema.optionalWith(NonEmpty, { default: () => "AWS_ACCESS_KEY_ID" }),
  secret_access_key_env: Schema.optionalWith(NonEmpty, { default: () => "AWS_SECRET_ACCESS_KEY" }),
  /** The variable for the session token of temporary credentials. */
  session_token_env: Schema.optional(NonEmpty)
})

/** Google Cloud tokens for Vertex AI. The environment variable contains the JSON key of a service account. */
const GoogleCloudEntry = Schema.Struct({ service_account_env: NonEmpty })

/** Microsoft Entra tokens for Azure. */
const EntraEntry = Schema.Struct({
  tenant_id: NonEmpty,
  client_id: NonEmpty,
  client_secret_env: NonEmpty,
  authority: Schema.optionalWith(Address, { default: () => "https://login.microsoftonline.com" }),
  scope: Schema.optionalWith(NonEmpty, { default: () => "https://cognitiveservices.azure.com/.default" })
})

/** An upstream can have at most one of these credentials. */
const credentials = ["api_key_env", "api_key", "aws", "google_cloud", "entra"] as const

const UpstreamFields = Schema.Struct({
  base_url: Address,
  /** The environment variable that contains the key. */
  api_key_env: Schema.optional(NonEmpty),
  /** The key itself, if it is not a secret, as for a local server. */
  api_key: Schema.optional(Schema.String),
  /** The header for the key; by default, that of the protocol's vendor. */
  credential: Schema.optional(KeyHeader),
  /** Signs each request instead of sending a key. */
  aws: Schema.optional(AwsEntry),
  google_cloud: Schema.optional(GoogleCloudEntry),
  entra: Schema.optional(EntraEntry),
  headers: Texts,
  /** Values added to every URL, such as Azure's `api-version`. */
  query: Texts,
  /** How long the upstream may be silent before it counts as unreachable. */
  silence_ms_max: Schema.optionalWith(Seconds, { default: () => 300_000 }).pipe(Schema.fromKey("timeout_seconds")),
  /**
   * The maximum time from a request to the last byte of its response, an hour by default. A stream that takes longer is stopped, and the call costs
   * only the part that was produced. Any other response that takes longer is a failure.
   */
  total_ms_max: Schema.optionalWith(TotalSeconds, { default: () => 3_600_000 }).pipe(
    Schema.fromKey("total_timeout_seconds")
  ),
  speaks: Schema.optionalWith(Schema.NonEmptyArray(SpokenProtocol), { default: () => usualProtocols as never }),
  /** The cooldown after three consecutive failures or a `Retry-After`. Without it, failures do not change the order. */
  cooldown_ms: Schema.optional(Seconds).pipe(Schema.fromKey("cooldown_seconds")),
  /** Whether callers may continue from responses that the upstream stores under its key. `calls/prompts/Kept` records their owners. */
  keeps_responses: Schema.optionalWith(Schema.Boolean, { default: () => false })
})

/** Returns the region in a Bedrock host, such as `bedrock-runtime.eu-central-1.amazonaws.com`; `undefined` for any other host. */
const regionIn = (base_url: string): string | undefined =>
  /^bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com|api\.aws)/.exec(new URL(base_url).hostname)?.[1]

const UpstreamEntry = UpstreamFields.pipe(
  Schema.filter((entry) => {
    const given = credentials.filter((name) => entry[name] !== undefined)
    if (given.length > 1)
      return { path: [given[1]!], message: `only one credential is allowed, and ${given[0]!} is set` }
    if (entry.aws === undefined) return true
    const region = regionIn(entry.base_url)
    if (region === undefined || region === entry.aws.region) return true
    return { path: ["aws", "region"], message: `must be ${region}, the region in base_url` }
  })
)
type UpstreamEntry = typeof UpstreamEntry.Type

export const fields = {
  upstreams: Schema.optionalWith(Schema.Record({ key: NonEmpty, value: UpstreamEntry }), { default: () => ({}) })
}

/** Builds the upstreams. Fails if the environment variable of a credential is unset or invalid. */
export const layer = ({ upstreams }: { readonly upstreams: { readonly [name: string]: UpstreamEntry } }) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.forEach(
        Object.entries(upstreams),
        ([name, { api_key, api_key_env, aws, entra, google_cloud, ...settings }]) =>
          Effect.map(
            Effect.all([
              secretOf(`upstreams.${name}.api_key_env`, api_key_env),
              awsOf(name, aws),
              google_cloud === undefined ? entraOf(name, entra) : googleOf(name, google_cloud)
            ]),
            ([key, signs, token_for]) =>
              [name, { ...settings, aws: signs, token_for, api_key: key ?? Redacted.make(api_key ?? "") }] as const
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

/**
 * The required members of a service account's key file. The private key is parsed at startup, so that the service does not start with a damaged key.
 */
const ServiceAccount = Schema.parseJson(
  Schema.Struct({
    type: Schema.Literal("service_account"),
    client_email: NonEmpty,
    private_key_id: NonEmpty,
    private_key: NonEmpty,
    token_uri: Address
  })
)

const googleOf = (
  name: string,
  { service_account_env: variable }: typeof GoogleCloudEntry.Type
): Effect.Effect<GoogleAccount, ConfigProblem> => {
  const entry = `upstreams.${name}.google_cloud.service_account_env`
  return Effect.flatMap(secretOf(entry, variable), (secret) =>
    Effect.try({
      try: (): GoogleAccount => {
        const { private_key, type: _, ...account } = Schema.decodeUnknownSync(ServiceAccount)(Redacted.value(secret!))
        createPrivateKey(private_key)
        return { kind: "google_cloud", ...account, private_key: Redacted.make(private_key) }
      },
      // Omit the cause, because it repeats part of the variable's value.
      catch: () =>
        new ConfigProblem({
          message: `${entry}: the environment variable ${variable} must contain the JSON key of a service account, with client_email, private_key_id, private_key and token_uri`
        })
    })
  )
}

const entraOf = (
  name: string,
  entry: typeof EntraEntry.Type | undefined
): Effect.Effect<EntraClient | undefined, ConfigProblem> => {
  if (entry === undefined) return Effect.succeed(undefined)
  const { client_secret_env, ...client } = entry
  return Effect.map(secretOf(`upstreams.${name}.entra.client_secret_env`, client_secret_env), (secret) => ({
    kind: "entra",
    ...client,
    client_secret: secret!
  }))
}
