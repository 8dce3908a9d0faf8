/** A PostgreSQL database as the source or target of a copy. */
import { Effect } from "effect"
import type { Scope } from "effect"
import type { Client } from "pg"
import type { PostgresDatabase } from "../database/Location.ts"
import { copyTable, DatabaseUnusable, migrationsTable } from "../database/Unusable.ts"
import { selectAtWork } from "../postgres/Leases.ts"
import * as Locks from "../postgres/Locks.ts"
import { servedBy, wordsOf } from "../postgres/Opening.ts"
import { settle } from "../postgres/Schema.ts"
import { TargetClient, targetOf } from "../postgres/Target.ts"
import { copyIn } from "./CopyIn.ts"
import { isEnginesOwn } from "./Tables.ts"
import type { Column, End, Kind, Row, Source, Table, Target, Value } from "./Tables.ts"

/** Returns all values as the text that the server sends. */
const texts = { getTypeParser: () => (text: string) => text }

const opened = (database: PostgresDatabase, begin: (client: Client) => Promise<string | undefined>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const client = new TargetClient({
        ...targetOf(database.url),
        connectionTimeoutMillis: 5_000,
        application_name: "tollgate migrate",
        types: texts
      })
      // Pending queries receive the error directly.
      client.on("error", () => {})
      return client
    }),
    (client) => Effect.promise(() => client.end().catch(() => {}))
  ).pipe(
    Effect.tap((client) =>
      Effect.flatMap(
        Effect.tryPromise({
          try: async () => {
            await client.connect()
            await client.query(session)
            return await begin(client)
          },
          catch: (error) => new DatabaseUnusable({ message: wordsOf(database, error) })
        }),
        (refusal) =>
          refusal === undefined ? Effect.void : new DatabaseUnusable({ message: `${database.shown} ${refusal}` })
      )
    )
  )

/** Overrides the server's settings, so that slices have no time limits and numbers and bytes have one notation. */
const session = `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0; SET lock_timeout = '5s';
  SET extra_float_digits = 1; SET bytea_output = 'hex'`

const atWork = async (client: Client): Promise<string | undefined> => {
  const { rows } = await client.query(selectAtWork)
  return rows.length === 0 ? undefined : servedBy(rows)
}

/** Opens a snapshot of the database and locks the database against writes until the scope closes. */
export const source = (database: PostgresDatabase): Effect.Effect<Source, DatabaseUnusable, Scope.Scope> =>
  Effect.map(
    opened(database, async (client) => {
      const refusal = await atWork(client)
      if (refusal !== undefined) return refusal
      const { rows } = await client.query(selectTables)
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
      try {
        await client.query(`LOCK TABLE ${rows.map(({ name }) => name).join(", ")} IN SHARE MODE`)
      } catch (error) {
        if ((error as { readonly code?: string }).code === "55P03")
          return "is being written to; first stop the processes that serve it"
        throw error
      }
      return undefined
    }),
    (client) => ({ ...endOf(database, client), replaced: new Map() })
  )

/** Opens a database that contains the service's tables. Locks the database against other copies until the scope closes. */
export const target = (database: PostgresDatabase): Effect.Effect<Target, DatabaseUnusable, Scope.Scope> =>
  Effect.map(
    opened(database, async (client) => {
      const { rows } = await client.query(`SELECT pg_try_advisory_lock(${Locks.copy})::text AS free`)
      if (rows[0].free !== "true") return "is being copied to by another process"
      // Asynchronous commits are enough: a crash that loses rows also loses their checkpoints, and the rows are copied again.
      await client.query("SET synchronous_commit = off")
      return await atWork(client)
    }),
    (client) => ({ ...endOf(database, client), ...writing(client) })
  )

const selectTables = `SELECT relname AS name FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname LIKE 'tollgate\\_%' ORDER BY relname`

const selectColumns = `SELECT table_name AS name, column_name AS "column" FROM information_schema.columns
  WHERE table_schema = current_schema() AND table_name LIKE 'tollgate\\_%'`

const selectIdentities = `${selectColumns} AND is_identity = 'YES'`

const types: Readonly<Record<Kind, string>> = {
  integer: "bigint",
  real: "double precision",
  text: "text",
  blob: "bytea"
}

const keyColumns = ({ columns, key }: Table): ReadonlyArray<Column> => key.map((place) => columns[place]!)

const selectOf = (table: Table, direction: "ASC" | "DESC", where = "") =>
  `SELECT ${table.columns.map(({ name }) => name).join(", ")} FROM ${table.name} ${where}
    ORDER BY ${keyColumns(table)
      .map(({ name }) => `${name} ${direction}`)
      .join(", ")} LIMIT `

const behind = (table: Table): string => {
  const columns = keyColumns(table)
  return `WHERE (${columns.map(({ name }) => name).join(", ")})
    > (${columns.map(({ kind }, i) => `$${i + 1}::${types[kind]}`).join(", ")})`
}

const endOf = ({ shown }: PostgresDatabase, client: Client): End => {
  const asked = async (table: Table, text: string, values: Row = []): Promise<ReadonlyArray<Row>> => {
    const { rows } = await client.query<Array<Value>>({ text, values: [...values], rowMode: "array" })
    const turned = table.columns.flatMap(({ kind }, place) =>
      kind === "real" || kind === "blob" ? [{ kind, place }] : []
    )
    for (const { kind, place } of turned) for (const row of rows) row[place] = valueOf(kind, row[place]!)
    return rows
  }
  return {
    shown,
    columns: async () => {
      const found = new Map<string, Set<string>>()
      for (const { column, name } of (await client.query(selectColumns)).rows)
        if (name !== migrationsTable && !isEnginesOwn(name)) found.set(name, (found.get(name) ?? new Set()).add(column))
      return found
    },
    count: async ({ name }) => Number((await client.query(`SELECT count(*) AS count FROM ${name}`)).rows[0].count),
    read: (table, after, limit) =>
      after === undefined
        ? asked(table, `${selectOf(table, "ASC")} ${limit}`)
        : asked(table, `${selectOf(table, "ASC", behind(table))} ${limit}`, after),
    last: async (table) => (await asked(table, `${selectOf(table, "DESC")} 1`))[0]
  }
}

const valueOf = (kind: Kind, value: Value): Value =>
  value === null ? null : kind === "real" ? String(Number(value)) : value.slice("\\x".length)

const writing = (client: Client): Omit<Target, keyof End> => {
  const mark = (name: string, value: string) =>
    client.query(
      `INSERT INTO ${copyTable} (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value`,
      [name, value]
    )
  const together = async (write: () => Promise<void>): Promise<void> => {
    await client.query("BEGIN")
    try {
      await write()
      await client.query("COMMIT")
    } catch (error) {
      await client.query("ROLLBACK").catch(() => {})
      throw error
    }
  }
  return {
    marks: async () => {
      const { rows } = await client.query("SELECT to_regclass($1)::text AS name", [copyTable])
      if (rows[0].name === null) return undefined
      const found = await client.query(`SELECT name, value FROM ${copyTable}`)
      return new Map(found.rows.map(({ name, value }) => [name, value]))
    },
    begin: (tables, marks) =>
      together(async () => {
        await client.query(`DROP TABLE IF EXISTS ${copyTable}`)
        await client.query(`CREATE TABLE ${copyTable} (name text PRIMARY KEY, value text NOT NULL)`)
        await client.query(`TRUNCATE ${tables.map(({ name }) => name).join(", ")}`)
        for (const [name, value] of marks) await mark(name, value)
      }),
    write: (table, rows, [name, value], onSent) =>
      together(async () => {
        await copyIn(client, table, rows, onSent)
        await mark(name, value)
      }),
    settle: async () => {
      await together(async () => {
        for (const statement of settle) await client.query(statement)
        const { rows } = await client.query(selectIdentities)
        for (const { column, name } of rows)
          await client.query(
            `SELECT setval(pg_get_serial_sequence('${name}', '${column}'), COALESCE(max(${column}), 0) + 1, false) FROM ${name}`
          )
      })
      // The planner needs statistics about the new rows.
      const { rows } = await client.query(selectTables)
      await client.query(`ANALYZE ${rows.map(({ name }) => name).join(", ")}`)
    },
    release: async () => {
      await client.query("SET synchronous_commit = on")
      await client.query(`DROP TABLE ${copyTable}`)
    }
  }
}
