// Measures each process's resident memory at rest, 20 seconds after all processes have started, and at its peak under load.
import { join } from "node:path"
import { chatCalls, manyCallers } from "../calls.ts"
import { drive, inUnit, print, say, table, titles } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"
import { memory as residentOf, sleep } from "../processes.ts"
import { openWorld } from "../world.ts"

/** How long the service has to collect its startup garbage, in milliseconds. */
const restMs = 20_000
const loadSeconds = 8

const run = async ({ cores, directory, options, results }: Bench): Promise<void> => {
  const world = await openWorld(cores, options, { directory: join(directory, "memory"), peer: options.peer })
  const { floor, gateway, load, peer, plain, welcome } = world
  say(`memory: ${restMs / 1000} s at rest`)
  await sleep(restMs)
  const all = [plain, floor, gateway, peer].filter((one) => one !== undefined)
  const atRest = all.map(({ pid }) => residentOf(pid))
  await welcome(manyCallers)
  const workloads = [1, manyCallers].map((callers) =>
    chatCalls({ name: "memory", callers, connections: options.connections })
  )
  const rows: Array<ReadonlyArray<string>> = [["process", "at rest", "one caller", "a thousand callers"]]
  for (const [i, one] of all.entries()) {
    const peaks: Array<number> = []
    for (const workload of workloads) {
      one.peak = 0
      await drive(load, one, workload, { seconds: loadSeconds })
      peaks.push(one.peak)
    }
    rows.push([titles[one.name]!, ...[atRest[i], ...peaks].map((value) => inUnit(value, "MB", 0))])
    if (one !== gateway) continue
    results.reach({ what: "10 memory at rest", measured: atRest[i], unit: "MB", most: 110 })
    results.reach({ what: "6 memory under load", measured: Math.max(...peaks), unit: "MB", most: 400 })
  }
  print("\nResident memory\n")
  print(table(rows))
  await world.close()
}

export const memory: Part = { name: "memory", about: "memory at rest and under load", run }
