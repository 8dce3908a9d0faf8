/**
 * Health of this node's upstreams over the last minutes, from their exchanges: count, outcome, and time to the answer's head. Kept in memory: a
 * restart forgets it, and each node has its own.
 */
import { Context, Effect, Layer } from "effect"

/** Outcome of an exchange: the class of its status, or no answer. */
export const outcomes = ["2xx", "4xx", "5xx", "unreachable"] as const
export type OutcomeName = (typeof outcomes)[number]

export interface UpstreamFigures {
  readonly name: string
  /** `failing`: the last exchanges failed. `unused`: no exchange in the window. */
  readonly state: "ok" | "failing" | "unused"
  readonly requests: Readonly<Record<OutcomeName, number>>
  readonly failures_in_a_row: number
  readonly last_success_at: number | null
  readonly last_failure_at: number | null
  readonly last_failure: "5xx" | "unreachable" | null
  /** Time to the answer's head; null without an answer. */
  readonly latency_ms: { readonly p50: number; readonly p95: number } | null
  /** The minutes of the window, oldest first. */
  readonly minutes: ReadonlyArray<{ readonly at: number; readonly requests: number; readonly failures: number }>
}

export interface UpstreamHealthContract {
  /** Called for every exchange. `millis` is the time to the answer's head. */
  readonly observe: (upstream: string, outcome: string, millis: number) => void
  /** Figures of these upstreams, in their order. */
  readonly figures: (upstreams: ReadonlyArray<string>) => ReadonlyArray<UpstreamFigures>
}

export class UpstreamHealth extends Context.Tag("tollgate/ops/UpstreamHealth")<
  UpstreamHealth,
  UpstreamHealthContract
>() {
  static readonly layer = Layer.suspend(() =>
    Layer.effect(
      UpstreamHealth,
      Effect.map(Effect.clock, (clock) => make(() => clock.unsafeCurrentTimeMillis()))
    )
  )
}

/** Length of the window. */
export const windowMinutes = 15
const minute = 60_000
/** An upstream counts as failing after this many failures in a row. */
const failingFrom = 3

/** Latencies are counted in classes, each 25 % longer than the previous one: from a millisecond to about six minutes. */
const classes = 58
const step = Math.log(1.25)
const classOf = (millis: number): number => Math.min(classes - 1, Math.max(0, Math.ceil(Math.log(millis) / step)))
const longestOf = (index: number): number => Math.round(1.25 ** index)

interface Minute {
  /** Minutes since 1970. */
  number: number
  readonly counts: Record<OutcomeName, number>
  readonly latencies: Uint32Array
}

interface State {
  /** Indexed by number modulo the window. */
  readonly minutes: Array<Minute>
  failed: number
  success: number | null
  failure: number | null
  lastFailure: "5xx" | "unreachable" | null
}

const emptyMinute = (): Minute => ({
  number: -1,
  counts: { "2xx": 0, "4xx": 0, "5xx": 0, unreachable: 0 },
  latencies: new Uint32Array(classes)
})

/** `now` is in milliseconds since 1970. */
export const make = (now: () => number): UpstreamHealthContract => {
  const states = new Map<string, State>()

  const minuteOf = (state: State, number: number): Minute => {
    const found = state.minutes[number % windowMinutes]!
    if (found.number !== number) {
      found.number = number
      for (const name of outcomes) found.counts[name] = 0
      found.latencies.fill(0)
    }
    return found
  }

  const observe: UpstreamHealthContract["observe"] = (upstream, outcome, millis) => {
    const at = now()
    let state = states.get(upstream)
    if (state === undefined) {
      const minutes = Array.from({ length: windowMinutes }, emptyMinute)
      states.set(upstream, (state = { minutes, failed: 0, success: null, failure: null, lastFailure: null }))
    }
    const { counts, latencies } = minuteOf(state, Math.floor(at / minute))
    const name = outcomes.find((one) => one === outcome) ?? "5xx"
    counts[name] += 1
    if (name !== "unreachable") latencies[classOf(millis)]! += 1
    if (name === "2xx") {
      state.success = at
      state.failed = 0
    } else if (name !== "4xx") {
      state.failure = at
      state.lastFailure = name
      state.failed += 1
    }
  }

  const figuresOf = (name: string, at: number): UpstreamFigures => {
    const last = Math.floor(at / minute)
    const state = states.get(name)
    const requests = { "2xx": 0, "4xx": 0, "5xx": 0, unreachable: 0 }
    const latencies = new Uint32Array(classes)
    const minutes = Array.from({ length: windowMinutes }, (_, i) => {
      const number = last - windowMinutes + 1 + i
      const found = state?.minutes.find((one) => one.number === number)
      if (found === undefined) return { at: number * minute, requests: 0, failures: 0 }
      for (const outcome of outcomes) requests[outcome] += found.counts[outcome]
      for (const [index, count] of found.latencies.entries()) latencies[index]! += count
      const { counts } = found
      const failures = counts["5xx"] + counts.unreachable
      return { at: number * minute, requests: counts["2xx"] + counts["4xx"] + failures, failures }
    })
    const isUnused = minutes.every((one) => one.requests === 0)
    const failed = state?.failed ?? 0
    return {
      name,
      state: isUnused ? "unused" : failed >= failingFrom ? "failing" : "ok",
      requests,
      failures_in_a_row: failed,
      last_success_at: state?.success ?? null,
      last_failure_at: state?.failure ?? null,
      last_failure: state?.lastFailure ?? null,
      latency_ms: quantiles(latencies),
      minutes
    }
  }

  return { observe, figures: (upstreams) => upstreams.map((name) => figuresOf(name, now())) }
}

const quantiles = (latencies: Uint32Array): UpstreamFigures["latency_ms"] => {
  const total = latencies.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const at = (share: number): number => {
    let passed = 0
    const index = latencies.findIndex((count) => (passed += count) >= Math.ceil(share * total))
    return longestOf(index)
  }
  return { p50: at(0.5), p95: at(0.95) }
}
