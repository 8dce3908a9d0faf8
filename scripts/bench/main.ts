// The benchmark: drives the service, a floor, a plain proxy and a peer against one upstream in alternated rounds, and prints medians and
// their ratios beside what is to be reached. It does not judge times; it fails on errors and on wrong charges.
import { spawnSync } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import {
  ask,
  body,
  callPrice,
  credit,
  cpu,
  decisionBody,
  decisionPrice,
  findCores,
  median,
  memory,
  paced,
  pause,
  root,
  searchPath,
  searchPrice,
  sleep,
  startPart,
  stop,
  stopAll
} from "./common.ts"
import type { Target } from "./common.ts"
import { startGateway } from "./gateway.ts"
import type { Gateway, World } from "./gateway.ts"
import type { Charges } from "./ledger.ts"
import type { Order, Outcome } from "./load.ts"
import { startPeer } from "./peer.ts"
import type { Peer } from "./peer.ts"

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "4" },
    warmup: { type: "string", default: "4" },
    connections: { type: "string", default: "32" },
    only: { type: "string", multiple: true },
    dir: { type: "string", default: tmpdir() },
    json: { type: "string" },
    main: { type: "string" },
    "no-build": { type: "boolean", default: false },
    "no-peer": { type: "boolean", default: false },
    "no-gateway": { type: "boolean", default: false },
    help: { type: "boolean", default: false }
  }
})

const usageText = `npm run bench -- [options]
  --only chat|stream|tools|ledger   one part (may be repeated); all by default
  --rounds 5                  alternated rounds; medians are taken over them
  --seconds 4                 length of a measurement
  --warmup 4                  seconds of load before the first round; the peer needs three of them to reach its rate
  --connections 32            keep-alive connections of the load generator
  --dir <folder>              where the databases are put; should be a real disk, since fsync is part of the measure
  --main <file>               the service, where it is not dist/main.js: to compare two builds
  --json <file>               writes every measurement there too
  --no-build, --no-peer, --no-gateway`

const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
const warmup = Number(options.warmup)
const connections = Number(options.connections)
const wants = (part: string) => options.only === undefined || options.only.includes(part)

const cores = findCores()
const say = (text: string) => process.stderr.write(`${text}\n`)

// ---- measuring ----------------------------------------------------------------------------------------------------------

interface Contender extends Target {
  /** Calls that it served well so far: what its books must show. */
  served: number
  /** What they must have cost together, in nano-USD. */
  due: number
  idle: number
  peak: number
}

const contender = (target: Target): Contender => ({ ...target, served: 0, due: 0, idle: memory(target.pid), peak: 0 })

interface Run extends Outcome {
  /** µs of CPU time of the contender's process for each call. */
  readonly cpu: number
}

interface Measurement extends Run {
  readonly part: string
  readonly contender: string
}

const measurements: Array<Measurement> = []

const drive = async (
  load: ChildProcess,
  at: Contender,
  order: Partial<Order> & { stream: boolean },
  price = callPrice
): Promise<Run> => {
  const sampling = setInterval(() => (at.peak = Math.max(at.peak, memory(at.pid))), 250)
  const before = cpu(at.pid)
  const outcome = await ask<Outcome>(load, {
    port: at.port,
    path: "/v1/chat/completions",
    headers: at.headers,
    body: body(order.stream),
    connections,
    seconds,
    ...order
  })
  clearInterval(sampling)
  const spent = cpu(at.pid) - before
  at.served += outcome.calls
  at.due += outcome.calls * price
  // A rate with errors in it says nothing, so nothing is printed.
  if (outcome.failures > 0 || outcome.calls === 0) {
    const what = outcome.wrong.map((text) => `  ${text}`).join("\n")
    throw new Error(`${at.name}: ${outcome.failures} of ${outcome.failures + outcome.calls} calls FAILED\n${what}`)
  }
  return { ...outcome, cpu: spent / outcome.calls }
}

/** Whether the body is the upstream's, usage and all: a contender that answers something else is not compared. */
const checkBody = ({ sample }: Outcome, name: string): void => {
  const text = [...sample.matchAll(/"content": ?"([^"]*)"/g)].map((match) => match[1]).join("")
  if (text.endsWith("shows at once in the sum.") && /"prompt_tokens": ?12\b/.test(sample)) return
  throw new Error(`${name} does not answer what the upstream says: ${sample.slice(0, 400)}`)
}

interface Summary {
  readonly rate: number
  readonly low: number
  readonly high: number
  readonly cpu: number
  readonly p50: number
  readonly p99: number
}

const summary = (runs: ReadonlyArray<Run>): Summary => ({
  rate: median(runs.map((run) => run.rate)),
  low: Math.min(...runs.map((run) => run.rate)),
  high: Math.max(...runs.map((run) => run.rate)),
  cpu: median(runs.map((run) => run.cpu)),
  p50: median(runs.map((run) => run.p50)),
  p99: median(runs.map((run) => run.p99))
})

/** Rounds of A B C A B C: what the machine does to one of them it does to all. */
const alternate = async (
  load: ChildProcess,
  part: string,
  contenders: ReadonlyArray<Contender>,
  stream: boolean
): Promise<ReadonlyMap<string, Summary>> => {
  const runs = new Map(contenders.map(({ name }) => [name, [] as Array<Run>]))
  for (const one of contenders) {
    say(`${part}: warming up ${one.name}`)
    checkBody(await drive(load, one, { stream, seconds: warmup }), one.name)
  }
  for (let round = 1; round <= rounds; round++) {
    const line: Array<string> = []
    for (const one of contenders) {
      const run = await drive(load, one, { stream })
      runs.get(one.name)!.push(run)
      measurements.push({ part, contender: one.name, ...run, sample: "" })
      line.push(`${one.name} ${Math.round(run.rate)}`)
    }
    say(`${part}: round ${round} of ${rounds}: ${line.join(", ")}`)
  }
  return new Map([...runs].map(([name, of]) => [name, summary(of)]))
}

interface Added {
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly addedP50: number
  readonly addedP99: number
}

/** Latency at half the throughput that a contender reached, against the upstream's own at the same rate. */
const halfLoad = async (load: ChildProcess, direct: Contender, one: Contender, reached: number): Promise<Added> => {
  const rate = reached / 2
  const through: Array<Outcome> = []
  const straight: Array<Outcome> = []
  for (let round = 0; round < Math.min(rounds, 3); round++) {
    for (const [at, runs] of [
      [one, through],
      [direct, straight]
    ] as const) {
      const run = await drive(load, at, { stream: false, rate })
      runs.push(run)
      measurements.push({ part: `half load of ${one.name}`, contender: at.name, ...run, sample: "" })
    }
  }
  const of = (runs: ReadonlyArray<Outcome>, what: "p50" | "p99") => median(runs.map((run) => run[what]))
  say(`chat: half load of ${one.name}: ${Math.round(rate)}/s, p99 ${of(through, "p99").toFixed(2)} ms`)
  return {
    rate,
    p50: of(through, "p50"),
    p99: of(through, "p99"),
    addedP50: of(through, "p50") - of(straight, "p50"),
    addedP99: of(through, "p99") - of(straight, "p99")
  }
}

/** Milliseconds to the first byte and to the end of a stream in which the upstream pauses after its first bytes. */
const firstByte = async (
  load: ChildProcess,
  at: Contender
): Promise<{ readonly first: number; readonly end: number }> => {
  const runs: Array<Outcome> = []
  for (let i = 0; i < 3; i++) {
    runs.push(await drive(load, at, { stream: true, body: body(true, ` Answer ${paced}.`), connections: 1, calls: 1 }))
  }
  return { first: median(runs.map((run) => run.first)), end: median(runs.map((run) => run.p50)) }
}

// ---- the ledger ---------------------------------------------------------------------------------------------------------

const sides = ["raw", "same", "ours"] as const

const ledgerRates = async (directory: string): Promise<Readonly<Record<(typeof sides)[number], number>>> => {
  const rates = { raw: [] as Array<number>, same: [] as Array<number>, ours: [] as Array<number> }
  for (let round = 1; round <= rounds; round++) {
    for (const side of sides) {
      const folder = join(directory, `ledger-${side}-${round}`)
      mkdirSync(folder)
      const child = startPart(cores.served, "ledger.ts", side, folder, String(seconds))
      const { rate } = await ask<Charges>(child)
      await stop(child)
      rmSync(folder, { recursive: true, force: true })
      rates[side].push(rate)
    }
    say(
      `ledger: round ${round} of ${rounds}: ${sides.map((side) => `${side} ${Math.round(rates[side].at(-1)!)}`).join(", ")}`
    )
  }
  return { raw: median(rates.raw), same: median(rates.same), ours: median(rates.ours) }
}

// ---- printing -----------------------------------------------------------------------------------------------------------

const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const line = (row: ReadonlyArray<string>) =>
    `  ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("   ")}`.trimEnd()
  return [line(rows[0]!), `  ${"-".repeat(widths.reduce((a, b) => a + b + 3, -3))}`, ...rows.slice(1).map(line)].join(
    "\n"
  )
}

const print = (text: string) => process.stdout.write(`${text}\n`)
const count = (value: number) => Math.round(value).toLocaleString("en-US")
const ratio = (a: Summary | undefined, b: Summary | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : a.rate / b.rate
const shown = (value: number | undefined, unit: string, digits = 2): string =>
  value === undefined ? "-" : unit === "x" ? `x ${value.toFixed(digits)}` : `${value.toFixed(digits)} ${unit}`

const titles: Readonly<Record<string, string>> = {
  direct: "nothing (upstream directly)",
  plain: "plain node:http proxy, unmetered",
  floor: "floor: metered, durable, raw",
  gateway: "the service",
  peer: "peer: @portkey-ai/gateway, unmetered"
}

const printRates = (title: string, rates: ReadonlyMap<string, Summary>) => {
  print(`\n${title}\n`)
  const row = (name: string, s: Summary) => [
    titles[name] ?? name,
    count(s.rate),
    `${count(s.low)}..${count(s.high)}`,
    s.cpu.toFixed(0),
    s.p50.toFixed(2),
    s.p99.toFixed(2),
    shown(ratio(s, rates.get("floor")), "x"),
    shown(ratio(s, rates.get("peer")), "x")
  ]
  const head = ["through", "requests/s", "lowest..highest", "CPU µs", "p50 ms", "p99 ms", "of floor", "of peer"]
  print(table([head, ...[...rates].map(([name, s]) => row(name, s))]))
}

const reach: Array<readonly [what: string, measured: string, target: string]> = []

// ---- the parts ----------------------------------------------------------------------------------------------------------

const chatPart = async (load: ChildProcess, all: Contenders): Promise<void> => {
  const { direct, floor, gateway, peer, plain } = all
  const present = [direct, plain, floor, gateway, peer].filter((one) => one !== undefined)
  const rates = await alternate(load, "chat", present, false)
  const added = new Map<string, Added>()
  for (const one of [gateway, floor, peer]) {
    if (one !== undefined) added.set(one.name, await halfLoad(load, direct, one, rates.get(one.name)!.rate))
  }
  printRates("POST /v1/chat/completions, not streamed, closed loop", rates)
  print("\nThe same at half load, open loop; added: above the upstream's own at the same rate\n")
  const head = ["through", "requests/s", "p50 ms", "p99 ms", "added p50 ms", "added p99 ms"]
  print(
    table([
      head,
      ...[...added].map(([name, a]) => [
        titles[name]!,
        count(a.rate),
        ...[a.p50, a.p99, a.addedP50, a.addedP99].map((value) => value.toFixed(2))
      ])
    ])
  )
  const ours = rates.get("gateway")
  reach.push(
    ["1 chat, of the peer's unmetered rate", shown(ratio(ours, rates.get("peer")), "x"), ">= x 5, then x 7"],
    ["1 chat, of the floor", shown(ratio(ours, rates.get("floor")), "x"), ">= x 0.5, then x 0.8"],
    ["1 chat, added p99 at half load", shown(added.get("gateway")?.addedP99, "ms"), "< 12 ms, then 8"]
  )
}

/** What the peer says to a single stream: on Node 20 its npm build 1.15 answers 500 to every one. */
const brokenStream = (load: ChildProcess, peer: Contender): Promise<string | undefined> =>
  drive(load, peer, { stream: true, connections: 1, calls: 1 }).then(
    () => undefined,
    (error: unknown) => String(error).trim().split("\n").at(-1)!.trim()
  )

const streamPart = async (load: ChildProcess, all: Contenders): Promise<void> => {
  const { direct, floor, gateway, peer, plain } = all
  const broken = peer && (await brokenStream(load, peer))
  const present = [direct, plain, floor, gateway, broken === undefined ? peer : undefined].filter(
    (one) => one !== undefined
  )
  const rates = await alternate(load, "stream", present, true)
  printRates("POST /v1/chat/completions, streamed, closed loop", rates)
  if (broken !== undefined) {
    print(`\n  The peer is left out: it answers a stream on Node ${process.version} with ${broken}`)
    print("  What streams is compared with the floor and with the plain proxy instead.")
  }
  print(`\nA single stream in which the upstream pauses for ${pause} ms after its first bytes\n`)
  const rows: Array<ReadonlyArray<string>> = [["through", "first byte ms", "end ms"]]
  let first: number | undefined
  for (const one of present) {
    const times = await firstByte(load, one)
    if (one === gateway) first = times.first
    rows.push([titles[one.name]!, times.first.toFixed(2), times.end.toFixed(2)])
  }
  print(table(rows))
  const ours = rates.get("gateway")
  reach.push(
    ["2 stream, of the floor", shown(ratio(ours, rates.get("floor")), "x"), ">= x 0.5"],
    ["2 stream, of the plain proxy", shown(ratio(ours, rates.get("plain")), "x"), "(for reference)"],
    ["2 stream, first byte", shown(first, "ms"), `not held back: far below ${pause} ms`]
  )
}

const ledgerPart = async (directory: string): Promise<void> => {
  const { ours, raw, same } = await ledgerRates(directory)
  print("\nCharges at the ledger, reserve then settle, durable, 64 at a time\n")
  const row = (title: string, rate: number) => [title, count(rate), shown(rate / raw, "x"), shown(rate / same, "x")]
  print(
    table([
      ["side", "charges/s", "of raw", "of raw, same rows"],
      row("raw better-sqlite3, groups of 64, the floor's books", raw),
      row("raw better-sqlite3, groups of 64, the service's tables, nothing decided (same rows)", same),
      row("our ledger, 64 fibers", ours)
    ])
  )
  reach.push(["3 ledger, of the raw loop", shown(ours / raw, "x"), ">= x 0.7"])
}

/** Decisions and search: the floor and the service, each charged exactly. */
const toolsPart = async (load: ChildProcess, { floor, gateway }: Contenders): Promise<void> => {
  if (gateway === undefined) return
  const tools = [
    ["decisions", { path: "/v1/decisions", body: decisionBody }, decisionPrice],
    ["search", { path: searchPath, method: "GET", body: "" }, searchPrice]
  ] as const
  for (const [name, order, price] of tools) {
    const runs = new Map([floor, gateway].map((one) => [one.name, [] as Array<Run>]))
    for (const one of [floor, gateway]) await drive(load, one, { stream: false, seconds: warmup, ...order }, price)
    for (let round = 1; round <= rounds; round++) {
      for (const one of [floor, gateway]) {
        const run = await drive(load, one, { stream: false, ...order }, price)
        runs.get(one.name)!.push(run)
        measurements.push({ part: name, contender: one.name, ...run, sample: "" })
      }
      say(
        `${name}: round ${round} of ${rounds}: ${[...runs].map(([of, made]) => `${of} ${Math.round(made.at(-1)!.rate)}`).join(", ")}`
      )
    }
    const rates = new Map([...runs].map(([of, made]) => [of, summary(made)]))
    printRates(`${name}, closed loop`, rates)
    reach.push([`4 ${name}, of the floor`, shown(ratio(rates.get("gateway"), rates.get("floor")), "x"), ">= x 0.5"])
  }
}

interface Contenders {
  readonly direct: Contender
  readonly plain: Contender
  readonly floor: Contender
  readonly gateway: Contender | undefined
  readonly peer: Contender | undefined
}

const httpParts = async (directory: string): Promise<void> => {
  const upstreamProcess = startPart(cores.driving, "upstream.ts")
  const world = await ask<World>(upstreamProcess)
  const load = startPart(cores.driving, "load.ts")
  await ask(load)

  const floorDirectory = join(directory, "floor")
  mkdirSync(floorDirectory)
  const floorProcess = startPart(cores.served, "floor.ts", "metered", String(world.port), floorDirectory)
  const floor = await ask<{ readonly port: number; readonly key: string }>(floorProcess)
  const plainProcess = startPart(cores.served, "floor.ts", "plain", String(world.port))
  const plain = await ask<{ readonly port: number }>(plainProcess)

  let gateway: Gateway | undefined
  if (!options["no-gateway"]) gateway = await startGateway(cores, world, join(directory, "gateway"), options.main)
  if (gateway === undefined)
    say("the service is not there (neither dist/main.js nor src/main.ts, or --no-gateway): going on without it")
  else say(`the service runs from ${gateway.from}`)
  let peer: Peer | undefined
  if (!options["no-peer"]) {
    peer = await startPeer(cores, world.port).catch((error: unknown) => {
      print(`The peer could not be installed or started; going on without it: ${String(error)}`)
      return undefined
    })
  }
  if (peer !== undefined) say(`the peer is @portkey-ai/gateway ${peer.version}`)

  // What starting up has left behind is collected after some seconds of rest, and only then memory at rest is read.
  await sleep(20_000)
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
  const all: Contenders = {
    direct: contender({ name: "direct", port: world.port, headers: bearer("upstream-key"), pid: upstreamProcess.pid! }),
    plain: contender({ name: "plain", port: plain.port, headers: bearer("upstream-key"), pid: plainProcess.pid! }),
    floor: contender({ name: "floor", port: floor.port, headers: bearer(floor.key), pid: floorProcess.pid! }),
    gateway: gateway && contender(gateway),
    peer: peer && contender(peer)
  }

  if (wants("chat")) await chatPart(load, all)
  if (wants("stream")) await streamPart(load, all)
  if (wants("tools")) await toolsPart(load, all)

  print("\nMemory (resident, MB)\n")
  const remembered = [all.plain, all.floor, all.gateway, all.peer].filter((one) => one !== undefined)
  print(
    table([
      ["process", "idle", "under load"],
      ...remembered.map((one) => [titles[one.name]!, one.idle.toFixed(0), one.peak.toFixed(0)])
    ])
  )
  reach.push(
    ["6 memory, idle", shown(all.gateway?.idle, "MB", 0), "< 150 MB"],
    ["6 memory, under this load", shown(all.gateway?.peak, "MB", 0), "< 400 MB"]
  )

  print("\nThe books\n")
  const books = await ask<{ balance: number; reserved: number; records: number; collected: number }>(floorProcess, {})
  const { due } = all.floor
  if (
    books.collected !== due ||
    books.balance !== credit * 1e9 - due ||
    books.reserved !== 0 ||
    books.records !== all.floor.served
  ) {
    throw new Error(
      `WRONG CHARGE at the floor: ${all.floor.served} calls cost ${due} nano-USD, its books say ${JSON.stringify(books)}`
    )
  }
  print(`  floor: ${count(all.floor.served)} calls charged exactly`)
  if (gateway !== undefined) {
    print(`  the service: ${await gateway.check(all.gateway!.served, all.gateway!.due)}`)
    await gateway.stop()
  }
  await peer?.stop()
  for (const child of [floorProcess, plainProcess, load, upstreamProcess]) await stop(child)
}

// ---- the whole ----------------------------------------------------------------------------------------------------------

const build = (): void => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly scripts: Readonly<Record<string, string>>
  }
  if (options["no-build"] || options["no-gateway"] || scripts["build"] === undefined) return
  say("building")
  const { status } = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: ["ignore", 2, 2] })
  if (status !== 0) throw new Error("the build failed")
}

const main = async (): Promise<void> => {
  build()
  const directory = mkdtempSync(join(options.dir, "tollgate-bench-"))
  try {
    const pinned =
      cores.served === undefined
        ? "not pinned"
        : `service on core ${cores.served}, upstream and load on core ${cores.driving}`
    print(
      `Node ${process.version}, ${cpus().length} cores (${pinned}), ${connections} connections, medians over ${rounds} rounds of ${seconds} s`
    )
    // 0x01021994 is tmpfs.
    if (statfsSync(directory).type === 0x01021994)
      print(`NOTE: ${directory} is in memory, where fsync costs nothing; see --dir`)
    if (wants("chat") || wants("stream") || wants("tools")) await httpParts(directory)
    if (wants("ledger")) await ledgerPart(directory)
    print("\nTo reach (ratios within this run count; absolute figures do not carry over)\n")
    print(table([["what", "measured", "target"], ...reach]))
    if (options.json !== undefined) writeFileSync(options.json, JSON.stringify({ measurements, reach }, null, 2))
  } finally {
    await stopAll()
    rmSync(directory, { recursive: true, force: true })
  }
}

if (options.help) print(usageText)
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
