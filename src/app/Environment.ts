/**
 * Reads a deployment's environment variables: addresses, folders and the secret. Everything else is in the configuration file.
 *
 * Where the specification is silent:
 * - A bare word as `DATABASE_URL` is rejected, because SQLite would create a file of that name in the current folder.
 */
import { Config, ConfigError, Either, LogLevel } from "effect"
import type { Redacted } from "effect"
import { hostname } from "node:os"
import { hostPreset, portOf, portPreset } from "../http/server/Address.ts"
import type { Address } from "../http/server/Address.ts"
import { connectionsPreset, postgresDatabase, sqliteFile, tlsRuleOf } from "../storage/database/Location.ts"
import type { Location } from "../storage/database/Location.ts"

export interface EnvironmentFacts extends Address {
  readonly data_dir: string
  readonly database: Location
  readonly service_name: string | undefined
  readonly key_prefix: string
  readonly log_level: LogLevel.LogLevel
  /** The simulated services that are turned off in a sandbox. */
  readonly sandbox_without: ReadonlyArray<"payments" | "decisions" | "witnesses">
  /** The secret that hashes and seals keys and tokens. If it is absent, the service reads the file in `data_dir`. */
  readonly secret: Redacted.Redacted | undefined
}

const optional = <A>(config: Config.Config<A>) =>
  Config.map(Config.option(config), (value) => (value._tag === "Some" ? value.value : undefined))

/** Parses the location of a database: a URL, or a path that starts with `/`, `./` or `../`. `Left` contains the broken rule. */
export const databaseAt = (url: string): Either.Either<Location, string> => {
  const wrong = (rule: string) => Either.left(rule)
  if (/^postgres(ql)?:/i.test(url)) {
    const database = postgresDatabase(url)
    if (database === undefined)
      return wrong(
        "must be postgres://user:password@host:port/database (in the user and the password, write % # / ? as %25 %23 %2F %3F)"
      )
    const rule = tlsRuleOf(url)
    return rule === undefined ? Either.right(database) : wrong(rule)
  }
  const path = /^(?:sqlite|file):(?:\/\/)?(.+)$/.exec(url)?.[1] ?? /^\.{0,2}\/.+$/.exec(url)?.[0]
  // SQLite would interpret these characters as an in-memory database or as options.
  return path === undefined || path.endsWith("/") || /[:?\0]/.test(path)
    ? wrong("must be sqlite:<path of the file> or postgres://user@host/database, or unset for a file in DATA_DIR")
    : Either.right(sqliteFile(path))
}

const locationOf = (url: string | undefined, data_dir: string): Either.Either<Location, ConfigError.ConfigError> =>
  url === undefined || url === ""
    ? Either.right(sqliteFile(`${data_dir}/tollgate.db`))
    : Either.mapLeft(databaseAt(url), (rule) => ConfigError.InvalidData(["DATABASE_URL"], rule))

const seconds = (millis: number): string => String(millis / 1_000)

export const variables: ReadonlyArray<readonly [name: string, preset: string, meaning: string]> = [
  ["HOST", hostPreset, "the address to listen on; a sandbox listens only on loopback"],
  ["PORT", portPreset, "the port to listen on"],
  ["DATA_DIR", "./data", "the folder for the database, and for the secret if TOLLGATE_SECRET is not set"],
  ["DATABASE_URL", "sqlite:$DATA_DIR/tollgate.db", "the SQLite file, or postgres://user:password@host/database"],
  ["NODE_NAME", "host:port", "this node's name among the nodes that share a PostgreSQL database"],
  ["DATABASE_READERS", String(connectionsPreset.readers), "PostgreSQL: the number of connections for reading"],
  ["DATABASE_WRITERS", String(connectionsPreset.writers), "PostgreSQL: the number of connections for writing"],
  [
    "DATABASE_CONNECT_TIMEOUT",
    seconds(connectionsPreset.connectMillis),
    "PostgreSQL: how many seconds to wait for a connection for reading"
  ],
  [
    "DATABASE_STATEMENT_TIMEOUT",
    seconds(connectionsPreset.statementMillis),
    "PostgreSQL: how many seconds a reading statement may take"
  ],
  ["TOLLGATE_SECRET", "generated into DATA_DIR/secret", "the secret that protects keys and tokens; back it up"],
  ["SERVICE_NAME", "Tollgate", "the name of the service that people see"],
  ["KEY_PREFIX", "svc", "the first part of every API key (letters and digits)"],
  ["LOG_LEVEL", "info", "trace, debug, info, warning, error, fatal or none; logs go to stderr"],
  ["SANDBOX_PAYMENTS", "on", "off runs a sandbox without a payment processor"],
  ["SANDBOX_DECISIONS", "on", "off runs a sandbox without a decision model"],
  ["SANDBOX_WITNESSES", "off", "on runs a sandbox with two witnesses of the log of charges"],
  ["NO_COLOR", "", "any value turns off colors in terminals"]
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

/** Reads a variable. If `parse` fails, the message names the variable and the violated constraint. */
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

const onOrOff = (name: string, preset: "on" | "off"): Config.Config<boolean> =>
  read(name, preset, "must be on or off", (text) =>
    text === "on" ? { is: true } : text === "off" ? { is: false } : undefined
  ).pipe(Config.map(({ is }) => is))

const whole = (name: string, preset: string, most: number): Config.Config<number> =>
  read(name, preset, `must be a whole number from 1 to ${most}`, (text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
    return number >= 1 && number <= most ? number : undefined
  })

const millisOf = (name: string, preset: number, most: number): Config.Config<number> =>
  Config.map(whole(name, seconds(preset), most), (found) => found * 1_000)

const connections = Config.all({
  readers: whole("DATABASE_READERS", String(connectionsPreset.readers), 1_000),
  writers: whole("DATABASE_WRITERS", String(connectionsPreset.writers), 32),
  connectMillis: millisOf("DATABASE_CONNECT_TIMEOUT", connectionsPreset.connectMillis, 600),
  statementMillis: millisOf("DATABASE_STATEMENT_TIMEOUT", connectionsPreset.statementMillis, 86_400)
})

const logLevelOf = (text: string): LogLevel.LogLevel | undefined =>
  Object.hasOwn(logLevels, text.toLowerCase()) ? logLevels[text.toLowerCase() as keyof typeof logLevels] : undefined

export const environment: Config.Config<EnvironmentFacts> = Config.all({
  host: Config.string("HOST").pipe(Config.withDefault(hostPreset)),
  port: read("PORT", portPreset, "must be a port from 0 to 65535", portOf),
  data_dir: read("DATA_DIR", "./data", "must be the path of a folder", (text) => text || undefined),
  url: optional(Config.string("DATABASE_URL")),
  node: optional(Config.nonEmptyString("NODE_NAME")),
  connections,
  service_name: optional(Config.nonEmptyString("SERVICE_NAME")),
  // The prefix contains no dashes, because dashes separate the parts of a key.
  key_prefix: read(
    "KEY_PREFIX",
    "svc",
    "must consist of letters and digits",
    (text) => /^[A-Za-z0-9]+$/.exec(text)?.[0]
  ),
  log_level: read("LOG_LEVEL", "info", `must be one of ${Object.keys(logLevels).join(", ")}`, logLevelOf),
  payments: onOrOff("SANDBOX_PAYMENTS", "on"),
  decisions: onOrOff("SANDBOX_DECISIONS", "on"),
  witnesses: onOrOff("SANDBOX_WITNESSES", "off"),
  secret: optional(Config.redacted("TOLLGATE_SECRET"))
}).pipe(
  Config.mapOrFail(({ connections, decisions, node, payments, url, witnesses, ...rest }) =>
    Either.map(locationOf(url, rest.data_dir), (database) => ({
      ...rest,
      database:
        database.engine === "sqlite"
          ? database
          : { ...database, connections, node: node ?? `${hostname()}:${rest.port}` },
      sandbox_without: [
        ...(payments ? [] : ["payments" as const]),
        ...(decisions ? [] : ["decisions" as const]),
        ...(witnesses ? [] : ["witnesses" as const])
      ]
    }))
  )
)

/** Describes a configuration error, with one line per variable. */
export const describe = (error: ConfigError.ConfigError): string => {
  switch (error._op) {
    case "And":
    case "Or":
      return `${describe(error.left)}\n${describe(error.right)}`
    default:
      return `  ${error.path.join(".")}: ${error.message}`
  }
}

/** Formats a host as part of a URL. */
export const hostOf = (host: string): string => (host.includes(":") ? `[${host}]` : host)
