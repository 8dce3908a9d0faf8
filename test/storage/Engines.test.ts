/**
 * The tables of both engines, as a real SQLite file and a real PostgreSQL database have them: the same tables, columns, keys and indexes. What
 * differs is listed here, each with its reason; a table that a migration brings to one engine alone is found.
 */
import Sqlite from "better-sqlite3"
import { Effect, Redacted } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Engine from "../../src/storage/engine/Engine.ts"
import { sqliteFile } from "../../src/storage/database/Location.ts"
import { askAt } from "../support/tables.ts"
import { startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"

interface Column {
  readonly name: string
  readonly kind: string
  readonly required: boolean
}

interface Table {
  readonly columns: ReadonlyArray<Column>
  /** Sorted: `unique (a, b)`, `(a) where ...`. */
  readonly keys: ReadonlyArray<string>
  /** How many conditions its rows keep. */
  readonly checks: number
}

type Schema = Readonly<Record<string, Table>>

/** What one engine has and the other has not, as `table.column` or `table key`, with the reason. */
const ofPostgresAlone: Readonly<Record<string, string>> = {
  tollgate_sql_nodes: "a file is served by one process, which needs no lease",
  tollgate_sql_signals: "one process has no other to tell",
  "tollgate_ledger_amounts.booked_at": "time does not run against an account's rows, whichever node's clock was asked",
  "tollgate_usage_heads.booked_at": "the same of a tenant's records",
  "tollgate_ledger_amounts.limits": "whether keys have limits is said by the rows that a batch locks anyway",
  "tollgate_usage_heads.limits": "the same where the tenant's account is not locked",
  "tollgate_tenants_tenants (lower(name))": "an index of an expression, which SQLite does not name",
  "tollgate_tenants_accounts (lower(name))": "the same",
  "tollgate_tenants_accounts (lower(email))": "the same",
  "tollgate_tenants_applications (lower(name))": "the same",
  "tollgate_idempotency_keys (account_id, answered_at, length(body)) where ...": "the same",
  "tollgate_media_jobs (account_id, route, id)": "PostgreSQL keeps long values beside the row and reads none for a list"
}
const ofSqliteAlone: Readonly<Record<string, string>> = {
  "tollgate_tenants_tenants ()": "what PostgreSQL names (lower(name))",
  "tollgate_tenants_accounts ()": "the same, and (lower(email))",
  "tollgate_tenants_applications ()": "the same",
  "tollgate_idempotency_keys (account_id, answered_at, ) where ...":
    "what PostgreSQL names (account_id, answered_at, length(body))",
  [`tollgate_media_jobs (account_id, route, id, tenant_id, holder, status, call, type, model, provider, upstream, endpoint, \
vendor_id, queue_position, units, unit, quote, settled, cost, inference_time, error, error_type, cancel_requested, created_at)`]:
    "a list that read the rows would read through what each job made"
}

/** The table of migrations is each engine's own: its numbers too, since PostgreSQL began with all tables at once. */
const isOurs = (name: string): boolean => name.startsWith("tollgate_") && name !== "tollgate_migrations"

const keyText = (isUnique: boolean, columns: string, isPartial: boolean): string =>
  `${isUnique ? "unique " : ""}(${columns})${isPartial ? " where ..." : ""}`

const kinds: Readonly<Record<string, string>> = {
  bigint: "integer",
  integer: "integer",
  boolean: "integer",
  "double precision": "real",
  text: "text",
  bytea: "blob"
}

const ofSqlite = (file: string): Schema => {
  const db = new Sqlite(file, { readonly: true })
  const all = <A>(text: string, ...params: ReadonlyArray<unknown>) =>
    db.prepare(text).all(...params) as ReadonlyArray<A>
  const tables = all<{ name: string; sql: string }>("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
  const schema = Object.fromEntries(
    tables
      .filter(({ name }) => isOurs(name))
      .map(({ name, sql }) => {
        const columns = all<{ name: string; type: string; notnull: number; pk: number }>(
          "SELECT * FROM pragma_table_info(?)",
          name
        )
        const indexes = all<{ name: string; unique: number; partial: number }>(
          "SELECT * FROM pragma_index_list(?)",
          name
        )
        const columnsOf = (index: string) =>
          all<{ name: string }>("SELECT name FROM pragma_index_info(?) ORDER BY seqno", index).map((one) => one.name)
        const primary = columns.filter(({ pk }) => pk > 0).toSorted((a, b) => a.pk - b.pk)
        const keys = new Set([
          ...(primary.length === 0 ? [] : [keyText(true, primary.map((one) => one.name).join(", "), false)]),
          ...indexes.map((one) => keyText(one.unique === 1, columnsOf(one.name).join(", "), one.partial === 1))
        ])
        return [
          name,
          {
            columns: columns.map((one) => ({
              name: one.name,
              kind: one.type.toLowerCase(),
              required: one.notnull === 1 || one.pk > 0
            })),
            keys: [...keys].toSorted(),
            checks: sql.match(/\bCHECK\b/g)?.length ?? 0
          }
        ]
      })
  )
  db.close()
  return schema
}

const ofPostgres = async (url: string): Promise<Schema> => {
  const columns = await askAt<{ table: string; name: string; type: string; required: string }>(
    url,
    `SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, NULL) AS type, a.attnotnull::text AS required
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
      ORDER BY c.relname, a.attnum`
  )
  const indexes = await askAt<{ table: string; columns: string; only: string; part: string }>(
    url,
    `SELECT c.relname AS table, i.indisunique::text AS only, (i.indpred IS NOT NULL)::text AS part,
        (SELECT string_agg(pg_get_indexdef(i.indexrelid, n, false), ', ' ORDER BY n) FROM generate_series(1, i.indnkeyatts) n) AS columns
      FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'public'::regnamespace`
  )
  const checks = await askAt<{ table: string; checks: number }>(
    url,
    `SELECT c.relname AS table, count(*) AS checks FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid
      WHERE o.contype = 'c' AND c.relnamespace = 'public'::regnamespace GROUP BY 1`
  )
  const names = [...new Set(columns.map(({ table }) => table))].filter(isOurs)
  return Object.fromEntries(
    names.map((table) => [
      table,
      {
        columns: columns
          .filter((one) => one.table === table)
          .map(({ name, required, type }) => ({ name, kind: kinds[type] ?? type, required: required === "true" })),
        keys: [
          ...new Set(
            indexes
              .filter((one) => one.table === table)
              .map(({ columns, only, part }) => keyText(only === "true", columns, part === "true"))
          )
        ].toSorted(),
        checks: checks.find((one) => one.table === table)?.checks ?? 0
      }
    ])
  )
}

/** Without what the other engine lacks; answers the names of what was left out. */
const common = (schema: Schema, own: Readonly<Record<string, string>>) => {
  const left = new Set<string>()
  const isCommon = (name: string): boolean => {
    if (own[name] !== undefined) left.add(name)
    return own[name] === undefined
  }
  const tables = Object.entries(schema)
    .filter(([table]) => isCommon(table))
    .map(([table, { checks, columns, keys }]) => [
      table,
      {
        columns: columns.filter(({ name }) => isCommon(`${table}.${name}`)),
        keys: keys.filter((key) => isCommon(`${table} ${key}`)),
        checks
      }
    ])
  return { left: [...left].toSorted(), schema: Object.fromEntries(tables) as Schema }
}

const folder = mkdtempSync(join(tmpdir(), "tollgate-"))
let server: Server
let sqlite: Schema
let postgres: Schema
beforeAll(async () => {
  server = await startServer(["fsync=off"])
  const file = sqliteFile(join(folder, "tollgate.db"))
  await Effect.runPromise(Engine.migrate(file))
  await Effect.runPromise(
    Engine.migrate({ engine: "postgres", url: Redacted.make(server.url), shown: "the database of this test" })
  )
  sqlite = ofSqlite(file.path)
  postgres = await ofPostgres(server.url)
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("the tables of both engines", () => {
  it("are the same, but for what is listed", () => {
    const ours = { sqlite: common(sqlite, ofSqliteAlone), postgres: common(postgres, ofPostgresAlone) }
    expect(ours.postgres.schema).toEqual(ours.sqlite.schema)
    // What the lists name is there: an entry that is no longer true is found too.
    expect(ours.sqlite.left).toEqual(Object.keys(ofSqliteAlone).toSorted())
    expect(ours.postgres.left).toEqual(Object.keys(ofPostgresAlone).toSorted())
  })

  it("are compared: a column, a key and a check that one of them lacks is found", async () => {
    await askAt(
      server.url,
      "ALTER TABLE tollgate_mail_outbox DROP COLUMN last_error",
      "ALTER TABLE tollgate_transfers ALTER COLUMN message SET NOT NULL",
      "DROP INDEX tollgate_tenants_invites_pending",
      "ALTER TABLE tollgate_price_versions ADD CHECK (first_used_at > 0)"
    )
    const changed = common(await ofPostgres(server.url), ofPostgresAlone).schema
    const before = common(sqlite, ofSqliteAlone).schema
    const differing = Object.keys(before).filter((table) => !Object.is(text(changed[table]), text(before[table])))
    expect(differing.toSorted()).toEqual([
      "tollgate_mail_outbox",
      "tollgate_price_versions",
      "tollgate_tenants_invites",
      "tollgate_transfers"
    ])
  })
})

const text = (table: Table | undefined): string => JSON.stringify(table)
