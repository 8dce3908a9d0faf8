// Simulates a slow disk: each commit of the floor and the service takes 5 ms longer (`slow-commit.mjs`).
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { chatCalls, manyCallers } from "../calls.ts"
import { alternate, halfLoad, printAdded, printRates } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"
import { root } from "../processes.ts"
import { openWorld } from "../world.ts"

const run = async (bench: Bench): Promise<void> => {
  const { cores, options } = bench
  const slow = pathToFileURL(join(root, "scripts", "bench", "slow-commit.mjs")).href
  const directory = join(bench.directory, "disk")
  const world = await openWorld(cores, options, { directory, peer: false, flags: ["--import", slow] })
  const { direct, floor, gateway, load, welcome } = world
  await welcome(manyCallers)
  for (const callers of [1, manyCallers]) {
    const name = `slow disk, ${callers === 1 ? "one caller" : "a thousand callers"}`
    const workload = chatCalls({ name, callers, connections: options.connections })
    const rates = await alternate(bench, load, workload, [floor, gateway])
    printRates(`POST /v1/chat/completions, commits delayed by 5 ms, ${name}`, rates)
    if (callers === 1)
      printAdded("The same calls", await halfLoad(bench, load, workload, direct, [gateway, floor], rates))
  }
  await world.close()
}

export const disk: Part = { name: "disk", about: "chat with every commit delayed by 5 ms", run }
