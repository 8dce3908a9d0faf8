/** Figures for Prometheus: what is asked, how it is answered, how long it takes, and what the process uses. */
import { Context, Layer } from "effect"
import type { Gauges } from "./Gauges.ts"
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client"

export interface Contract {
  readonly observe: (route: string, status: number, seconds: number) => void
  readonly observeUpstream: (upstream: string, outcome: string) => void
  /** What the books hold at the moment, which is asked when the figures are read. */
  readonly setGauges: (gauges: Gauges) => void
  /** The text that Prometheus reads, and its content type. */
  readonly text: () => Promise<string>
  readonly content_type: string
}

export class Metrics extends Context.Tag("tollgate/ops/Metrics")<Metrics, Contract>() {
  static readonly layer = Layer.sync(Metrics, () => make())
}

const make = (): Contract => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: "tollgate_requests_total",
    help: "Requests by route and status",
    labelNames: ["route", "status"] as const,
    registers: [registry]
  })
  const duration = new Histogram({
    name: "tollgate_request_duration_seconds",
    help: "Time from a request's head to its answer's head, by route",
    labelNames: ["route"] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry]
  })
  const upstreams = new Counter({
    name: "tollgate_upstream_requests_total",
    help: "Exchanges with upstreams by outcome",
    labelNames: ["upstream", "outcome"] as const,
    registers: [registry]
  })
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] })
  const reserved = gauge("tollgate_reserved_usd", "Credit set aside by open calls")
  const escrowed = gauge("tollgate_escrowed_usd", "Credit in escrow of pending transfers")
  const oldest = gauge("tollgate_oldest_unsettled_seconds", "Age of the oldest open call")
  const open = gauge("tollgate_open_calls", "Calls that are admitted and not settled")
  return {
    observeUpstream: (upstream, outcome) => upstreams.inc({ upstream, outcome }),
    setGauges: ({ escrowed_usd, oldest_unsettled_seconds, open_calls, reserved_usd }) => {
      reserved.set(reserved_usd)
      escrowed.set(escrowed_usd)
      oldest.set(oldest_unsettled_seconds)
      open.set(open_calls)
    },
    observe: (route, status, seconds) => {
      requests.inc({ route, status })
      duration.observe({ route }, seconds)
    },
    text: () => registry.metrics(),
    content_type: registry.contentType
  }
}
