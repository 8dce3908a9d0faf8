// Measures the time from spawning the process to its first 200 from /healthz and from /readyz, on a folder with a database. It compares them with the
// times of an empty `node:http` server on the same runtime. It also measures the executable, if one has been built.
import { execFileSync, spawn } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { inject } from "postject"
import { inUnit, print, say, table } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"
import { startGateway } from "../gateway.ts"
import { median } from "../numbers.ts"
import { freePort, memory, nodeOptions, root, sleep, stop } from "../processes.ts"
import { startOutside } from "../world.ts"

/** The number of starts of each contender per round. */
const perRound = 3

interface Startable {
  readonly name: string
  readonly command: ReadonlyArray<string>
  readonly times: Array<number>
  /** The times until the first 200 from /readyz, in milliseconds. */
  readonly ready: Array<number>
  /** Resident memory when ready, in MB. */
  readonly sizes: Array<number>
}

const answers = (port: number, path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" })
    socket.once("connect", () => socket.write(`GET ${path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n`))
    socket.once("data", (data) => {
      resolve(data.toString("latin1").startsWith("HTTP/1.1 200"))
      socket.destroy()
    })
    socket.once("error", () => resolve(false))
    socket.once("close", () => resolve(false))
  })

const startOnce = async ({ command, name, ready, sizes, times }: Startable, env: NodeJS.ProcessEnv): Promise<void> => {
  const port = await freePort()
  const began = performance.now()
  const child = spawn(command[0]!, command.slice(1), {
    cwd: root,
    env: { ...process.env, ...env, PORT: String(port) },
    stdio: "ignore"
  })
  const first = async (path: string): Promise<number> => {
    while (!(await answers(port, path))) {
      if (child.exitCode !== null) throw new Error(`${name} exited with ${child.exitCode}`)
      await sleep(1)
    }
    return performance.now() - began
  }
  times.push(await first("/healthz"))
  ready.push(await first("/readyz"))
  sizes.push(memory(child.pid!))
  await stop(child)
}

// ---- the executable -----------------------------------------------------------------------------------------------------

const executable = join(root, "out", `tollgate-linux-${process.arch}`)

/**
 * Builds an empty server into one file, like the service's executable (`scripts/binary.ts`), with the same runtime. Returns `undefined` if the
 * service's executable has not been built.
 */
const emptyExecutable = async (directory: string): Promise<string | undefined> => {
  const cache = join(root, "node_modules", ".cache", "tollgate-binary")
  if (!existsSync(cache) || !existsSync(executable)) return undefined
  const runtime = readdirSync(cache).find((name) => name.startsWith(`node-linux-${process.arch}-`))
  if (runtime === undefined) return undefined
  const node = join(cache, runtime, "bin", "node")
  const configuration = join(directory, "sea.json")
  const blob = join(directory, "blob")
  const main = join(root, "scripts", "bench", "empty.cjs")
  writeFileSync(
    configuration,
    JSON.stringify({ main, output: blob, disableExperimentalSEAWarning: true, useCodeCache: true })
  )
  execFileSync(node, ["--experimental-sea-config", configuration], { stdio: "ignore" })
  const target = join(directory, "empty")
  copyFileSync(node, target)
  execFileSync("strip", [target], { stdio: "ignore" })
  await inject(target, "NODE_SEA_BLOB", readFileSync(blob), {
    sentinelFuse: "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2"
  })
  return target
}

// ---- the part -----------------------------------------------------------------------------------------------------------

const run = async ({ cores, directory, options, results }: Bench): Promise<void> => {
  const folder = join(directory, "start")
  mkdirSync(folder)
  // Start the service once to create the database, because this part measures restarts.
  const { load, outside, upstream } = await startOutside(cores)
  const service = await startGateway({ name: "gateway", main: options.main, cores, outside, directory: folder })
  await service.stop()
  for (const child of [load, upstream]) await stop(child)

  const serve = ["serve", "--config", join(folder, "config.json")]
  const one = (name: string, ...command: ReadonlyArray<string>): Startable => ({
    name,
    command,
    times: [],
    ready: [],
    sizes: []
  })
  const empty = await emptyExecutable(folder)
  const all = [
    one("empty node:http server", process.execPath, join(root, "scripts", "bench", "empty.cjs")),
    one("the service, dist/main.js", process.execPath, ...nodeOptions, options.main, ...serve),
    ...(empty === undefined
      ? []
      : [
          one("executable with an empty node:http server", empty),
          one("the service's executable", executable, ...serve)
        ])
  ]
  if (empty === undefined) say("start: skipping the executable, which has not been built (npm run binary)")
  const env = {
    NODE_ENV: "production",
    HOST: "127.0.0.1",
    DATA_DIR: join(folder, "data"),
    LOG_LEVEL: "error",
    BENCH_UPSTREAM_KEY: "upstream-key",
    MALLOC_ARENA_MAX: "2"
  }
  for (let round = 0; round <= options.rounds * perRound; round++) for (const each of all) await startOnce(each, env)
  // Drop each contender's first start, because it reads files from the disk.
  for (const { ready, times } of all) {
    times.shift()
    ready.shift()
  }

  const rows = all.map(({ name, ready, sizes, times }, i) => [
    name,
    inUnit(median(times), "ms", 0),
    `${Math.min(...times).toFixed(0)}..${Math.max(...times).toFixed(0)}`,
    inUnit(median(times) / median(all[i - (i % 2)]!.times), "x"),
    inUnit(median(ready), "ms", 0),
    inUnit(median(sizes), "MB", 0)
  ])
  print("\nFrom the spawn to the first 200 from /healthz and from /readyz, restarts on a folder with a database\n")
  print(
    table([
      ["process", "first response", "fastest..slowest", "relative to the empty server", "ready", "memory when ready"],
      ...rows
    ])
  )
  for (const { name, ready, times } of all) results.measurements.push({ part: "start", contender: name, times, ready })
  const [, , emptyOne, ours] = all
  const first = ours && median(ours.times)
  results.reach({
    what: "10 executable's first response, relative to an empty server",
    measured: first && first / median(emptyOne!.times),
    unit: "x",
    most: 2
  })
  results.reach({ what: "10 executable's first response", measured: first, unit: "ms", most: 200 })
}

export const start: Part = { name: "start", about: "the first response after a start", run }
