// Measures memory per stream and per process, with 10,000 open streams that each receive a chunk every two seconds.
import { readFileSync } from "node:fs"
import { chatCalls, trickleEvery, trickling } from "../calls.ts"
import { drive, inUnit, print, say, table, titles } from "../frame.ts"
import type { Bench, Contender, Part } from "../frame.ts"
import { ask, cpu, memory, sleep } from "../processes.ts"
import type { TrickleOrder } from "../upstream.ts"
import type { World } from "../world.ts"

const streamsMax = 10_000
/** The number of streams started per second. */
const startRate = 2_000
/** How long all streams are open before memory is measured, in milliseconds. */
const holdMs = 16_000

/** Returns the maximum number of streams. A stream uses two sockets in the relaying process. Node raises the soft limit to the hard limit itself. */
const possible = (): number => {
  const limit = Number(/Max open files +\d+ +(\d+)/.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? 1_024)
  return Math.min(streamsMax, Math.floor((limit - 400) / 2))
}

interface Held {
  readonly before: number
  readonly during: number
  /** The CPU time as a share of one core. */
  readonly busy: number
}

const hold = async ({ load, upstream }: World, at: Contender, streams: number): Promise<Held> => {
  const workload = chatCalls({ name: "open streams", connections: streams, stream: true, manner: trickling })
  const open = async () => (await ask<{ readonly open: number }>(upstream, { end: false } satisfies TrickleOrder)).open
  const before = memory(at.pid)
  const done = drive(load, at, workload, { seconds: 30, rate: startRate, calls: streams, patience: 120 })
  const failed = done.then(
    () => true,
    () => true
  )
  const deadline = Date.now() + 60_000
  let opened = 0
  while (opened < streams && Date.now() < deadline && !(await Promise.race([failed, sleep(1_000)]))) {
    opened = await open()
    say(`open: ${at.name} ${opened} of ${streams} streams are open`)
  }
  const spent = cpu(at.pid)
  await sleep(holdMs)
  const during = memory(at.pid)
  const busy = (cpu(at.pid) - spent) / 1000 / holdMs
  await ask(upstream, { end: true } satisfies TrickleOrder)
  const { calls } = await done
  if (calls !== streams) throw new Error(`${at.name}: ${calls} of ${streams} streams completed`)
  return { before, during, busy }
}

const run = async (bench: Bench): Promise<void> => {
  const world = await bench.world()
  const streams = possible()
  if (streams < streamsMax) say(`open: ${streams} streams only, because of this machine's limit on open files`)
  const rows: Array<ReadonlyArray<string>> = [["through", "before", "open", "kB per stream", "of a core"]]
  for (const one of [world.floor, world.gateway]) {
    const { before, busy, during } = await hold(world, one, streams)
    const each = (during - before) / streams
    rows.push([
      titles[one.name]!,
      inUnit(before, "MB", 0),
      inUnit(during, "MB", 0),
      (each * 1024).toFixed(1),
      `${(busy * 100).toFixed(0)} %`
    ])
    if (one !== world.gateway) continue
    bench.results.reach({
      what: `10 memory with ${streamsMax} open streams${streams < streamsMax ? ` (extrapolated from ${streams})` : ""}`,
      measured: before + each * streamsMax,
      unit: "MB",
      most: 1_000
    })
  }
  print(`\n${streams} open streams, each receiving a chunk every ${trickleEvery / 1000} s\n`)
  print(table(rows))
}

export const open: Part = { name: "open", about: "memory with 10,000 slow open streams", run }
