// Runs several nodes on one local PostgreSQL server, with a provider and API keys, and checks the database once all calls have ended.
import { spawnSync } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"
import { startServer } from "../../test/support/postgres.ts"
import { count, print } from "../bench/frame.ts"
import { configuration, makeKey, operate, signIn } from "../bench/gateway.ts"
import type { Outside } from "../bench/gateway.ts"
import { ask, freePort, nodeOptions, root, sleep, start, startPart, stop, stopAll, tail } from "../bench/processes.ts"

const main = join(root, "dist", "main.js")

/** How long a killed node's reservations may remain, in milliseconds: its lease, plus the minute between checks by other nodes. */
const leftoverLimit = 100_000

export interface Node {
  readonly name: string
  readonly port: number
  child: ChildProcess
}

const isReady = async (port: number): Promise<boolean> =>
  (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok === true

/** Waits for a condition. Returns the waiting time in milliseconds. Throws after `limit`. */
export const until = async (what: string, holds: () => Promise<boolean>, limit = 60_000): Promise<number> => {
  const from = performance.now()
  while (!(await holds())) {
    if (performance.now() - from > limit) throw new Error(`${what}: did not happen within ${limit / 1000} s`)
    await sleep(100)
  }
  return performance.now() - from
}

export const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

/** Starts the server, three nodes and the provider, with their data in a directory. */
export const deploy = async (directory: string) => {
  // If the script runs as root, the server runs as another user.
  chmodSync(directory, 0o755)
  const server = await startServer([], directory)
  const books = new Client(server.url)
  await books.connect()
  await books.query("CREATE DATABASE tollgate")
  await books.end()
  const database = server.url.replace(/postgres$/, "tollgate")
  const outside = await ask<Outside>(startPart(undefined, "upstream.ts"))
  const file = join(directory, "tollgate.json")
  writeFileSync(file, JSON.stringify(configuration(outside), null, 2))

  const envOf = (name: string, port: number) => ({
    HOST: "127.0.0.1",
    PORT: String(port),
    DATA_DIR: join(directory, name.replace(" ", "-")),
    DATABASE_URL: database,
    NODE_NAME: name,
    TOLLGATE_SECRET: "the one secret of all these nodes",
    BENCH_UPSTREAM_KEY: "upstream-key",
    LOG_LEVEL: "error"
  })
  const startNode = async (name: string, port: number): Promise<Node> => {
    const child = start(undefined, [...nodeOptions, main, "serve", "--config", file], {
      env: envOf(name, port),
      ipc: false
    })
    const said = tail(child)
    await until(`${name} is ready`, async () => {
      if (child.exitCode !== null) throw new Error(`${name} ended: ${said()}`)
      return isReady(port)
    })
    return { name, port, child }
  }
  const nodes: Array<Node> = []
  for (const name of ["node 1", "node 2", "node 3"]) nodes.push(await startNode(name, await freePort()))

  const keysAt = async (base: string): Promise<ReadonlyArray<string>> => {
    const keys: Array<string> = []
    for (let i = 0; i < 4; i++)
      keys.push((await makeKey(base, await signIn(base, outside, `caller${i}@example.com`))).key)
    return keys
  }

  /** Waits until no reservations remain, checks the charges, and ends the nodes and the server. Throws if charges are missing or duplicated. */
  const settle = async ({ acknowledged, unanswered }: Counted): Promise<void> => {
    const reader = new Client(database)
    await reader.connect()
    const number = async (text: string) =>
      Number((await reader.query<{ n: string }>(`SELECT (${text})::text AS n`)).rows[0]!.n)
    const open = () => number("SELECT count(*) FROM tollgate_ledger_reservations")
    print(`\nAll callers have stopped; ${await open()} reservations are open.`)
    const freed = await until(
      "reservations of killed nodes are released",
      async () => (await open()) === 0,
      leftoverLimit
    )
    print(`All of them were released after ${seconds(freed)}.`)
    const charged = await number("SELECT count(*) FROM tollgate_usage_records WHERE success = 1")
    await reader.end()
    print(
      `Callers got ${count(acknowledged)} responses with 200 and ${count(unanswered)} other results; the database has ${count(charged)} successful calls.`
    )
    const verified = await operate(main, envOf("node 1", nodes[0]!.port), "verify")
    print(`verify: ${verified.trim().split("\n").at(-1)}`)
    for (const { child } of nodes) await stop(child)
    await server.stop()
    if (charged < acknowledged) throw new Error(`${acknowledged - charged} acknowledged charges are LOST`)
    if (charged > acknowledged + unanswered) throw new Error(`${charged - acknowledged - unanswered} charges TOO MANY`)
    print("No charge was lost, and no call was charged twice.")
  }

  return { server, database, nodes, startNode, keysAt, settle }
}

interface Counted {
  readonly acknowledged: number
  readonly unanswered: number
}

/** Builds the service if necessary and calls `run` with a temporary directory. Then stops all processes, removes the directory and exits. */
export const within = async (run: (directory: string) => Promise<void>): Promise<never> => {
  if (!existsSync(main)) spawnSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: ["ignore", 2, 2] })
  const directory = mkdtempSync(join(tmpdir(), "tollgate-nodes-"))
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void stopAll().then(() => process.exit(130)))
  try {
    await run(directory)
  } catch (error) {
    print(`\nFAILED: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  } finally {
    await stopAll()
    rmSync(directory, { recursive: true, force: true })
  }
  return process.exit()
}
