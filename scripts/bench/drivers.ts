/**
 * `node --import tsx scripts/bench/drivers.ts` compares SQLite drivers on the executable's Node.js: `better-sqlite3` the dependency (compiled by `npm
 * run test:nodes`), the executable's version, and `node:sqlite`. Each driver has its own process and file, on one core. In alternated rounds, each
 * writes batches as the writer does (durable commits of 64 charges, inserts of eight rows) and reads pages. Prints medians of CPU time.
 */
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { driverVersion, fetched, nodeVersion } from "../packages.ts"
import { median } from "./numbers.ts"
import { ask, findCores, root, stop } from "./processes.ts"

interface Prepared {
  readonly run: (params: ReadonlyArray<unknown>) => unknown
  readonly all: (params: ReadonlyArray<unknown>) => ReadonlyArray<unknown>
}

interface Database {
  readonly exec: (sql: string) => unknown
  readonly prepare: (sql: string) => Prepared
}

interface BetterSqlite {
  new (file: string): {
    readonly exec: (sql: string) => unknown
    readonly prepare: (sql: string) => Prepared
  }
}

interface NodeStatement {
  readonly run: (...params: ReadonlyArray<unknown>) => unknown
  readonly all: (...params: ReadonlyArray<unknown>) => ReadonlyArray<unknown>
}

interface NodeSqlite {
  readonly DatabaseSync: new (file: string) => {
    readonly exec: (sql: string) => unknown
    readonly prepare: (sql: string) => NodeStatement
  }
}

const compiled = join(root, ".nodes", nodeVersion, "node_modules", "better-sqlite3")

const drivers: Record<string, () => (file: string) => Database> = {
  "better-sqlite3 12": () => betterSqlite(compiled),
  [`better-sqlite3 ${driverVersion}`]: () => betterSqlite(fetched(`better-sqlite3@${driverVersion}`)),
  "node:sqlite": () => {
    const { DatabaseSync } = createRequire(import.meta.url)("node:sqlite") as NodeSqlite
    return (file) => {
      const db = new DatabaseSync(file)
      return {
        exec: (sql) => db.exec(sql),
        prepare: (sql) => {
          const statement = db.prepare(sql)
          return { run: (params) => statement.run(...params), all: (params) => statement.all(...params) }
        }
      }
    }
  }
}

const betterSqlite = (folder: string) => {
  const Sqlite = createRequire(import.meta.url)(folder) as BetterSqlite
  return (file: string): Database => {
    const db = new Sqlite(file)
    return { exec: (sql) => db.exec(sql), prepare: (sql) => db.prepare(sql) }
  }
}

// ---- the work -----------------------------------------------------------------------------------------------------------

const columns = ["id", "account", "tenant", "application", "endpoint", "model", "provider", "payer", "kind"]
const numbers = ["at", "prompt", "completion", "units", "cost", "latency", "success"]
const rowsAtOnce = 8
const batch = 64

const tables = `
  CREATE TABLE records (seq INTEGER PRIMARY KEY, ${columns.map((name) => `${name} TEXT NOT NULL`).join(", ")},
    ${numbers.map((name) => `${name} INTEGER NOT NULL`).join(", ")}) STRICT;
  CREATE INDEX records_by_tenant ON records (seq >> 10, tenant);
  CREATE TABLE entries (seq INTEGER PRIMARY KEY, account TEXT NOT NULL, amount INTEGER NOT NULL, balance INTEGER NOT NULL,
    reference TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
  CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE sums (tenant TEXT, start INTEGER, model TEXT, requests INTEGER, cost INTEGER, PRIMARY KEY (tenant, start, model))
    STRICT, WITHOUT ROWID;`

const callers = 1_000

const insert = (table: string, names: ReadonlyArray<string>): string => {
  const row = `(${names.map(() => "?").join(", ")})`
  return `INSERT INTO ${table} (${names.join(", ")}) VALUES ${Array.from({ length: rowsAtOnce }, () => row).join(", ")}`
}

const workIn = (db: Database) => {
  db.exec("PRAGMA journal_mode = WAL")
  db.exec("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16000")
  db.exec(tables)
  const open = db.prepare("INSERT INTO accounts VALUES (?, ?)")
  db.exec("BEGIN")
  for (let i = 0; i < callers; i++) open.run([`account_${i}`, 10 ** 15])
  db.exec("COMMIT")
  const [begin, commit] = [db.prepare("BEGIN IMMEDIATE"), db.prepare("COMMIT")]
  const balances = db.prepare("SELECT id, balance FROM accounts WHERE id IN (SELECT value FROM json_each(?))")
  const pay = db.prepare("UPDATE accounts SET balance = balance - ? WHERE id = ?")
  const records = db.prepare(insert("records", [...columns, ...numbers]))
  const entries = db.prepare(insert("entries", ["account", "amount", "balance", "reference", "at"]))
  const sum = db.prepare(
    "INSERT INTO sums VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, cost = cost + excluded.cost"
  )
  const page = db.prepare("SELECT * FROM records WHERE seq < ? ORDER BY seq DESC LIMIT ?")
  let call = 0

  const write = (): void => {
    begin.run([])
    const ids = Array.from({ length: batch }, (_, i) => `account_${(call + i * 7) % callers}`)
    balances.all([JSON.stringify(ids)])
    for (let at = 0; at < batch; at += rowsAtOnce) {
      const [rows, postings]: [Array<unknown>, Array<unknown>] = [[], []]
      for (let i = at; i < at + rowsAtOnce; i++) {
        const [id, account] = [`use_${call++}`, ids[i]!]
        // prettier-ignore
        rows.push(id, account, "tenant_1", "application_1", "/v1/chat/completions", "model-1", "provider", account, "own",
          1_700_000_000_000 + call, 12, 34, 46, 1_500, 80, 1)
        postings.push(account, 1_500, 10 ** 12, id, 1_700_000_000_000 + call)
      }
      records.run(rows)
      entries.run(postings)
    }
    for (const id of ids) pay.run([1_500, id])
    for (let model = 0; model < 4; model++) sum.run(["tenant_1", 0, `model-${model}`, 16, 24_000])
    commit.run([])
  }
  return { write, read: (rows: number) => page.all([call + 1 - ((call * 31) % 1_000), rows]).length }
}

interface Asked {
  readonly what: "write" | "read"
  readonly rows: number
  readonly times: number
}

// ---- one driver's process -----------------------------------------------------------------------------------------------

const serve = (name: string, file: string): void => {
  const { read, write } = workIn(drivers[name]!()(file))
  for (let i = 0; i < 400; i++) write()
  process.on("message", ({ rows, times, what }: Asked) => {
    const before = process.cpuUsage()
    for (let i = 0; i < times; i++) {
      if (what === "write") write()
      else if (read(rows) !== rows) throw new Error(`${name}: a page of ${rows} rows has another length`)
    }
    const { system, user } = process.cpuUsage(before)
    process.send!((user + system) / times)
  })
  process.once("disconnect", () => process.exit(0))
  process.send!(0)
}

// ---- the comparison -----------------------------------------------------------------------------------------------------

const measurements: ReadonlyArray<readonly [title: string, asked: Asked, unit: number]> = [
  ["charge, in batches of 64", { what: "write", rows: 0, times: 300 }, batch],
  ["row by key", { what: "read", rows: 1, times: 20_000 }, 1],
  ["page of 50 rows", { what: "read", rows: 50, times: 2_000 }, 1],
  ["page of 200 rows", { what: "read", rows: 200, times: 500 }, 1]
]

const compare = async (rounds: number): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-drivers-"))
  const names = Object.keys(drivers).filter((name) => name !== "better-sqlite3 12" || existsSync(compiled))
  const node = join(fetched(`node-linux-${process.arch}@${nodeVersion}`), "bin", "node")
  const { served } = findCores()
  const children: Array<ChildProcess> = []
  try {
    for (const [i, name] of names.entries()) {
      const args = ["--import", "tsx", import.meta.filename, name, join(folder, `${i}.db`)]
      const command = served === undefined ? [node, ...args] : ["taskset", "-c", served, node, ...args]
      const child = spawn(command[0]!, command.slice(1), { cwd: root, stdio: ["ignore", "inherit", "inherit", "ipc"] })
      children.push(child)
      await ask<number>(child)
    }
    const costs = names.map(() => measurements.map(() => [] as Array<number>))
    for (let round = 0; round < rounds; round++) {
      for (const [j, [, what]] of measurements.entries()) {
        const order = names.map((_, i) => i)
        for (const i of round % 2 === 0 ? order : order.toReversed())
          costs[i]![j]!.push(await ask<number>(children[i]!, what))
      }
    }
    console.log(`CPU µs on Node.js ${nodeVersion}, medians of ${rounds} alternated rounds (fastest..slowest)`)
    for (const [j, [title, , unit]] of measurements.entries()) {
      const cells = names.map((name, i) => {
        const values = costs[i]![j]!.map((cost) => cost / unit)
        return `${name} ${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)}..${Math.max(...values).toFixed(2)})`
      })
      console.log(`${title.padEnd(26)} ${cells.join("   ")}`)
    }
  } finally {
    for (const child of children) await stop(child)
    rmSync(folder, { recursive: true, force: true })
  }
}

const [name, file] = process.argv.slice(2)
if (name !== undefined && file !== undefined) serve(name, file)
else await compare(Number(name ?? 12))
