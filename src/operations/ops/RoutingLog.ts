/** This node's latest routing decisions. The log is in memory, so a restart clears it. */
import { Context, Layer } from "effect"
import type { Decision } from "../../upstream/routing/Decision.ts"

export interface RoutingLogContract {
  readonly observe: (decision: Decision) => void
  /** Returns the decisions, newest first. */
  readonly last: () => ReadonlyArray<Decision>
}

export class RoutingLog extends Context.Tag("tollgate/ops/RoutingLog")<RoutingLog, RoutingLogContract>() {
  static readonly layer = Layer.sync(RoutingLog, () => make())
}

const keptMax = 100

const make = (): RoutingLogContract => {
  const ring: Array<Decision> = []
  let next = 0
  return {
    observe: (decision) => {
      ring[next] = decision
      next = (next + 1) % keptMax
    },
    last: () => [...ring.slice(next), ...ring.slice(0, next)].toReversed()
  }
}
