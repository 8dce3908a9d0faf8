/**
 * Limits how many slots a key can hold at a time, such as the open event streams of an account. Processes that serve together share the limit
 * (`app/workers`). In a process that serves alone, each service counts its own slots.
 */
import { Context, Effect } from "effect"

export interface HoldsContract {
  /** Claims one of the key's `most` slots. Returns an idempotent function that releases the slot, or `undefined` if no slot is free. */
  readonly take: (key: string, most: number) => Effect.Effect<(() => void) | undefined>
}

/** The number of claimed slots per key. */
export class SlotCounts {
  private readonly counts = new Map<string, number>()

  of(key: string): number {
    return this.counts.get(key) ?? 0
  }

  add(key: string): void {
    this.counts.set(key, this.of(key) + 1)
  }

  remove(key: string): void {
    const left = this.of(key) - 1
    if (left > 0) this.counts.set(key, left)
    else this.counts.delete(key)
  }
}

/** The slots that several processes share; `undefined` if each service counts its own. */
export class Holds extends Context.Reference<Holds>()("tollgate/kernel/Holds", {
  defaultValue: (): HoldsContract | undefined => undefined
}) {}

const local = (): HoldsContract => {
  const taken = new SlotCounts()
  return {
    take: (key, most) =>
      Effect.sync(() => {
        if (taken.of(key) >= most) return undefined
        taken.add(key)
        return once(() => taken.remove(key))
      })
  }
}

export const once = (then: () => void): (() => void) => {
  let done = false
  return () => {
    if (done) return
    done = true
    then()
  }
}

/** The shared slots, or new slots that belong to the service. */
export const holds: Effect.Effect<HoldsContract> = Effect.map(Holds, (shared) => shared ?? local())
