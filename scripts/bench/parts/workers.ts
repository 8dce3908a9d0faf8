// Chat through one process, and through an owner with two and with four workers (`serve --workers`), all on one core. Two cores cannot show the rate
// of several processes next to a load generator. This part therefore measures their cost: CPU time per call, and the owner's share.
import { join } from "node:path"
import { chatCalls } from "../calls.ts"
import { contender, count, drive, print, say, table, titles, warmUp } from "../frame.ts"
import type { Bench, Contender, Part, Run } from "../frame.ts"
import { startGateway } from "../gateway.ts"
import { median } from "../numbers.ts"
import { cpu, stop } from "../processes.ts"
import { checkGateway, startOutside } from "../world.ts"

/**
 * Enough connections to keep each of four processes busy. An event loop iteration has a fixed cost, regardless of the number of calls. With few
 * connections, the result would depend more on the size of batches than on the work per call.
 */
const manyConnections = 512

interface Side {
  readonly at: Contender
  readonly runs: Array<Run & { readonly owner: number }>
}

const run = async (bench: Bench): Promise<void> => {
  const { cores, directory, options } = bench
  const { load, outside, upstream } = await startOutside(cores)
  say("starting the service as one process, with two workers and with four")
  const service = async (name: string, workers?: number) => {
    const rest = workers === undefined ? {} : { workers }
    const gateway = await startGateway({
      name,
      main: options.main,
      cores,
      outside,
      directory: join(directory, name),
      ...rest
    })
    await gateway.addCallers(1)
    return gateway
  }
  const counts = [1, 2, 4]
  const gateways = [await service("one process"), await service("two workers", 2), await service("four workers", 4)]
  const contenders = gateways.map((gateway) => contender(gateway))
  for (const connections of [options.connections, manyConnections]) {
    const sides = contenders.map((at): Side => ({ at, runs: [] }))
    const workload = chatCalls({ name: `chat, ${connections} connections`, connections })
    // V8 optimizes each process separately, so each worker needs as many calls as a single process.
    for (const [i, at] of contenders.entries()) await warmUp(load, workload, [at], options.warmup * counts[i]!)
    for (let round = 1; round <= options.rounds; round++) {
      for (const { at, runs } of round % 2 === 1 ? sides : sides.toReversed()) {
        const before = cpu(at.pid)
        const outcome = await drive(load, at, workload, { seconds: options.seconds })
        runs.push({ ...outcome, owner: (cpu(at.pid) - before) / outcome.calls })
      }
      say(
        `${workload.name}: round ${round}: ${sides.map(({ at, runs }) => `${at.name} ${runs.at(-1)!.cpu.toFixed(0)} µs`).join(", ")}`
      )
    }
    report(bench, connections, sides)
  }
  for (const [i, gateway] of gateways.entries())
    print(`\n  ${gateway.name}: ${await checkGateway(gateway, contenders[i]!)}`)
  for (const gateway of gateways) await gateway.stop()
  for (const child of [load, upstream]) await stop(child)
}

const report = ({ results }: Bench, connections: number, sides: ReadonlyArray<Side>): void => {
  const of = ({ runs }: Side, what: "cpu" | "owner" | "rate" | "p99") => median(runs.map((one) => one[what]))
  /** Returns the median CPU time relative to a single process. Compares within a round, because the machine's speed varies between rounds. */
  const cost = ({ runs }: Side) => median(runs.map(({ cpu }, i) => cpu / sides[0]!.runs[i]!.cpu))
  const share = ({ runs }: Side) => median(runs.map(({ cpu, owner }) => owner / cpu))
  print(`\nPOST /v1/chat/completions, one caller, ${connections} connections, all processes on one core\n`)
  print(
    table([
      ["processes", "requests/s", "CPU µs", "of one process", "the owner's µs", "the owner's part", "p99 ms"],
      ...sides.map((side, i) => [
        titles[side.at.name]!,
        count(of(side, "rate")),
        of(side, "cpu").toFixed(0),
        i === 0 ? "-" : cost(side).toFixed(2),
        i === 0 ? "-" : of(side, "owner").toFixed(0),
        i === 0 ? "-" : share(side).toFixed(2),
        of(side, "p99").toFixed(1)
      ])
    ])
  )
  for (const side of sides.slice(1)) {
    const name = `${side.at.name}, ${connections} connections`
    results.reach({ what: `13 CPU per call, ${name}, of one process`, measured: cost(side), unit: "x", most: 1.15 })
    results.reach({ what: `13 the owner's part, ${name}`, measured: share(side), unit: "x", most: 0.2 })
  }
}

export const workers: Part = { name: "workers", about: "CPU time per call with several processes on SQLite", run }
