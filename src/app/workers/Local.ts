/** The parts of `Peers` inside one process: its listeners for signals and for ended processes, and its own figures. */
import { Effect } from "effect"
import type { Scope } from "effect"
import type { Figures } from "../../operations/ops/Siblings.ts"
import type { NodeContract } from "../../storage/engine/Runs.ts"
import type { SignalListener, SignalsContract } from "../../storage/engine/Signals.ts"

export interface Local {
  readonly subscribe: SignalsContract["subscribe"]
  readonly on: NodeContract["on"]
  readonly tell: (topic: string, ids: ReadonlyArray<string>) => void
  readonly tellLapse: () => void
  /** Sets how this process reads its figures, until the scope closes or another call replaces it. */
  readonly answer: (figures: Effect.Effect<Figures>) => Effect.Effect<void, never, Scope.Scope>
  /** Reads the figures; `null` while this process starts. */
  readonly figures: () => Promise<Figures | null>
}

export const make = (): Local => {
  const listeners = new Map<string, Set<SignalListener>>()
  const onLapse = new Set<() => void>()
  let own: Effect.Effect<Figures> | undefined
  return {
    subscribe: (topic, listener) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const those = listeners.get(topic) ?? new Set<SignalListener>()
          listeners.set(topic, those.add(listener))
        }),
        () => Effect.sync(() => listeners.get(topic)?.delete(listener))
      ),
    on: (event, listener) => {
      if (event !== "lapse") return () => {}
      onLapse.add(listener)
      return () => void onLapse.delete(listener)
    },
    tell: (topic, ids) => listeners.get(topic)?.forEach((listener) => listener(ids)),
    tellLapse: () => onLapse.forEach((listener) => listener()),
    answer: (figures) =>
      Effect.acquireRelease(
        Effect.sync(() => void (own = figures)),
        () =>
          Effect.sync(() => {
            // A reload has replaced it already.
            if (own === figures) own = undefined
          })
      ),
    figures: () => (own === undefined ? Promise.resolve(null) : Effect.runPromise(own))
  }
}
