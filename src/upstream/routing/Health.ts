/**
 * Derives an upstream's health from its exchanges: their outcomes over the last minutes, the time to the response head, and the cooldown. Each node
 * keeps its own figures in memory, and a restart loses them.
 *
 * Where the specification is silent:
 * - An upstream has a cooldown only if its configuration sets `cooldown_seconds`. The cooldown begins after three consecutive failures, or
 *   immediately after a `Retry-After`. A `Retry-After` is honored for up to ten minutes.
 * - A missing response, a redirect (3xx), a status of 5xx, 408 or 429, and a rejected key (401, 403) count as failures. Any other response ends the
 *   cooldown.
 * - After the cooldown, one call uses the upstream in its usual place. Until that call gets its response, other calls still try the upstream last.
 */

/** An exchange's outcome: its status class (3xx counts as `5xx`), or `unreachable` if there was no response. */
export const outcomes = ["2xx", "4xx", "5xx", "unreachable"] as const
export type OutcomeName = (typeof outcomes)[number]

/** Failure kinds. `busy`: 429. `key`: 401 or 403. `unreachable`: 408 or no response. `5xx`: 3xx or 5xx. */
export const failureKinds = ["5xx", "unreachable", "busy", "key"] as const
export type FailureKind = (typeof failureKinds)[number]

/** Whether an upstream is in its cooldown. `due`: the cooldown is over, and the next call probes the upstream. */
export type Standing = "ready" | "due" | "cooling"

export interface HealthFigures {
  /** `failing`: the last three or more exchanges failed. `unused`: there was no exchange in the window. */
  readonly state: "ok" | "failing" | "unused"
  /** When the cooldown ends, in Unix milliseconds; null outside a cooldown. */
  readonly cooling_until: number | null
  readonly requests: Readonly<Record<OutcomeName, number>>
  readonly failures_in_a_row: number
  readonly last_success_at: number | null
  readonly last_failure_at: number | null
  readonly last_failure: FailureKind | null
  /** The last failures, newest first. */
  readonly last_failures: ReadonlyArray<Failure>
  /** The time to the response head; null if there was no response. */
  readonly latency_ms: { readonly p50: number; readonly p95: number } | null
  /** The minutes of the window, oldest first. */
  readonly minutes: ReadonlyArray<{ readonly at: number; readonly requests: number; readonly failures: number }>
}

export interface Failure {
  readonly at: number
  readonly kind: FailureKind
}

export interface Exchange {
  /** The response status; 0 without a response. */
  readonly status: number
  /** The time to the response head, in milliseconds. */
  readonly millis: number
  /** The `Retry-After` of a refusal, in milliseconds from now. */
  readonly retry_after_ms?: number | undefined
}

/** The window's length in minutes. */
export const windowMinutes = 15
/** The window of latency routing, in minutes. */
const routedMinutes = 5
const minute = 60_000
/** After this many consecutive failures, an upstream is `failing` and its cooldown begins. */
const failingMin = 3
/** The maximum `Retry-After`, in milliseconds. A longer one is reduced to it. */
const retryAfterMax = 10 * minute
const failuresMax = 5

/** The number of latency buckets. Their upper bounds range from a millisecond to about six minutes, in steps of 25 %. */
const bucketCount = 58
const step = Math.log(1.25)
const bucketOf = (millis: number): number => Math.min(bucketCount - 1, Math.max(0, Math.ceil(Math.log(millis) / step)))
const upperBoundOf = (index: number): number => Math.round(1.25 ** index)

interface Minute {
  /** Unix time in minutes. */
  number: number
  failures: number
  readonly counts: Record<OutcomeName, number>
  readonly latencies: Uint32Array
}

const emptyMinute = (): Minute => ({
  number: -1,
  failures: 0,
  counts: { "2xx": 0, "4xx": 0, "5xx": 0, unreachable: 0 },
  latencies: new Uint32Array(bucketCount)
})

const outcomeOf = (status: number): OutcomeName =>
  status === 0 ? "unreachable" : status < 300 && status >= 200 ? "2xx" : status >= 400 && status < 500 ? "4xx" : "5xx"

const failureOf = (status: number): FailureKind | undefined => {
  if (status >= 200 && status < 300) return undefined
  if (status === 429) return "busy"
  if (status === 401 || status === 403) return "key"
  if (status === 0 || status === 408) return "unreachable"
  return status >= 400 && status < 500 ? undefined : "5xx"
}

export class Health {
  /** A ring buffer: each minute's index is its number modulo the window's length. */
  readonly #minutes = Array.from({ length: windowMinutes }, emptyMinute)
  readonly #now: () => number
  /** The cooldown in milliseconds; `undefined` if none is configured. */
  readonly #cooldown: number | undefined
  #consecutiveFailures = 0
  #success: number | null = null
  #failures: ReadonlyArray<Failure> = []
  #coolingUntil: number | null = null
  /** While a probe runs, the earliest time of the next probe. */
  #probingUntil = 0
  #median: { readonly at: number; readonly millis: number | undefined } | undefined

  /** `now` returns Unix milliseconds. `cooldown` is in milliseconds. */
  constructor(now: () => number, cooldown?: number) {
    this.#now = now
    this.#cooldown = cooldown
  }

  observe({ millis, retry_after_ms, status }: Exchange): void {
    const at = this.#now()
    const found = this.#minuteOf(Math.floor(at / minute))
    const outcome = outcomeOf(status)
    found.counts[outcome] += 1
    if (outcome !== "unreachable") found.latencies[bucketOf(millis)]! += 1
    const kind = failureOf(status)
    if (kind === undefined) {
      if (outcome === "2xx") this.#success = at
      this.#consecutiveFailures = 0
      this.#coolingUntil = null
      return
    }
    found.failures += 1
    this.#consecutiveFailures += 1
    this.#failures = [{ at, kind }, ...this.#failures.slice(0, failuresMax - 1)]
    this.#cool(at, retry_after_ms)
  }

  #cool(at: number, retry_after_ms: number | undefined): void {
    if (this.#cooldown === undefined) return
    const retryAfter = retry_after_ms === undefined ? 0 : Math.min(retry_after_ms, retryAfterMax)
    const failureCooldown = this.#consecutiveFailures >= failingMin ? this.#cooldown : 0
    const millis = Math.max(retryAfter, failureCooldown)
    if (millis > 0) this.#coolingUntil = Math.max(this.#coolingUntil ?? 0, at + millis)
    this.#probingUntil = 0
  }

  get cools(): boolean {
    return this.#cooldown !== undefined
  }

  standing(): Standing {
    if (this.#coolingUntil === null) return "ready"
    const now = this.#now()
    return now < this.#coolingUntil || now < this.#probingUntil ? "cooling" : "due"
  }

  /** Records that a call probes the upstream. If that call ends without an exchange, the next probe can begin one cooldown later. */
  probe(): void {
    this.#probingUntil = this.#now() + (this.#cooldown ?? 0)
  }

  /**
   * Returns the median time to the response head over the last five minutes, or `undefined` if there was no response. It is computed at most once per
   * second.
   */
  median(): number | undefined {
    const now = this.#now()
    if (this.#median !== undefined && Math.abs(now - this.#median.at) < 1_000) return this.#median.millis
    const last = Math.floor(now / minute)
    const latencies = new Uint32Array(bucketCount)
    for (const { latencies: counted, number } of this.#minutes) {
      if (number <= last - routedMinutes || number > last) continue
      for (let i = 0; i < bucketCount; i++) latencies[i]! += counted[i]!
    }
    const millis = quantiles(latencies)?.p50
    this.#median = { at: now, millis }
    return millis
  }

  figures(): HealthFigures {
    const at = this.#now()
    const last = Math.floor(at / minute)
    const requests = { "2xx": 0, "4xx": 0, "5xx": 0, unreachable: 0 }
    const latencies = new Uint32Array(bucketCount)
    const minutes = Array.from({ length: windowMinutes }, (_, i) => {
      const number = last - windowMinutes + 1 + i
      const found = this.#minutes.find((one) => one.number === number)
      if (found === undefined) return { at: number * minute, requests: 0, failures: 0 }
      for (const outcome of outcomes) requests[outcome] += found.counts[outcome]
      for (const [index, count] of found.latencies.entries()) latencies[index]! += count
      const requestCount = outcomes.reduce((sum, outcome) => sum + found.counts[outcome], 0)
      return { at: number * minute, requests: requestCount, failures: found.failures }
    })
    const isUnused = minutes.every((one) => one.requests === 0)
    const [newest] = this.#failures
    return {
      state: isUnused ? "unused" : this.#consecutiveFailures >= failingMin ? "failing" : "ok",
      cooling_until: this.#coolingUntil !== null && this.#coolingUntil > at ? this.#coolingUntil : null,
      requests,
      failures_in_a_row: this.#consecutiveFailures,
      last_success_at: this.#success,
      last_failure_at: newest?.at ?? null,
      last_failure: newest?.kind ?? null,
      last_failures: this.#failures,
      latency_ms: quantiles(latencies),
      minutes
    }
  }

  #minuteOf(number: number): Minute {
    const found = this.#minutes[number % windowMinutes]!
    if (found.number !== number) {
      found.number = number
      found.failures = 0
      for (const name of outcomes) found.counts[name] = 0
      found.latencies.fill(0)
    }
    return found
  }
}

const quantiles = (latencies: Uint32Array): HealthFigures["latency_ms"] => {
  const total = latencies.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const at = (share: number): number => {
    let passed = 0
    const index = latencies.findIndex((count) => (passed += count) >= Math.ceil(share * total))
    return upperBoundOf(index)
  }
  return { p50: at(0.5), p95: at(0.95) }
}
