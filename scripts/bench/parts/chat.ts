// Chat by one caller: booked on disk before the answer, compared with no gateway, a proxy, the floor and the peer.
import { chatCalls } from "../calls.ts"
import { alternate, halfLoad, printAdded, printRates, ratio } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"

export const workloads = ({ connections }: Bench["options"]) => [chatCalls({ name: "chat", connections })]

const run = async (bench: Bench): Promise<void> => {
  const { direct, floor, gateway, load, peer, plain } = await bench.world()
  const [chat] = workloads(bench.options)
  const all = [direct, plain, floor, gateway, peer].filter((one) => one !== undefined)
  const rates = await alternate(bench, load, chat!, all)
  const added = await halfLoad(bench, load, chat!, direct, [gateway, floor], rates)
  printRates(`POST /v1/chat/completions, one caller, ${chat!.connections} connections`, rates)
  printAdded("The same", added)
  bench.results.reach({ what: "1 chat, of the peer", measured: ratio(rates, "gateway", "peer"), unit: "x", least: 7 })
  bench.results.reach({
    what: "8 chat, of the floor",
    measured: ratio(rates, "gateway", "floor"),
    unit: "x",
    least: 0.9
  })
  const { addedP99 } = added.get("gateway")!
  bench.results.reach({ what: "1 chat, added p99 at half load", measured: addedP99, unit: "ms", most: 8 })
  bench.results.reach({
    what: "8 chat, added p99 at half load, the floor's own",
    measured: addedP99,
    unit: "ms",
    most: added.get("floor")!.addedP99
  })
}

export const chat: Part = { name: "chat", about: "chat by one caller; latency at half load", run }
