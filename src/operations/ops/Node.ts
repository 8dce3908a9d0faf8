/** What a node says of itself among those over one database. A process that serves a file says nothing. */
import { Schema } from "effect"
import type { NodeContract } from "../../storage/engine/Runs.ts"

export const NodeFigures = Schema.Struct({
  name: Schema.String,
  /** Whether it does the work that is done once for all nodes, and which node does; `null`: none at the moment. */
  leads: Schema.Boolean,
  leader: Schema.NullOr(Schema.String),
  /** How long its lease is good for still, and how long ago it was renewed. */
  lease_seconds: Schema.Number,
  renewed_seconds_ago: Schema.Number,
  /** How many nodes have a lease. */
  nodes: Schema.Number
})
export type NodeFigures = typeof NodeFigures.Type

export const figuresOf = (node: NodeContract): NodeFigures => ({
  name: node.name,
  leads: node.leads(),
  leader: node.leader() ?? null,
  lease_seconds: seconds(node.leaseLeft()),
  renewed_seconds_ago: seconds(node.sinceRenewal()),
  nodes: node.nodes()
})

const seconds = (millis: number): number => Math.round(millis / 100) / 10
