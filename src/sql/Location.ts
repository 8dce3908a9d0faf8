/** Where the books are: a SQLite file, or a database on a PostgreSQL server. */
import { Redacted } from "effect"

export interface SqliteFile {
  readonly engine: "sqlite"
  readonly path: string
  /** As it stands in messages. */
  readonly shown: string
}

export interface PostgresDatabase {
  readonly engine: "postgres"
  /** `postgres://user:password@host:port/database?sslmode=…` */
  readonly url: Redacted.Redacted
  /** What this node is called among those that serve it; the host, unless given. */
  readonly node?: string
  /** As it stands in messages: without the password. */
  readonly shown: string
}

export type Location = SqliteFile | PostgresDatabase

export const sqliteFile = (path: string): SqliteFile => ({ engine: "sqlite", path, shown: path })

/** `undefined` where it is no URL of a server with a database. */
export const postgresDatabase = (url: string): PostgresDatabase | undefined => {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^postgres(ql)?:$/.test(parsed.protocol)) return undefined
  if (parsed.hostname === "" && !parsed.searchParams.has("host")) return undefined
  if (parsed.pathname.length < 2) return undefined
  const user = parsed.username === "" ? "" : `${decodeURIComponent(parsed.username)}@`
  return {
    engine: "postgres",
    url: Redacted.make(url),
    shown: `postgres://${user}${parsed.host || parsed.searchParams.get("host")}${parsed.pathname}`
  }
}
