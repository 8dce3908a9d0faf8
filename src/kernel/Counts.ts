/**
 * Counts requests per key in clock periods, for rate limits. The counters are in memory. A process that serves alone keeps its own counters.
 * Processes that serve together use the counters of one process (`app/workers`), so a limit applies to all of them.
 */
import { Context, Effect } from "effect"

export interface CountsContract {
  /** Counts a request for the key. Returns the number of requests in the period that contains `now`, including this request. */
  readonly add: (key: string, period_ms: number, now: number) => Effect.Effect<number>
}

/**
 * The maximum number of counters per period. Beyond it, each new counter replaces the oldest. A sender with that many networks can evade limits per
 * network anyway, and must not block other senders.
 */
const countersMax = 100_000

/** The counters for one period length, in milliseconds. */
export class PeriodCounts {
  private readonly length: number
  private current = 0
  private counts = new Map<string, number>()

  constructor(length: number) {
    this.length = length
  }

  add(key: string, now: number): number {
    const period = Math.floor(now / this.length)
    // The requests of several processes can arrive out of order. A late request counts in the current period.
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

/** Creates counters in this process's memory. */
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

/** Returns the milliseconds until the next period. */
export const leftOf = (period_ms: number, now: number): number => (Math.floor(now / period_ms) + 1) * period_ms - now
