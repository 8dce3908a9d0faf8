/** Locates the long-body thread's code: a file next to the bundle. The single executable replaces this module. */
import { Worker } from "node:worker_threads"
import type { WorkerOptions } from "node:worker_threads"

// Node 20 cannot run TypeScript on a thread, so the built file is used even if the service runs from source.
const module = import.meta.url.endsWith(".ts") ? "../../../dist/BodyThread.js" : "./BodyThread.js"

export const startBodies = (options: WorkerOptions): Worker => new Worker(new URL(module, import.meta.url), options)
