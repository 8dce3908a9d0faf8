/** A SQLite file as the source or target of a copy. */
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import type { Scope } from "effect"
import type { SqliteFile } from "../database/Location.ts"
import { wordsOf } from "../sqlite/Opening.ts"
import { copyTable, DatabaseUnusable, migrationsTable } from "../database/Unusable.ts"
import { isEnginesOwn } from "./Tables.ts"
import type { Column, End, Kind, Row, Source, Table, Target, Value } from "./Tables.ts"

const kinds: Readonly<Record<string, Kind>> = { INTEGER: "integer", REAL: "real", TEXT: "text", BLOB: "blob" }

const opened = (file: SqliteFile, begin: (db: Sqlite.Database) => void) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const db = new Sqlite(file.path, { timeout: 5_000 })
        begin(db)
        return db
      },
      catch: (error) => new DatabaseUnusable({ message: wordsOf(file.path, error) })
    }),
    (db) => Effect.sync(() => db.close())
  )

/** Opens a snapshot of the file and locks the file against writes until the scope closes. `tables` are the tables to copy. */
export const source = (
  file: SqliteFile
): Effect.Effect<Source & { readonly tables: ReadonlyArray<Table> }, DatabaseUnusable, Scope.Scope> =>
  Effect.map(
    opened(file, (db) => db.exec("BEGIN IMMEDIATE")),
    (db) => {
      const replaced = new Map<string, number>()
      return { ...endOf(file, db, withoutNul(replaced)), replaced, tables: tablesOf(db) }
    }
  )

type Cell = string | number | null

/** Replaces NUL characters with U+FFFD, because PostgreSQL cannot store them. */
const withoutNul =
  (replaced: Map<string, number>) =>
  (table: Table, place: number, value: Cell): Cell => {
    if (typeof value !== "string" || !value.includes("\0")) return value
    const name = `${table.name}.${table.columns[place]!.name}`
    if (table.key.includes(place))
      throw new DatabaseUnusable({
        message: `${name} contains a NUL character in a key, which PostgreSQL cannot store`
      })
    replaced.set(name, (replaced.get(name) ?? 0) + 1)
    return value.replaceAll("\0", "\uFFFD")
  }

/** Opens an existing file that contains the service's tables. */
export const target = (
  file: SqliteFile
): Effect.Effect<Target & { readonly tables: ReadonlyArray<Table> }, DatabaseUnusable, Scope.Scope> =>
  Effect.map(
    // NORMAL is enough: a power failure that loses rows also loses their checkpoints, and the rows are copied again.
    opened(file, (db) => db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")),
    (db) => ({ ...endOf(file, db), ...writing(db), tables: tablesOf(db) })
  )

/** Lists the service's tables in a file, ordered by name. */
const tablesOf = (db: Sqlite.Database): ReadonlyArray<Table> =>
  (
    db
      .prepare(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'tollgate\\_%' ESCAPE '\\' ORDER BY name"
      )
      .pluck()
      .all() as ReadonlyArray<string>
  )
    .filter((name) => name !== migrationsTable && !isEnginesOwn(name))
    .map((name) => tableOf(db, name))

const tableOf = (db: Sqlite.Database, name: string): Table => {
  const found = db.prepare("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid").all(name) as ReadonlyArray<{
    readonly name: string
    readonly type: string
    readonly pk: number
  }>
  const columns = found.map(({ name, type }): Column => ({ name, kind: kinds[type]! }))
  const primary = found
    .filter(({ pk }) => pk > 0)
    .toSorted((a, b) => a.pk - b.pk)
    .map(({ name }) => name)
  // One table has a unique index instead of a primary key.
  const key =
    primary.length > 0
      ? primary
      : (db
          .prepare(
            `SELECT c.name FROM pragma_index_info((
               SELECT name FROM pragma_index_list(?) WHERE "unique" = 1 AND partial = 0 LIMIT 1)) c ORDER BY c.seqno`
          )
          .pluck()
          .all(name) as ReadonlyArray<string>)
  return { name, columns, key: key.map((one) => columns.findIndex((column) => column.name === one)) }
}

const selected = ({ kind, name }: Column): string =>
  kind === "integer"
    ? `CAST(${name} AS TEXT)`
    : kind === "blob"
      ? `iif(${name} IS NULL, NULL, lower(hex(${name})))`
      : name

const selectOf = (table: Table, direction: "ASC" | "DESC", where = "") =>
  `SELECT ${table.columns.map(selected).join(", ")} FROM ${table.name} ${where}
    ORDER BY ${keyColumns(table)
      .map((column) => `${column} ${direction}`)
      .join(", ")} LIMIT ?`

/** Qualifies the names, because an unqualified name would refer to the selected text. The text sorts differently. */
const keyColumns = (table: Table) => table.key.map((place) => `${table.name}.${table.columns[place]!.name}`)

const behind = (table: Table): string =>
  `WHERE (${keyColumns(table).join(", ")}) > (${table.key.map(() => "?").join(", ")})`

const endOf = (
  file: SqliteFile,
  db: Sqlite.Database,
  clean: (table: Table, place: number, value: Cell) => Cell = (_, __, value) => value
): End => {
  const asked = (table: Table, text: string, ...values: ReadonlyArray<unknown>): ReadonlyArray<Row> => {
    const rows = db
      .prepare(text)
      .raw()
      .all(...values) as Array<Array<Cell>>
    return rows.map((row) => row.map((value, place) => textOf(clean(table, place, value))))
  }
  return {
    shown: file.shown,
    columns: async () =>
      new Map(tablesOf(db).map(({ columns, name }) => [name, new Set(columns.map((column) => column.name))])),
    count: async ({ name }) => Number(db.prepare(`SELECT count(*) FROM ${name}`).pluck().get()),
    read: async (table, after, limit) =>
      after === undefined
        ? asked(table, selectOf(table, "ASC"), limit)
        : asked(
            table,
            selectOf(table, "ASC", behind(table)),
            ...after.map((value, i) => bound(table.columns[table.key[i]!]!.kind, value)),
            limit
          ),
    last: async (table) => asked(table, selectOf(table, "DESC"), 1)[0]
  }
}

const textOf = (value: Cell): Value => (typeof value === "number" ? String(value) : value)

/** Converts a value to the form that the driver expects. */
const bound = (kind: Kind, value: Value): string | number | bigint | Buffer | null => {
  if (value === null) return null
  switch (kind) {
    case "integer":
      return value.length > 15 ? BigInt(value) : Number(value)
    case "real":
      return Number(value)
    case "blob":
      return Buffer.from(value, "hex")
    case "text":
      return value
  }
}

const writing = (db: Sqlite.Database): Omit<Target, keyof End> => {
  const mark = (name: string, value: string) =>
    db.prepare(`INSERT OR REPLACE INTO ${copyTable} (name, value) VALUES (?, ?)`).run(name, value)
  return {
    marks: async () => {
      const there = db.prepare("SELECT 1 FROM sqlite_master WHERE name = ?").get(copyTable)
      return there === undefined
        ? undefined
        : new Map(db.prepare(`SELECT name, value FROM ${copyTable}`).raw().all() as Array<[string, string]>)
    },
    begin: async (tables, marks) =>
      db.transaction(() => {
        db.exec(`DROP TABLE IF EXISTS ${copyTable}`)
        db.exec(`CREATE TABLE ${copyTable} (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT`)
        for (const { name } of tables) db.exec(`DELETE FROM ${name}`)
        for (const [name, value] of marks) mark(name, value)
      })(),
    write: async (table, rows, [name, value], onSent) => {
      // Call `onSent` first, so that the server can work while the writes block this thread.
      onSent()
      db.transaction(() => {
        const insert = db.prepare(
          `INSERT INTO ${table.name} (${table.columns.map((column) => column.name).join(", ")})
            VALUES (${table.columns.map(() => "?").join(", ")})`
        )
        for (const row of rows) insert.run(row.map((one, i) => bound(table.columns[i]!.kind, one)))
        mark(name, value)
      })()
    },
    settle: async () => {},
    release: async () => {
      db.exec(`PRAGMA synchronous = FULL; DROP TABLE ${copyTable}`)
      db.pragma("wal_checkpoint(TRUNCATE)")
    }
  }
}
