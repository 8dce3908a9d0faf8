// Starts child processes on fixed cores, exchanges messages with them, and reads their resource use from the kernel.
import { spawn, spawnSync } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = join(fileURLToPath(new URL(".", import.meta.url)), "..", "..")

// ---- processes ----------------------------------------------------------------------------------------------------------

export interface Cores {
  readonly served: string | undefined
  readonly driving: string | undefined
}

/** Selects one core for the process under test and one for the load. Both are `undefined` without `taskset` or with a single core. */
export const findCores = (): Cores => {
  const asked = spawnSync("taskset", ["-cp", String(process.pid)], { encoding: "utf8" })
  const list = asked.status === 0 ? expand(asked.stdout.split(":").pop()!.trim()) : []
  return list.length > 1 ? { served: list[0], driving: list[1] } : { served: undefined, driving: undefined }
}

const expand = (list: string): ReadonlyArray<string> =>
  list.split(",").flatMap((part) => {
    const [from, to = from] = part.split("-").map(Number) as [number, number?]
    return Array.from({ length: to - from + 1 }, (_, i) => String(from + i))
  })

const started = new Set<ChildProcess>()

/** Starts a Node process on a core. The process is killed when the benchmark ends. */
export const start = (
  core: string | undefined,
  args: ReadonlyArray<string>,
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly ipc?: boolean } = {}
): ChildProcess => {
  // `taskset` replaces itself with the command, so the pid is Node's.
  const [command, ...rest] =
    core === undefined ? [process.execPath, ...args] : ["taskset", "-c", core, process.execPath, ...args]
  const child = spawn(command!, rest, {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...options.env },
    stdio: options.ipc === false ? ["ignore", "pipe", "pipe"] : ["ignore", "inherit", "inherit", "ipc"]
  })
  started.add(child)
  child.once("exit", () => started.delete(child))
  return child
}

/** The Node options that `npm start` uses. */
export const nodeOptions = ["--max-semi-space-size=32"]

/** Starts a file of the benchmark as a process. `flags` are additional flags for Node. */
export const startPart = (
  core: string | undefined,
  file: string,
  args: ReadonlyArray<string> = [],
  flags: ReadonlyArray<string> = []
): ChildProcess =>
  start(core, [...nodeOptions, ...flags, "--import", "tsx", join(root, "scripts", "bench", file), ...args])

export const stop = async (child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once("exit", resolve))
  child.kill(signal)
  const timer = setTimeout(() => child.kill("SIGKILL"), 10_000)
  await ended
  clearTimeout(timer)
}

export const stopAll = (): Promise<unknown> => Promise.all([...started].map((child) => stop(child)))

process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL")
})

/** Buffers a process's output. The returned function returns its last 4,000 characters. */
export const tail = (child: ChildProcess): (() => string) => {
  let text = ""
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data) => (text = (text + data).slice(-4000)))
  return () => text
}

/** Sends a message, if any, to a part's process and resolves to its next message. Rejects if the process ends first. */
export const ask = <A>(child: ChildProcess, message?: object): Promise<A> =>
  new Promise((resolve, reject) => {
    const gone = () => reject(new Error(`${child.spawnargs.join(" ")} ended`))
    child.once("exit", gone)
    child.once("error", reject)
    child.once("message", (answer) => {
      child.off("exit", gone)
      child.off("error", reject)
      resolve(answer as A)
    })
    if (message !== undefined) child.send(message)
  })

/** Sends a message from a part's process to the benchmark. */
export const report = (message: object): void => {
  process.send?.(message)
}

export const endWithParent = (): void => {
  process.once("disconnect", () => process.exit(0))
}

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

export const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

// ---- kernel statistics --------------------------------------------------------------------------------------------------

/** Returns a process's CPU time so far, including its threads', in µs. The kernel counts in ticks of 10 ms. */
export const cpu = (pid: number): number => {
  const fields = known(pid, "stat")
    .replace(/^.*\) /s, "")
    .split(" ")
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10_000
}

/** Returns the CPU time of a process and its running descendants so far, in µs. */
export const cpuWithChildren = (pid: number): number =>
  childrenOf(pid).reduce((sum, child) => sum + cpuWithChildren(child), cpu(pid))

const childrenOf = (pid: number): ReadonlyArray<number> =>
  known(pid, `task/${pid}/children`).trim().split(/\s+/).filter(Boolean).map(Number)

/** The CPU time in ticks: of all processes, and of this process with its children. */
interface Spent {
  readonly possible: number
  readonly all: number
  readonly ours: number
}

const spent = (): Spent => {
  const [user, nice, system, idle, waiting, ...rest] = readFileSync("/proc/stat", "utf8")
    .split("\n")[0]!
    .trim()
    .split(/\s+/)
    .slice(1, 9)
    .map(Number) as [number, number, number, number, number, ...Array<number>]
  const all = [user, nice, system, ...rest].reduce((sum, ticks) => sum + ticks, 0)
  const children = new Map<number, Array<number>>()
  const ticks = new Map<number, number>()
  for (const name of readdirSync("/proc")) {
    const fields = /^\d+$/.test(name)
      ? known(Number(name), "stat")
          .replace(/^.*\) /s, "")
          .split(" ")
      : []
    if (fields.length < 15) continue
    children.set(Number(fields[1]), [...(children.get(Number(fields[1])) ?? []), Number(name)])
    // The CPU time of the process and of its children that have exited.
    ticks.set(
      Number(name),
      [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0)
    )
  }
  const sumOf = (pid: number): number =>
    (children.get(pid) ?? []).reduce((sum, child) => sum + sumOf(child), ticks.get(pid) ?? 0)
  return { possible: all + idle + waiting, all, ours: sumOf(process.pid) }
}

/**
 * Starts to observe the cores. The returned function returns other processes' share of all cores' time since then, from 0 to 1. A high share distorts
 * rates and CPU times.
 */
export const watchOthers = (): (() => number) => {
  const from = spent()
  return () => {
    const to = spent()
    return Math.max(0, to.all - from.all - (to.ours - from.ours)) / Math.max(1, to.possible - from.possible)
  }
}

/** Returns the resident memory of a process, in MB. */
export const memory = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(known(pid, "status"))?.[1] ?? 0) / 1024

// A process that has ended is not an error here, because its failed calls are reported.
const known = (pid: number, what: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${what}`, "utf8")
  } catch {
    return ""
  }
}
