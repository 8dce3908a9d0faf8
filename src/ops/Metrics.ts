/** Figures for Prometheus: what is asked, how it is answered, how long it takes, and what the process uses. */
import { Context, Layer } from "effect"
import { collectDefaultMetrics, Counter, Histogram, Registry } from "prom-client"

interface Contract {
  readonly observe: (route: string, status: number, seconds: number) => void
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
  return {
    observe: (route, status, seconds) => {
      requests.inc({ route, status })
      duration.observe({ route }, seconds)
    },
    text: () => registry.metrics(),
    content_type: registry.contentType
  }
}
