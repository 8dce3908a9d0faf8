/**
 * Renews a node's lease from a separate thread and connection. Large responses can keep the main thread too busy to renew the lease in time, and
 * other nodes would then release the node's reservations.
 *
 * A lease means that the node is still processing its calls, which a node with a stuck main thread is not. The thread therefore renews the lease only
 * if the main thread's event loop has run within the last two minutes. If the process dies or freezes, so does the thread.
 */
import type { Worker } from "node:worker_threads"
import type { Task } from "./LeaseTask.ts"
import { start as startThread } from "./ThreadCode.ts"

/** How long the main thread can be busy before it counts as stuck, in milliseconds. */
export const stuckAfter = 120_000

/** The interval between the main thread's heartbeats, in milliseconds. */
const beatEvery = 1_000

/** The pause before a failed thread is restarted, in milliseconds. */
const restartPause = 5_000

export interface Renewal {
  /** Returns the start of the thread's last successful renewal, by `LeaseTask.now`; 0 before the first one. */
  readonly renewedAt: () => number
  readonly stop: () => Promise<unknown>
}

/** Starts the thread. If it fails, `failed` is called, and another thread is started after a pause. */
export const start = (task: Omit<Task, "beats" | "renewedAt">, failed: (error: unknown) => void): Renewal => {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  const renewedAt = new BigInt64Array(new SharedArrayBuffer(8))
  const workerData: Task = { ...task, beats, renewedAt }
  const beat = setInterval(() => Atomics.add(beats, 0, 1), beatEvery).unref()
  let worker: Worker
  let restart: NodeJS.Timeout | undefined
  const open = () => {
    worker = startThread({ workerData, resourceLimits: { maxYoungGenerationSizeMb: 4 } })
    worker.unref()
    worker.once("error", (error) => {
      failed(error)
      restart = setTimeout(open, restartPause).unref()
    })
  }
  open()
  return {
    renewedAt: () => Number(Atomics.load(renewedAt, 0)),
    stop: () => {
      clearInterval(beat)
      clearTimeout(restart)
      return worker.terminate()
    }
  }
}
