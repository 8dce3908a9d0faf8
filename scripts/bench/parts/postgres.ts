// The service over PostgreSQL, on a server of its own beside the nodes: charges of two writers against TPC-B of pgbench, chat against the same on
// SQLite, two nodes against one, and how soon one node hears what another has revoked.
import { spawnSync } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { startServer } from "../../../test/support/postgres.ts"
import type { Server } from "../../../test/support/postgres.ts"
import { callPrice, credit } from "../calls.ts"
import { count, inUnit, print, say, table } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"
import { median } from "../numbers.ts"
import { ask, cpu, startPart, stop } from "../processes.ts"
import { operate } from "../gateway.ts"
import type { Round } from "../writers.ts"

/** How many accounts are charged at random. */
const accounts = 10_000

const run = async (bench: Bench): Promise<void> => {
  // The server runs as a user of its own where this runs as root.
  chmodSync(bench.directory, 0o755)
  const server = await startServer(["max_wal_size=4GB"], bench.directory)
  try {
    await charges(bench, server)
  } finally {
    await server.stop()
  }
}

/** Makes a database and answers its URL. */
const create = async ({ url }: Server, name: string): Promise<string> => {
  const client = new Client(url)
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  return url.replace(/postgres$/, name)
}

/** CPU time of the server so far, all its processes together, in µs. */
const serverCpu = (server: Server): number => {
  const main = server.pid()
  const childrenOf = readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name) || !existsSync(`/proc/${name}/stat`)) return false
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${name}/stat`, "utf8"))?.[1]) === main
  })
  return [main, ...childrenOf.map(Number)].reduce((sum, pid) => sum + cpu(pid), 0)
}

// ---- charges ------------------------------------------------------------------------------------------------------------

const findPgbench = (): string | undefined => {
  const versions = "/usr/lib/postgresql"
  const folders = [
    ...(process.env["PATH"] ?? "").split(":"),
    ...(existsSync(versions) ? readdirSync(versions).map((version) => join(versions, version, "bin")) : [])
  ]
  return folders.map((folder) => join(folder, "pgbench")).find((file) => existsSync(file))
}

/** TPC-B of pgbench, prepared, by 16 clients: what answers its transactions a second in a round of so many seconds. */
const startPgbench = async (server: Server): Promise<((seconds: number) => number) | undefined> => {
  const file = findPgbench()
  if (file === undefined) {
    print("pgbench is not there (Debian: apt-get install postgresql-contrib); going on without it")
    return undefined
  }
  const url = await create(server, "pgbench")
  const pgbench = (...args: ReadonlyArray<string>): string => {
    const { status, stderr, stdout } = spawnSync(file, [...args, url], { encoding: "utf8" })
    if (status !== 0) throw new Error(`pgbench failed: ${stderr}`)
    return stdout
  }
  say("pgbench: filling its tables")
  pgbench("-i", "-q", "-s", "16")
  return (seconds) => {
    const said = pgbench("-n", "-M", "prepared", "-c", "16", "-j", "2", "-T", String(Math.ceil(seconds)))
    return Number(/tps = ([\d.]+)/.exec(said)?.[1])
  }
}

interface Side {
  readonly name: string
  readonly drive: (seconds: number) => Promise<number>
  readonly rates: Array<number>
}

/** Two writer processes over one database, in alternated rounds with pgbench. */
const charges = async (bench: Bench, server: Server): Promise<void> => {
  const { options, results } = bench
  const pgbench = await startPgbench(server)
  const url = await create(server, "charges")
  // One after the other: the first brings the tables.
  const writers: Array<ChildProcess> = []
  for (const place of ["0", "1"]) {
    const child = startPart(undefined, "writers.ts", [url, place, String(accounts)])
    await ask(child)
    writers.push(child)
  }
  say(`charges: opening ${accounts} accounts`)
  await ask(writers[0]!, { open: true })
  let acknowledged: ReadonlyArray<Round> = []
  const charging = (of: number) => async (seconds: number) => {
    acknowledged = await Promise.all(writers.map((child) => ask<Round>(child, { seconds, accounts: of })))
    return acknowledged.reduce((sum, { rate }) => sum + rate, 0)
  }
  const sides: ReadonlyArray<Side> = [
    ...(pgbench === undefined ? [] : [{ name: "pgbench", drive: async (s: number) => pgbench(s), rates: [] }]),
    { name: "many accounts", drive: charging(accounts), rates: [] },
    { name: "one account", drive: charging(1), rates: [] }
  ]
  for (const { drive } of sides) await drive(options.warmup / 2)
  const costs = new Map(sides.map(({ name }) => [name, { nodes: [] as Array<number>, server: [] as Array<number> }]))
  for (let round = 1; round <= options.rounds; round++) {
    for (const { drive, name, rates } of round % 2 === 1 ? sides : sides.toReversed()) {
      const nodesCpu = () => writers.reduce((sum, child) => sum + cpu(child.pid!), 0)
      const before = { nodes: nodesCpu(), server: serverCpu(server) }
      const rate = await drive(options.seconds)
      rates.push(rate)
      const made = rate * options.seconds
      costs.get(name)!.nodes.push((nodesCpu() - before.nodes) / made)
      costs.get(name)!.server.push((serverCpu(server) - before.server) / made)
    }
    say(
      `charges: round ${round} of ${options.rounds}: ${sides.map((s) => `${s.name} ${count(s.rates.at(-1)!)}`).join(", ")}`
    )
  }
  for (const { name, rates } of sides) results.measurements.push({ part: "postgres, charges", contender: name, rates })
  await checkCharges(url, acknowledged)
  for (const child of writers) await stop(child)
  const verified = await operate(options.main, { DATABASE_URL: url, DATA_DIR: bench.directory }, "verify")
  printCharges(sides, costs)
  print(`\n  verify: ${verified.trim().split("\n").at(-1)}`)
  const tps = pgbench === undefined ? undefined : median(sides[0]!.rates)
  const of = (name: string) =>
    tps === undefined ? undefined : median(sides.find((side) => side.name === name)!.rates) / tps
  results.reach({
    what: "1 charges over 10,000 accounts, of TPC-B",
    measured: of("many accounts"),
    unit: "x",
    least: 2
  })
  results.reach({ what: "1 charges on one account, of TPC-B", measured: of("one account"), unit: "x", least: 1 })
}

const printCharges = (
  sides: ReadonlyArray<Side>,
  costs: ReadonlyMap<string, { readonly nodes: ReadonlyArray<number>; readonly server: ReadonlyArray<number> }>
): void => {
  print("\nCharges over PostgreSQL, reserve then settle, two writer processes on one server, fsync on, beside TPC-B\n")
  const titles: Readonly<Record<string, string>> = {
    pgbench: "TPC-B of pgbench, prepared, 16 clients",
    "many accounts": `charges over ${accounts} accounts`,
    "one account": "charges on one account"
  }
  print(
    table([
      ["side", "a second", "lowest..highest", "CPU µs, writers", "CPU µs, server", "of TPC-B"],
      ...sides.map(({ name, rates }) => [
        titles[name]!,
        count(median(rates)),
        `${count(Math.min(...rates))}..${count(Math.max(...rates))}`,
        name === "pgbench" ? "-" : median(costs.get(name)!.nodes).toFixed(0),
        median(costs.get(name)!.server).toFixed(0),
        sides[0]!.name === "pgbench" ? inUnit(median(rates) / median(sides[0]!.rates), "x") : "-"
      ])
    ])
  )
}

/** Every acknowledged charge must be in the books, by account. */
const checkCharges = async (url: string, rounds: ReadonlyArray<Round>): Promise<void> => {
  const client = new Client(url)
  await client.connect()
  const { rows } = await client.query<{ id: string; due: string; records: string }>(
    `SELECT a.id, ${credit}::bigint * 1000000000 - m.giftable - m.granted AS due, COALESCE(h.records, 0) AS records
      FROM tollgate_ledger_accounts a JOIN tollgate_ledger_amounts m ON m.account = a.number
        LEFT JOIN tollgate_usage_tenants t ON t.id = a.tenant_id LEFT JOIN tollgate_usage_heads h ON h.tenant = t.number
      ORDER BY a.id`
  )
  await client.end()
  let total = 0
  for (const [account, { due, id, records }] of rows.entries()) {
    const made = rounds.reduce((sum, { charges }) => sum + (charges[account] ?? 0), 0)
    total += made
    if (Number(records) === made && Number(due) === made * callPrice) continue
    throw new Error(
      `WRONG CHARGE: ${made} charges of ${id} were acknowledged, its books have ${records} and ${due} nano-USD`
    )
  }
  say(`charges: ${count(total)} acknowledged, all in the books`)
}

export const postgres: Part = {
  name: "postgres",
  about: "charges, chat and two nodes over PostgreSQL (only where asked for)",
  run
}
