/** Prometheus metrics for requests by route, exchanges with upstreams, settled calls, the books, the loops and the process. */
import { Context, Effect, Layer } from "effect"
import type { ObserveCall } from "../../books/gate/CallObserver.ts"
import type { WitnessFigures } from "../../books/log/Cosigning.ts"
import { callMetrics } from "./CallMetrics.ts"
import type { BillDrift, Gauges } from "./Gauges.ts"
import type { LoopFigures } from "./Loops.ts"
import type { NodeFigures } from "./Node.ts"
import { Siblings } from "./Siblings.ts"
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client"

export interface MetricsContract {
  readonly observe: (route: string, status: number, seconds: number) => void
  readonly observeUpstream: (upstream: string, outcome: string) => void
  readonly observeCall: ObserveCall
  /** Sets the gauges for the books. `/metrics` calls it just before it responds. */
  readonly setGauges: (gauges: Gauges) => void
  /** Sets the figures for work in progress. `/metrics` calls it just before it responds. */
  readonly setWork: (work: Work) => void
  /** Sets the gauges for vendors' bills, from the newest compared day of each vendor. */
  readonly setDrifts: (drifts: ReadonlyArray<BillDrift>) => void
  readonly setWitnesses: (witnesses: ReadonlyArray<WitnessFigures>) => void
  /** Returns this process's metrics in the Prometheus text format, without those of the books, bills and witnesses, which all processes share. */
  readonly ownText: () => Promise<string>
  /** Returns all metrics. `others` contains the other processes' own metrics (`ownText`). */
  readonly text: (others?: ReadonlyArray<string>) => Promise<string>
  readonly content_type: string
}

export interface Work {
  readonly unsettled: number
  readonly loops: ReadonlyArray<LoopFigures>
  /** The node's figures; `undefined` on SQLite, because nodes have no leases there. */
  readonly node: NodeFigures | undefined
  /** The number of indexes that are not yet built; `undefined` on SQLite, where migrations build them. */
  readonly missing_indexes: number | undefined
}

export class Metrics extends Context.Tag("tollgate/ops/Metrics")<Metrics, MetricsContract>() {
  static readonly layer = Layer.effect(
    Metrics,
    Effect.map(Siblings, (siblings) => make(siblings?.name))
  )
}

/**
 * Counts by two labels, and adds the counts to Prometheus' counter when the metrics are read. The counter itself builds a label string for every
 * count, which took 1 % of a call's time.
 */
class LabelCounts<Label extends string | number> {
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

/** `name` labels the metrics of one of several processes. */
const make = (name: string | undefined): MetricsContract => {
  const ownRegistry = new Registry()
  const shared = new Registry()
  if (name !== undefined) ownRegistry.setDefaultLabels({ process: name })
  collectDefaultMetrics({ register: ownRegistry })
  const { observe, observeUpstream } = requestMetrics(ownRegistry)
  return {
    observe,
    observeUpstream,
    observeCall: callMetrics(ownRegistry),
    setGauges: booksMetrics(shared),
    setWork: workMetrics(ownRegistry),
    setDrifts: driftMetrics(shared),
    setWitnesses: witnessMetrics(shared),
    ownText: () => ownRegistry.metrics(),
    text: async (others = []) => `${await shared.metrics()}\n${joined([await ownRegistry.metrics(), ...others])}`,
    content_type: ownRegistry.contentType
  }
}

/** Joins texts of the same metrics with different labels. The format requires that all samples of a metric follow its head. */
const joined = (texts: ReadonlyArray<string>): string => {
  if (texts.length === 1) return texts[0]!
  const metrics = new Map<string, Array<string>>()
  for (const part of texts.flatMap((text) => text.trimEnd().split("\n\n"))) {
    const [help = "", type = "", ...samples] = part.split("\n")
    const head = `${help}\n${type}`
    const known = metrics.get(head)
    if (known === undefined) metrics.set(head, samples)
    else known.push(...samples)
  }
  return `${[...metrics].map(([head, samples]) => [head, ...samples].join("\n")).join("\n\n")}\n`
}

const gaugesIn = (registry: Registry) => (name: string, help: string) =>
  new Gauge({ name, help, registers: [registry] })

/** Counts requests and upstream exchanges. Uses `LabelCounts`, because this code runs on every request. */
const requestMetrics = (registry: Registry): Pick<MetricsContract, "observe" | "observeUpstream"> => {
  const requests = new LabelCounts<number>()
  const exchanges = new LabelCounts<string>()
  registry.registerMetric(
    new Counter({
      name: "tollgate_requests_total",
      help: "Requests by route and status",
      labelNames: ["route", "status"] as const,
      registers: [],
      collect() {
        requests.take((route, status, count) => this.inc({ route, status }, count))
      }
    })
  )
  const duration = new Histogram({
    name: "tollgate_request_duration_seconds",
    help: "Time from a request's headers to its response's headers, by route",
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
        exchanges.take((upstream, outcome, count) => this.inc({ upstream, outcome }, count))
      }
    })
  )
  return {
    observe: (route, status, seconds) => {
      requests.add(route, status)
      duration.observe({ route }, seconds)
    },
    observeUpstream: (upstream, outcome) => exchanges.add(upstream, outcome)
  }
}

const booksMetrics = (registry: Registry): MetricsContract["setGauges"] => {
  const gauge = gaugesIn(registry)
  const reserved = gauge("tollgate_reserved_usd", "Credit reserved by open calls")
  const escrowed = gauge("tollgate_escrowed_usd", "Credit held in escrow for pending transfers")
  const oldest = gauge("tollgate_oldest_unsettled_seconds", "Age of the oldest open call")
  const open = gauge("tollgate_open_calls", "Calls admitted but not yet settled")
  const sinceVerified = gauge(
    "tollgate_verify_seconds_since_held",
    "Time since the last verification without findings; +Inf if there was none"
  )
  const findings = gauge("tollgate_verify_findings", "Findings in the last verification")
  return (gauges) => {
    reserved.set(gauges.reserved_usd)
    escrowed.set(gauges.escrowed_usd)
    oldest.set(gauges.oldest_unsettled_seconds)
    open.set(gauges.open_calls)
    sinceVerified.set(gauges.seconds_since_verified)
    findings.set(gauges.findings)
  }
}

const workMetrics = (registry: Registry): MetricsContract["setWork"] => {
  const gauge = gaugesIn(registry)
  const setLoops = loopMetrics(registry)
  const setNode = nodeMetrics(registry)
  const unsettled = gauge("tollgate_unsettled_calls", "Calls that have ended but whose settlement is not yet written")
  let missing: Gauge | undefined
  return (work) => {
    setLoops(work.loops)
    if (work.node !== undefined) setNode(work.node)
    if (work.missing_indexes !== undefined) {
      missing ??= gauge("tollgate_missing_indexes", "Indexes that are not yet built; pages that use them are slow")
      missing.set(work.missing_indexes)
    }
    unsettled.set(work.unsettled)
  }
}

const driftMetrics = (registry: Registry): MetricsContract["setDrifts"] => {
  const gauge = (name: string, help: string) =>
    new Gauge({ name, help, labelNames: ["vendor"] as const, registers: [registry] })
  const drift = gauge(
    "tollgate_reconciliation_drift_usd",
    "The vendor's bill minus the expected cost, for the newest compared day"
  )
  const billed = gauge("tollgate_reconciliation_billed_usd", "The vendor's bill for the newest compared day")
  const coverage = gauge(
    "tollgate_reconciliation_coverage",
    "The part of the vendor's bill that known calls account for, for the newest compared day"
  )
  return (drifts) => {
    for (const { vendor, ...figures } of drifts) {
      drift.set({ vendor }, Number(figures.drift) / 1e9)
      billed.set({ vendor }, Number(figures.billed) / 1e9)
      coverage.set({ vendor }, figures.coverage)
    }
  }
}

const witnessMetrics = (registry: Registry): MetricsContract["setWitnesses"] => {
  const gauge = (name: string, help: string) =>
    new Gauge({ name, help, labelNames: ["witness"] as const, registers: [registry] })
  const lag = gauge(
    "tollgate_log_witness_lag_seconds",
    "Time since the witness last cosigned, if the log has a newer checkpoint"
  )
  const conflict = gauge("tollgate_log_witness_conflict", "1 if the witness contradicts the log")
  return (witnesses) => {
    // Removes witnesses that have left the configuration.
    for (const one of [lag, conflict]) one.reset()
    for (const { witness, ...state } of witnesses) {
      lag.set({ witness }, state.lag_seconds)
      conflict.set({ witness }, state.conflict ? 1 : 0)
    }
  }
}

const loopMetrics = (registry: Registry) => {
  const common = { labelNames: ["loop"] as const, registers: [registry] }
  const sinceGood = new Gauge({
    name: "tollgate_loop_seconds_since_success",
    help: "Time since the loop's last successful iteration",
    ...common
  })
  const failures = new Counter({
    name: "tollgate_loop_failures_total",
    help: "Failed iterations of the loop",
    ...common
  })
  const troubled = new Gauge({
    name: "tollgate_loop_troubled",
    help: "1 if the loop is stuck, late, stopped or failing",
    ...common
  })
  return (loops: ReadonlyArray<LoopFigures>): void => {
    for (const metric of [sinceGood, failures, troubled]) metric.reset()
    for (const figures of loops) {
      const { loop } = figures
      sinceGood.set({ loop }, figures.seconds_since_good)
      failures.inc({ loop }, figures.failures)
      troubled.set({ loop }, figures.trouble === undefined ? 0 : 1)
    }
  }
}

/** Registers a node's gauges on first use, so that a process on SQLite does not show them. */
const nodeMetrics = (registry: Registry) => {
  const gauge = gaugesIn(registry)
  const register = () => ({
    info: new Gauge({
      name: "tollgate_node_info",
      help: "Always 1; the label states the name of this node",
      labelNames: ["node"] as const,
      registers: [registry]
    }),
    leads: gauge("tollgate_node_leads", "1 if this node is the leader and runs the loops for all nodes"),
    lease: gauge("tollgate_node_lease_seconds", "Seconds until this node's lease lapses; negative if it has lapsed"),
    lag: gauge("tollgate_node_renewed_seconds_ago", "Time since this node last renewed its lease"),
    nodes: gauge("tollgate_nodes", "Nodes that hold a lease")
  })
  let gauges: ReturnType<typeof register> | undefined
  return (node: NodeFigures): void => {
    gauges ??= register()
    gauges.info.set({ node: node.name }, 1)
    gauges.leads.set(node.leads ? 1 : 0)
    gauges.lease.set(node.lease_seconds)
    gauges.lag.set(node.renewed_seconds_ago)
    gauges.nodes.set(node.nodes)
  }
}
