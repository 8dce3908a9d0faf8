// Measures decisions and search with one caller.
import { decisionCalls, searchCalls } from "../calls.ts"
import { alternate, printRates, ratio } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"

export const workloads = ({ connections }: Bench["options"]) => [decisionCalls(connections), searchCalls(connections)]

const run = async (bench: Bench): Promise<void> => {
  const { floor, gateway, load } = await bench.world()
  for (const workload of workloads(bench.options)) {
    const rates = await alternate(bench, load, workload, [floor, gateway])
    printRates(`${workload.method} ${workload.path}, one caller`, rates)
    bench.results.reach({
      what: `4 ${workload.name}: rate relative to the floor`,
      measured: ratio(rates, "gateway", "floor"),
      unit: "x",
      least: 0.8
    })
  }
}

export const tools: Part = { name: "tools", about: "decisions and search", run }
