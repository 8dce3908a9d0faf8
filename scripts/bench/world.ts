// Runs the upstream, the load generator and the contenders, each pinned to a core. At the end, checks that the floor and the service have
// charged all calls correctly.
import type { ChildProcess } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { credit, manyCallers } from "./calls.ts"
import { contender, count, print, say } from "./frame.ts"
import type { Contender, Options } from "./frame.ts"
import { startGateway } from "./gateway.ts"
import type { Gateway, Outside } from "./gateway.ts"
import { startPeer } from "./peer.ts"
import type { Peer } from "./peer.ts"
import { ask, sleep, startPart, stop } from "./processes.ts"
import type { Cores } from "./processes.ts"
import type { Books } from "./store.ts"

export interface World {
  readonly load: ChildProcess
  readonly upstream: ChildProcess
  readonly outside: Outside
  /** The upstream, without a gateway. */
  readonly direct: Contender
  readonly plain: Contender
  readonly floor: Contender
  readonly gateway: Contender
  readonly peer: Contender | undefined
  /** Signs up callers at the service until it has this many. The floor has all of its callers from the start. */
  readonly welcome: (callers: number) => Promise<void>
  /** Checks all charges and ends all processes. */
  readonly close: () => Promise<void>
}

export interface WorldOptions {
  readonly directory: string
  readonly peer: boolean
  /** Additional flags for Node, for the floor and the service. */
  readonly flags?: ReadonlyArray<string>
}

/** Starts the upstream and the load generator. `flags` are additional flags for the upstream's Node. */
export const startOutside = async (cores: Cores, flags: ReadonlyArray<string> = []) => {
  const upstream = startPart(cores.driving, "upstream.ts", [], flags)
  const outside = await ask<Outside>(upstream)
  const load = startPart(cores.driving, "load.ts")
  await ask(load)
  return { load, outside, upstream }
}

export const openWorld = async (
  cores: Cores,
  { main }: Pick<Options, "main">,
  { directory, flags = [], peer: withPeer }: WorldOptions
): Promise<World> => {
  say("starting upstream, floor, service and peer")
  const { load, outside, upstream } = await startOutside(cores)
  mkdirSync(join(directory, "floor"), { recursive: true })
  const floorProcess = startPart(
    cores.served,
    "floor.ts",
    ["metered", String(outside.port), join(directory, "floor"), String(manyCallers)],
    flags
  )
  const floor = await ask<{ readonly port: number; readonly keys: ReadonlyArray<string> }>(floorProcess)
  const plainProcess = startPart(cores.served, "floor.ts", ["plain", String(outside.port)])
  const plain = await ask<{ readonly port: number }>(plainProcess)
  const service = await startGateway({
    name: "gateway",
    main,
    cores,
    outside,
    directory: join(directory, "gateway"),
    flags
  })
  await service.addCallers(1)
  const peer = withPeer ? await peerOf(cores, outside) : undefined

  const unmetered = { keys: ["upstream-key"], headers: {} }
  const floorContender = contender({ name: "floor", ...floor, headers: {}, pid: floorProcess.pid! })
  const gateway = contender(service)
  return {
    load,
    upstream,
    outside,
    direct: contender({ name: "direct", port: outside.port, ...unmetered, pid: upstream.pid! }),
    plain: contender({ name: "plain", port: plain.port, ...unmetered, pid: plainProcess.pid! }),
    floor: floorContender,
    gateway,
    peer: peer && contender(peer),
    welcome: async (callers) => {
      if (service.callers.length >= callers) return
      say(`signing up ${callers - service.callers.length} people`)
      await service.addCallers(callers - service.callers.length)
    },
    close: async () => {
      print("\nDatabase checks\n")
      print(`  floor: ${await checkFloor(floorProcess, floorContender)}`)
      print(`  the service: ${await checkGateway(service, gateway)}`)
      await service.stop()
      await peer?.stop()
      for (const child of [floorProcess, plainProcess, load, upstream]) await stop(child)
    }
  }
}

const peerOf = async (cores: Cores, { port }: Outside): Promise<Peer | undefined> => {
  const peer = await startPeer(cores, port).catch((error: unknown) => {
    print(`The peer could not be installed or started; continuing without it: ${String(error)}`)
    return undefined
  })
  if (peer !== undefined) say(`the peer is @portkey-ai/gateway ${peer.version}`)
  return peer
}

// ---- the books ----------------------------------------------------------------------------------------------------------

/** Describes the first caller whose balance did not fall by exactly the cost of its calls, if any. */
const misbilledCaller = (due: ReadonlyArray<number>, taken: ReadonlyArray<number>): string | undefined => {
  const caller = taken.findIndex((amount, i) => amount !== (due[i] ?? 0))
  return caller < 0
    ? undefined
    : `WRONG CHARGE: the calls of caller ${caller} cost ${due[caller] ?? 0} nano-USD, but the balance fell by ${taken[caller]}`
}

const checkFloor = async (child: ChildProcess, { due, served }: Contender): Promise<string> => {
  const { balances, collected, records, reserved, summed } = await ask<Books>(child, {})
  const wrong = misbilledCaller(
    due,
    balances.map((balance) => credit * 1e9 - balance)
  )
  if (wrong !== undefined) throw new Error(`at the floor: ${wrong}`)
  const total = due.reduce((sum, amount) => sum + amount, 0)
  if (collected !== total || summed !== total || reserved !== 0 || records !== served) {
    throw new Error(
      `at the floor: ${served} calls cost ${total} nano-USD, but its database shows ${JSON.stringify({ collected, summed, reserved, records })}`
    )
  }
  return `${count(served)} calls charged exactly`
}

/** Checks all callers' balances over HTTP, and the invariants with `tollgate verify`. Throws if a charge is wrong. Returns a summary. */
export const checkGateway = async (service: Gateway, { due, served }: Contender): Promise<string> => {
  let wrong = misbilledCaller(due, await service.taken())
  // Settlements can complete shortly after the response.
  for (let i = 0; i < 20 && wrong !== undefined; i++) {
    await sleep(100)
    wrong = misbilledCaller(due, await service.taken())
  }
  if (wrong !== undefined) throw new Error(`at ${service.name}: ${wrong}`)
  const verified = (await service.operate("verify")).trim().split("\n").at(-1) ?? ""
  return `${count(served)} calls of ${service.callers.length} callers charged exactly; verify: ${verified}`
}
