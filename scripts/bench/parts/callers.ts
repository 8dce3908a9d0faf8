// Measures chat with 1,000 Zipf-distributed callers and four models, alternated with a single caller.
import { chatCalls, manyCallers } from "../calls.ts"
import { alternate, halfLoad, inUnit, print, printAdded, printRates, ratio } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"

export const workloads = ({ connections }: Bench["options"]) => [
  chatCalls({ name: "chat, a thousand callers", callers: manyCallers, connections })
]

const run = async (bench: Bench): Promise<void> => {
  const { direct, floor, gateway, load, peer, welcome } = await bench.world()
  await welcome(manyCallers)
  const one = chatCalls({ name: "chat, one caller", connections: bench.options.connections })
  const [many] = workloads(bench.options)
  const metering = [floor, gateway]
  const ofOne = await alternate(bench, load, one, metering)
  const ofMany = await alternate(bench, load, many!, peer === undefined ? metering : [...metering, peer])
  const added = await halfLoad(bench, load, many!, direct, [gateway, floor], ofMany)
  printRates("POST /v1/chat/completions, one caller, one model", ofOne)
  printRates(`POST /v1/chat/completions, ${manyCallers} Zipf-distributed callers, four models`, ofMany)
  printAdded("The same calls", added)
  const kept = (name: string) => ofMany.get(name)!.rate / ofOne.get(name)!.rate
  print(
    `\n  Rate relative to one caller: the service ${inUnit(kept("gateway"), "x")}, the floor ${inUnit(kept("floor"), "x")}`
  )
  bench.results.reach({
    what: "7 chat, 1,000 callers: rate relative to the floor",
    measured: ratio(ofMany, "gateway", "floor"),
    unit: "x",
    least: 0.8
  })
  bench.results.reach({
    what: "7 chat, 1,000 callers: added p99 at half load, at most the floor's",
    measured: added.get("gateway")!.addedP99,
    unit: "ms",
    most: added.get("floor")!.addedP99
  })
}

export const callers: Part = { name: "callers", about: "chat with 1,000 Zipf-distributed callers and with one", run }
