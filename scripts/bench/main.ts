// The benchmark. It drives the service, a floor, a plain proxy and a peer in alternating rounds, then prints medians and ratios next to the
// targets (see README.md). It fails on errors and wrong charges, but not on missed targets.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import type { Workload } from "./calls.ts"
import { buildCommit } from "./commit.ts"
import { print, Results, say } from "./frame.ts"
import type { Bench, Options, Part } from "./frame.ts"
import { runAgainst } from "./parts/against.ts"
import { callers, workloads as callersWorkloads } from "./parts/callers.ts"
import { chat, workloads as chatWorkloads } from "./parts/chat.ts"
import { consoleViews } from "./parts/console.ts"
import { connections, workloads as connectionsWorkloads } from "./parts/connections.ts"
import { disk } from "./parts/disk.ts"
import { growth } from "./parts/growth.ts"
import { large } from "./parts/large.ts"
import { ledger } from "./parts/ledger.ts"
import { log } from "./parts/log.ts"
import { memory } from "./parts/memory.ts"
import { open } from "./parts/open.ts"
import { postgres } from "./parts/postgres.ts"
import { protocols, workloads as protocolsWorkloads } from "./parts/protocols.ts"
import { prompts, workloads as promptsWorkloads } from "./parts/prompts.ts"
import { start } from "./parts/start.ts"
import { stream, workloads as streamWorkloads } from "./parts/stream.ts"
import { tools, workloads as toolsWorkloads } from "./parts/tools.ts"
import { findCores, root, stopAll, watchOthers } from "./processes.ts"
import { workers } from "./parts/workers.ts"
import { openWorld } from "./world.ts"
import type { World } from "./world.ts"

const parts: ReadonlyArray<Part> = [
  chat,
  callers,
  prompts,
  connections,
  stream,
  protocols,
  open,
  tools,
  ledger,
  disk,
  memory,
  start,
  large,
  growth,
  consoleViews,
  postgres,
  workers,
  log
]

/** Parts that run only on request. */
const onDemand = new Set(["large", "growth", "console", "postgres", "workers", "log"])

/** The workloads that `--against` can drive on two builds. */
const comparable: Readonly<Record<string, (options: Options) => ReadonlyArray<Workload>>> = {
  chat: chatWorkloads,
  callers: callersWorkloads,
  prompts: promptsWorkloads,
  connections: connectionsWorkloads,
  stream: streamWorkloads,
  protocols: protocolsWorkloads,
  tools: toolsWorkloads
}

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    against: { type: "string" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "2" },
    warmup: { type: "string", default: "4" },
    connections: { type: "string", default: "32" },
    calls: { type: "string" },
    labels: { type: "string", default: "0" },
    keep: { type: "string" },
    dir: { type: "string", default: tmpdir() },
    json: { type: "string" },
    main: { type: "string" },
    "no-build": { type: "boolean", default: false },
    "no-peer": { type: "boolean", default: false },
    help: { type: "boolean", default: false }
  }
})

const usageText = `npm run bench -- [options]
  --only <part>               run only this part (may be repeated):
${parts.map(({ about, name }) => `      ${name.padEnd(12)} ${about}`).join("\n")}
  --against <commit|main.js>  compare this build with another, alternating every second (${Object.keys(comparable).join(", ")})
  --rounds <n>                number of alternating rounds over which medians are computed (default: 5)
  --seconds <n>               length of each measurement (default: 2)
  --warmup <n>                seconds of load before the first round; the peer needs three to reach full speed (default: 4)
  --connections <n>           number of keep-alive connections that the load generator opens (default: 32)
  --calls <n>                 calls that growth and console insert (default: 5000000), or charges in the log that log builds (default: 500000)
  --labels <n>                number of distinct tags and end users in the first tenant's calls, for growth (default: 0)
  --keep <folder>             keep the database of growth or console in this folder for the next run
  --dir <folder>              create the databases in this folder, on a real disk because fsync is measured (default: ${tmpdir()})
  --main <main.js>            measure this service (default: dist/main.js)
  --json <file>               also write every measurement to this file
  --no-build, --no-peer`

const options: Options = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  warmup: Number(values.warmup),
  connections: Number(values.connections),
  main: values.main === undefined ? join(root, "dist", "main.js") : resolve(values.main),
  peer: !values["no-peer"],
  calls: Number(values.calls ?? 5_000_000),
  entries: Number(values.calls ?? 500_000),
  labels: Number(values.labels),
  keep: values.keep === undefined ? undefined : resolve(values.keep)
}

const selectByName = <A extends { readonly name: string }>(all: ReadonlyArray<A>): ReadonlyArray<A> => {
  const missing = values.only?.find((name) => !all.some((one) => one.name === name))
  if (missing !== undefined)
    throw new Error(`there is no part ${missing}, only ${all.map(({ name }) => name).join(", ")}`)
  return values.only === undefined
    ? all.filter(({ name }) => !onDemand.has(name))
    : all.filter(({ name }) => values.only!.includes(name))
}

const build = (): void => {
  if (values["no-build"]) return
  say("building")
  const { status } = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: ["ignore", 2, 2] })
  if (status !== 0) throw new Error("the build failed")
}

const main = async (): Promise<void> => {
  build()
  const directory = mkdtempSync(join(values.dir, "tollgate-bench-"))
  const cores = findCores()
  const results = new Results()
  let world: Promise<World> | undefined
  const bench: Bench = {
    options,
    cores,
    directory,
    world: () => (world ??= openWorld(cores, options, { directory, peer: options.peer })),
    results
  }
  try {
    const pinned =
      cores.served === undefined
        ? "not pinned"
        : `service on core ${cores.served}, upstream and load on core ${cores.driving}`
    print(
      `Node ${process.version}, ${cpus().length} cores (${pinned}), medians over ${options.rounds} rounds of ${options.seconds} s`
    )
    // 0x01021994 is tmpfs.
    if (statfsSync(directory).type === 0x01021994)
      print(`NOTE: ${directory} is in memory, where fsync costs nothing; see --dir`)
    if (values.against !== undefined) {
      const names = selectByName(Object.keys(comparable).map((name) => ({ name }))).map(({ name }) => name)
      const workloads = names.flatMap((name) => comparable[name]!(options))
      if (values.against.endsWith(".js")) return await runAgainst(bench, resolve(values.against), workloads)
      const { main: other, remove } = buildCommit(values.against, directory)
      try {
        return await runAgainst(bench, other, workloads)
      } finally {
        remove()
      }
    }
    for (const part of selectByName(parts)) {
      const others = watchOthers()
      await part.run(bench)
      print(`\n  other processes used ${(others() * 100).toFixed(0)} % of the machine during the run`)
    }
    await (await world)?.close()
    results.print()
    if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(results, null, 2))
  } finally {
    await stopAll()
    rmSync(directory, { recursive: true, force: true })
  }
}

if (values.help) print(usageText)
else {
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void stopAll().then(() => process.exit(130)))
  try {
    await main()
  } catch (error) {
    say(`\nBENCH FAILED: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}
