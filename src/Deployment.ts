/**
 * A deployment: the configuration as the settings that the rooms ask for, and the service over its database. Nothing below knows
 * where a setting came from.
 */
import * as OtlpSerialization from "@effect/opentelemetry/OtlpSerialization"
import * as OtlpTracer from "@effect/opentelemetry/OtlpTracer"
import { FetchHttpClient } from "@effect/platform"
import { Effect, Layer, Option, Redacted } from "effect"
import type { Scope } from "effect"
import { randomBytes } from "node:crypto"
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { ConfiguredClients } from "./auth/Clients.ts"
import type { Client } from "./auth/Clients.ts"
import * as DeploymentSecret from "./auth/DeploymentSecret.ts"
import { sealedSample } from "./auth/SigningKeys.ts"
import { TokenIssuer } from "./auth/Tokens.ts"
import { ServiceInfo } from "./kernel/ServiceInfo.ts"
import { Models } from "./chat/Model.ts"
import { ConfigProblem, upstreamKey, variable } from "./Config.ts"
import type { ConfigFile, EnvironmentFacts } from "./Config.ts"
import { ConfiguredDecisionModel } from "./decisions/Decision.ts"
import type { DecisionModel } from "./decisions/Decision.ts"
import { ContactEmail } from "./contact/Contact.ts"
import { Bytes } from "./http/Bytes.ts"
import { RateLimitsConfig } from "./http/RateLimits.ts"
import type { RateLimitSettings } from "./http/RateLimits.ts"
import { ImageProviders } from "./images/Image.ts"
import * as Price from "./kernel/Price.ts"
import type { UnitPrice } from "./kernel/Price.ts"
import { Writer } from "./ledger/Writer.ts"
import { Tracing } from "./kernel/Tracing.ts"
import { LetterLimits } from "./mail/Letter.ts"
import { LetterPrice } from "./mail/SelfMail.ts"
import { MediaModels } from "./media/Model.ts"
import type { MediaModel, Resolution } from "./media/Model.ts"
import { PriceList } from "./prices/PriceList.ts"
import { pricesByDepth, SearchProviders } from "./search/Provider.ts"
import { SpeechProviders } from "./speech/Provider.ts"
import * as Files from "./sql/Files.ts"
import * as Opening from "./sql/Opening.ts"
import type { DatabaseUnusable } from "./sql/Opening.ts"
import * as Sql from "./sql/Sql.ts"
import { TranscriptionProviders } from "./transcription/Provider.ts"
import { IdentityProviders } from "./upstream/Identity.ts"
import { Mail } from "./upstream/Mail.ts"
import { make as makePayments, Payments } from "./upstream/Payments.ts"
import type { Provider } from "./upstream/Provider.ts"
import { Upstreams } from "./upstream/Upstreams.ts"
import { version } from "./Version.ts"

/**
 * Keeps the data for the service's own user, from now on and when the scope is left. To be entered before the database is opened, once
 * it is known to be ours, and left after it.
 */
export const kept = (facts: EnvironmentFacts): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { done, left } = yield* Files.tighten(facts)
    if (done.length > 0)
      yield* Effect.logWarning(`others could use what is private, and cannot any more: ${done.join(", ")}`)
    if (left.length > 0) yield* Effect.logWarning(`others can use what is private: ${left.join(", ")}`)
    yield* Effect.addFinalizer(() => Files.tighten(facts))
  })

/** The newest migration that the database has applied. Fails where there is no database that can be read and written. */
export const applied = (facts: EnvironmentFacts): Effect.Effect<number, ConfigProblem | DatabaseUnusable> =>
  Effect.filterOrFail(
    Opening.look(facts.database, { writing: true }),
    (found): found is number => found !== undefined && found > 0,
    (found) =>
      new ConfigProblem({
        message:
          found === undefined
            ? `there is no database at ${facts.database}: are DATA_DIR and DATABASE_URL what the service has? (serve and migrate make one)`
            : `${facts.database} holds no books yet (serve and migrate make them)`
      })
  )

/** Makes the folders that data is kept in. */
export const folder = ({ data_dir, database }: EnvironmentFacts): Effect.Effect<void, ConfigProblem> =>
  Effect.forEach(
    [
      ["DATA_DIR", data_dir],
      ["DATABASE_URL", dirname(database)]
    ] as const,
    ([entry, folder]) =>
      Effect.try({
        try: () => void mkdirSync(folder, { recursive: true, mode: 0o700 }),
        catch: (error) => new ConfigProblem({ message: `${entry}: ${unmade(folder, error as NodeJS.ErrnoException)}` })
      }),
    { discard: true }
  )

const unmade = (folder: string, { code, message }: NodeJS.ErrnoException): string => {
  switch (code) {
    case "EEXIST":
    case "ENOTDIR":
      return `${folder} is no folder`
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return `${folder} may not be made by this user, or lies on a read-only disk`
    case "ENOSPC":
      return `${folder} could not be made: the disk is full`
    default:
      return `${folder} could not be made: ${message}`
  }
}

/** The database of the deployment, migrated, with its one writer. */
export const database = ({ database }: EnvironmentFacts) =>
  Writer.layerThread(database).pipe(Layer.provideMerge(Sql.layer(database)))

/** What the rooms want to know, from the environment and the configuration file. */
export const settings = (environment: EnvironmentFacts, file: ConfigFile) =>
  Layer.mergeAll(
    Layer.succeed(ServiceInfo, {
      service_name: environment.service_name ?? file.service_name ?? "Tollgate",
      key_prefix: environment.key_prefix,
      public_url: publicUrl(environment, file)
    }),
    Layer.succeed(PriceList, file.prices),
    Layer.succeed(Models, { models: file.models.map(modelOf), auto: file.auto }),
    Layer.succeed(ConfiguredDecisionModel, decisionModel(file)),
    tools(file),
    Layer.succeed(MediaModels, file.media.map(mediaModelOf)),
    Layer.succeed(LetterPrice, file.mail?.usd_per_letter ?? (0n as UnitPrice)),
    Layer.succeed(IdentityProviders, file.identity),
    Layer.succeed(ConfiguredClients, clientsOf(file)),
    Layer.succeed(TokenIssuer, publicUrl(environment, file)),
    Layer.effect(
      RateLimitsConfig,
      Effect.map(RateLimitsConfig, (preset) => ({ ...preset, ...(file.rate_limits as Partial<RateLimitSettings>) }))
    ),
    Bytes.layer({
      ...(file.bodies.bytes_total !== undefined && { bytes_total: file.bodies.bytes_total }),
      ...(file.bodies.window_seconds !== undefined && { window_ms: file.bodies.window_seconds * 1000 })
    }),
    Layer.effect(
      LetterLimits,
      Effect.map(LetterLimits, ({ per_day_to_one_address, per_hour }) => ({
        per_hour: file.letter_limits.per_hour ?? per_hour,
        per_day_to_one_address: file.letter_limits.per_day_to_one_address ?? per_day_to_one_address
      }))
    ),
    Layer.succeed(ContactEmail, file.contact_email),
    upstreams(file),
    payments(environment, file),
    mail(file),
    secret(environment)
  )

const clientsOf = (file: ConfigFile): ReadonlyArray<Client> => [
  ...file.clients.map((client) => ({ ...client, kind: "app" as const, redirect_uris: [] })),
  ...file.oauth_clients.map((client) => ({ ...client, kind: "oauth" as const })),
  ...file.web_clients.map((client) => ({ ...client, kind: "web" as const, redirect_uris: [] }))
]

const publicUrl = ({ host, port }: EnvironmentFacts, { public_url }: ConfigFile): string =>
  (public_url ?? `http://${hostOf(host)}:${port}`).replace(/\/+$/, "")

/** A host as it stands in an address. */
export const hostOf = (host: string): string => (host.includes(":") ? `[${host}]` : host)

const modelOf = (entry: ConfigFile["models"][number]): (typeof Models.Service)["models"][number] => ({
  id: entry.id,
  name: entry.name ?? entry.id,
  description: entry.description,
  context_length: entry.context_length,
  output_tokens_max: entry.max_output_tokens,
  attachment_tokens_max: entry.max_attachment_tokens,
  added_tokens_max: entry.max_added_tokens,
  owned_by: entry.owned_by ?? "system",
  created: entry.created,
  input_modalities: entry.input_modalities,
  output_modalities: entry.output_modalities,
  prompt_price: entry.price.prompt_usd_per_million,
  completion_price: entry.price.completion_usd_per_million,
  request_price: entry.price.usd_per_request,
  extras: entry.extras.map(({ field, price_factor, usd_per_request, values }) => ({
    field,
    values,
    price_factor,
    request_price: usd_per_request
  })),
  routes: entry.upstreams.map(({ limit_field, model, upstream }) => ({
    upstream,
    model: model ?? entry.id,
    limit_field: limit_field ?? entry.limit_field
  }))
})

const decisionModel = ({ decisions }: ConfigFile): DecisionModel | undefined =>
  decisions === undefined ? undefined : { ...decisions, input_price: decisions.price.input_usd_per_million }

const provider = ({
  description,
  id,
  name,
  upstream
}: {
  readonly id: string
  readonly name?: string | undefined
  readonly description: string
  readonly upstream: string
}): Provider => ({ id, name: name ?? id, description, upstream })

const tools = ({ tools }: ConfigFile) =>
  Layer.mergeAll(
    Layer.succeed(
      ImageProviders,
      tools.images.map((entry) => ({
        ...provider(entry),
        endpoint: entry.endpoint,
        image_to_image_endpoint: entry.image_to_image_endpoint,
        price: entry.usd_per_image,
        images_max: entry.images_max,
        price_by_size: Object.fromEntries(
          Object.entries(entry.usd_per_image_by_size).filter(([, price]) => price !== undefined)
        )
      }))
    ),
    Layer.succeed(
      SearchProviders,
      tools.search.map((entry) => ({
        ...provider(entry),
        vendor: entry.vendor,
        price: entry.usd_per_query,
        price_by_depth: entry.usd_per_query_by_depth ?? pricesByDepth(entry.vendor, entry.usd_per_query)
      }))
    ),
    Layer.succeed(
      SpeechProviders,
      tools.speech.map((entry) => ({
        ...provider(entry),
        models: entry.models.map(({ id, model, usd_per_million_characters: price }) => ({
          id,
          upstream_model: model ?? id,
          price
        }))
      }))
    ),
    Layer.succeed(
      TranscriptionProviders,
      tools.transcription.map((entry) => ({
        ...provider(entry),
        models: entry.models.map(({ id, model, usd_per_minute, wire_format }) => ({
          id,
          upstream_model: model ?? id,
          wire_format,
          price: (usd_per_minute / 60n) as UnitPrice
        }))
      }))
    )
  )

const mediaModelOf = (entry: ConfigFile["media"][number]): MediaModel => {
  const { endpoint, id, passes, prompt_required, upstream } = entry
  const facts = { id, display_name: entry.display_name ?? id, upstream, endpoint, passes, prompt_required }
  if (entry.type === "image") {
    const { default: isDefault, images_max, sizes, usd_per_image: price } = entry
    const pricing_note = entry.pricing_note ?? `${Price.toDecimal(price)} USD an image`
    return { ...facts, type: "image", price, images_max, sizes, default: isDefault, pricing_note }
  }
  const { audio, default_duration, duration, from_image } = entry
  const [first, ...others] = (entry.resolutions ?? [{ tier: "", usd_per_second: entry.usd_per_second! }]).map(
    (one): Resolution => ({
      tier: one.tier,
      price: one.usd_per_second,
      price_with_audio:
        ("usd_per_second_with_audio" in one ? one.usd_per_second_with_audio : undefined) ?? one.usd_per_second
    })
  )
  const resolutions = [first!, ...others] as const
  const noted = resolutions.map(
    ({ price, price_with_audio, tier }) =>
      `${tier === "" ? "" : `${tier} `}${Price.toDecimal(price)}` +
      (audio === "none" ? "" : ` (with audio ${Price.toDecimal(price_with_audio)})`)
  )
  const pricing_note = entry.pricing_note ?? `USD a second of video: ${noted.join(", ")}`
  return { ...facts, type: "video", resolutions, duration, default_duration, audio, from_image, pricing_note }
}

const upstreams = (file: ConfigFile) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.forEach(Object.entries(file.upstreams), ([name, entry]) =>
        Effect.map(
          upstreamKey(name, entry),
          (api_key) =>
            [name, { base_url: entry.base_url, api_key, silence_ms_max: entry.timeout_seconds * 1000 }] as const
        )
      ),
      (entries) => Upstreams.layer(Object.fromEntries(entries))
    )
  )

const payments = (environment: EnvironmentFacts, file: ConfigFile) => {
  const { payments } = file
  if (payments === undefined) return Layer.empty
  const secret = (entry: "secret_key" | "webhook_secret") =>
    Effect.flatMap(variable(`payments.${entry}_env`, payments[`${entry}_env`]), (value) => {
      const given = value ?? (payments[entry] === undefined ? undefined : Redacted.make(payments[entry]))
      return given === undefined
        ? new ConfigProblem({ message: `payments.${entry}_env: required, the environment variable that holds it` })
        : Effect.succeed(given)
    })
  return Layer.unwrapEffect(
    Effect.map(Effect.all([secret("secret_key"), secret("webhook_secret")]), ([secret_key, webhook_secret]) =>
      Layer.succeed(
        Payments,
        makePayments({
          secret_key,
          webhook_secret,
          base_url: payments.base_url,
          return_url: payments.return_url ?? publicUrl(environment, file)
        })
      )
    )
  )
}

const mail = ({ mail }: ConfigFile) =>
  mail === undefined
    ? Layer.empty
    : Layer.unwrapEffect(
        Effect.map(variable("mail.password_env", mail.password_env), (password) =>
          Mail.layerSmtp({ ...mail, password, port: mail.port ?? (mail.secure ? 465 : 587) })
        )
      )

/**
 * From the environment, or from a file in the data folder that the first start makes. One that does not open what the database holds
 * is refused, and none is made for a database that was used with another.
 */
export const secret = (environment: EnvironmentFacts) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const sealed = yield* sealedSample
      const found = yield* givenSecret(environment)
      if (sealed === undefined) return DeploymentSecret.layer(found?.[0] ?? (yield* madeSecret(environment)))
      const fitting = yield* Effect.findFirst(found ?? [], (bytes) => DeploymentSecret.opens(bytes, sealed))
      if (Option.isSome(fitting)) return DeploymentSecret.layer(fitting.value)
      const path = secretFile(environment)
      const why =
        environment.secret !== undefined
          ? `TOLLGATE_SECRET is not the secret that ${environment.database} was used with: set the earlier one`
          : found === undefined
            ? `the deployment's secret is missing: ${environment.database} was used with one, but there is no ${path}, and ` +
              "TOLLGATE_SECRET is not set. Put it back from your backup"
            : `${path} is not the secret that ${environment.database} was used with: put the earlier one back from your backup`
      return yield* new ConfigProblem({
        message: `${why}. If it is lost for good, "tollgate reseal" keeps all balances and starts keys and sign-ins over`
      })
    })
  )

const secretFile = ({ data_dir }: EnvironmentFacts): string => join(data_dir, "secret")

/** The secret that there is, in the ways in which its text can be read, the likeliest first; `undefined` where there is none. */
const givenSecret = (
  environment: EnvironmentFacts
): Effect.Effect<readonly [Uint8Array, ...Array<Uint8Array>] | undefined, ConfigProblem> =>
  Effect.gen(function* () {
    const { secret } = environment
    const text = secret === undefined ? yield* keptText(environment) : Redacted.value(secret)
    if (text === undefined) return undefined
    const plain = Buffer.byteLength(text) >= 32 ? [Buffer.from(text, "utf8")] : []
    const hex = /^([0-9a-f]{2}){32,}$/i.test(text) ? [Buffer.from(text, "hex")] : []
    // It may have been moved from the file to the environment, or back.
    const [first, ...others] = secret === undefined ? [...hex, ...plain] : [...plain, ...hex]
    if (first !== undefined) return [first, ...others] as const
    return yield* new ConfigProblem({
      message:
        secret === undefined
          ? `${secretFile(environment)} is ${text === "" ? "empty" : "cut short"}: put it back from your backup, or delete it if it was never used`
          : "TOLLGATE_SECRET: at least 32 characters, or nothing to have one made and kept"
    })
  })

const keptText = (environment: EnvironmentFacts): Effect.Effect<string | undefined, ConfigProblem> =>
  Effect.try({
    try: () => readFileSync(secretFile(environment), "utf8").trim(),
    catch: (error) => error as NodeJS.ErrnoException
  }).pipe(
    Effect.catchAll((error) =>
      error.code === "ENOENT"
        ? Effect.succeed(undefined)
        : new ConfigProblem({ message: Opening.wordsOf(secretFile(environment), error) })
    )
  )

/** A new secret in its file. Of two processes that make one at once both get the same; one that is killed leaves it whole or not at all. */
const madeSecret = (environment: EnvironmentFacts): Effect.Effect<Uint8Array, ConfigProblem> =>
  Effect.try({
    try: () => {
      const path = secretFile(environment)
      const fresh = `${path}.${randomBytes(8).toString("hex")}`
      try {
        writeFileSync(fresh, randomBytes(32).toString("hex"), { flag: "wx", mode: 0o600, flush: true })
        linkSync(fresh, path)
      } catch {
        // It is there already; or there are no links on this file system.
        if (!existsSync(path)) renameSync(fresh, path)
      } finally {
        rmSync(fresh, { force: true })
      }
      return Buffer.from(readFileSync(path, "utf8").trim(), "hex")
    },
    catch: (error) => new ConfigProblem({ message: Opening.wordsOf(secretFile(environment), error) })
  })

/** Whether what the database holds can be opened; a database that holds nothing sealed needs no certain secret. */
export const secretFits = (environment: EnvironmentFacts) =>
  Effect.gen(function* () {
    const sealed = yield* sealedSample
    if (sealed === undefined) return true
    const found = yield* givenSecret(environment)
    return Option.isSome(yield* Effect.findFirst(found ?? [], (bytes) => DeploymentSecret.opens(bytes, sealed)))
  })

/** Traces, where the configuration wants them. */
export const telemetry = (environment: EnvironmentFacts, { service_name, telemetry }: ConfigFile) =>
  telemetry === undefined
    ? Layer.empty
    : Layer.unwrapEffect(
        Effect.map(variable("telemetry.authorization_env", telemetry.authorization_env), (authorization) =>
          Layer.merge(
            Layer.succeed(Tracing, true),
            OtlpTracer.layer({
              url: `${telemetry.endpoint.replace(/\/+$/, "")}/v1/traces`,
              resource: {
                serviceName: environment.service_name ?? service_name ?? "Tollgate",
                serviceVersion: version
              },
              ...(authorization !== undefined && { headers: { authorization: Redacted.value(authorization) } })
            }).pipe(Layer.provide([OtlpSerialization.layerJson, FetchHttpClient.layer]))
          )
        )
      )
