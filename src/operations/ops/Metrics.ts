/** Figures for Prometheus: what is asked, how it is answered, how long it takes, and what the process uses. */
import { Context, Layer } from "effect"
import type { Gauges } from "./Gauges.ts"
import type { LoopFigures } from "./Loops.ts"
import type { NodeFigures } from "./Node.ts"
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client"

export interface MetricsContract {
  readonly observe: (route: string, status: number, seconds: number) => void
  readonly observeUpstream: (upstream: string, outcome: string) => void
  /** What the books hold at the moment, which is asked when the figures are read. */
  readonly setGauges: (gauges: Gauges) => void
  /** What is under way, which is asked then too. */
  readonly setWork: (work: Work) => void
  /** The text that Prometheus reads, and its content type. */
  readonly text: () => Promise<string>
  readonly content_type: string
}

export interface Work {
  readonly unsettled: number
  readonly loops: ReadonlyArray<LoopFigures>
  /** Where there may be other nodes. */
  readonly node: NodeFigures | undefined
  /** Where they are built while the service serves. */
  readonly missing_indexes: number | undefined
}

export class Metrics extends Context.Tag("tollgate/ops/Metrics")<Metrics, MetricsContract>() {
  static readonly layer = Layer.sync(Metrics, () => make())
}

/**
 * Counts by two labels that are added to Prometheus' own counter when that is read: it makes a text of the labels for every count, which
 * took a hundredth of a call.
 */
class Tally<Label extends string | number> {
  private readonly counts = new Map<string, Map<Label, number>>()

  add(name: string, label: Label): void {
    let labels = this.counts.get(name)
    if (labels === undefined) this.counts.set(name, (labels = new Map<Label, number>()))
    labels.set(label, (labels.get(label) ?? 0) + 1)
  }

  take(each: (name: string, label: Label, count: number) => void): void {
    for (const [name, labels] of this.counts) for (const [label, count] of labels) each(name, label, count)
    this.counts.clear()
  }
}

const make = (): MetricsContract => {
  const registry = new Registry()
  const answered = new Tally<number>()
  const exchanged = new Tally<string>()
  collectDefaultMetrics({ register: registry })
  registry.registerMetric(
    new Counter({
      name: "tollgate_requests_total",
      help: "Requests by route and status",
      labelNames: ["route", "status"] as const,
      registers: [],
      collect() {
        answered.take((route, status, count) => this.inc({ route, status }, count))
      }
    })
  )
  const duration = new Histogram({
    name: "tollgate_request_duration_seconds",
    help: "Time from a request's head to its answer's head, by route",
    labelNames: ["route"] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry]
  })
  registry.registerMetric(
    new Counter({
      name: "tollgate_upstream_requests_total",
      help: "Exchanges with upstreams by outcome",
      labelNames: ["upstream", "outcome"] as const,
      registers: [],
      collect() {
        exchanged.take((upstream, outcome, count) => this.inc({ upstream, outcome }, count))
      }
    })
  )
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] })
  const reserved = gauge("tollgate_reserved_usd", "Credit set aside by open calls")
  const escrowed = gauge("tollgate_escrowed_usd", "Credit in escrow of pending transfers")
  const oldest = gauge("tollgate_oldest_unsettled_seconds", "Age of the oldest open call")
  const open = gauge("tollgate_open_calls", "Calls that are admitted and not settled")
  const sinceVerified = gauge(
    "tollgate_verify_seconds_since_held",
    "Time since verify last found the books right; +Inf where it never did"
  )
  const findings = gauge("tollgate_verify_findings", "What the last run of verify found to be off")
  const unsettled = gauge(
    "tollgate_unsettled_calls",
    "Calls that have ended but whose settlement could not be written yet"
  )
  const sinceGood = new Gauge({
    name: "tollgate_loop_seconds_since_success",
    help: "Time since a turn of the loop last went well",
    labelNames: ["loop"] as const,
    registers: [registry]
  })
  const failures = new Counter({
    name: "tollgate_loop_failures_total",
    help: "Turns of the loop that failed",
    labelNames: ["loop"] as const,
    registers: [registry]
  })
  const troubled = new Gauge({
    name: "tollgate_loop_troubled",
    help: "1 where the loop does not turn as it should",
    labelNames: ["loop"] as const,
    registers: [registry]
  })
  /** Made when there is a node to tell of: a process that serves a file has no such figures. */
  const makeNode = () => ({
    info: new Gauge({
      name: "tollgate_node_info",
      help: "1, with the name of this node",
      labelNames: ["node"] as const,
      registers: [registry]
    }),
    leads: gauge("tollgate_node_leads", "1 where this node does the work that is done once for all nodes"),
    lease: gauge("tollgate_node_lease_seconds", "How long this node's lease is good for still; negative: lapsed"),
    lag: gauge("tollgate_node_renewed_seconds_ago", "Time since this node's lease was renewed"),
    nodes: gauge("tollgate_nodes", "Nodes that have a lease")
  })
  const makeMissing = () =>
    gauge("tollgate_missing_indexes", "Indexes that are being built or could not be: some pages are slow without them")
  let gauges: ReturnType<typeof makeNode> | undefined
  let missing: ReturnType<typeof makeMissing> | undefined
  const setNode = (node: NodeFigures): void => {
    gauges ??= makeNode()
    gauges.info.set({ node: node.name }, 1)
    gauges.leads.set(node.leads ? 1 : 0)
    gauges.lease.set(node.lease_seconds)
    gauges.lag.set(node.renewed_seconds_ago)
    gauges.nodes.set(node.nodes)
  }

  return {
    setWork: (work) => {
      if (work.node !== undefined) setNode(work.node)
      if (work.missing_indexes !== undefined) (missing ??= makeMissing()).set(work.missing_indexes)
      unsettled.set(work.unsettled)
      for (const metric of [sinceGood, failures, troubled]) metric.reset()
      for (const figures of work.loops) {
        const { loop } = figures
        sinceGood.set({ loop }, figures.seconds_since_good)
        failures.inc({ loop }, figures.failures)
        troubled.set({ loop }, figures.trouble === undefined ? 0 : 1)
      }
    },
    observeUpstream: (upstream, outcome) => exchanged.add(upstream, outcome),
    setGauges: (gauges) => {
      reserved.set(gauges.reserved_usd)
      escrowed.set(gauges.escrowed_usd)
      oldest.set(gauges.oldest_unsettled_seconds)
      open.set(gauges.open_calls)
      sinceVerified.set(gauges.seconds_since_verified)
      findings.set(gauges.findings)
    },
    observe: (route, status, seconds) => {
      answered.add(route, status)
      duration.observe({ route }, seconds)
    },
    text: () => registry.metrics(),
    content_type: registry.contentType
  }
}
