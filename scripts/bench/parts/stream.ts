// Measures chat in streams of 30 and of 1,000 chunks. Events are relayed as they arrive, and the call is charged before the last event.
import { chatCalls, inPieces, paced, pause } from "../calls.ts"
import { alternate, drive, inUnit, print, printRates, ratio, table, titles } from "../frame.ts"
import type { Bench, Contender, Part } from "../frame.ts"
import { median } from "../numbers.ts"
import type { World } from "../world.ts"

export const workloads = ({ connections }: Bench["options"]) =>
  [30, 1_000].map((chunks) =>
    chatCalls({ name: `stream of ${chunks} chunks`, connections, stream: true, manner: inPieces(chunks) })
  )

/** Returns the peer's error on a single stream, if any. On Node 20, its npm build 1.15 responds to every stream with 500. */
const faultOf = ({ load }: World, peer: Contender): Promise<string | undefined> =>
  drive(load, peer, chatCalls({ name: "stream", connections: 1, stream: true }), { seconds: 2, calls: 1 }).then(
    () => undefined,
    (error: unknown) => String(error).trim().split("\n").at(-1)!.trim()
  )

/** Measures the time to the first byte and to the end of a stream, in milliseconds. The upstream pauses after its first bytes. */
const firstByte = async ({ load }: World, at: Contender) => {
  const calls = chatCalls({ name: "paced stream", connections: 1, stream: true, manner: paced })
  const runs = []
  for (let i = 0; i < 3; i++) runs.push(await drive(load, at, calls, { seconds: 2, calls: 1 }))
  return { first: median(runs.map((run) => run.first)), end: median(runs.map((run) => run.p50)) }
}

const run = async (bench: Bench): Promise<void> => {
  const world = await bench.world()
  const { direct, floor, gateway, peer, plain } = world
  const fault = peer && (await faultOf(world, peer))
  const all = [direct, plain, floor, gateway, fault === undefined ? peer : undefined].filter((one) => one !== undefined)
  for (const workload of workloads(bench.options)) {
    const rates = await alternate(bench, world.load, workload, all)
    printRates(`POST /v1/chat/completions, one caller, ${workload.name}`, rates)
    bench.results.reach({
      what: `8 ${workload.name}: rate relative to the floor`,
      measured: ratio(rates, "gateway", "floor"),
      unit: "x",
      least: 0.85
    })
  }
  if (fault !== undefined) {
    print(`\n  The peer is omitted, because on Node ${process.version} it responds to a stream with ${fault}`)
    print("  Streams are compared with the floor and the plain proxy instead.")
  }
  print(`\nA single stream whose upstream pauses for ${pause} ms after its first bytes\n`)
  const rows: Array<ReadonlyArray<string>> = [["through", "first byte", "end"]]
  for (const one of all) {
    const { end, first } = await firstByte(world, one)
    rows.push([titles[one.name]!, inUnit(first, "ms"), inUnit(end, "ms")])
    if (one === gateway)
      bench.results.reach({ what: "2 stream, first byte", measured: first, unit: "ms", most: pause / 5 })
  }
  print(table(rows))
}

export const stream: Part = {
  name: "stream",
  about: "chat in streams of 30 and 1,000 chunks; time to the first byte",
  run
}
