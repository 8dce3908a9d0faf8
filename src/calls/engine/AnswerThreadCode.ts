/** The location of the code for the thread of long answers: a file next to the bundle. The single executable has its own. */
import { Worker } from "node:worker_threads"
import type { WorkerOptions } from "node:worker_threads"

// Node 20 cannot run TypeScript on a thread, so running from source uses the built file too.
const module = import.meta.url.endsWith(".ts") ? "../../../dist/AnswerThread.js" : "./AnswerThread.js"

export const startAnswers = (options: WorkerOptions): Worker => new Worker(new URL(module, import.meta.url), options)
