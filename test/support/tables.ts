/** Reads and changes the database of a service from outside, with either engine. */
import Sqlite from "better-sqlite3"
import { Client } from "pg"
import { postgres } from "../../src/storage/postgres/Dialect.ts"
import * as Postgres from "./postgres.ts"

type Row = Record<string, unknown>

/** Runs statements in one transaction on the database of a data folder. Returns the rows of the last. */
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

/** The same on the PostgreSQL database at this URL. */
export const askAt = async <A = Row>(url: string, ...texts: ReadonlyArray<string>): Promise<ReadonlyArray<A>> => {
  const client = new Client({
    connectionString: url,
    // Numbers as numbers, as in SQLite.
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

/** bigint, smallint, integer, numeric. */
const wholeNumbers: ReadonlySet<number> = new Set([20, 21, 23, 1700])

/** Copies the unused database of a data folder, unless it is a file in that folder. */
export const copy = async (from: string, to: string): Promise<void> => {
  if (Postgres.isWanted()) await Postgres.databaseOf(to, { template: await Postgres.databaseOf(from) })
}

/** Selects the names of the tables. */
export const selectNames = Postgres.isWanted()
  ? "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
  : "SELECT name FROM sqlite_master WHERE type = 'table'"

/** Every row of every table, as text. */
export const everything = async (folder: string): Promise<string> => {
  const names = await ask<{ name: string }>(folder, selectNames)
  const tables: Array<string> = []
  for (const { name } of names) tables.push(JSON.stringify(await ask(folder, `SELECT * FROM "${name}"`)))
  return tables.join("\n")
}

/** Before a service starts: its writer must give up waiting for `hold` well before the commit's limit. With a file it does so by itself. */
export const boundLocks = async (folder: string): Promise<void> => {
  if (!Postgres.isWanted()) return
  const url = await Postgres.databaseOf(folder)
  await askAt(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET lock_timeout = '200ms'`)
}

/** Blocks changes of the books, but not reads. Returns a function that releases them. */
export const hold = async (folder: string): Promise<() => Promise<void>> => {
  if (!Postgres.isWanted()) {
    const db = new Sqlite(`${folder}/tollgate.db`)
    db.exec("BEGIN IMMEDIATE")
    return async () => void db.close()
  }
  const client = new Client(await Postgres.databaseOf(folder))
  await client.connect()
  await client.query("BEGIN")
  // Leases continue: the node and its connection are well.
  const { rows } = await client.query(
    "SELECT string_agg(tablename, ', ' ORDER BY tablename) AS names FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'tollgate_sql_nodes'"
  )
  await client.query(`LOCK TABLE ${rows[0].names} IN EXCLUSIVE MODE`)
  return () => client.end()
}

/** Lets the leases of killed nodes lapse at once. A file has no leases: a run ends with its process. */
export const lapse = async (folder: string): Promise<void> => {
  if (Postgres.isWanted()) await ask(folder, "UPDATE tollgate_sql_nodes SET until = now() - interval '1 second'")
}

/** Makes a change that the table's own checks would refuse: `UPDATE <table> <change>`. */
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
