/** Where an audit begins, how it goes, and how far it is. */
import type { Effect } from "effect"
import { turn } from "../../../kernel/Pieces.ts"

/** Up to which rows an audit has read, and the sums of them in nano-USD that the next one goes on with. */
export interface Checkpoint {
  readonly entry: number
  readonly record: number
  readonly world: bigint
  readonly revenue: bigint
}

export const beginning: Checkpoint = { entry: 0, record: 0, world: 0n, revenue: 0n }

/** How many rows an audit reads at a time, and what it does between two slices. */
export interface Pace {
  readonly slice: number
  readonly pause: Effect.Effect<void>
}

/** For a process of its own: a slice takes some ten milliseconds. */
export const quick: Pace = { slice: 4096, pause: turn }

/** How far an audit is. */
export interface Progress {
  readonly rows: number
  /** How many there were when it began. */
  readonly of: number
}
