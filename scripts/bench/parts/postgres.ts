// Runs the service over PostgreSQL, with the server on the same machine. It compares charges by two writers with pgbench's TPC-B, chat with chat on
// SQLite, and two nodes with one. It also measures how long one node still accepts a key after its revocation at another.
import { spawnSync } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { chmodSync, existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { startServer } from "../../../test/support/postgres.ts"
import type { Server } from "../../../test/support/postgres.ts"
import { callPrice, chatBody, chatCalls, credit } from "../calls.ts"
import { alternate, contender, count, drive, inUnit, print, ratio, say, table } from "../frame.ts"
import type { Bench, Contender, Part, Run, Summary } from "../frame.ts"
import { call, makeKey, operate, startGateway } from "../gateway.ts"
import type { Gateway } from "../gateway.ts"
import { median } from "../numbers.ts"
import { ask, cpu, startPart, stop } from "../processes.ts"
import { createDatabase, serverCpu } from "../server.ts"
import { checkGateway, startOutside } from "../world.ts"
import type { Round } from "../writers.ts"

/** The number of accounts. Charges are spread over them at random. */
const accounts = 10_000

const run = async (bench: Bench): Promise<void> => {
  // If the benchmark runs as root, the server runs as another user and must be able to read the folder.
  chmodSync(bench.directory, 0o755)
  const server = await startServer(["max_wal_size=4GB"], bench.directory)
  try {
    await charges(bench, server)
    await overHttp(bench, server)
  } finally {
    await server.stop()
  }
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

/**
 * Prepares pgbench's TPC-B with 16 clients. The returned function runs one round and returns its transactions per second. Returns `undefined` if
 * pgbench is missing.
 */
const startPgbench = async (server: Server): Promise<((seconds: number) => number) | undefined> => {
  const file = findPgbench()
  if (file === undefined) {
    print("pgbench is missing (Debian: apt-get install postgresql-contrib); continuing without it")
    return undefined
  }
  const url = await createDatabase(server, "pgbench")
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

/** Compares two writer processes on one database with pgbench, in alternated rounds. */
const charges = async (bench: Bench, server: Server): Promise<void> => {
  const { options, results } = bench
  const pgbench = await startPgbench(server)
  const url = await createDatabase(server, "charges")
  // The processes are started one after the other, because the first one creates the tables.
  const writers: Array<ChildProcess> = []
  for (const place of ["0", "1"]) {
    const child = startPart(undefined, "writers.ts", [url, place, String(accounts)])
    await ask(child)
    writers.push(child)
  }
  say(`charges: opening ${accounts} accounts`)
  await ask(writers[0]!, { open: true })
  // An account's first call writes or loads data that all of its calls share.
  await Promise.all(writers.map((child) => ask(child, { each: true })))
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
  for (const side of sides) await side.drive(options.warmup / 2)
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
    what: "1 charges over 10,000 accounts, relative to TPC-B",
    measured: of("many accounts"),
    unit: "x",
    least: 2
  })
  results.reach({
    what: "1 charges on one account, relative to TPC-B",
    measured: of("one account"),
    unit: "x",
    least: 1
  })
}

const printCharges = (
  sides: ReadonlyArray<Side>,
  costs: ReadonlyMap<string, { readonly nodes: ReadonlyArray<number>; readonly server: ReadonlyArray<number> }>
): void => {
  print(
    "\nCharges over PostgreSQL, reserve then settle, two writer processes on one server, fsync on, compared with TPC-B\n"
  )
  const titles: Readonly<Record<string, string>> = {
    pgbench: "pgbench's TPC-B, prepared statements, 16 clients",
    "many accounts": `charges over ${accounts} accounts`,
    "one account": "charges on one account"
  }
  print(
    table([
      ["side", "per second", "lowest..highest", "CPU µs, writers", "CPU µs, server", "relative to TPC-B"],
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

/** Checks that each account's ledger contains exactly the acknowledged charges. */
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
      `WRONG CHARGE: ${made} charges of ${id} were acknowledged, but its ledger shows ${records} and ${due} nano-USD`
    )
  }
  say(`charges: ${count(total)} acknowledged, all of them in the ledger`)
}

// ---- over HTTP ----------------------------------------------------------------------------------------------------------

const revocations = 50
/** The number of connections for calls through two nodes, high enough to keep both nodes busy. */
const manyConnections = 512

/** The maximum wait for a revocation to take effect, in milliseconds. */
const revocationTimeout = 5_000

const overHttp = async (bench: Bench, server: Server): Promise<void> => {
  const { cores, directory, options } = bench
  const { load, outside, upstream } = await startOutside(cores)
  const database = await createDatabase(server, "nodes")
  const node = (name: string, rest: { readonly database?: string }) =>
    startGateway({ name, main: options.main, cores, outside, directory: join(directory, name), ...rest })
  say("starting two services on SQLite, and two nodes on PostgreSQL")
  const onFile = await node("sqlite", {})
  const onOtherFile = await node("sqlite 2", {})
  const first = await node("node 1", { database })
  const second = await node("node 2", { database })
  for (const service of [onFile, onOtherFile, first]) await service.addCallers(1)
  const file = contender(onFile)
  const otherFile = contender(onOtherFile)
  const one = contender(first)
  const other = contender({ ...second, keys: first.keys })
  const otherLoad = startPart(cores.driving, "load.ts")
  await ask(otherLoad)

  await compareEngines(bench, load, file, one)
  for (const connections of [bench.options.connections, manyConnections])
    await compareNodes({
      bench,
      server,
      connections,
      loads: [load, otherLoad],
      nodes: [one, other],
      services: [file, otherFile]
    })
  await revoke(bench, first, second, one)

  print(`\n  the service on SQLite: ${await checkGateway(onFile, file)}`)
  print(`  the second service on SQLite: ${await checkGateway(onOtherFile, otherFile)}`)
  const both = contender({ ...one, name: "the two nodes" })
  both.served = one.served + other.served
  for (const [caller, due] of one.due.entries()) both.due[caller] = due + (other.due[caller] ?? 0)
  print(`  the two nodes on PostgreSQL: ${await checkGateway(first, both)}`)
  for (const service of [onFile, onOtherFile, first, second]) await service.stop()
  for (const child of [load, otherLoad, upstream]) await stop(child)
}

const compareEngines = async (bench: Bench, load: ChildProcess, file: Contender, node: Contender): Promise<void> => {
  const chat = chatCalls({ name: "chat on PostgreSQL", connections: bench.options.connections })
  const rates = await alternate(bench, load, chat, [file, node])
  const row = (title: string, { cpu: each, high, low, p50, p99, rate }: Summary) => [
    title,
    count(rate),
    `${count(low)}..${count(high)}`,
    each.toFixed(0),
    p50.toFixed(2),
    p99.toFixed(2)
  ]
  print(`\nPOST /v1/chat/completions, one caller, ${chat.connections} connections\n`)
  print(
    table([
      ["database", "requests/s", "lowest..highest", "CPU µs of the service", "p50 ms", "p99 ms"],
      row("a SQLite file", rates.get(file.name)!),
      row("PostgreSQL", rates.get(node.name)!)
    ])
  )
  bench.results.reach({
    what: "2 chat on PostgreSQL, relative to SQLite",
    measured: ratio(rates, node.name, file.name),
    unit: "x",
    least: 0.5
  })
  bench.results.reach({
    what: "2 CPU per call of a node, relative to the service on SQLite",
    measured: rates.get(node.name)!.cpu / rates.get(file.name)!.cpu,
    unit: "x",
    most: 1.5
  })
}

type Pair = readonly [Contender, Contender]

interface Cost {
  /** The total calls per second over all nodes. */
  readonly rate: number
  /** CPU time per call, in µs. */
  readonly nodes: number
  readonly server: number
}

interface Comparison {
  readonly bench: Bench
  readonly server: Server
  /** The total over all nodes. */
  readonly connections: number
  readonly loads: readonly [ChildProcess, ChildProcess]
  readonly nodes: Pair
  readonly services: Pair
}

/**
 * Compares one node with two nodes, with the same total number of connections. As a control, it compares one service on SQLite with two services that
 * share only the core. The cost of two independent processes is not a cost of running nodes.
 *
 * The target applies when each node is busy. The cost of an event loop iteration, a batch and its commit does not depend on the number of calls, and
 * each of two nodes gets half of the calls.
 */
const compareNodes = async ({ bench, connections, loads, nodes, server, services }: Comparison): Promise<void> => {
  const { options } = bench
  const { seconds } = options
  const chat = (connections: number) => chatCalls({ name: "chat, nodes", connections })
  const all = chat(connections)
  const half = chat(Math.ceil(connections / 2))
  const alone = (at: Contender) => async () => [await drive(loads[0], at, all, { seconds })]
  const together = (pair: Pair) => () => Promise.all(pair.map((at, i) => drive(loads[i]!, at, half, { seconds })))
  const sides = [
    { title: "one node on PostgreSQL", work: alone(nodes[0]), costs: [] as Array<Cost> },
    { title: "two nodes on PostgreSQL", work: together(nodes), costs: [] as Array<Cost> },
    { title: "one service on SQLite", work: alone(services[0]), costs: [] as Array<Cost> },
    { title: "two services on SQLite, nothing shared", work: together(services), costs: [] as Array<Cost> }
  ]
  const measure = async (work: () => Promise<ReadonlyArray<Run>>): Promise<Cost> => {
    const before = serverCpu(server)
    const runs = await work()
    const calls = runs.reduce((sum, run) => sum + run.calls, 0)
    return {
      rate: runs.reduce((sum, { rate }) => sum + rate, 0),
      nodes: runs.reduce((sum, run) => sum + run.cpu * run.calls, 0) / calls,
      server: (serverCpu(server) - before) / calls
    }
  }
  // The second node and the second service have not served any calls yet.
  for (const at of [nodes[1], services[1]]) await drive(loads[1], at, all, { seconds: options.warmup })
  for (const { work } of sides) await work()
  for (let round = 1; round <= options.rounds; round++) {
    for (const { costs, work } of round % 2 === 1 ? sides : sides.toReversed()) costs.push(await measure(work))
    const rates = sides.map(({ costs }) => count(costs.at(-1)!.rate))
    say(`nodes, ${connections} connections: round ${round} of ${options.rounds}: ${rates.join(", ")}`)
  }
  const of = (place: number, what: keyof Cost) => median(sides[place]!.costs.map((cost) => cost[what]))
  /** Returns the CPU time relative to one node or service in the same round. */
  const ratioTo = (place: number, one: number) =>
    median(sides[place]!.costs.map(({ nodes: cost }, round) => cost / sides[one]!.costs[round]!.nodes))
  print(`\nChat through one process and through two on the same core, ${connections} connections in total\n`)
  print(
    table([
      ["through", "requests/s", "CPU µs per call", "lowest..highest", "relative to one", "CPU µs per call, server"],
      ...sides.map(({ costs, title }, place) => [
        title,
        count(of(place, "rate")),
        of(place, "nodes").toFixed(0),
        `${Math.min(...costs.map((cost) => cost.nodes)).toFixed(0)}..${Math.max(...costs.map((cost) => cost.nodes)).toFixed(0)}`,
        place % 2 === 0 ? "" : inUnit(ratioTo(place, place - 1), "x"),
        place < 2 ? of(place, "server").toFixed(0) : ""
      ])
    ])
  )
  if (connections !== manyConnections) return
  const [shared, control] = [ratioTo(1, 0), ratioTo(3, 2)]
  const what = `3 CPU per call of two nodes, relative to one, ${connections} connections`
  bench.results.reach({ what, measured: shared, unit: "x", most: 1.1 })
  bench.results.reach({
    what: `3 the same, relative to the ratio for two services that share nothing (x ${control.toFixed(2)})`,
    measured: shared / control,
    unit: "x",
    most: 1.1
  })
}

/** Revokes keys at one node and measures how long the other node still accepts them after the response. */
const revoke = async ({ results }: Bench, at: Gateway, other: Gateway, books: Contender): Promise<void> => {
  const token = await at.tokenOf(0)
  const [base, further] = [`http://127.0.0.1:${at.port}`, `http://127.0.0.1:${other.port}`]
  const times: Array<number> = []
  for (let i = 0; i < revocations; i++) {
    const { application, key, tenant } = await makeKey(base, token)
    const status = async () => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
      const response = await fetch(`${further}/v1/chat/completions`, { method: "POST", headers, body: chatBody({}) })
      await response.arrayBuffer()
      if (response.status === 200) {
        books.served++
        books.due[0] = (books.due[0] ?? 0) + callPrice
      }
      return response.status
    }
    if ((await status()) !== 200) throw new Error(`one node refuses a key that was created at the other`)
    await call("DELETE", `${base}/v1/tenants/${tenant}/applications/${application}`, token)
    const start = performance.now()
    while ((await status()) !== 401 && performance.now() - start < revocationTimeout);
    times.push(performance.now() - start)
    if (times[i]! >= revocationTimeout) break
  }
  const worst = Math.max(...times)
  const isOver = worst >= revocationTimeout
  print(`\nTime until a node refuses a key that was revoked at the other node, measured with consecutive calls\n`)
  print(
    isOver
      ? `  more than ${revocationTimeout / 1000} s; no further keys were tried`
      : `  median ${median(times).toFixed(1)} ms, worst of ${revocations} ${worst.toFixed(1)} ms`
  )
  results.reach({ what: "4 revocation, median", measured: median(times), unit: "ms", most: 50 })
  results.reach({ what: `4 revocation, worst of ${revocations}`, measured: worst, unit: "ms", most: 1_000 })
}

export const postgres: Part = {
  name: "postgres",
  about: "charges, chat and two nodes over PostgreSQL (only on request)",
  run
}
