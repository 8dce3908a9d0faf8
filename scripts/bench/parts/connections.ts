// Measures chat over 32 and over 1,000 connections. Each connection always has one open call.
import { chatCalls } from "../calls.ts"
import { alternate, printRates } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"

export const workloads = () =>
  [32, 1_000].map((connections) => chatCalls({ name: `chat over ${connections} connections`, connections }))

const run = async (bench: Bench): Promise<void> => {
  const { direct, floor, gateway, load, peer } = await bench.world()
  const all = [direct, floor, gateway, peer].filter((one) => one !== undefined)
  for (const workload of workloads()) {
    const rates = await alternate(bench, load, workload, all)
    printRates(`POST /v1/chat/completions, one caller, ${workload.connections} connections`, rates)
  }
}

export const connections: Part = { name: "connections", about: "chat over 32 and over 1,000 connections", run }
