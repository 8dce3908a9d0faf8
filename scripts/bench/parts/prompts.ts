// Measures chat with prompts of 0.4, 8 and 200 kB, to determine the cost of reading, bounding and relaying longer bodies.
import { chatCalls } from "../calls.ts"
import { alternate, printRates } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"

export const workloads = ({ connections }: Bench["options"]) =>
  [400, 8_000, 200_000].map((bytes) => chatCalls({ name: `prompts of ${bytes / 1000} kB`, connections, bytes }))

const run = async (bench: Bench): Promise<void> => {
  const { direct, floor, gateway, load } = await bench.world()
  for (const workload of workloads(bench.options)) {
    const rates = await alternate(bench, load, workload, [direct, floor, gateway])
    printRates(`POST /v1/chat/completions, one caller, ${workload.name}`, rates)
  }
}

export const prompts: Part = { name: "prompts", about: "chat with prompts of 0.4, 8 and 200 kB", run }
