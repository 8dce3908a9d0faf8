/** Measures a service process: its resources from `/proc`, and the heaps of its threads from `Probe.cjs`. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Service } from "../../test/support/Service.ts"

/** Returns the size of a file in MB, or 0 if it does not exist. */
const sizeOf = (file: string): number => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) / 1024 / 1024

export const logOf = ({ folder }: Service): number => sizeOf(join(folder, "tollgate.db-wal"))
export const booksOf = ({ folder }: Service): number => sizeOf(join(folder, "tollgate.db"))

export const handlesOf = ({ process: { pid } }: Service): number => readdirSync(`/proc/${pid}/fd`).length

/** Returns the anonymous resident memory, in MB. */
export const residentOf = ({ process: { pid } }: Service): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

/** Returns the process's CPU time since its start, in seconds. */
export const secondsOf = ({ process: { pid } }: Service): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ", 2)[1]!.split(" ")
  // Linux counts in hundredths of a second.
  return (Number(fields[11]) + Number(fields[12])) / 100
}

interface Told {
  readonly pid: number
  readonly thread: number
  readonly retained: number
}

/** The number of threads in the service: the main thread and the writer thread. */
const threadsMax = 2

const heapReports = (file: string, { process: { pid } }: Service): ReadonlyArray<Told> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Told)
        .filter((told) => told.pid === pid)
    : []

/** Requests full collections and waits for them. Returns each thread's retained memory in MB, main thread first. */
export const retainedOf = async (file: string, service: Service): Promise<ReadonlyArray<number>> => {
  const before = heapReports(file, service).length
  service.process.kill("SIGUSR2")
  for (let tries = 0; tries < 600; tries++) {
    const told = heapReports(file, service).slice(before)
    if (told.length === threadsMax)
      return told.toSorted((one, other) => one.thread - other.thread).map(({ retained }) => retained / 1024 / 1024)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error("the threads of the service reported no memory for a minute")
}

/** Returns a quantile of a sorted array, or 0 if the array is empty. */
export const part = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.floor(share * (sorted.length - 1))] ?? 0

export const metric = (text: string, name: string): number => Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1])
