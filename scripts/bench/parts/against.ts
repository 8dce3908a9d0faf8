// Drives two builds of the service in turns of one second and prints the effect of a change as ratios. Ratios of adjacent turns vary by two or three
// percent, whereas absolute figures can change by half from one minute to the next.
import { join } from "node:path"
import type { ChildProcess } from "node:child_process"
import type { Workload } from "../calls.ts"
import { contender, count, drive, inUnit, print, say, table } from "../frame.ts"
import type { Bench, Contender, Run } from "../frame.ts"
import { startGateway } from "../gateway.ts"
import { median } from "../numbers.ts"
import { stop } from "../processes.ts"
import { checkGateway, startOutside } from "../world.ts"

const pairsPerRound = 4

interface Compared {
  readonly a: ReadonlyArray<Run>
  readonly b: ReadonlyArray<Run>
}

const compare = async (
  load: ChildProcess,
  workload: Workload,
  [a, b]: readonly [Contender, Contender],
  pairs: number,
  warmup: number
): Promise<Compared> => {
  say(`${workload.name}: warming up`)
  for (const seconds of [warmup, warmup / 2]) for (const one of [a, b]) await drive(load, one, workload, { seconds })
  const runs = { a: [] as Array<Run>, b: [] as Array<Run> }
  for (let pair = 0; pair < pairs; pair++) {
    // Alternate between A B and B A, so that the machine's drift affects both equally.
    const turns = [[a, runs.a] as const, [b, runs.b] as const]
    for (const [one, into] of pair % 2 === 0 ? turns : turns.toReversed()) {
      into.push(await drive(load, one, workload, { seconds: 1 }))
    }
  }
  return runs
}

const row = (name: string, { a, b }: Compared): ReadonlyArray<string> => {
  const ratios = (what: "rate" | "cpu" | "p99") => a.map((run, i) => b[i]![what] / run[what]).sort((x, y) => x - y)
  const middle = ratios("rate").slice(Math.floor(a.length / 4), Math.ceil((3 * a.length) / 4))
  return [
    name,
    count(median(a.map((run) => run.rate))),
    count(median(b.map((run) => run.rate))),
    inUnit(median(ratios("rate")), "x", 3),
    `${middle[0]!.toFixed(2)}..${middle.at(-1)!.toFixed(2)}`,
    inUnit(median(ratios("cpu")), "x", 3),
    inUnit(median(ratios("p99")), "x")
  ]
}

/** Compares two builds: A is the main file `other`, and B is the service under test. */
export const runAgainst = async (bench: Bench, other: string, workloads: ReadonlyArray<Workload>): Promise<void> => {
  const { cores, directory, options } = bench
  const { load, outside, upstream } = await startOutside(cores)
  const startOne = (name: string, main: string) =>
    startGateway({ name, main, cores, outside, directory: join(directory, name) })
  const services = [await startOne("A", other), await startOne("B", options.main)] as const
  const callers = Math.max(...workloads.map((workload) => workload.callers))
  say(`signing up ${callers} people at each`)
  for (const service of services) await service.addCallers(callers)
  const both = [contender(services[0]), contender(services[1])] as const
  const rows: Array<ReadonlyArray<string>> = []
  for (const workload of workloads) {
    const compared = await compare(load, workload, both, options.rounds * pairsPerRound, options.warmup)
    rows.push(row(workload.name, compared))
    say(rows.at(-1)!.join("  "))
  }
  print(`\nA is ${other}\nB is ${options.main}\n`)
  print(table([["workload", "A calls/s", "B calls/s", "B of A", "half of the pairs", "CPU per call", "p99"], ...rows]))
  for (const [i, service] of services.entries()) {
    say(`${service.name}: ${await checkGateway(service, both[i]!)}`)
    await service.stop()
  }
  for (const child of [load, upstream]) await stop(child)
}
