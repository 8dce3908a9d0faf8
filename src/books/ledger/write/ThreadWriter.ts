/** The writer for a SQLite file, on a separate thread. The thread is restarted if it stops. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { MessageChannel } from "node:worker_threads"
import { RollupLagMax } from "../rows/RollupLag.ts"
import * as QueuedWriter from "./QueuedWriter.ts"
import type { Answer, Link, LinkEvents } from "./QueuedWriter.ts"
import { batchMax, lockTimeout } from "./Submitting.ts"
import * as Thread from "./Thread.ts"
import type { Task } from "./Thread.ts"

/** Starts the thread. `door` lets other processes submit transactions to it. */
export const make = Effect.fnUntraced(function* (file: string, door?: Task["door"]) {
  // The client's layer migrates the file before the thread opens it.
  yield* SqlClient
  const tailMax = yield* RollupLagMax
  return yield* QueuedWriter.make({
    open: linkTo({ file, batchMax, patience: lockTimeout, tailMax, ...(door !== undefined && { door }) }),
    target: file,
    ended: (pause) => `the writer's thread stopped and will be restarted in ${pause} ms`
  })
})

const linkTo =
  (task: Omit<Task, "port">) =>
  ({ onAnswer, onEnd }: LinkEvents): Link => {
    const { port1: port, port2 } = new MessageChannel()
    const worker = Thread.open({ ...task, port: port2 })
    let reason = "its thread ended"
    port.on("message", (answer: Answer) => onAnswer(answer))
    worker.on("error", (error: Error) => {
      reason = error.message
    })
    // Under load, `exit` can precede the last replies, so the link has ended only after both `exit` and the port's `close`.
    let open = 2
    const over = () => {
      if (--open === 0) onEnd(reason)
    }
    worker.once("exit", over)
    port.once("close", over)
    return {
      send: (submission) => port.postMessage(submission),
      close: () => port.postMessage(null),
      abort: () => void worker.terminate()
    }
  }
