/**
 * Tracks an open job's polls and limits their frequency.
 *
 * Where the specification is silent:
 * - Clients' polls of one job reach the vendor at most six times in quick succession, and then once a second. Polls of one job never overlap. A
 *   client that polls more often gets the cached state. A cancellation request that did not reach the vendor is repeated.
 */
import type { Deferred } from "effect"

/** Limits vendor requests about one job: a burst of `atOnce` requests, then one per interval. */
export class Pace {
  private left: number
  private at: number
  private readonly atOnce: number

  constructor(atOnce: number, now: number) {
    this.left = this.atOnce = atOnce
    this.at = now
  }

  /** Counts a request if it is allowed now, and returns whether it is. */
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

/** The pauses before the service's polls, in milliseconds. The last value repeats. Waiting clients poll more often. */
const pauses = [2_500, 5_000, 5_000, 10_000, 20_000, 30_000]

/** The number of invalid results and "unknown job" responses after which a job ends. */
const mistakesMax = 5

export class Watch<Row> {
  /** The service's next poll, as Unix time in milliseconds, and the number of its polls so far. */
  private due: number
  private polls = 0
  private busy = false
  private mistakes = 0
  /** The vendor's response to a cancellation request. A restart loses it, but the request is idempotent. */
  cancelled: "asked" | "completed" | undefined
  /** The poll in progress. Concurrent requests get its result. */
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

  /** Returns the time until the service's next poll, in milliseconds. */
  wait(now: number): number {
    return Math.max(0, this.due - now)
  }

  /**
   * Begins a poll by the service. The next one is scheduled first, so that a failing poll does not stop the schedule. Returns `false` if the previous
   * poll has not ended.
   */
  begin(now: number): boolean {
    this.polls += 1
    this.due = now + pauses[Math.min(pauses.length - 1, this.polls)]!
    const free = !this.busy
    this.busy = true
    return free
  }

  end(): void {
    this.busy = false
  }

  /** Counts a failure that may be temporary. Returns whether the maximum is reached. */
  isOneMistakeTooMany(): boolean {
    this.mistakes += 1
    return this.mistakes >= mistakesMax
  }
}
