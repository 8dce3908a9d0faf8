// Measures the charge log without HTTP, on SQLite and on PostgreSQL: charges with and without the log, the log's size per entry, and the time to
// build the log of a ledger that has none yet.
import { chmodSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { startServer } from "../../../test/support/postgres.ts"
import type { Server } from "../../../test/support/postgres.ts"
import { manyCallers } from "../calls.ts"
import { count, inUnit, print, say, table } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"
import { operate } from "../gateway.ts"
import type { Charged, Logged, Order, Size } from "../logged.ts"
import { median, quantile } from "../numbers.ts"
import { ask, cpu, startPart, stop } from "../processes.ts"
import { createDatabase, serverCpu } from "../server.ts"

/** The number of entries in the log-building target. */
const entriesOfTarget = 5_000_000

/** A database engine, with its name in the tables. */
interface Engine {
  readonly title: string
  /** The process's core; `undefined` if the process shares all cores with a server. */
  readonly core: string | undefined
  /** Creates a database and returns its file or URL. */
  readonly create: (name: string) => Promise<string>
  readonly serverCpu: () => number
}

const run = async (bench: Bench): Promise<void> => {
  const { cores, directory } = bench
  // If the benchmark runs as root, the server runs as another user.
  chmodSync(directory, 0o755)
  const server = await startServer(["max_wal_size=4GB"], directory)
  const engines: ReadonlyArray<Engine> = [onSqlite(directory, cores.served), onPostgres(server)]
  try {
    const charges: Array<Compared> = []
    const builds: Array<Built> = []
    for (const engine of engines) charges.push(await compare(bench, engine))
    for (const engine of engines) builds.push(await build(bench, engine))
    printCharges(bench, charges)
    printBuilds(bench, builds)
  } finally {
    await server.stop()
  }
}

const onSqlite = (directory: string, core: string | undefined): Engine => ({
  title: "SQLite",
  core,
  create: async (name) => {
    const folder = join(directory, `log-${name}`)
    mkdirSync(folder)
    return join(folder, "tollgate.db")
  },
  serverCpu: () => 0
})

const onPostgres = (server: Server): Engine => ({
  title: "PostgreSQL",
  core: undefined,
  create: (name) => createDatabase(server, `log_${name}`),
  serverCpu: () => serverCpu(server)
})

// ---- processes ----------------------------------------------------------------------------------------------------------

const startLogged = async ({ directory, options }: Bench, engine: Engine, name: string, mode: "on" | "off") => {
  const place = await engine.create(name)
  const child = startPart(engine.core, "logged.ts", [place, mode])
  await ask(child)
  const order = <A>(one: Order) => ask<A>(child, one)
  let made = 0
  return {
    charge: async (how: { readonly seconds: number } | { readonly charges: number }) => {
      const before = cpu(child.pid!) + engine.serverCpu()
      const { charges, millis } = await order<Charged>(how)
      made += charges
      return { rate: (charges / millis) * 1000, cpu: (cpu(child.pid!) + engine.serverCpu() - before) / charges }
    },
    log: async () => {
      const before = cpu(child.pid!) + engine.serverCpu()
      const logged = await order<Logged>({ log: true })
      return { ...logged, cpu: (cpu(child.pid!) + engine.serverCpu() - before) / logged.entries }
    },
    /** Ends the process. Throws unless the ledger has one entry per charge and per account and `verify` finds nothing. */
    end: async (isLogged: boolean): Promise<Size> => {
      const size = await order<Size>({ size: true })
      const due = made + manyCallers
      if (size.entries !== due || size.logged !== (isLogged ? due : 0))
        throw new Error(
          `WRONG LOG: ${due} entries were booked on ${engine.title}, but the ledger shows ${size.entries} and the log ${size.logged}`
        )
      await stop(child)
      const env = place.startsWith("postgres")
        ? { DATABASE_URL: place, DATA_DIR: directory }
        : { DATA_DIR: join(place, "..") }
      const verified = await operate(options.main, env, "verify")
      say(`log: ${engine.title}, ${name}: ${verified.trim().split("\n").at(-1)}`)
      return size
    }
  }
}

// ---- charges with the log and without it --------------------------------------------------------------------------------

interface Side {
  readonly name: "on" | "off"
  readonly rates: Array<number>
  readonly costs: Array<number>
}

interface Compared {
  readonly engine: Engine
  readonly on: Side
  readonly off: Side
  readonly size: Size
}

/** Charges two databases in alternated rounds: one with a concurrent log, and one without a log. */
const compare = async (bench: Bench, engine: Engine): Promise<Compared> => {
  const { options, results } = bench
  const sides = await Promise.all(
    (["off", "on"] as const).map(async (name) => ({
      name,
      process: await startLogged(bench, engine, name, name),
      rates: [] as Array<number>,
      costs: [] as Array<number>
    }))
  )
  for (const { process } of sides) await process.charge({ seconds: options.warmup / 2 })
  for (let round = 1; round <= options.rounds; round++) {
    for (const { costs, process, rates } of round % 2 === 1 ? sides : sides.toReversed()) {
      const { cpu, rate } = await process.charge({ seconds: options.seconds })
      rates.push(rate)
      costs.push(cpu)
    }
    const line = sides.map(({ name, rates }) => `${name} ${count(rates.at(-1)!)}`)
    say(`log: ${engine.title}, round ${round} of ${options.rounds}: ${line.join(", ")}`)
  }
  for (const { name, rates } of sides)
    results.measurements.push({ part: `log, ${engine.title}`, contender: `log ${name}`, rates })
  const [off, on] = sides as [(typeof sides)[number], (typeof sides)[number]]
  await on.process.log()
  await off.process.end(false)
  return { engine, off, on, size: await on.process.end(true) }
}

/** The ratio of the rates with and without the log in each round. */
const ratios = ({ off, on }: Compared): ReadonlyArray<number> => on.rates.map((rate, i) => rate / off.rates[i]!)

const printCharges = ({ results }: Bench, compared: ReadonlyArray<Compared>): void => {
  print(
    `\nCharges, reserve then settle, durable; ${count(manyCallers)} Zipf-distributed callers; with the log, its loop runs meanwhile\n`
  )
  const row = (one: Compared, { costs, name, rates }: Side): ReadonlyArray<string> => {
    const quotients = ratios(one)
    return [
      `${one.engine.title}, log ${name}`,
      count(median(rates)),
      `${count(Math.min(...rates))}..${count(Math.max(...rates))}`,
      median(costs).toFixed(1),
      name === "off" ? "-" : inUnit(median(quotients), "x"),
      name === "off" ? "-" : `${quantile(quotients, 0.25).toFixed(2)}..${quantile(quotients, 0.75).toFixed(2)}`,
      name === "off" ? "-" : (one.size.bytes / one.size.logged).toFixed(1)
    ]
  }
  const head = [
    "side",
    "charges/s",
    "lowest..highest",
    "CPU µs",
    "relative to off",
    "half of the rounds",
    "bytes/entry"
  ]
  print(table([head, ...compared.flatMap((one) => [row(one, one.off), row(one, one.on)])]))
  for (const one of compared) {
    const { title } = one.engine
    results.reach({
      what: `35 charges with the log on ${title}, relative to without`,
      measured: median(ratios(one)),
      unit: "x",
      least: 0.95
    })
    results.reach({
      what: `35 bytes of the log per entry on ${title}, added meanwhile`,
      measured: one.size.bytes / one.size.logged,
      unit: "B",
      most: 80
    })
  }
}

// ---- building the log ---------------------------------------------------------------------------------------------------

interface Built extends Logged {
  /** The CPU time per entry, in µs. */
  readonly cpu: number
  readonly engine: Engine
  readonly size: Size
}

/** Builds the log of a ledger that was written without one, as after an upgrade from a version without a log. */
const build = async (bench: Bench, engine: Engine): Promise<Built> => {
  const process = await startLogged(bench, engine, "build", "off")
  say(`log: ${engine.title}: writing ${count(bench.options.entries)} charges`)
  await process.charge({ charges: bench.options.entries })
  say(`log: ${engine.title}: building their log`)
  const logged = await process.log()
  return { engine, ...logged, size: await process.end(true) }
}

const printBuilds = ({ results }: Bench, builds: ReadonlyArray<Built>): void => {
  print("\nBuilding the log of a ledger that has none\n")
  const seconds = ({ entries, millis }: Built, of = entries): number => (millis / 1000) * (of / entries)
  const title = `for ${count(entriesOfTarget)}`
  print(
    table([
      ["engine", "entries", "seconds", "entries/s", "CPU µs/entry", "bytes/entry", title],
      ...builds.map((built) => [
        built.engine.title,
        count(built.entries),
        seconds(built).toFixed(1),
        count((built.entries / built.millis) * 1000),
        built.cpu.toFixed(1),
        (built.size.bytes / built.size.logged).toFixed(1),
        `${seconds(built, entriesOfTarget).toFixed(0)} s`
      ])
    ])
  )
  if (builds.some(({ entries }) => entries < entriesOfTarget))
    print(`\n  ${title} is extrapolated from fewer entries at the same rate. --calls ${entriesOfTarget} measures it.`)
  for (const built of builds) {
    results.reach({
      what: `35 building the log of ${count(entriesOfTarget)} entries on ${built.engine.title}`,
      measured: seconds(built, entriesOfTarget),
      unit: "s",
      most: 300
    })
  }
}

export const log: Part = {
  name: "log",
  about: "charges with the log of charges and without it, its size, and the time to build it",
  run
}
