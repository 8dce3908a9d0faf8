// Shared code of the parts: contenders in alternated rounds, medians, tables and targets.
import type { ChildProcess } from "node:child_process"
import type { Workload } from "./calls.ts"
import type { Order, Outcome } from "./load.ts"
import { median } from "./numbers.ts"
import { ask, cpuWithChildren, memory } from "./processes.ts"
import type { Cores } from "./processes.ts"
import type { World } from "./world.ts"

export interface Options {
  readonly rounds: number
  readonly seconds: number
  readonly warmup: number
  readonly connections: number
  /** The path of the built service's `main.js`. */
  readonly main: string
  readonly peer: boolean
  /** The number of calls in the databases that `growth` and `console` fill. */
  readonly calls: number
  /** The number of charges in the log that `log` builds. */
  readonly entries: number
  /** The number of distinct tags and end users in the first tenant's calls in `growth`. */
  readonly labels: number
  /** `growth` and `console` keep their database in this folder for later runs. */
  readonly keep: string | undefined
}

export interface Bench {
  readonly options: Options
  readonly cores: Cores
  /** A folder on the disk to be measured. */
  readonly directory: string
  /** Returns the shared processes: the upstream, the floor, the service and the peer. The first call starts them. */
  readonly world: () => Promise<World>
  readonly results: Results
}

/** A part of the benchmark. It prints its own measurements. */
export interface Part {
  readonly name: string
  /** The line in `--help`. */
  readonly about: string
  readonly run: (bench: Bench) => Promise<void>
}

// ---- contenders ---------------------------------------------------------------------------------------------------------

/** A load target: its address and credentials. */
export interface Target {
  readonly name: string
  readonly port: number
  /** Headers in addition to the bearer token. */
  readonly headers: Readonly<Record<string, string>>
  /** A bearer token per caller, or a single token if the target does not distinguish callers. */
  readonly keys: ReadonlyArray<string>
  /** The process whose memory and CPU time are measured, including its children's CPU time. */
  readonly pid: number
}

/** A target, with the charges that its database must show. */
export interface Contender extends Target {
  served: number
  /** The amount that each caller owes so far, in nano-USD. */
  readonly due: Array<number>
  /** The peak memory under load, in MB. */
  peak: number
}

export const contender = (target: Target): Contender => ({ ...target, served: 0, due: [], peak: 0 })

export interface Run extends Outcome {
  /** The contender's CPU time per call, in µs. */
  readonly cpu: number
}

export type Drive = Pick<Order, "seconds"> & Partial<Pick<Order, "rate" | "calls" | "patience">>

/** Drives a contender. Throws if any call fails, because a rate that includes errors is meaningless. */
export const drive = async (load: ChildProcess, at: Contender, workload: Workload, how: Drive): Promise<Run> => {
  const { bodies, callers, connections, end, method, path, price, stream } = workload
  const { headers, keys, port } = at
  const sampling = setInterval(() => (at.peak = Math.max(at.peak, memory(at.pid))), 250)
  const before = cpuWithChildren(at.pid)
  const order: Order = {
    port,
    method,
    path,
    headers,
    keys: Array.from({ length: callers }, (_, i) => keys[i % keys.length]!),
    bodies,
    stream,
    ...(end !== undefined && { end }),
    connections,
    ...how
  }
  const outcome = await ask<Outcome>(load, order)
  clearInterval(sampling)
  const spent = cpuWithChildren(at.pid) - before
  at.served += outcome.calls
  for (const [caller, calls] of outcome.byCaller.entries()) at.due[caller] = (at.due[caller] ?? 0) + calls * price
  if (outcome.failures > 0 || outcome.calls === 0) {
    const what = outcome.wrong.map((text) => `  ${text}`).join("\n")
    throw new Error(
      `${workload.name} at ${at.name}: ${outcome.failures} of ${outcome.failures + outcome.calls} calls FAILED\n${what}`
    )
  }
  return { ...outcome, cpu: spent / outcome.calls }
}

/** Throws unless a chat call's response is the upstream's, including its usage. */
const checkAnswer = ({ sample }: Outcome, at: Contender): void => {
  const text = [...sample.matchAll(/"content": ?"([^"]*)"/g)].map((match) => match[1]).join("")
  if (text.endsWith("shows at once in the sum.") && /"prompt_tokens": ?12\b/.test(sample)) return
  throw new Error(`the response of ${at.name} is not the upstream's: ${sample.slice(0, 400)}`)
}

// ---- rounds -------------------------------------------------------------------------------------------------------------

/**
 * The medians over the rounds: calls per second, CPU time in µs, latency in ms. `low` and `high` are the lowest and highest rates of a round.
 */
export interface Summary {
  readonly rate: number
  readonly low: number
  readonly high: number
  readonly cpu: number
  readonly p50: number
  readonly p99: number
}

export type Rates = ReadonlyMap<string, Summary>

const summary = (runs: ReadonlyArray<Run>): Summary => ({
  rate: median(runs.map((run) => run.rate)),
  low: Math.min(...runs.map((run) => run.rate)),
  high: Math.max(...runs.map((run) => run.rate)),
  cpu: median(runs.map((run) => run.cpu)),
  p50: median(runs.map((run) => run.p50)),
  p99: median(runs.map((run) => run.p99))
})

/** Drives each contender without measuring, so that V8 optimizes the code and caches fill. */
export const warmUp = async (
  load: ChildProcess,
  workload: Workload,
  contenders: ReadonlyArray<Contender>,
  seconds: number
): Promise<void> => {
  say(`${workload.name}: warming up`)
  for (const one of contenders) {
    const run = await drive(load, one, workload, { seconds })
    if (workload.path === "/v1/chat/completions") checkAnswer(run, one)
  }
}

/** Drives the contenders in alternating order, A B C and C B A, so that disturbances of the machine affect all of them equally. */
export const alternate = async (
  { options, results }: Bench,
  load: ChildProcess,
  workload: Workload,
  contenders: ReadonlyArray<Contender>,
  warmup = options.warmup
): Promise<Rates> => {
  const runs = new Map(contenders.map(({ name }) => [name, [] as Array<Run>]))
  await warmUp(load, workload, contenders, warmup)
  for (let round = 1; round <= options.rounds; round++) {
    for (const one of round % 2 === 1 ? contenders : contenders.toReversed()) {
      const run = await drive(load, one, workload, { seconds: options.seconds })
      runs.get(one.name)!.push(run)
      results.measurements.push({ part: workload.name, contender: one.name, ...run, byCaller: [], sample: "" })
    }
    const line = [...runs].map(([name, of]) => `${name} ${Math.round(of.at(-1)!.rate)}`)
    say(`${workload.name}: round ${round} of ${options.rounds}: ${line.join(", ")}`)
  }
  return new Map([...runs].map(([name, of]) => [name, summary(of)]))
}

/** The latency at `rate` calls per second in an open loop, and its excess over the upstream's own latency at that rate. Times are in milliseconds. */
export interface Added {
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly addedP50: number
  readonly addedP99: number
}

/** Drives each contender at half of its measured throughput, each time right after the upstream alone. */
export const halfLoad = async (
  { options, results }: Bench,
  load: ChildProcess,
  workload: Workload,
  direct: Contender,
  contenders: ReadonlyArray<Contender>,
  rates: Rates
): Promise<ReadonlyMap<string, Added>> => {
  const added = new Map(contenders.map(({ name }) => [name, [] as Array<Added>]))
  for (let round = 1; round <= options.rounds; round++) {
    for (const one of contenders) {
      const how = { seconds: options.seconds, rate: rates.get(one.name)!.rate / 2 }
      const straight = await drive(load, direct, workload, how)
      const { p50, p99 } = await drive(load, one, workload, how)
      const run = { rate: how.rate, p50, p99, addedP50: p50 - straight.p50, addedP99: p99 - straight.p99 }
      added.get(one.name)!.push(run)
      results.measurements.push({ part: `${workload.name}, half load`, contender: one.name, ...run })
    }
    const line = [...added].map(([name, runs]) => `${name} p99 ${runs.at(-1)!.p99.toFixed(2)} ms`)
    say(`${workload.name}, half load: round ${round} of ${options.rounds}: ${line.join(", ")}`)
  }
  const of = (runs: ReadonlyArray<Added>, what: keyof Added) => median(runs.map((run) => run[what]))
  return new Map(
    [...added].map(([name, runs]) => [
      name,
      {
        rate: of(runs, "rate"),
        p50: of(runs, "p50"),
        p99: of(runs, "p99"),
        addedP50: of(runs, "addedP50"),
        addedP99: of(runs, "addedP99")
      }
    ])
  )
}

// ---- printing -----------------------------------------------------------------------------------------------------------

/** Prints a result to standard output. Progress is printed to standard error. */
export const print = (text: string): void => void process.stdout.write(`${text}\n`)
export const say = (text: string): void => void process.stderr.write(`${text}\n`)

/** Formats rows as a table. The first row is the header. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const line = (row: ReadonlyArray<string>) =>
    `  ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("   ")}`.trimEnd()
  return [line(rows[0]!), `  ${"-".repeat(widths.reduce((a, b) => a + b + 3, -3))}`, ...rows.slice(1).map(line)].join(
    "\n"
  )
}

export const count = (value: number): string => Math.round(value).toLocaleString("en-US")

/** Formats a number with its unit. A ratio is formatted as `x 0.85`. */
export const inUnit = (value: number | undefined, unit: string, digits = 2): string =>
  value === undefined ? "-" : unit === "x" ? `x ${value.toFixed(digits)}` : `${value.toFixed(digits)} ${unit}`

export const titles: Readonly<Record<string, string>> = {
  direct: "nothing (upstream directly)",
  plain: "plain node:http proxy, unmetered",
  floor: "floor: metered, durable, raw",
  gateway: "the service",
  peer: "peer: @portkey-ai/gateway, unmetered",
  "no budget": "the service, no budget",
  "one budget": "the service, one budget",
  "six budgets": "the service, six budgets",
  "one process": "the service, one process",
  "two workers": "the service, an owner and two workers",
  "four workers": "the service, an owner and four workers"
}

export const ratio = (rates: Rates, a: string, b: string): number | undefined => {
  const [one, other] = [rates.get(a), rates.get(b)]
  return one === undefined || other === undefined ? undefined : one.rate / other.rate
}

export const printRates = (title: string, rates: Rates): void => {
  print(`\n${title}\n`)
  const row = ([name, s]: readonly [string, Summary]) => [
    titles[name] ?? name,
    count(s.rate),
    `${count(s.low)}..${count(s.high)}`,
    s.cpu.toFixed(0),
    s.p50.toFixed(2),
    s.p99.toFixed(2),
    inUnit(ratio(rates, name, "floor"), "x"),
    inUnit(ratio(rates, name, "peer"), "x")
  ]
  const head = ["through", "requests/s", "lowest..highest", "CPU µs", "p50 ms", "p99 ms", "of floor", "of peer"]
  print(table([head, ...[...rates].map(row)]))
}

export const printAdded = (title: string, added: ReadonlyMap<string, Added>): void => {
  print(
    `\n${title}, open loop at half of each contender's throughput ("added" is the excess over the upstream's own latency at that rate)\n`
  )
  const row = ([name, a]: readonly [string, Added]) => [
    titles[name]!,
    count(a.rate),
    ...[a.p50, a.p99, a.addedP50, a.addedP99].map((value) => value.toFixed(2))
  ]
  print(table([["through", "requests/s", "p50 ms", "p99 ms", "added p50 ms", "added p99 ms"], ...[...added].map(row)]))
}

// ---- targets ------------------------------------------------------------------------------------------------------------

/** A target with its measurement. `what` usually starts with the target's number. */
export interface Reach {
  readonly what: string
  readonly measured: number | undefined
  readonly unit: "x" | "ms" | "s" | "B" | "MB"
  readonly least?: number
  readonly most?: number
}

export class Results {
  readonly measurements: Array<object> = []
  readonly reaches: Array<Reach> = []

  reach(reach: Reach): void {
    this.reaches.push(reach)
  }

  print(): void {
    if (this.reaches.length === 0) return
    const row = ({ least, measured, most, unit, what }: Reach) => {
      const target = least === undefined ? `<= ${inUnit(most, unit)}` : `>= ${inUnit(least, unit)}`
      const isMet = measured !== undefined && measured >= (least ?? measured) && measured <= (most ?? measured)
      return [what, inUnit(measured, unit), target, measured === undefined ? "-" : isMet ? "reached" : "NOT reached"]
    }
    print("\nTargets (only ratios within this run are comparable, not absolute figures)\n")
    print(table([["what", "measured", "target", ""], ...this.reaches.map(row)]))
  }
}
