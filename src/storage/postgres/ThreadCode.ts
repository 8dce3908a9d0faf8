/** Starts the lease thread from a file next to the bundle. The single executable replaces this module. */
import { Worker } from "node:worker_threads"
import type { WorkerOptions } from "node:worker_threads"

// Node 20 cannot run TypeScript on a thread, so the built file is used even when the service runs from source.
const module = import.meta.url.endsWith(".ts") ? "../../../dist/LeaseThread.js" : "./LeaseThread.js"

export const start = (options: WorkerOptions): Worker => new Worker(new URL(module, import.meta.url), options)
