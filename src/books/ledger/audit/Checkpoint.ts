/** The starting point, the pace and the progress of an audit. */
import type { Effect } from "effect"
import { turn } from "../../../kernel/Pieces.ts"

/** The last rows that an audit has read, and the sums up to them in nano-USD. The next audit can continue there. */
export interface Checkpoint {
  readonly entry: number
  readonly record: number
  readonly world: bigint
  readonly revenue: bigint
}

export const beginning: Checkpoint = { entry: 0, record: 0, world: 0n, revenue: 0n }

/** The number of rows per slice, and the pause between slices. */
export interface Pace {
  readonly slice: number
  readonly pause: Effect.Effect<void>
}

/** The pace for a separate process. A slice takes about ten milliseconds. */
export const fastPace: Pace = { slice: 4096, pause: turn }

export interface Progress {
  readonly rows: number
  /** The number of rows to read, as far as known. */
  readonly of: number
}
