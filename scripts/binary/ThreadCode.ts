/** Starts threads in the executable, with code from its assets. */
import { Worker } from "node:worker_threads"
import type { WorkerOptions } from "node:worker_threads"
import { cacheOf, textOf } from "./Assets.ts"

/** Removes the code from the thread's data and runs it. */
const code = `
const { workerData } = require("node:worker_threads")
const { filename, text, cachedData } = workerData.code
delete workerData.code
const script = new (require("node:vm").Script)(text, { filename, cachedData })
const module_ = { exports: {} }
script.runInThisContext()(module_, module_.exports, require)
`

export const starter =
  (name: string) =>
  (options: WorkerOptions): Worker =>
    new Worker(code, {
      ...options,
      workerData: { ...options.workerData, code: { filename: name, text: textOf(name), cachedData: cacheOf(name) } },
      eval: true
    })

export const start = starter("WriterThread.js")
export const startBodies = starter("BodyThread.js")
