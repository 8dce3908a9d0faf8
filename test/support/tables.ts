/** Reads and changes a service's database from outside, with either engine. */
import Sqlite from "better-sqlite3"
import { Client } from "pg"
import { postgres } from "../../src/storage/postgres/Dialect.ts"
import * as Postgres from "./postgres.ts"

type Row = Record<string, unknown>

/** Runs statements in one transaction on a data folder's database. Returns the last statement's rows. */
export const ask = async <A = Row>(folder: string, ...texts: ReadonlyArray<string>): Promise<ReadonlyArray<A>> =>
  Postgres.isWanted() ? askAt(await Postgres.databaseOf(folder), ...texts) : askSqlite(folder, texts)

const askSqlite = <A>(folder: string, texts: ReadonlyArray<string>): ReadonlyArray<A> => {
  const db = new Sqlite(`${folder}/tollgate.db`)
  try {
    return db.transaction(() => {
      let rows: ReadonlyArray<A> = []
      for (const text of texts) {
        const statement = db.prepare(text)
        rows = statement.reader ? (statement.all() as ReadonlyArray<A>) : (statement.run(), [])
      }
      return rows
    })()
  } finally {
    db.close()
  }
}

/** Runs statements in one transaction on the PostgreSQL database at `url`. Returns the last statement's rows. */
export const askAt = async <A = Row>(url: string, ...texts: ReadonlyArray<string>): Promise<ReadonlyArray<A>> => {
  const client = new Client({
    connectionString: url,
    // Parses whole numbers as numbers, like SQLite.
    types: { getTypeParser: (oid: number) => (wholeNumbers.has(oid) ? Number : String) } as never
  })
  await client.connect()
  try {
    await client.query("BEGIN")
    let rows: ReadonlyArray<A> = []
    for (const text of texts) ({ rows } = (await client.query(postgres(text))) as unknown as { rows: ReadonlyArray<A> })
    await client.query("COMMIT")
    return rows
  } finally {
    await client.end()
  }
}

/** The type ids of bigint, smallint, integer and numeric. */
const wholeNumbers: ReadonlySet<number> = new Set([20, 21, 23, 1700])

/** Copies a data folder's unused PostgreSQL database. SQLite files are copied with their folder. */
export const copy = async (from: string, to: string): Promise<void> => {
  if (Postgres.isWanted()) await Postgres.databaseOf(to, { template: await Postgres.databaseOf(from) })
}

/** A statement that selects the names of all tables. */
export const selectNames = Postgres.isWanted()
  ? "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
  : "SELECT name FROM sqlite_master WHERE type = 'table'"

/** Returns every row of every table as text. */
export const everything = async (folder: string): Promise<string> => {
  const names = await ask<{ name: string }>(folder, selectNames)
  const tables: Array<string> = []
  for (const { name } of names) tables.push(JSON.stringify(await ask(folder, `SELECT * FROM "${name}"`)))
  return tables.join("\n")
}

/** Call this before a service starts. It limits the writer's wait for `hold`, well below the commit limit. SQLite already has such a limit. */
export const boundLocks = async (folder: string): Promise<void> => {
  if (!Postgres.isWanted()) return
  const url = await Postgres.databaseOf(folder)
  await askAt(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET lock_timeout = '200ms'`)
}

/** Blocks changes to the books but not reads. Returns a function that ends the block. */
export const hold = async (folder: string): Promise<() => Promise<void>> => {
  if (!Postgres.isWanted()) {
    const db = new Sqlite(`${folder}/tollgate.db`)
    db.exec("BEGIN IMMEDIATE")
    return async () => void db.close()
  }
  const client = new Client(await Postgres.databaseOf(folder))
  await client.connect()
  await client.query("BEGIN")
  // Leaves the nodes' table unlocked, so that leases can still be renewed.
  const { rows } = await client.query(
    "SELECT string_agg(tablename, ', ' ORDER BY tablename) AS names FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'tollgate_sql_nodes'"
  )
  await client.query(`LOCK TABLE ${rows[0].names} IN EXCLUSIVE MODE`)
  return () => client.end()
}

/** Makes the leases of killed nodes lapse immediately. SQLite has no leases, because a lease ends with its process. */
export const lapse = async (folder: string): Promise<void> => {
  if (Postgres.isWanted()) await ask(folder, "UPDATE tollgate_sql_nodes SET until = now() - interval '1 second'")
}

/** Runs `UPDATE <table> <change>` without the table's checks. */
export const unchecked = async (folder: string, table: string, change: string): Promise<void> => {
  if (Postgres.isWanted()) {
    await ask(folder, Postgres.takeChecks, `UPDATE ${table} ${change}`, Postgres.giveChecksBack)
    return
  }
  const db = new Sqlite(`${folder}/tollgate.db`)
  db.pragma("ignore_check_constraints = ON")
  db.exec(`UPDATE ${table} ${change}`)
  db.close()
}
