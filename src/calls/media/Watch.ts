/**
 * Cached facts of an open job between two polls of its vendor, and how often the vendor is polled.
 *
 * Where the specification is silent:
 * - However often clients ask, a vendor is asked about one job six times at once and then once a second; polls of one job never overlap.
 *   More frequent requests are answered from the cache. A cancel that the vendor did not hear is sent again by the service.
 */
import type { Deferred } from "effect"

/**
 * How often a vendor is asked about one job, however often its clients ask: so many times at once, then once in each interval. More
 * frequent requests are answered from the cache.
 */
export class Pace {
  private left: number
  private at: number
  private readonly atOnce: number

  constructor(atOnce: number, now: number) {
    this.left = this.atOnce = atOnce
    this.at = now
  }

  /** Whether the vendor may be asked now, which then counts as asked. */
  take(now: number): boolean {
    const gained = Math.floor(Math.max(0, now - this.at) / interval)
    if (gained > 0) {
      this.left = Math.min(this.atOnce, this.left + gained)
      this.at += gained * interval
    }
    if (this.left === 0) return false
    this.left -= 1
    return true
  }
}

const interval = 1_000
const pollsAtOnce = 6
const cancelsAtOnce = 2

/** Before the n-th poll of the service itself, in milliseconds; the last repeats. Clients who wait poll more often themselves. */
const pauses = [2_500, 5_000, 5_000, 10_000, 20_000, 30_000]

/** How often an unreadable result, or a job that the vendor does not know, is believed to be a mistake of the moment. */
const mistakesMax = 5

export class Watch<Row> {
  /** When the service polls by itself, and how often it has. */
  private due: number
  private polls = 0
  private busy = false
  private mistakes = 0
  /** The vendor's answer to a cancel, once there is one. Forgotten with the process: to ask it once more does no harm. */
  cancelled: "asked" | "completed" | undefined
  /** A poll that is under way. Requests that come meanwhile are answered with its result. */
  polling: Deferred.Deferred<Row> | undefined
  readonly pollPace: Pace
  readonly cancelPace: Pace
  readonly since: number

  constructor(now: number) {
    this.since = now
    this.due = now + pauses[0]!
    this.pollPace = new Pace(pollsAtOnce, now)
    this.cancelPace = new Pace(cancelsAtOnce, now)
  }

  /** How long until the service polls by itself. */
  wait(now: number): number {
    return Math.max(0, this.due - now)
  }

  /**
   * The service is to poll now: the next time is set before anything can go wrong with this poll. Answers `false` while its last poll
   * is not over.
   */
  begin(now: number): boolean {
    this.polls += 1
    this.due = now + pauses[Math.min(pauses.length - 1, this.polls)]!
    const free = !this.busy
    this.busy = true
    return free
  }

  /** The service's poll is over. */
  end(): void {
    this.busy = false
  }

  /** Counts a mistake of the moment, and says whether it was one too many. */
  isOneMistakeTooMany(): boolean {
    this.mistakes += 1
    return this.mistakes >= mistakesMax
  }
}
