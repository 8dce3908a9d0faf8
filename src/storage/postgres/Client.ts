/**
 * Opens connections to PostgreSQL. Rows have the same format as on SQLite: integers are numbers (money is selected as text), and booleans are 1 or 0.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Reactivity from "@effect/experimental/Reactivity"
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import type { Redacted } from "effect"
import { Pool, types as driverTypes } from "pg"
import type { Client, ClientConfig, PoolConfig, QueryConfig } from "pg"
import type { Connections } from "../database/Location.ts"
import { storable, storableJson } from "../database/Text.ts"
import { postgres } from "./Dialect.ts"
import { TargetClient, targetOf } from "./Target.ts"

export interface PostgresSettings extends Connections {
  /** The URL, such as `postgres://user:password@host:port/database?sslmode=...`. */
  readonly url: Redacted.Redacted
  /** This node's name. The default is the host name. */
  readonly node?: string
  readonly version?: string
  /** The newest migration that this version knows. The default means all migrations. */
  readonly knows?: number
  /** Whether a thread also renews this node's lease (`Renewal`). */
  readonly hasThread?: boolean
}

/** Opens connections that can write, for example for the writer. */
export class Postgres extends Context.Tag("tollgate/sql/Postgres")<
  Postgres,
  { readonly settings: PostgresSettings; readonly connect: (config?: ClientConfig) => Client }
>() {}

/** Parses a number. Returns the text of an integer that a number cannot represent exactly. */
const whole = (text: string): number | string => {
  const number = Number(text)
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? text : number
}

const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  [driverTypes.builtins.BOOL]: (text) => (text === "t" ? 1 : 0),
  [driverTypes.builtins.INT8]: whole,
  [driverTypes.builtins.NUMERIC]: whole
}

/** Returns the parser for a column's values, by the type's oid. */
export const parserOf = (oid: number): ((text: string) => unknown) =>
  parsers[oid] ?? (driverTypes.getTypeParser(oid, "text") as (text: string) => unknown)

const types = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    (format === "binary" ? undefined : parsers[oid]) ?? driverTypes.getTypeParser(oid, format as "text")
} as NonNullable<ClientConfig["types"]>

const names = new Map<string, string>()
/** The maximum number of prepared statements. The server stores them for each connection. */
const namesMax = 500

/** Returns a name for the statement, so that the server prepares it only once per connection; `undefined` if there are too many statements. */
const nameOf = (text: string): string | undefined => {
  let name = names.get(text)
  if (name === undefined && names.size < namesMax) names.set(text, (name = `tollgate-${names.size}`))
  return name
}

interface StatementConfig {
  readonly text: string
  readonly values?: ReadonlyArray<unknown> | undefined
  readonly rowMode?: string
}

/** A connection that accepts statements in the syntax common to both engines (`Dialect`). */
class Connection extends TargetClient {
  // oxlint-disable-next-line typescript/no-explicit-any -- the driver's own has ten overloads
  override query(asked: any, values?: any, callback?: any): any {
    if (typeof asked === "string") {
      return typeof values === "function"
        ? super.query(prepared({ text: asked }), values)
        : super.query(prepared({ text: asked, values }), callback)
    }
    // Query objects, such as cursors, submit themselves.
    return super.query(
      typeof asked.submit === "function" ? asked : prepared(asked as StatementConfig),
      values,
      callback
    )
  }
}

const prepared = (asked: StatementConfig): QueryConfig & { rowMode?: "array" } => {
  const text = postgres(asked.text)
  if (asked.values === undefined || asked.values.length === 0) return { ...asked, text } as QueryConfig
  const name = nameOf(text)
  const values = valuesFor(text, asked.values)
  return { ...asked, text, values, ...(name !== undefined && { name }) } as QueryConfig & { rowMode?: "array" }
}

/** Replaces characters that PostgreSQL cannot store in the strings among a statement's parameters. */
export const valuesFor = (text: string, values: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  values.length === 0 ? values : values.map(text.includes("json") ? valueOfJson : valueOf)

const valueOf = (value: unknown): unknown => (typeof value === "string" ? storable(value) : value)
const valueOfJson = (value: unknown): unknown =>
  typeof value === "string" ? (/^[[{]/.test(value) ? storableJson(value) : storable(value)) : value

/** Provides a `SqlClient` for reading, and `Postgres` for opening connections that write. */
export const layer = (settings: PostgresSettings): Layer.Layer<SqlClient | Postgres, SqlError> =>
  Layer.mergeAll(reading(settings), Layer.succeed(Postgres, { settings, connect: connect(settings) }))

const connect = ({ url }: PostgresSettings) => {
  const target = targetOf(url)
  return ({ options = "", ...config }: ClientConfig = {}): Client =>
    new Connection({
      ...target,
      application_name: "tollgate",
      types,
      ...config,
      // The URL's options come last and override these options.
      options: `${options} ${target.options}`.trim()
    })
}

const reading = ({ connectMillis, readers, statementMillis, url }: PostgresSettings) =>
  Layer.scoped(
    SqlClient,
    PgClient.fromPool({
      acquire: Effect.acquireRelease(
        Effect.sync(() => {
          const pool = new Pool({
            ...targetOf(url, `-c default_transaction_read_only=on -c statement_timeout=${statementMillis}`),
            max: readers,
            connectionTimeoutMillis: connectMillis,
            // If the server fails to report its own timeout, the driver ends the query.
            query_timeout: statementMillis === 0 ? 0 : statementMillis + graceMillis,
            application_name: "tollgate",
            types,
            Client: Connection
          } as PoolConfig)
          // The pool replaces a lost idle connection the next time it is needed.
          pool.on("error", () => {})
          return pool
        }),
        (pool) => Effect.promise(() => pool.end())
      )
    })
  ).pipe(Layer.provide(Reactivity.layer))

/** The difference between the driver's timeout and the server's, in milliseconds. */
const graceMillis = 1_000
