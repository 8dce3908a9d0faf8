/** The writer's thread in the executable: its code is one of the assets. */
import { getAsset } from "node:sea"
import { Worker } from "node:worker_threads"
import type { WorkerOptions } from "node:worker_threads"

export const open = (options: WorkerOptions): Worker =>
  new Worker(getAsset("WriterThread.js", "utf8"), { ...options, eval: true })
