/**
 * Counts requests per key in clock periods, for rate limits. The counters are in memory. A process that serves alone counts for itself. The processes
 * that serve together count at one of them (`app/workers`), so that a limit applies to all of them.
 */
import { Context, Effect } from "effect"

export interface CountsContract {
  /** Counts one more request for the key, and returns the requests in the period that contains `now`, including this one. */
  readonly add: (key: string, period_ms: number, now: number) => Effect.Effect<number>
}

/**
 * The maximum number of counters per period. Beyond it, each new counter replaces the oldest. Counters per network cannot limit a sender with that
 * many networks anyway, and such a sender must not use up the limits of others.
 */
const countersMax = 100_000

/** The counters of one length of period. */
export class PeriodCounts {
  private readonly length: number
  private current = 0
  private counts = new Map<string, number>()

  constructor(length: number) {
    this.length = length
  }

  add(key: string, now: number): number {
    const period = Math.floor(now / this.length)
    // The requests of several processes may arrive out of order. A late one counts in the current period.
    if (period > this.current) {
      this.current = period
      this.counts = new Map()
    }
    const count = (this.counts.get(key) ?? 0) + 1
    // A map keeps insertion order, so the first counter is the oldest.
    if (count === 1 && this.counts.size >= countersMax) this.counts.delete(this.counts.keys().next().value!)
    this.counts.set(key, count)
    return count
  }
}

/** Counters of this process. */
export const make = () => {
  const all = new Map<number, PeriodCounts>()
  return {
    add: (key: string, period_ms: number, now: number): number => {
      let counts = all.get(period_ms)
      if (counts === undefined) all.set(period_ms, (counts = new PeriodCounts(period_ms)))
      return counts.add(key, now)
    }
  }
}

/** The counters that several processes share; `undefined` if each service keeps its own. */
export class Counts extends Context.Reference<Counts>()("tollgate/kernel/Counts", {
  defaultValue: (): CountsContract | undefined => undefined
}) {}

/** The shared counters, or new ones that belong to the service. */
export const counts: Effect.Effect<CountsContract> = Effect.map(Counts, (shared) => {
  if (shared !== undefined) return shared
  const own = make()
  return { add: (key, period_ms, now) => Effect.sync(() => own.add(key, period_ms, now)) }
})

/** The milliseconds until the next period. */
export const leftOf = (period_ms: number, now: number): number => (Math.floor(now / period_ms) + 1) * period_ms - now
