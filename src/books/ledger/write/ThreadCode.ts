/** Where the code of the writer's thread is: a file beside the bundle. (The single executable has another way.) */
import { Worker } from "node:worker_threads"
import type { WorkerOptions } from "node:worker_threads"

// Node 20 runs no TypeScript on a thread, so from the source too the built one is taken.
const module = import.meta.url.endsWith(".ts") ? "../../../../dist/WriterThread.js" : "./WriterThread.js"

export const start = (options: WorkerOptions): Worker => new Worker(new URL(module, import.meta.url), options)
