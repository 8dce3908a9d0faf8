/** Starts writer threads. A thread loads its code when it starts and then waits for its task. */
import type { MessagePort, Worker } from "node:worker_threads"
import { start } from "./ThreadCode.ts"

/** A thread's initial data. The thread waits until `signal` is not 0, then reads its task from its parent port. */
export interface Start {
  readonly signal: Int32Array
}

export interface Task {
  readonly file: string
  readonly port: MessagePort
  /** The maximum number of transactions in a batch, unless a single message contains more. */
  readonly batchMax: number
  /** The time to wait for another process's lock, in milliseconds. */
  readonly patience: number
  /** The maximum number of records in a rollup lag before it is folded. */
  readonly tailMax: number
  /** Where other processes can submit transactions; absent if they may not. */
  readonly door?: Door
}

/** The local socket for other processes' transactions. */
export interface Door {
  /** The socket's path. An existing file there is replaced. */
  readonly path: string
  /** The secret that each process must send first. */
  readonly token: string
}

interface Waiting extends Start {
  readonly worker: Worker
}

let prepared: Waiting | undefined

const make = (): Waiting => {
  const signal = new Int32Array(new SharedArrayBuffer(4))
  const workerData: Start = { signal }
  // Objects rarely outlive their batch, so a young generation as large as the process's would waste memory.
  return { worker: start({ workerData, resourceLimits: { maxYoungGenerationSizeMb: 12 } }), signal }
}

/** Starts a thread for the next `open`, so that its code loads while the process starts. Until then, the thread does not keep the process alive. */
export const prepare = (): void => {
  prepared = make()
  prepared.worker.unref()
}

/** Sends the task to the prepared thread, or to a new thread if there is none. */
export const open = (task: Task): Worker => {
  const { signal, worker } = prepared ?? make()
  prepared = undefined
  worker.ref()
  worker.postMessage(task, [task.port])
  Atomics.store(signal, 0, 1)
  Atomics.notify(signal, 0)
  return worker
}
