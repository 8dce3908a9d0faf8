/**
 * Decodes the configuration file and checks rules across rooms. Each room defines its part of the file. An error lists all invalid entries.
 */
import { Either, Layer, ParseResult, Schema } from "effect"
import { parse as parseExactly } from "lossless-json"
import { readFileSync } from "node:fs"
import * as SignIn from "../people/auth/Settings.ts"
import { withEntries } from "../upstream/catalogue/Entries.ts"
import * as Console from "../console/Settings.ts"
import * as Contact from "../people/contact/Settings.ts"
import { fieldsOf, layersOf, partsOf } from "./Capabilities.ts"
import { hostOf } from "./Environment.ts"
import type { EnvironmentFacts } from "./Environment.ts"
import * as Http from "../http/server/Settings.ts"
import * as Idempotency from "../http/idempotency/Settings.ts"
import { nearest } from "../kernel/Likeness.ts"
import { ConfigProblem } from "../kernel/Setting.ts"
import * as Service from "../kernel/ServiceInfo.ts"
import * as Verify from "../books/ledger/audit/Settings.ts"
import * as Log from "../books/log/Settings.ts"
import * as Mail from "../people/mail/Settings.ts"
import * as Ops from "../operations/ops/Settings.ts"
import * as Reconciliation from "../operations/reconciliation/Settings.ts"
import * as Scim from "../operations/scim/Settings.ts"
import * as Telemetry from "../operations/ops/Telemetry.ts"
import * as Allowances from "../money/allowances/Settings.ts"
import * as Payments from "../money/payments/Settings.ts"
import * as Prices from "../books/prices/PriceList.ts"
import * as Registration from "../people/tenants/Settings.ts"
import * as Transfers from "../money/transfers/Settings.ts"
import * as Upstreams from "../upstream/models/Settings.ts"

const settings = partsOf("settings")
const tools = partsOf("tool")
const Tools = Schema.Struct(fieldsOf(tools))

const entries = Schema.Struct({
  ...Service.fields,
  ...Telemetry.fields,
  ...Ops.fields,
  ...Verify.fields,
  ...Log.fields,
  ...Payments.fields,
  ...Allowances.fields,
  ...Mail.fields,
  ...Transfers.fields,
  ...SignIn.fields,
  ...Registration.fields,
  ...Scim.fields,
  ...Reconciliation.fields,
  ...Console.fields,
  ...Contact.fields,
  ...Http.fields,
  ...Idempotency.fields,
  ...Upstreams.fields,
  ...fieldsOf(settings),
  /** The providers of each tool. The first provider of a kind is the default. */
  tools: Schema.optionalWith(Tools, { default: () => Schema.decodeSync(Tools)({}) }),
  ...Prices.fields
}).annotations({ parseOptions: { onExcessProperty: "error" } })

type Named = readonly [path: ReadonlyArray<string | number>, upstream: string]

/** A capability's entry. It names an upstream, or one per route. */
interface Entry {
  readonly upstream?: string
  readonly routes?: ReadonlyArray<{ readonly upstream: string }>
}

const upstreamsOf = ({ routes = [], upstream }: Entry, path: Named[0]): ReadonlyArray<Named> => [
  ...(upstream === undefined ? [] : [[[...path, "upstream"], upstream] as const]),
  ...routes.map(({ upstream }, i): Named => [[...path, "upstreams", i, "upstream"], upstream])
]

/** Returns the upstreams that the entries in these settings mention, each with its path in the file. */
const namedIn = (parts: typeof settings | typeof tools, file: object, path: Named[0]): ReadonlyArray<Named> =>
  Object.keys(fieldsOf<(typeof parts)[number]>(parts)).flatMap((name) => {
    const value = (file as Readonly<Record<string, Entry | ReadonlyArray<Entry> | string | undefined>>)[name]
    // Aliases refer to models, not to upstreams.
    if (value === undefined || typeof value === "string" || name === "aliases") return []
    return isList(value)
      ? value.flatMap((entry, i) => upstreamsOf(entry, [...path, name, i]))
      : upstreamsOf(value, [...path, name])
  })
const isList = (value: Entry | ReadonlyArray<Entry>): value is ReadonlyArray<Entry> => Array.isArray(value)

const modelIssues = ({ aliases = {}, auto, models }: typeof entries.Type): ReadonlyArray<Schema.FilterIssue> => {
  const ids = new Set(models.map(({ id }) => id))
  return [
    ...Object.entries(aliases).flatMap(([alias, id]): ReadonlyArray<Schema.FilterIssue> => {
      const path = ["aliases", alias]
      if (alias === "auto" || ids.has(alias)) return [{ path, message: `${alias} is already in use` }]
      return ids.has(id) ? [] : [{ path, message: `there is no model ${id}` }]
    }),
    ...(auto === undefined || ids.has(auto) ? [] : [{ path: ["auto"], message: `there is no model ${auto}` }]),
    ...models.flatMap(({ fallbacks = [], id }, i) =>
      fallbacks.flatMap((fallback, j): ReadonlyArray<Schema.FilterIssue> => {
        const path = ["models", i, "fallbacks", j]
        if (!ids.has(fallback)) return [{ path, message: `there is no model ${fallback}` }]
        return fallback === id ? [{ path, message: "must be a different model" }] : []
      })
    )
  ]
}

const signInIssues = ({ email_sign_in, identity, mail, registration, scim }: typeof entries.Type) => [
  ...registration.groups.flatMap(({ provider }, i): ReadonlyArray<Schema.FilterIssue> =>
    Object.hasOwn(identity, provider) || (provider === Scim.directory && scim !== undefined)
      ? []
      : [{ path: ["registration", "groups", i, "provider"], message: `there is no identity provider ${provider}` }]
  ),
  ...(email_sign_in && mail === undefined ? [{ path: ["mail"], message: "is required for `email_sign_in`" }] : [])
]

/** Finds upstreams in `reconciliation` that do not exist. A vendor without `upstreams` bills the upstream with the vendor's name. */
const billingIssues = ({ reconciliation, upstreams }: typeof entries.Type): ReadonlyArray<Schema.FilterIssue> =>
  Object.entries(reconciliation).flatMap(([name, vendor]) =>
    (vendor.upstreams ?? [name])
      .filter((upstream) => !Object.hasOwn(upstreams, upstream))
      .map((upstream) => ({
        path: ["reconciliation", name, "upstreams"],
        message: `there is no upstream ${upstream}`
      }))
  )

export const ConfigFile = entries.pipe(
  Schema.filter((file) => {
    const { upstreams } = file
    const issues: ReadonlyArray<Schema.FilterIssue> = [
      ...namedIn(settings, file, []),
      ...namedIn(tools, file.tools, ["tools"])
    ]
      .filter(([, upstream]) => !Object.hasOwn(upstreams, upstream))
      .map(([path, upstream]) => ({ path, message: `there is no upstream ${upstream}` }))
    return [...issues, ...modelIssues(file), ...signInIssues(file), ...billingIssues(file)]
  })
)
export interface ConfigFile extends Schema.Schema.Type<typeof ConfigFile> {}

/** Returns whether the configuration defines a model, a tool or any other capability. */
export const servesSomething = ({ decisions, embeddings, media, models, rerank, tools }: ConfigFile): boolean =>
  decisions !== undefined ||
  [models, embeddings, rerank, media, ...Object.values(tools)].some((kind) => kind.length > 0)

/** The error for an empty configuration, and the warning for one that serves nothing. */
export const noModel = (config: string): string =>
  `--config ${config} does not define any model; add one to "models" ("tollgate models" lists the catalogue), or let "tollgate quickstart" write a configuration`

/** Provides the settings of every capability. */
export const calls = (file: ConfigFile) => Layer.merge(layersOf(settings, file), layersOf(tools, file.tools))

/** Provides the settings of every room, from the configuration file and the environment. */
export const layer = (environment: EnvironmentFacts, file: ConfigFile) =>
  Layer.mergeAll(
    Verify.layer(file),
    Log.layer(file),
    Payments.layer(file),
    Allowances.layer(file),
    Mail.layer(file),
    Transfers.layer(file),
    SignIn.layer(file),
    Registration.layer(file),
    Scim.layer(file),
    Reconciliation.layer(file),
    Console.layer(file),
    Ops.layer(file),
    Contact.layer(file),
    Http.layer(file),
    Idempotency.layer(file),
    Upstreams.layer(file),
    calls(file),
    Prices.layer(file)
  ).pipe(Layer.provideMerge(serviceInfo(environment, file)))

/**
 * Provides the service's name, key prefix and public URL. `SERVICE_NAME` overrides the name in the file. `public_url` defaults to the address that
 * the service listens on.
 */
export const serviceInfo = (
  { host, key_prefix, port, service_name }: EnvironmentFacts,
  file: Pick<ConfigFile, "service_name" | "public_url">
) =>
  Service.ServiceInfo.layer({
    service_name: service_name ?? file.service_name ?? "Tollgate",
    key_prefix,
    public_url: file.public_url ?? listeningUrl({ host, port })
  })

export const listeningUrl = ({ host, port }: Pick<EnvironmentFacts, "host" | "port">): string =>
  `http://${hostOf(host)}:${port}`

/** Decodes a configuration document. Error messages refer to the document as `where`. They contain entries and rules, but never values. */
export const decodeFile = (document: unknown, where: string): Either.Either<ConfigFile, ConfigProblem> => {
  const whole = withEntries(document)
  if (whole.issues.length > 0) return Either.left(problemOf(where, whole.issues))
  return Either.mapLeft(Schema.decodeUnknownEither(ConfigFile, { errors: "all" })(whole.document), (error) =>
    problemOf(
      where,
      ParseResult.ArrayFormatter.formatErrorSync(error).flatMap(({ message, path }) => {
        const rule = unexpected(message, path) ?? ruleOf(message)
        return rule === undefined ? [] : [{ path, message: rule }]
      })
    )
  )
}

interface Issue {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

const problemOf = (where: string, issues: ReadonlyArray<Issue>): ConfigProblem => {
  const rules = new Map<string, Set<string>>()
  for (const { message, path } of issues) {
    const entry = path.map(String).join(".") || "(the document)"
    rules.set(entry, (rules.get(entry) ?? new Set()).add(message))
  }
  const lines = [...rules].map(([entry, found]) => `  ${entry}: ${[...found].join(" or ")}`)
  return new ConfigProblem({ message: `${where} is invalid:\n${lines.join("\n")}` })
}

/** Returns the text for an unknown entry. Suggests only similar names if there are any, because a long list would hide the mistake. */
const unexpected = (message: string, path: ReadonlyArray<PropertyKey>): string | undefined => {
  const expected = /^is unexpected, expected: (.*)$/s.exec(message)?.[1]
  if (expected === undefined) return undefined
  const names = [...expected.matchAll(/"([^"]+)"/g)].map(([, name]) => name!)
  const near = nearest(String(path.at(-1) ?? ""), names, 0.4)
  if (near.length > 0) return `is unknown; did you mean ${near.join(" or ")}?`
  return names.length > 0 && names.length <= 10
    ? `is unknown; the entries here are ${names.join(", ")}`
    : 'is unknown; "tollgate help configure" lists the entries'
}

/** Extracts the rule from a schema's message, without the rejected value. */
const ruleOf = (message: string): string | undefined => {
  const expected = /^Expected (.*?), actual /s.exec(message)?.[1]
  if (expected === undefined) return message
  // For an optional entry, the schema also reports that `undefined` was expected. Another issue contains the actual rule.
  if (expected === "undefined") return undefined
  if (/^(Struct|Record|\{)/.test(expected)) return "must be an object"
  if (/^(ReadonlyArray|readonly|Array|\[)/.test(expected)) return "must be an array"
  const plain: Record<string, string> = {
    string: "must be a string",
    number: "must be a number",
    JsonNumber: "must be a number",
    Int: "must be a whole number",
    boolean: "must be true or false"
  }
  return plain[expected] ?? expected
}

export const readFile = (path: string): Either.Either<ConfigFile, ConfigProblem> =>
  Either.flatMap(readText(path), (text) => parse(text, path))

const unreadable = (path: string, why: string) => Either.left(new ConfigProblem({ message: `--config ${path} ${why}` }))

export const readText = (path: string): Either.Either<string, ConfigProblem> => {
  try {
    return Either.right(readFileSync(path, "utf8").replace(/^\uFEFF/, ""))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const known: Record<string, string> = {
      ENOENT: "there is no such file",
      ENOTDIR: "there is no such file",
      EISDIR: "it is a folder",
      EACCES: "this user has no permission to read it"
    }
    return unreadable(path, `could not be read: ${known[code ?? ""] ?? message}`)
  }
}

export const parse = (text: string, path: string): Either.Either<ConfigFile, ConfigProblem> => {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return unreadable(path, `is not JSON${placeOf(text)}`)
  }
  const isEmpty = typeof document === "object" && document !== null && Object.keys(document).length === 0
  return isEmpty ? Either.left(new ConfigProblem({ message: noModel(path) })) : decodeFile(document, `--config ${path}`)
}

/** Finds the position of a JSON error. The parser's own message would quote the text, including secrets. */
const placeOf = (text: string): string => {
  try {
    parseExactly(text)
    return ""
  } catch (error) {
    const position = /at position (\d+)$/.exec(error instanceof Error ? error.message : "")?.[1]
    if (position === undefined) return ""
    const before = text.slice(0, Number(position)).split("\n")
    return `: see line ${before.length}, column ${before.at(-1)!.length + 1}`
  }
}
