/** The input of the thread that renews a lease (`Renewal`). A separate file keeps the thread's bundle small. */

/** The thread's task. */
export interface Task {
  /** The URL of the database. */
  readonly url: string
  readonly run: string
  /** The statement that renews a run's lease, unless the run has ended. Its parameter is the run. */
  readonly text: string
  /** The interval of renewals, followed by the timeout of a statement, in milliseconds. */
  readonly every: number
  readonly patience: number
  /** The time without a heartbeat after which the main thread counts as stuck, in milliseconds. */
  readonly stuckAfter: number
  /** The heartbeat: a counter that the main thread increments. */
  readonly beats: Int32Array
  /** When the last successful renewal began, by `now`. */
  readonly renewedAt: BigInt64Array
}

/** A monotonic time in milliseconds, common to all threads of the process. */
export const now = (): number => Number(process.hrtime.bigint() / 1_000_000n)
