/** Limits an account's requests per calendar minute. Each process counts them in its own memory. */
const minute = 60_000

export class MinuteLimit {
  private readonly most: number
  private current = 0
  private counts = new Map<string, number>()

  constructor(most: number) {
    this.most = most
  }

  /** Counts a request. Returns the number of seconds to wait if the account has exceeded its limit for this minute. */
  take(account: string, now: number): number | undefined {
    const period = Math.floor(now / minute)
    if (period !== this.current) {
      this.current = period
      this.counts = new Map()
    }
    const count = (this.counts.get(account) ?? 0) + 1
    this.counts.set(account, count)
    return count > this.most ? Math.ceil(((period + 1) * minute - now) / 1_000) : undefined
  }
}
