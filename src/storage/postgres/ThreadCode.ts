/** Where the code of the lease's thread is: a file beside the bundle. (The single executable has another way.) */
import { Worker } from "node:worker_threads"
import type { WorkerOptions } from "node:worker_threads"

// Node 20 runs no TypeScript on a thread, so the built file is taken from the source too.
const module = import.meta.url.endsWith(".ts") ? "../../../dist/LeaseThread.js" : "./LeaseThread.js"

export const start = (options: WorkerOptions): Worker => new Worker(new URL(module, import.meta.url), options)
