/** Threads for the writer. One loads its code when it is started, and waits to be given a file. */
import type { MessagePort, Worker } from "node:worker_threads"
import { start } from "./ThreadCode.ts"

/** The start data of a thread: it waits until the signal is not 0. By then its task is in its port. */
export interface Start {
  readonly signal: Int32Array
}

/** The task of a thread. */
export interface Task {
  readonly file: string
  /** Where transactions come from, and their outcomes go to. */
  readonly port: MessagePort
  /** How many transactions one batch takes, unless one message brings more. */
  readonly batchMax: number
  /** How long a lock of another process is waited for, in milliseconds. */
  readonly patience: number
  /** From how many records on a tail is folded. */
  readonly tailMax: number
}

interface Waiting extends Start {
  readonly worker: Worker
}

let prepared: Waiting | undefined

const make = (): Waiting => {
  const signal = new Int32Array(new SharedArrayBuffer(4))
  const workerData: Start = { signal }
  // Nothing of a batch outlives it: what serves well as room for young objects of the process would be taken here for nothing.
  return { worker: start({ workerData, resourceLimits: { maxYoungGenerationSizeMb: 12 } }), signal }
}

/** Starts the thread that the next `open` gives, so that its code is loaded beside that of the process. The process may end before. */
export const prepare = (): void => {
  prepared = make()
  prepared.worker.unref()
}

export const open = (task: Task): Worker => {
  const { signal, worker } = prepared ?? make()
  prepared = undefined
  worker.ref()
  worker.postMessage(task, [task.port])
  Atomics.store(signal, 0, 1)
  Atomics.notify(signal, 0)
  return worker
}
