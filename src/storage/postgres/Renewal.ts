/**
 * Renews the lease of a node from a thread of its own, over a connection of its own. A main thread that computes for long, at large answers,
 * would not renew it in time, and other nodes would release its calls.
 *
 * The lease says that the node still works on its calls. A main thread that is stuck for ever does not, so the thread renews only while the
 * main thread has shown within two minutes that its event loop turns. A process that dies or freezes takes the thread with it.
 */
import type { Worker } from "node:worker_threads"
import type { Task } from "./LeaseTask.ts"
import { start as startThread } from "./ThreadCode.ts"

/** How long a main thread may be busy before it is taken to be stuck, in milliseconds. */
export const stuckAfter = 120_000

/** How often the main thread shows that it lives, in milliseconds. */
const beatEvery = 1_000

/** How long after a thread has failed the next one is started, in milliseconds. */
const restartPause = 5_000

export interface Renewal {
  /** When the last renewal of the thread that was answered was asked for, by `LeaseTask.now`; 0 before the first. */
  readonly renewedAt: () => number
  readonly stop: () => Promise<unknown>
}

/** `failed` is told why a thread has ended. Another one is started then. */
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
