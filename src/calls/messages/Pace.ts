/** How often an account has its tokens counted by a vendor: so many times in each whole minute of the service's clock. */

export const countsAMinute = 300
const minute = 60_000

/** Counters of one process, in memory. */
export class Pace {
  private current = 0
  private counts = new Map<string, number>()

  /** Counts a request; answers how many seconds to wait where there were too many in this minute. */
  take(account: string, now: number): number | undefined {
    const period = Math.floor(now / minute)
    if (period !== this.current) {
      this.current = period
      this.counts = new Map()
    }
    const count = (this.counts.get(account) ?? 0) + 1
    this.counts.set(account, count)
    return count > countsAMinute ? Math.ceil(((period + 1) * minute - now) / 1_000) : undefined
  }
}
