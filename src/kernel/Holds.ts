/**
 * Limits how many of something are open at a time for one key, such as an account's event streams, among all processes that serve together
 * (`app/workers`). A process that serves alone counts its own.
 */
import { Context, Effect } from "effect"

export interface HoldsContract {
  /** Takes one of `most` places for the key. Returns how to give it back, once; `undefined` if all are taken. */
  readonly take: (key: string, most: number) => Effect.Effect<(() => void) | undefined>
}

/** The places that are taken, by key. */
export class Taken {
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

/** The places that several processes share; `undefined` if each service counts its own. */
export class Holds extends Context.Reference<Holds>()("tollgate/kernel/Holds", {
  defaultValue: (): HoldsContract | undefined => undefined
}) {}

const local = (): HoldsContract => {
  const taken = new Taken()
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

/** The shared places, or new ones that belong to the service. */
export const holds: Effect.Effect<HoldsContract> = Effect.map(Holds, (shared) => shared ?? local())
