/**
 * Metrics for settled calls by model and provider: their number, tokens, cost and time. Observing a call takes two map lookups and a few additions. A
 * request to `/metrics` creates the labeled values. The sums of amounts are exact, in nano-USD.
 */
import type { Counter, Registry } from "prom-client"
import type { ObserveCall } from "../../books/gate/CallObserver.ts"
import type { CallOutcome } from "../../books/ledger/rules/Transaction.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"

/** The maximum number of model-provider pairs with separate labels. All others are counted as `otherLabel`. */
export const pairsMax = 500
const otherLabel = "other"

/** The upper bounds of the histogram's buckets, in seconds. */
const bounds = [0.1, 0.5, 1, 5, 15, 60, 300] as const

class Times {
  /** Calls by the smallest bound that they do not exceed. The last count covers calls above every bound. */
  readonly counts: Array<number> = Array.from({ length: bounds.length + 1 }, () => 0)
  seconds = 0

  add(millis: number): void {
    const seconds = millis / 1000
    let bucket = 0
    while (bucket < bounds.length && seconds > bounds[bucket]!) bucket++
    this.counts[bucket]!++
    this.seconds += seconds
  }
}

/** Sums over the calls to one model at one provider. */
class Sums {
  readonly labels: { readonly model: string; readonly provider: string }
  private readonly times: Times
  success = 0
  error = 0
  client_disconnected = 0
  prompt_tokens = 0
  completion_tokens = 0
  cost: Nano = 0n

  constructor(model: string, provider: string, times: Times) {
    this.labels = { model, provider }
    this.times = times
  }

  add(outcome: CallOutcome, charged: Nano): void {
    if (outcome.success) this.success++
    else if (outcome.error_type === "client_disconnected") this.client_disconnected++
    else this.error++
    this.prompt_tokens += outcome.prompt_tokens
    this.completion_tokens += outcome.completion_tokens
    this.cost += charged
    this.times.add(outcome.latency_ms)
  }
}

/** Registers the metrics and returns the function that counts a call. */
export const callMetrics = (registry: Registry): ObserveCall => {
  const models = new Map<string, Map<string, Sums>>()
  const all: Array<Sums> = []
  const times = new Map<string, Times>()
  const timesOf = (provider: string): Times => {
    let known = times.get(provider)
    if (known === undefined) times.set(provider, (known = new Times()))
    return known
  }
  const added = (model: string, provider: string): Sums => {
    const sums = new Sums(model, provider, timesOf(provider))
    all.push(sums)
    return sums
  }
  let rest: Sums | undefined
  const sumsOf = (model: string, provider: string): Sums => {
    let providers = models.get(model)
    const known = providers?.get(provider)
    if (known !== undefined) return known
    if (all.length >= pairsMax) return (rest ??= added(otherLabel, otherLabel))
    if (providers === undefined) models.set(model, (providers = new Map<string, Sums>()))
    const sums = added(model, provider)
    providers.set(provider, sums)
    return sums
  }
  register(registry, all, times)
  return (facts, outcome, charged) =>
    sumsOf(outcome.served?.model ?? facts.model, outcome.provider ?? facts.provider).add(outcome, charged)
}

const outcomes = ["success", "error", "client_disconnected"] as const

const register = (registry: Registry, all: ReadonlyArray<Sums>, times: ReadonlyMap<string, Times>): void => {
  const counterOf = (name: string, help: string, valueOf: (sums: Sums) => number) =>
    readMetric(registry, name, help, "counter", () =>
      all.map((sums) => ({ labels: sums.labels, value: valueOf(sums) }))
    )
  readMetric(registry, "tollgate_calls_total", "Settled calls by model, provider and outcome", "counter", () =>
    all.flatMap((sums) =>
      outcomes
        .filter((outcome) => sums[outcome] > 0)
        .map((outcome) => ({ labels: { ...sums.labels, outcome }, value: sums[outcome] }))
    )
  )
  counterOf("tollgate_prompt_tokens_total", "Prompt tokens of settled calls", (sums) => sums.prompt_tokens)
  counterOf("tollgate_completion_tokens_total", "Completion tokens of settled calls", (sums) => sums.completion_tokens)
  counterOf("tollgate_cost_usd_total", "Charges for settled calls", ({ cost }) => Number(toDecimal(cost)))
  const duration = "tollgate_call_duration_seconds"
  readMetric(registry, duration, "Time from a call's admission to its end, by provider", "histogram", () =>
    [...times].flatMap(([provider, one]) => histogramOf(duration, provider, one))
  )
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** The name of the series, if it differs from that of the metric. */
  readonly metricName?: string
}

const histogramOf = (name: string, provider: string, { counts, seconds }: Times): ReadonlyArray<Value> => {
  let sum = 0
  const buckets = counts.map((count, index): Value => {
    sum += count
    return { metricName: `${name}_bucket`, labels: { le: bounds[index] ?? "+Inf", provider }, value: sum }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: { provider }, value: seconds },
    { metricName: `${name}_count`, labels: { provider }, value: sum }
  ]
}

/** Creates a metric that computes its values when it is read. The registry uses only a metric's `name` and `get`. */
const readMetric = (
  registry: Registry,
  name: string,
  help: string,
  type: "counter" | "histogram",
  read: () => ReadonlyArray<Value>
): void => {
  const metric = { name, get: () => Promise.resolve({ name, help, type, values: read() }) }
  registry.registerMetric(metric as unknown as Counter)
}
