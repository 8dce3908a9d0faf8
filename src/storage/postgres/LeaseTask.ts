/** The input of the thread that renews a lease (`Renewal`). It is in a separate file to keep the thread's bundle small. */

export interface Task {
  readonly url: string
  readonly run: string
  /** The statement that renews the lease unless the run has ended. Its parameter is the run. */
  readonly text: string
  /** The interval between renewals, and the timeout of a statement, in milliseconds. */
  readonly every: number
  readonly patience: number
  /** How long the main thread can go without a heartbeat before it counts as stuck, in milliseconds. */
  readonly stuckAfter: number
  /** The heartbeat: a counter that the main thread increments. */
  readonly beats: Int32Array
  /** When the last successful renewal began, by `now`. */
  readonly renewedAt: BigInt64Array
}

/** Returns a monotonic time in milliseconds that all threads of the process share. */
export const now = (): number => Number(process.hrtime.bigint() / 1_000_000n)
