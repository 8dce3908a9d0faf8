/**
 * Everything that a deployment may set: a few values in the environment, and one file for models, upstreams, identity providers
 * and prices. The only place that reads the environment. What is wrong is said in one message that names the entry.
 */
import { Config, ConfigError, Context, Effect, Either, LogLevel, ParseResult, Redacted, Schema } from "effect"
import { parse as parseExactly } from "lossless-json"
import { readFileSync } from "node:fs"
import { isRedirectAddress } from "./auth/Clients.ts"
import { priceable } from "./chat/Extras.ts"
import { UsdPer } from "./kernel/Price.ts"
import type { UnitPrice } from "./kernel/Price.ts"
import { fromDecimal, Usd } from "./kernel/Money.ts"
import { imageSizes } from "./media/Model.ts"
import { searchVendors } from "./search/Provider.ts"
import type { SearchVendorName } from "./search/Provider.ts"

// ---- the file -------------------------------------------------------------------------------------------------------------

const NonEmpty = Schema.NonEmptyString.annotations({
  message: () => ({ message: "a text that is not empty", override: true })
})

const Address = Schema.String.pipe(
  Schema.filter((text) => /^https?:\/\/[^/]+/.test(text) && URL.canParse(text), {
    message: () => "an address that begins with http:// or https://"
  })
)

const RedirectAddress = Schema.String.pipe(
  Schema.filter(isRedirectAddress, { message: () => "an address without a fragment, no script and no file" })
)

const Count = Schema.Int.pipe(Schema.positive({ message: () => "a positive whole number" }))

/** A decimal in millionths. */
const Factor = Schema.transformOrFail(
  Schema.Union(Schema.String, Schema.JsonNumber),
  Schema.BigIntFromSelf.pipe(Schema.positiveBigInt({ message: () => "a decimal number above zero" })),
  {
    strict: true,
    decode: (literal, _, ast) => {
      const factor = fromDecimal(String(literal), 6)
      return factor === undefined
        ? ParseResult.fail(new ParseResult.Type(ast, literal, "a decimal number above zero"))
        : ParseResult.succeed(factor)
    },
    encode: (_, __, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, 0, "a configuration is only read"))
  }
)

const IdentityProvider = Schema.Struct({
  /** The OpenID Connect issuer; its discovery document says where its keys are. */
  issuer: Address,
  /** The client ids for which its tokens may have been made. */
  audiences: Schema.NonEmptyArray(NonEmpty),
  jwks_uri: Schema.optional(Address),
  /** Its addresses are verified even where its tokens do not say so (Microsoft's do not). */
  trust_email: Schema.optional(Schema.Boolean)
})

const Upstream = Schema.Struct({
  base_url: Address,
  /** The environment variable that holds its key. */
  api_key_env: Schema.optional(NonEmpty),
  /** The key itself; for addresses that need no secret, like a local server. */
  api_key: Schema.optional(Schema.String),
  timeout_seconds: Schema.optionalWith(Count, { default: () => 300 })
})

const LimitField = Schema.Literal("max_completion_tokens", "max_tokens", "none").annotations({
  message: () => ({ message: "max_completion_tokens, max_tokens or none", override: true })
})

const Modalities = Schema.optionalWith(Schema.NonEmptyArray(NonEmpty), { default: () => ["text"] as const })

const ModelExtra = Schema.Struct({
  field: Schema.Literal(...priceable).annotations({
    message: () => ({ message: `one of ${priceable.join(", ")}`, override: true })
  }),
  /** The values, or types of tools, that are served; all where it names none. */
  values: Schema.optional(Schema.NonEmptyArray(NonEmpty)),
  /** What prompt and answer of such a call cost, of what they cost otherwise. */
  price_factor: Schema.optionalWith(Factor, { default: () => 1_000_000n }),
  /** Added to such a call. */
  usd_per_request: Schema.optionalWith(UsdPer(1), { default: () => 0n as UnitPrice })
})

const ModelEntry = Schema.Struct({
  id: NonEmpty,
  name: Schema.optional(NonEmpty),
  description: Schema.optionalWith(Schema.String, { default: () => "" }),
  owned_by: Schema.optional(NonEmpty),
  /** Seconds since 1970. */
  created: Schema.optional(Count),
  input_modalities: Modalities,
  output_modalities: Modalities,
  context_length: Count,
  max_output_tokens: Count,
  /** What an image in a prompt counts at the most. */
  max_attachment_tokens: Schema.optionalWith(Count, { default: () => 4_096 }),
  /** What the upstream adds to a prompt at the most: its template, its own words about tools. */
  max_added_tokens: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 }),
  /**
   * The name under which the upstream takes the limit of an answer. Newer models of OpenAI know `max_completion_tokens` only; many
   * others know `max_tokens` only, and do not say so: their answers have no limit then.
   */
  limit_field: Schema.optionalWith(LimitField, { default: () => "max_completion_tokens" as const }),
  price: Schema.Struct({
    prompt_usd_per_million: UsdPer(1_000_000),
    completion_usd_per_million: UsdPer(1_000_000),
    /** For each call, beside its tokens. */
    usd_per_request: Schema.optionalWith(UsdPer(1), { default: () => 0n as UnitPrice })
  }),
  /** Fields that make the upstream bill otherwise, and what a call with one costs; without an entry, it is refused. */
  extras: Schema.optionalWith(Schema.Array(ModelExtra), { default: () => [] }),
  upstreams: Schema.NonEmptyArray(
    Schema.Struct({ upstream: NonEmpty, model: Schema.optional(NonEmpty), limit_field: Schema.optional(LimitField) })
  )
})

const DecisionEntry = Schema.Struct({
  upstream: NonEmpty,
  /** Below the upstream's address. */
  path: Schema.optionalWith(NonEmpty, { default: () => "/v1/systemone" }),
  /** What the upstream calls the model that is served. */
  model: NonEmpty,
  /** What callers may call it; the first is the default. */
  spellings: Schema.optionalWith(Schema.NonEmptyArray(NonEmpty), {
    default: () => ["jev-1.13", "jev-1.13.0", "jev-latest"] as const
  }),
  price: Schema.optionalWith(Schema.Struct({ input_usd_per_million: UsdPer(1_000_000) }), {
    default: () => ({ input_usd_per_million: 42_000_000_000n as UnitPrice })
  })
})

const ProviderFields = {
  /** What callers pick it by. */
  id: NonEmpty,
  name: Schema.optional(NonEmpty),
  description: Schema.optionalWith(Schema.String, { default: () => "" }),
  upstream: NonEmpty
} as const

const SearchEntry = Schema.Struct({
  ...ProviderFields,
  /** Whose wire format it speaks. */
  vendor: Schema.Literal(...(Object.keys(searchVendors) as ReadonlyArray<SearchVendorName>)),
  usd_per_query: UsdPer(1),
  /** Depths that cost otherwise; unless it is given, by how often the vendor counts a query (Tavily an `advanced` one twice). */
  usd_per_query_by_depth: Schema.optional(Schema.Record({ key: NonEmpty, value: UsdPer(1) }))
})

const SpeechEntry = Schema.Struct({
  ...ProviderFields,
  models: Schema.NonEmptyArray(
    Schema.Struct({ id: NonEmpty, model: Schema.optional(NonEmpty), usd_per_million_characters: UsdPer(1_000_000) })
  )
})

const TranscriptionEntry = Schema.Struct({
  ...ProviderFields,
  models: Schema.NonEmptyArray(
    Schema.Struct({
      id: NonEmpty,
      model: Schema.optional(NonEmpty),
      /** `verbose_json` where the model can say how long the audio is. */
      wire_format: Schema.optionalWith(Schema.Literal("verbose_json", "json"), { default: () => "json" as const }),
      usd_per_minute: UsdPer(1)
    })
  )
})

type ImagePriceFields = {
  readonly [Size in (typeof imageSizes)[number]]: Schema.optional<Schema.Schema<UnitPrice, string | number>>
}

const ImageEntry = Schema.Struct({
  ...ProviderFields,
  /** Where its models are below the upstream's address. */
  endpoint: NonEmpty,
  image_to_image_endpoint: Schema.optional(NonEmpty),
  usd_per_image: UsdPer(1),
  /** The most of one request. */
  images_max: Schema.optionalWith(Count, { default: () => 10 }),
  /** Sizes that cost otherwise. */
  usd_per_image_by_size: Schema.optionalWith(
    Schema.Struct(Object.fromEntries(imageSizes.map((size) => [size, Schema.optional(UsdPer(1))])) as ImagePriceFields),
    { default: () => ({}) }
  )
})

const MediaFields = {
  id: NonEmpty,
  display_name: Schema.optional(NonEmpty),
  upstream: NonEmpty,
  endpoint: NonEmpty,
  pricing_note: Schema.optional(Schema.String),
  /** Parameters of the model's own that pass as they are; none may change what the vendor charges. */
  passes: Schema.optionalWith(Schema.Array(NonEmpty), { default: () => ["negative_prompt", "aspect_ratio"] }),
  /** Whether a request without a prompt is refused here; else the vendor decides. */
  prompt_required: Schema.optionalWith(Schema.Boolean, { default: () => false })
} as const

const VideoEntry = Schema.Struct({
  ...MediaFields,
  type: Schema.Literal("video"),
  /** The first tier is the default. */
  resolutions: Schema.optional(
    Schema.NonEmptyArray(
      Schema.Struct({
        tier: NonEmpty,
        usd_per_second: UsdPer(1),
        usd_per_second_with_audio: Schema.optional(UsdPer(1))
      })
    )
  ),
  /** For a model without tiers. */
  usd_per_second: Schema.optional(UsdPer(1)),
  /** Seconds: a range, a set, or nothing, which allows up to 60. */
  duration: Schema.optional(
    Schema.Union(Schema.Struct({ min: Count, max: Count }), Schema.Struct({ set: Schema.NonEmptyArray(Count) }))
  ),
  default_duration: Schema.optionalWith(Count, { default: () => 5 }),
  /** Whether it can make sound, and does unless told otherwise. */
  audio: Schema.optionalWith(Schema.Literal("none", "off", "on"), { default: () => "none" as const }),
  /** Made from a first frame. */
  from_image: Schema.optionalWith(Schema.Boolean, { default: () => false })
}).pipe(
  Schema.filter((entry) =>
    (entry.resolutions === undefined) === (entry.usd_per_second === undefined)
      ? { path: ["usd_per_second"], message: "either this, or resolutions with a price each" }
      : undefined
  )
)

const MediaImageEntry = Schema.Struct({
  ...MediaFields,
  type: Schema.Literal("image"),
  usd_per_image: UsdPer(1),
  images_max: Schema.optionalWith(Count, { default: () => 4 }),
  /** What `image_size` may be. */
  sizes: Schema.optionalWith(Schema.NonEmptyArray(NonEmpty), { default: () => imageSizes }),
  /** Taken where a request names no model. */
  default: Schema.optionalWith(Schema.Boolean, { default: () => false })
})

const Tools = Schema.Struct({
  images: Schema.optionalWith(Schema.Array(ImageEntry), { default: () => [] }),
  search: Schema.optionalWith(Schema.Array(SearchEntry), { default: () => [] }),
  speech: Schema.optionalWith(Schema.Array(SpeechEntry), { default: () => [] }),
  transcription: Schema.optionalWith(Schema.Array(TranscriptionEntry), { default: () => [] })
})

const PaymentProcessor = Schema.Struct({
  processor: Schema.Literal("stripe"),
  /** The environment variables that hold the secret key and the secret that webhooks are signed with. */
  secret_key_env: Schema.optional(NonEmpty),
  webhook_secret_env: Schema.optional(NonEmpty),
  /** The same themselves; for a processor that needs no secret, like a local one. */
  secret_key: Schema.optional(NonEmpty),
  webhook_secret: Schema.optional(NonEmpty),
  /** Another address than the processor's own. */
  base_url: Schema.optional(Address),
  /** Where people come back to from its pages; `public_url` unless it says otherwise. */
  return_url: Schema.optional(Address)
})

const MailServer = Schema.Struct({
  host: NonEmpty,
  /** 465 with `secure`, else 587. */
  port: Schema.optional(Count),
  /** TLS from the first byte on; without it STARTTLS is used where the server offers it. */
  secure: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  user: Schema.optional(NonEmpty),
  /** The environment variable that holds the password. */
  password_env: Schema.optional(NonEmpty),
  /** What a letter to oneself costs. */
  usd_per_letter: Schema.optionalWith(UsdPer(1), { default: () => 0n as UnitPrice }),
  /** The sender: `Tollgate <no-reply@example.com>`. */
  from: Schema.String.pipe(
    Schema.filter((text) => /^[^<>@\r\n]*<[^<>\s@]+@[^<>\s@]+>$|^[^<>\s@]+@[^<>\s@]+$/.test(text), {
      message: () => "an address, or a name and an address: Tollgate <no-reply@example.com>"
    })
  )
})

export const ConfigFile = Schema.Struct({
  service_name: Schema.optional(NonEmpty),
  /** Where people reach the service: links in mails begin with it. */
  public_url: Schema.optional(Address),
  /** Where traces go, by the OpenTelemetry protocol over HTTP; without it, none are made. */
  telemetry: Schema.optional(
    Schema.Struct({
      /** Up to and without `/v1/traces`. */
      endpoint: Address,
      /** The environment variable that holds an Authorization header, where the collector wants one. */
      authorization_env: Schema.optional(NonEmpty)
    })
  ),
  /** Who takes the money; without it, credit is only granted or booked by the operator. */
  payments: Schema.optional(PaymentProcessor),
  /** The server that mail leaves by; without it, nothing is mailed. */
  mail: Schema.optional(MailServer),
  /** The applications that may sign people in with a provider's token. */
  clients: Schema.optionalWith(Schema.Array(Schema.Struct({ client_id: NonEmpty, name: NonEmpty })), {
    default: () => []
  }),
  /** The applications that may use the OAuth code flow, and where it may lead back to. */
  oauth_clients: Schema.optionalWith(
    Schema.Array(
      Schema.Struct({
        client_id: NonEmpty,
        name: NonEmpty,
        redirect_uris: Schema.NonEmptyArray(RedirectAddress),
        /** The operator's own: it may do all that the person may, and its consent page says so. */
        trusted: Schema.optionalWith(Schema.Boolean, { default: () => false })
      })
    ),
    { default: () => [] }
  ),
  /** The websites whose contact forms may write to the operator. */
  web_clients: Schema.optionalWith(Schema.Array(Schema.Struct({ client_id: NonEmpty, name: NonEmpty })), {
    default: () => []
  }),
  /** How many letters one account may cause, by invitations and transfers: in an hour, and in a day to one address. */
  letter_limits: Schema.optionalWith(
    Schema.Struct({ per_hour: Schema.optional(Count), per_day_to_one_address: Schema.optional(Count) }),
    { default: () => ({}) }
  ),
  /** Where contact messages are mailed to; they are stored anyhow. */
  contact_email: Schema.optional(NonEmpty),
  /** Calls a minute from one address, where anybody may knock. */
  rate_limits: Schema.optionalWith(
    Schema.Struct({
      sign_in: Schema.optional(Count),
      token: Schema.optional(Count),
      authorize: Schema.optional(Count),
      invite_preview: Schema.optional(Count),
      client_token: Schema.optional(Count),
      contact: Schema.optional(Count),
      trust_forwarded_for: Schema.optional(Schema.Boolean)
    }),
    { default: () => ({}) }
  ),
  /** Bodies of requests: how many bytes of them the process holds at once, and in how many seconds one must bring 64 KiB. */
  bodies: Schema.optionalWith(
    Schema.Struct({
      bytes_total: Schema.optional(Schema.Int.pipe(Schema.greaterThanOrEqualTo(128 * 1024 * 1024))),
      window_seconds: Schema.optional(Count)
    }),
    { default: () => ({}) }
  ),
  identity: Schema.optionalWith(
    Schema.Struct({ google: Schema.optional(IdentityProvider), microsoft: Schema.optional(IdentityProvider) }),
    { default: () => ({}) }
  ),
  upstreams: Schema.optionalWith(Schema.Record({ key: NonEmpty, value: Upstream }), { default: () => ({}) }),
  models: Schema.optionalWith(Schema.Array(ModelEntry), { default: () => [] }),
  /** The model behind `auto`. */
  auto: Schema.optional(NonEmpty),
  /** Providers of each tool; the first of a kind is asked unless a caller picks another. */
  tools: Schema.optionalWith(Tools, { default: () => ({ images: [], search: [], speech: [], transcription: [] }) }),
  /** Models of the generic media route. */
  media: Schema.optionalWith(Schema.Array(Schema.Union(VideoEntry, MediaImageEntry)), { default: () => [] }),
  /** The decision model; without it the decisions route answers 503. */
  decisions: Schema.optional(DecisionEntry),
  prices: Schema.optionalWith(Schema.Struct({ default_new_credits: Usd, default_registration_credits: Usd }), {
    default: () => ({ default_new_credits: 0n, default_registration_credits: 0n })
  })
})
  .annotations({ parseOptions: { onExcessProperty: "error" } })
  .pipe(
    Schema.filter((file) => {
      const issues: Array<Schema.FilterIssue> = []
      const named = (path: ReadonlyArray<string | number>, upstream: string) => {
        if (!Object.hasOwn(file.upstreams, upstream)) issues.push({ path, message: `there is no upstream ${upstream}` })
      }
      const models = new Set<string>()
      for (const [i, model] of file.models.entries()) {
        if (models.has(model.id) || model.id === "auto") {
          issues.push({ path: ["models", i, "id"], message: `${model.id} is taken` })
        }
        models.add(model.id)
        for (const [j, { upstream }] of model.upstreams.entries()) {
          named(["models", i, "upstreams", j, "upstream"], upstream)
        }
      }
      for (const [kind, entries] of Object.entries(file.tools)) {
        const ids = new Set<string>()
        for (const [i, { id, upstream }] of entries.entries()) {
          named(["tools", kind, i, "upstream"], upstream)
          if (ids.has(id)) issues.push({ path: ["tools", kind, i, "id"], message: `${id} is taken` })
          ids.add(id)
        }
      }
      const mediaIds = new Set<string>()
      for (const [i, { id, upstream }] of file.media.entries()) {
        named(["media", i, "upstream"], upstream)
        if (mediaIds.has(id)) issues.push({ path: ["media", i, "id"], message: `${id} is taken` })
        mediaIds.add(id)
      }
      if (file.decisions !== undefined) named(["decisions", "upstream"], file.decisions.upstream)
      if (file.auto !== undefined && !models.has(file.auto)) {
        issues.push({ path: ["auto"], message: `there is no model ${file.auto}` })
      }
      return issues
    })
  )
export interface ConfigFile extends Schema.Schema.Type<typeof ConfigFile> {}

/** What is wrong with the configuration, in words for whoever starts the service. */
export class ConfigProblem extends Schema.TaggedError<ConfigProblem>()("ConfigProblem", { message: Schema.String }) {}

/** Reads a configuration document; `where` is how messages call it. They name entries and rules, never what was found there. */
export const decodeFile = (document: unknown, where: string): Either.Either<ConfigFile, ConfigProblem> =>
  Either.mapLeft(Schema.decodeUnknownEither(ConfigFile, { errors: "all" })(document), (error) => {
    const rules = new Map<string, Set<string>>()
    for (const { message, path } of ParseResult.ArrayFormatter.formatErrorSync(error)) {
      const rule = ruleOf(message)
      const entry = path.map(String).join(".") || "(the document)"
      if (rule !== undefined) rules.set(entry, (rules.get(entry) ?? new Set()).add(rule))
    }
    const lines = [...rules].map(([entry, found]) => `  ${entry}: ${[...found].join(" or ")}`)
    return new ConfigProblem({ message: `${where} does not fit:\n${lines.join("\n")}` })
  })

/** The rule in a schema's message, without the value that broke it. */
const ruleOf = (message: string): string | undefined => {
  const expected = /^Expected (.*?), actual /s.exec(message)?.[1]
  if (expected === undefined) return message
  // An entry that may be left out says so beside its own rule.
  if (expected === "undefined") return undefined
  if (/^(Struct|Record|\{)/.test(expected)) return "an object"
  if (/^(ReadonlyArray|readonly|Array|\[)/.test(expected)) return "a list"
  const plain: Record<string, string> = {
    string: "a text",
    number: "a number",
    JsonNumber: "a number",
    Int: "a whole number",
    boolean: "true or false"
  }
  return plain[expected] ?? expected
}

export const readFile = (path: string): Either.Either<ConfigFile, ConfigProblem> => {
  const unreadable = (why: string) => Either.left(new ConfigProblem({ message: `--config ${path} ${why}` }))
  let text: string
  try {
    text = readFileSync(path, "utf8").replace(/^\uFEFF/, "")
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const known: Record<string, string> = {
      ENOENT: "there is no such file",
      ENOTDIR: "there is no such file",
      EISDIR: "it is a folder",
      EACCES: "this user may not read it"
    }
    return unreadable(`could not be read: ${known[code ?? ""] ?? message}`)
  }
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return unreadable(`is not JSON${placeOf(text)}`)
  }
  return decodeFile(document, `--config ${path}`)
}

/** Where a text stops being JSON. The parser's own message would quote it, secrets included. */
const placeOf = (text: string): string => {
  try {
    parseExactly(text)
    return ""
  } catch (error) {
    const position = /at position (\d+)$/.exec(error instanceof Error ? error.message : "")?.[1]
    if (position === undefined) return ""
    const before = text.slice(0, Number(position)).split("\n")
    return `: look at line ${before.length}, column ${before.at(-1)!.length + 1}`
  }
}

// ---- the environment ------------------------------------------------------------------------------------------------------

export interface EnvironmentFacts {
  readonly host: string
  readonly port: number
  readonly data_dir: string
  /** The SQLite file. */
  readonly database: string
  readonly service_name: string | undefined
  readonly key_prefix: string
  readonly log_level: LogLevel.LogLevel
  /** Parts of the sandbox that are switched off. */
  readonly sandbox_without: ReadonlyArray<"payments" | "decisions">
  /** The secret by which keys and tokens are hashed and sealed; a file in `data_dir` holds one if this does not. */
  readonly secret: Redacted.Redacted | undefined
}

export class Environment extends Context.Tag("tollgate/Environment")<Environment, EnvironmentFacts>() {}

const optional = <A>(config: Config.Config<A>) =>
  Config.map(Config.option(config), (value) => (value._tag === "Some" ? value.value : undefined))

/** A scheme, or the beginning of a path: a bare word would make a file of that name where the command happens to run. */
const databaseFile = (url: string | undefined, data_dir: string): Either.Either<string, ConfigError.ConfigError> => {
  const wrong = (rule: string) => Either.left(ConfigError.InvalidData(["DATABASE_URL"], rule))
  if (url === undefined || url === "") return Either.right(`${data_dir}/tollgate.db`)
  if (/^postgres(ql)?:/i.test(url)) return wrong("PostgreSQL is not served yet: sqlite:<path of the file>, or nothing")
  const path = /^(?:sqlite|file):(?:\/\/)?(.+)$/.exec(url)?.[1] ?? /^\.{0,2}\/.+$/.exec(url)?.[0]
  // SQLite would take such a name for a database in memory, or for options.
  return path === undefined || path.endsWith("/") || /[:?\0]/.test(path)
    ? wrong("sqlite:<path of the file>, or nothing for a file in DATA_DIR")
    : Either.right(path)
}

/** What the environment may say, for the help. */
export const variables: ReadonlyArray<readonly [name: string, preset: string, meaning: string]> = [
  ["HOST", "127.0.0.1", "where it listens; a sandbox refuses anything but loopback"],
  ["PORT", "8787", "the port that it listens on"],
  ["DATA_DIR", "./data", "the folder of the database, and of the secret if TOLLGATE_SECRET does not give it"],
  ["DATABASE_URL", "sqlite:$DATA_DIR/tollgate.db", "the SQLite file"],
  ["TOLLGATE_SECRET", "made and kept in DATA_DIR/secret", "keys and tokens are hashed and sealed with it"],
  ["SERVICE_NAME", "Tollgate", "what the service is called in texts"],
  ["KEY_PREFIX", "svc", "what API keys begin with: letters and digits"],
  ["LOG_LEVEL", "info", "trace, debug, info, warning, error, fatal or none; logs go to stderr"],
  ["SANDBOX_PAYMENTS", "on", "off: a sandbox without a payment processor"],
  ["SANDBOX_DECISIONS", "on", "off: a sandbox without a decision model"],
  ["NO_COLOR", "", "set to anything: no colors; nor are there any where the output is not a terminal"]
]

const logLevels = {
  trace: LogLevel.Trace,
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warn: LogLevel.Warning,
  warning: LogLevel.Warning,
  error: LogLevel.Error,
  fatal: LogLevel.Fatal,
  none: LogLevel.None
} as const

/** An entry that must be read as something; `rule` says what, and the message names the entry. */
const read = <A>(
  name: string,
  preset: string,
  rule: string,
  parse: (text: string) => A | undefined
): Config.Config<A> =>
  Config.string(name).pipe(
    Config.withDefault(preset),
    Config.mapOrFail((text) => {
      const value = parse(text)
      return value === undefined ? Either.left(ConfigError.InvalidData([name], rule)) : Either.right(value)
    })
  )

const onOrOff = (name: string): Config.Config<boolean> =>
  read(name, "on", "on or off", (text) =>
    text === "on" ? { is: true } : text === "off" ? { is: false } : undefined
  ).pipe(Config.map(({ is }) => is))

const portOf = (text: string): number | undefined =>
  /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined

const logLevelOf = (text: string): LogLevel.LogLevel | undefined =>
  Object.hasOwn(logLevels, text.toLowerCase()) ? logLevels[text.toLowerCase() as keyof typeof logLevels] : undefined

export const environment: Config.Config<EnvironmentFacts> = Config.all({
  host: Config.string("HOST").pipe(Config.withDefault("127.0.0.1")),
  port: read("PORT", "8787", "a port from 0 to 65535", portOf),
  data_dir: read("DATA_DIR", "./data", "the path of a folder", (text) => text || undefined),
  url: optional(Config.string("DATABASE_URL")),
  service_name: optional(Config.nonEmptyString("SERVICE_NAME")),
  // Keys are told apart by their dashes, so a prefix has none.
  key_prefix: read("KEY_PREFIX", "svc", "letters and digits", (text) => /^[A-Za-z0-9]+$/.exec(text)?.[0]),
  log_level: read("LOG_LEVEL", "info", `one of ${Object.keys(logLevels).join(", ")}`, logLevelOf),
  payments: onOrOff("SANDBOX_PAYMENTS"),
  decisions: onOrOff("SANDBOX_DECISIONS"),
  secret: optional(Config.redacted("TOLLGATE_SECRET"))
}).pipe(
  Config.mapOrFail(({ decisions, payments, url, ...rest }) =>
    Either.map(databaseFile(url, rest.data_dir), (database) => ({
      ...rest,
      database,
      sandbox_without: [...(payments ? [] : ["payments" as const]), ...(decisions ? [] : ["decisions" as const])]
    }))
  )
)

/** The key of an upstream: from the variable that its entry names, or from the entry. */
export const upstreamKey = (
  name: string,
  { api_key, api_key_env }: ConfigFile["upstreams"][string]
): Effect.Effect<Redacted.Redacted, ConfigProblem> =>
  Effect.map(variable(`upstreams.${name}.api_key_env`, api_key_env), (key) => key ?? Redacted.make(api_key ?? ""))

/** A secret from the environment variable that the entry `entry` names; none where it names none. */
export const variable = (
  entry: string,
  name: string | undefined
): Effect.Effect<Redacted.Redacted | undefined, ConfigProblem> =>
  name === undefined
    ? Effect.succeed(undefined)
    : Effect.mapError(
        Config.redacted(name),
        () => new ConfigProblem({ message: `${entry}: the environment variable ${name} is not set` })
      )

/** The words of a configuration error, entry by entry. */
export const describe = (error: ConfigError.ConfigError): string => {
  switch (error._op) {
    case "And":
    case "Or":
      return `${describe(error.left)}\n${describe(error.right)}`
    default:
      return `  ${error.path.join(".")}: ${error.message}`
  }
}
