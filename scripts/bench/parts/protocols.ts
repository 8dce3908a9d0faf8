// Compares messages and responses with chat: relayed to an upstream with the same protocol or translated, streamed or not, with one caller and with a
// thousand. The floor always relays the client's own protocol, regardless of the upstream's protocol. Before the first measurement, each workload
// runs once on both the floor and the service. V8 compiles on the measured core. A new kind of call costs a third of a second and makes V8 recompile
// shared code.
import { callsIn, manyCallers } from "../calls.ts"
import type { Spoken, Workload } from "../calls.ts"
import { alternate, printRates, ratio, warmUp } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"

const pairs: ReadonlyArray<readonly [client: Spoken, upstream: Spoken]> = [
  ["chat", "chat"],
  ["messages", "messages"],
  ["responses", "responses"],
  ["messages", "chat"],
  ["responses", "chat"],
  ["chat", "messages"]
]

const ofPair = ([client, upstream]: (typeof pairs)[number], connections: number): ReadonlyArray<Workload> =>
  [1, manyCallers].flatMap((callers) =>
    [false, true].map((stream) => callsIn(client, upstream, { callers, connections, stream }))
  )

export const workloads = ({ connections }: Bench["options"]) => pairs.flatMap((pair) => ofPair(pair, connections))

const run = async (bench: Bench): Promise<void> => {
  const { floor, gateway, load, welcome } = await bench.world()
  await welcome(manyCallers)
  const { warmup } = bench.options
  for (const workload of workloads(bench.options)) await warmUp(load, workload, [floor, gateway], warmup)
  for (const pair of pairs) {
    for (const workload of ofPair(pair, bench.options.connections)) {
      const rates = await alternate(bench, load, workload, [floor, gateway], warmup / 2)
      printRates(`POST ${workload.path}, ${workload.name}`, rates)
      bench.results.reach({
        what: `11 ${workload.name}: rate relative to the floor`,
        measured: ratio(rates, "gateway", "floor"),
        unit: "x",
        least: pair[0] === pair[1] ? 0.7 : 0.4
      })
    }
  }
}

export const protocols: Part = {
  name: "protocols",
  about: "messages and responses, relayed or translated, compared with chat",
  run
}
