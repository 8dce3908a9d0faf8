// Messages and responses beside chat, relayed to an upstream with the same protocol or translated, with and without streaming, by one caller and by a
// thousand. The floor relays the client's own protocol, regardless of the service's upstream.
//
// Drives all workloads once before the first measurement, at the floor and at the service. V8 compiles on the measured core. A new kind of call takes
// a third of a second, and shared code is recompiled.
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
        what: `11 ${workload.name}, of the floor`,
        measured: ratio(rates, "gateway", "floor"),
        unit: "x",
        least: pair[0] === pair[1] ? 0.7 : 0.4
      })
    }
  }
}

export const protocols: Part = {
  name: "protocols",
  about: "messages and responses, passed through and translated, beside chat",
  run
}
