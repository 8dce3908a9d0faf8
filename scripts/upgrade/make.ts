/**
 * Creates a fixture for the upgrade tests: a database written by an earlier commit of this repository (`npm run fixture -- COMMIT`).
 *
 * --postgres   creates a PostgreSQL database, from the development dependency, instead of a SQLite database
 *
 * The script builds the commit's source in a separate folder, with the packages that are installed now, and serves that build's sandbox while
 * `Life.ts` uses it. It stores the result in `test/upgrade/fixtures`: `sqlite-0011.db.br` (the file) or `postgres-0002.sql.br` (its statements),
 * named after the newest migration, and a JSON file with all responses. Never regenerate a fixture from a later commit, because it must contain the
 * version's own data. Before you add a migration, create a fixture from the commit before it.
 *
 * There are no fixtures of versions before 0011, because the names of their tables lacked the prefix `tollgate_` and no later version could open
 * them. 0013, 0015, 0016, 0018, 0028, 0036, 0037, 0039, 0040, 0042 and 0043 were never the newest migration of a complete version. For PostgreSQL,
 * the same applies to 0006, 0014, 0015, 0017, 0019 and 0020.
 */
import Sqlite from "better-sqlite3"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import { brotliCompressSync, constants } from "node:zlib"
import { asked, startServer } from "../../test/support/postgres.ts"
import { root, start } from "../../test/support/Service.ts"
import { lead, shown } from "./Life.ts"
import type { Figures } from "./Life.ts"

const secret = "5e".repeat(32)

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { postgres: { type: "boolean", default: false } }
})
const git = (...args: ReadonlyArray<string>) => execFileSync("git", [...args], { cwd: root, maxBuffer: 1 << 30 })
const commit = git("rev-parse", positionals[0] ?? "HEAD")
  .toString()
  .trim()

/** Builds the commit's source and returns the folder. */
const build = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-version-"))
  execFileSync("tar", ["-x", "-C", folder], { input: git("archive", commit) })
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  execFileSync(process.execPath, ["--import", "tsx", "scripts/build.ts"], { cwd: folder, stdio: "inherit" })
  return folder
}

const packed = (bytes: Buffer): Buffer =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 22 } })

/** Uses that build's sandbox, then stops the service. */
const live = async (
  folder: string,
  env: Record<string, string>
): Promise<{ figures: Omit<Figures, "migration">; data: string }> => {
  const service = await start({ build: folder, env: { TOLLGATE_SECRET: secret, ...env } })
  const { cast, team_id } = await lead(service)
  const answers = await shown(service, cast, team_id)
  const at = ((await service.control("/clock", { advance_ms: 0 })) as { readonly now: string }).now
  const code = await service.end()
  if (code !== 0) throw new Error(`the service exited with ${code}: ${service.stderr.join("")}`)
  return { figures: { commit, at, people: cast, team_id, answers }, data: service.folder }
}

const saveFixture = (name: string, bytes: Buffer, figures: Figures): void => {
  const path = join(root, "test", "upgrade", "fixtures", name)
  const small = packed(bytes)
  writeFileSync(`${path}.br`, small)
  writeFileSync(`${path}.json.br`, packed(Buffer.from(JSON.stringify(figures))))
  console.log(`${name}: ${bytes.length} bytes, ${small.length} packed; ${figures.answers.length} answers`)
}

const ofSqlite = async (folder: string): Promise<void> => {
  const { data, figures } = await live(folder, {})
  const file = join(data, "tollgate.db")
  const db = new Sqlite(file)
  const migration = db.prepare("SELECT max(migration_id) FROM tollgate_migrations").pluck().get() as number
  db.pragma("wal_checkpoint(TRUNCATE)")
  db.close()
  saveFixture(`sqlite-${String(migration).padStart(4, "0")}.db`, readFileSync(file), { ...figures, migration })
  rmSync(data, { recursive: true, force: true })
}

// ---- PostgreSQL -----------------------------------------------------------------------------------------------------------------

/** Formats a string as a SQL literal. The column converts it to its own type. */
const literal = (value: string | null): string => (value === null ? "NULL" : `'${value.replaceAll("'", "''")}'`)

/** Generates the statements that fill the tables and sequences. */
const contents = (url: string): Promise<ReadonlyArray<string>> =>
  asked(url, async (client) => {
    const statements: Array<string> = ["SET session_replication_role = replica", "SET standard_conforming_strings = on"]
    const tables = await client.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    )
    for (const { name } of tables.rows) {
      const columns = await client.query<{ name: string }>(
        "SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        [name]
      )
      const names = columns.rows.map((column) => `"${column.name}"`)
      const rows = await client.query<{ row: ReadonlyArray<string | null> }>(
        `SELECT ARRAY[${names.map((one) => `${one}::text`).join(", ")}] AS row FROM "${name}"`
      )
      // A migration may itself have inserted rows.
      statements.push(`DELETE FROM "${name}"`)
      for (const { row } of rows.rows)
        statements.push(
          `INSERT INTO "${name}" (${names.join(", ")}) OVERRIDING SYSTEM VALUE VALUES (${row.map(literal).join(", ")})`
        )
    }
    const sequences = await client.query<{ name: string; last: string | null }>(
      "SELECT sequencename AS name, last_value::text AS last FROM pg_sequences WHERE schemaname = 'public'"
    )
    for (const { last, name } of sequences.rows)
      if (last !== null) statements.push(`SELECT setval('public."${name}"', ${last})`)
    return statements
  })

const ofPostgres = async (folder: string): Promise<void> => {
  const server = await startServer(["fsync=off"])
  const { data, figures } = await live(folder, { DATABASE_URL: server.url, NODE_NAME: "fixture" })
  // Use the version's own statements.
  const file = ["storage", "sql"].map((wing) => join(folder, "src", wing, "postgres", "Schema.ts")).find(existsSync)!
  const schema = (await import(pathToFileURL(file).href)) as {
    readonly base: ReadonlyArray<string>
    readonly later?: Readonly<Record<string, ReadonlyArray<string>>>
    readonly indexes?: ReadonlyArray<{ readonly name: string; readonly table: string; readonly definition: string }>
  }
  const indexes = (schema.indexes ?? []).map(
    ({ definition, name, table }) => `CREATE INDEX ${name} ON ${table} ${definition}`
  )
  const definitions = [...schema.base, ...Object.values(schema.later ?? {}).flat(), ...indexes]
  const { definition, migration } = await asked(server.url, async (client) => {
    const { rows } = await client.query<{ name: string; type: string }>(
      "SELECT attname AS name, format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END || coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), '') AS type FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = 'tollgate_migrations'::regclass AND attnum > 0"
    )
    const newest = await client.query<{ id: number }>("SELECT max(migration_id) AS id FROM tollgate_migrations")
    // A migration may also have changed this table.
    const added = definitions.filter((one) => /ALTER TABLE tollgate_migrations/.test(one)).join("\n")
    const columns = rows
      .filter(({ name }) => !new RegExp(`ADD COLUMN ${name}\\b`).test(added))
      .map(({ name, type }) => `${name} ${type}`)
    return {
      definition: `CREATE TABLE tollgate_migrations (${columns.join(", ")}, PRIMARY KEY (migration_id))`,
      migration: newest.rows[0]!.id
    }
  })
  const text = [definition, ...definitions, ...(await contents(server.url))].map((one) => `${one};`).join("\n")
  saveFixture(`postgres-${String(migration).padStart(4, "0")}.sql`, Buffer.from(text), { ...figures, migration })
  await server.stop()
  rmSync(data, { recursive: true, force: true })
}

const folder = build()
await (values.postgres ? ofPostgres(folder) : ofSqlite(folder))
rmSync(folder, { recursive: true, force: true })
