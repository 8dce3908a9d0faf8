/** Figures about this node among those that share one PostgreSQL database. A process on SQLite has none. */
import { Schema } from "effect"
import type { LeaseContract, NodeContract } from "../../storage/engine/Runs.ts"

export const NodeFigures = Schema.Struct({
  name: Schema.String,
  /**
   * Whether this node is the leader, and the leader's name (null if there is none). The leader runs the loops that must run only once among all
   * nodes.
   */
  leads: Schema.Boolean,
  leader: Schema.NullOr(Schema.String),
  /** Seconds until this node's lease lapses, and seconds since its renewal. */
  lease_seconds: Schema.Number,
  renewed_seconds_ago: Schema.Number,
  /** The number of nodes that hold a lease. */
  nodes: Schema.Number
})
export type NodeFigures = typeof NodeFigures.Type

export const figuresOf = (node: NodeContract, lease: LeaseContract): NodeFigures => ({
  name: node.name,
  leads: node.leads(),
  leader: node.leader() ?? null,
  lease_seconds: seconds(lease.left()),
  renewed_seconds_ago: seconds(lease.sinceRenewal()),
  nodes: node.nodes()
})

const seconds = (millis: number): number => Math.round(millis / 100) / 10
