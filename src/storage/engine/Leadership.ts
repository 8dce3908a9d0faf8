/** Uses leases to decide which node of a database runs the loops (`kernel/Loop`), and lets other nodes wake them. */
import { Effect, Layer } from "effect"
import { Leadership } from "../../kernel/Loop.ts"
import type { LeadershipContract } from "../../kernel/Loop.ts"
import { Runs } from "./Runs.ts"
import { Signals } from "./Signals.ts"

const topic = "loops"

/** Provides leadership to the layers of jobs. A process that serves a SQLite file alone always leads. Among several (`Peers`), the owner does. */
export const layer = Layer.suspend(() =>
  Layer.effect(Leadership, make).pipe(Layer.provide([Runs.layer, Signals.layer]))
)

const make = Effect.gen(function* () {
  const { node } = yield* Runs
  const { publish, subscribe } = yield* Signals
  if (node === undefined) return undefined
  return {
    leads: node.leads,
    gained: Effect.async<void>((resume) => {
      if (node.leads()) return resume(Effect.void)
      const end = node.on("lead", () => resume(Effect.void))
      return Effect.sync(end)
    }),
    wakeLeader: (loop) => publish(topic, [loop]),
    onWake: (loop, wake) =>
      subscribe(topic, (loops) => {
        if (node.leads() && (loops === undefined || loops.includes(loop))) wake()
      })
  } satisfies LeadershipContract
})
