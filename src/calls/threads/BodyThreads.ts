/**
 * Runs the long-body thread. The main thread moves a body's memory to it and gets a short result and bytes back, so neither thread copies them.
 *
 * Responses come before requests, because a call is settled only once its response is read. Apart from that, accounts take turns. The byte budget
 * limits the number and bytes of the tasks, because each body holds a share of it until its call ends (`http/transport/Bytes`).
 *
 * If the thread ends during a task, or has not finished it after a minute, the task fails, and the next one starts another thread. The thread also
 * ends after ten idle seconds, to free its memory. An exiting process does not wait for the thread: a shutdown waits for the calls, and each call
 * waits for its tasks.
 */
import { Effect } from "effect"
import type { Worker } from "node:worker_threads"
import { Busy, busyFor } from "../../kernel/Busy.ts"
import { startBodies } from "./BodyThreadCode.ts"
import type { Failed, Task } from "./Task.ts"

/** The maximum length of a body to parse on the main thread, in bytes. */
export const parsedMax = 256 * 1024

interface Job {
  readonly task: Task<object>
  readonly done: (done: object | undefined) => void
}

/** The thread's heap limit, in megabytes. The limits on a body's length and parts keep the heap far smaller. */
const heapMax = 768
/** The idle time after which the thread stops, in milliseconds. */
const idleMax = 10_000
/** The time after which an unfinished task ends the thread, in milliseconds. The largest bodies take a few seconds, even on a slow machine. */
const taskMax = 60_000

/** The queued jobs, by account. The first account is served next. */
type JobQueues = Map<string, Array<Job>>
const responses: JobQueues = new Map()
const requests: JobQueues = new Map()
let current: Job | undefined
let worker: Worker | undefined
/** Ends the thread when it has been idle for `idleMax`, or busy with one task for `taskMax`. */
let limit: NodeJS.Timeout | undefined

/**
 * Performs a task on the thread. The task's body is moved there and can no longer be read here. Accounts take turns. Returns `undefined` if the
 * thread ended during the task.
 */
export const onThread = <Done extends object>(
  task: Task<Done>,
  account: string,
  waiting: JobQueues = requests
): Effect.Effect<Done | Failed | undefined> =>
  Effect.async((resume) => {
    const job: Job = { task, done: (done) => resume(Effect.succeed(done as Done | Failed | undefined)) }
    const jobs = waiting.get(account)
    if (jobs === undefined) waiting.set(account, [job])
    else jobs.push(job)
    next()
    return Effect.sync(() => removeJob(waiting, account, job))
  })

/** The request's bytes were lost, because the thread ended while it had them. */
export const bodyLost = new Busy({
  message: "the request could not be read beside other large requests; try again shortly",
  retry_after: busyFor
})

/** Performs a request's task (see `onThread`). Like an error on this thread, an error on the other thread is a defect. */
export const doneOnThread = <Done extends object>(task: Task<Done>, account: string): Effect.Effect<Done, Busy> =>
  Effect.flatMap(onThread(task, account), (done): Effect.Effect<Done, Busy> => {
    if (done === undefined) return Effect.zipRight(Effect.logError("the thread for large bodies ended"), bodyLost)
    return "failed" in done ? Effect.die(new Error(done.failed)) : Effect.succeed(done)
  })

/**
 * Performs a task that reads a response (see `onThread`). Returns `undefined` if the response was lost, because the thread ended or its code failed.
 */
export const readOnThread = <Done extends object>(task: Task<Done>, account: string): Effect.Effect<Done | undefined> =>
  Effect.map(onThread(task, account, responses), (done) => (done === undefined || "failed" in done ? undefined : done))

/** Removes a job that has not begun. */
const removeJob = (waiting: JobQueues, account: string, job: Job): void => {
  const jobs = waiting.get(account)?.filter((one) => one !== job)
  if (jobs === undefined) return
  if (jobs.length === 0) waiting.delete(account)
  else waiting.set(account, jobs)
}

/** Dequeues the next job and moves its account to the end of the queue. */
const dequeue = (waiting: JobQueues): Job | undefined => {
  const [first] = waiting
  if (first === undefined) return undefined
  const [account, jobs] = first
  waiting.delete(account)
  const job = jobs.shift()
  if (jobs.length > 0) waiting.set(account, jobs)
  return job
}

const next = (): void => {
  if (current !== undefined) return
  current = dequeue(responses) ?? dequeue(requests)
  if (current === undefined) return
  const { task } = current
  const moved = [task.body, ...(task.beside === undefined ? [] : [task.beside])].map(({ buffer }) => buffer)
  // A message whose memory was already moved would never arrive.
  if (moved.some(({ byteLength }) => byteLength === 0)) {
    return completeTask({ failed: "the body is empty or was moved already" })
  }
  try {
    worker ??= startWorker()
    worker.postMessage(task, moved as ReadonlyArray<ArrayBuffer>)
    setTimeLimit(taskMax)
  } catch (error) {
    completeTask({ failed: String(error) })
  }
}

const startWorker = (): Worker => {
  const thread = startBodies({ resourceLimits: { maxOldGenerationSizeMb: heapMax } })
  thread.unref()
  const over = () => {
    if (worker === thread) stop()
  }
  const answered = (done: object) => {
    if (worker === thread) completeTask(done)
  }
  // A result that cannot be read, such as one that is nested too deeply, arrives as `messageerror`.
  return thread.on("message", answered).on("messageerror", over).on("error", over).on("exit", over)
}

/** Ends the thread, and ends the current task without a result. */
const stop = (): void => {
  const thread = worker
  worker = undefined
  void thread?.terminate()
  completeTask(undefined)
}

const setTimeLimit = (millis: number): void => {
  clearTimeout(limit)
  limit = setTimeout(stop, millis).unref()
}

const completeTask = (done: object | undefined): void => {
  const job = current
  current = undefined
  if (worker === undefined) clearTimeout(limit)
  else setTimeLimit(idleMax)
  job?.done(done)
  next()
}

/** Returns the bytes in a separate buffer, whose memory can be moved. */
export const movable = (bytes: Buffer): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes)
