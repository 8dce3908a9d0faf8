/** Tells a process that it is a worker, and which one. The start imports this file before all others, so it imports nothing. */

/** The environment variable with which the owner passes a worker its number (`app/workers`). */
export const workerVariable = "TOLLGATE_WORKER"

/** The number of this process among the workers of an owner; `undefined` for any other process. */
export const workerNumber = (): number | undefined => {
  const text = process.env[workerVariable]
  return text === undefined || process.send === undefined ? undefined : Number(text)
}
