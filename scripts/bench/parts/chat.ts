// Measures chat with one caller through the service, the floor, a plain proxy, the peer and no gateway, and then chat with and without budgets.
import { join } from "node:path"
import { chatCalls } from "../calls.ts"
import { alternate, contender, halfLoad, print, printAdded, printRates, ratio } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"
import { startGateway } from "../gateway.ts"
import { checkGateway } from "../world.ts"

export const workloads = ({ connections }: Bench["options"]) => [chatCalls({ name: "chat", connections })]

const run = async (bench: Bench): Promise<void> => {
  const { direct, floor, gateway, load, peer, plain } = await bench.world()
  const [chat] = workloads(bench.options)
  const all = [direct, plain, floor, gateway, peer].filter((one) => one !== undefined)
  const rates = await alternate(bench, load, chat!, all)
  const added = await halfLoad(bench, load, chat!, direct, [gateway, floor], rates)
  printRates(`POST /v1/chat/completions, one caller, ${chat!.connections} connections`, rates)
  printAdded("The same calls", added)
  bench.results.reach({
    what: "1 chat: rate relative to the peer",
    measured: ratio(rates, "gateway", "peer"),
    unit: "x",
    least: 7
  })
  bench.results.reach({
    what: "8 chat: rate relative to the floor",
    measured: ratio(rates, "gateway", "floor"),
    unit: "x",
    least: 0.9
  })
  const { addedP99 } = added.get("gateway")!
  bench.results.reach({ what: "1 chat: added p99 at half load", measured: addedP99, unit: "ms", most: 8 })
  bench.results.reach({
    what: "8 chat: added p99 at half load, at most the floor's",
    measured: addedP99,
    unit: "ms",
    most: added.get("floor")!.addedP99
  })
  await budgets(bench)
}

/** The periods of the six budgets. Each budget limits USD, tokens, requests and open calls. */
const periods = ["month", "minute", "hour", "day", "week", "total"]

/** Compares three callers of one service: one without budgets, one with one budget and one with six. */
const budgets = async (bench: Bench): Promise<void> => {
  const { cores, options, results } = bench
  const { load, outside } = await bench.world()
  const directory = join(bench.directory, "budgets")
  const service = await startGateway({ name: "budgets", main: options.main, cores, outside, directory })
  const counts = { "no budget": 0, "one budget": 1, "six budgets": periods.length }
  await service.addCallers(Object.keys(counts).length)
  for (const [caller, count] of Object.values(counts).entries())
    await service.addBudgets(caller, periods.slice(0, count))
  const all = Object.keys(counts).map((name, caller) =>
    contender({ ...service, name, keys: [service.callers[caller]!.key] })
  )
  const workload = chatCalls({ name: "chat, budgets", connections: options.connections })
  const rates = await alternate(bench, load, workload, all)
  printRates(`POST /v1/chat/completions, one caller, ${workload.connections} connections, budgets`, rates)
  const due = all.map((one) => one.due[0] ?? 0)
  const served = all.reduce((sum, one) => sum + one.served, 0)
  print(`\n  Database check: ${await checkGateway(service, { ...all[0]!, due, served })}`)
  await service.stop()
  const reach = (name: string, least: number) =>
    results.reach({
      what: `33 chat, ${name}: rate relative to no budget`,
      measured: ratio(rates, name, "no budget"),
      unit: "x",
      least
    })
  reach("one budget", 0.97)
  reach("six budgets", 0.9)
}

export const chat: Part = { name: "chat", about: "chat with one caller; latency at half load; chat with budgets", run }
