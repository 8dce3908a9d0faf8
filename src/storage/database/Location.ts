/** The location of the books: a SQLite file, or a database on a PostgreSQL server. */
import { Redacted } from "effect"

export interface SqliteFile {
  readonly engine: "sqlite"
  readonly path: string
  /** The name in messages. */
  readonly shown: string
}

export interface PostgresDatabase {
  readonly engine: "postgres"
  /** The URL, such as `postgres://user:password@host:port/database?sslmode=…`. */
  readonly url: Redacted.Redacted
  /** This node's name among the nodes of the database. The default is the host name. */
  readonly node?: string
  readonly connections?: Partial<Connections>
  /** The name in messages, without the password. */
  readonly shown: string
}

/** A node's connections to a PostgreSQL server, and the read timeouts. */
export interface Connections {
  readonly readers: number
  /** The number of writing connections, each with one batch at a time. */
  readonly writers: number
  /** How long to wait for a reading connection, in milliseconds. */
  readonly connectMillis: number
  /** The timeout of a reading statement, in milliseconds. The statements of `verify` take the most time. */
  readonly statementMillis: number
}

export const connectionsPreset: Connections = {
  readers: 8,
  writers: 2,
  connectMillis: 10_000,
  statementMillis: 300_000
}

export type Location = SqliteFile | PostgresDatabase

export const sqliteFile = (path: string): SqliteFile => ({ engine: "sqlite", path, shown: path })

/** Parses a database URL. Returns `undefined` if the string does not name a PostgreSQL server and a database. */
export const postgresDatabase = (url: string): PostgresDatabase | undefined => {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^postgres(ql)?:$/.test(parsed.protocol)) return undefined
  if (parsed.hostname === "" && !parsed.searchParams.has("host")) return undefined
  if (parsed.pathname.length < 2) return undefined
  const user = parsed.username === "" ? "" : `${decoded(parsed.username)}@`
  return {
    engine: "postgres",
    url: Redacted.make(url),
    shown: `postgres://${user}${parsed.host || parsed.searchParams.get("host")}${parsed.pathname}`
  }
}

/** Decodes percent encoding. An invalid string is returned unchanged. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The URL's TLS options. The driver handles `sslnegotiation`. */
const tlsNames = ["sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslnegotiation"]

const sslModes = ["disable", "prefer", "require", "verify-ca", "verify-full"]

/** Returns the rule that the TLS options in a PostgreSQL URL violate (`postgres/Target`), if any. */
export const tlsRuleOf = (url: string): string | undefined => {
  const params = new URL(url).searchParams
  const mode = params.get("sslmode")
  if (params.has("ssl")) return `use sslmode instead of ssl: ${sslModes.join(", ")}`
  // A typo must not disable TLS.
  const unknown = [...params.keys()].find((name) => /^(ssl|tls)/i.test(name) && !tlsNames.includes(name))
  if (unknown !== undefined) return `${unknown} is unknown: the TLS options are ${tlsNames.join(", ")}`
  if (mode !== null && !sslModes.includes(mode)) return `sslmode must be one of ${sslModes.join(", ")}`
  if (params.get("sslrootcert") === "system" && mode !== null && mode !== "verify-full")
    return "sslrootcert=system requires sslmode=verify-full"
  if (params.has("sslcert") !== params.has("sslkey")) return "sslcert and sslkey must be set together"
  return undefined
}
