/** The input of the thread that renews a lease (`Renewal`). A separate file keeps the thread's bundle small. */

/** The thread's task. */
export interface Task {
  /** Of the database. */
  readonly url: string
  readonly run: string
  /** Renews the lease of the run that is its parameter, unless the run was ended. */
  readonly text: string
  /** How often it does so, and how long a statement may take, in milliseconds. */
  readonly every: number
  readonly patience: number
  /** How long the main thread may show no sign of life, in milliseconds. */
  readonly stuckAfter: number
  /** Counted up by the main thread. */
  readonly beats: Int32Array
  /** When the last renewal that was answered was asked for, by `now`. */
  readonly renewedAt: BigInt64Array
}

/** In milliseconds, the same on each thread of the process. */
export const now = (): number => Number(process.hrtime.bigint() / 1_000_000n)
