/** Where an audit begins, its pace and its progress. */
import type { Effect } from "effect"
import { turn } from "../../../kernel/Pieces.ts"

/** The last rows that an audit has read, and the sums up to them in nano-USD. The next audit continues there. */
export interface Checkpoint {
  readonly entry: number
  readonly record: number
  readonly world: bigint
  readonly revenue: bigint
}

export const beginning: Checkpoint = { entry: 0, record: 0, world: 0n, revenue: 0n }

/** How many rows an audit reads at a time, and how long it pauses between slices. */
export interface Pace {
  readonly slice: number
  readonly pause: Effect.Effect<void>
}

/** The pace for a separate process, at which a slice takes about ten milliseconds. */
export const quick: Pace = { slice: 4096, pause: turn }

/** How far an audit has got. */
export interface Progress {
  readonly rows: number
  /** The number of rows to read, as known so far. */
  readonly of: number
}
