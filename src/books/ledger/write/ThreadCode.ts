/** Starts the writer's thread from a file next to the bundle. The single executable replaces this module. */
import { Worker } from "node:worker_threads"
import type { WorkerOptions } from "node:worker_threads"

// Node 20 cannot run TypeScript on a thread, so the built file is used even when running from source.
const module = import.meta.url.endsWith(".ts") ? "../../../../dist/WriterThread.js" : "./WriterThread.js"

export const start = (options: WorkerOptions): Worker => new Worker(new URL(module, import.meta.url), options)
