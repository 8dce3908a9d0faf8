/** Tells a process that it is a worker, and which one. The start imports this file before all others, so it imports nothing. */

/** The environment variable with which the owner passes a worker its number (`app/workers`). */
export const workerVariable = "TOLLGATE_WORKER"

/** This process's worker number; `undefined` if it is not a worker. */
export const workerNumber = (): number | undefined => {
  const text = process.env[workerVariable]
  return text === undefined || process.send === undefined ? undefined : Number(text)
}
