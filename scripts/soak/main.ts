/**
 * Runs the service under half of its maximum load for an hour: `npm run soak -- --minutes 60`
 *
 * --minutes M      how long to run (60); requires a build (`npm run build`)
 * --callers N      number of callers, each with its own key and connection (1,000)
 * --rate R         calls per second; by default, half of the maximum rate
 * --lives A,B,C    relative lengths of the process's lives, separated by restarts
 * --snapshots A,B  writes heap snapshots of the main thread at these minutes of each life, and prints their paths
 *
 * In the meantime, a provider sometimes fails, some callers disconnect early, and another program holds the write lock for three seconds. The process
 * is ended and restarted, alternately by SIGTERM and SIGKILL. A life is the time between restarts. Each line covers an interval and lists the
 * callers' observations and the process's resource use. There are two figures for memory: the resident size, and the heaps of the main thread and the
 * writer after full collections. For the latter, new calls pause for some seconds. At the end, every acknowledged call must be recorded, nothing may
 * be reserved or open, `tollgate verify` must succeed, and memory, handles, SQLite's log and latency must be flat (`Verdict`). Direct calls to the
 * vendor, each between two writes to the disk, show whether a slow minute was caused by the service or by the machine. In a run of less than ten
 * minutes, only the upper limits apply.
 */
import { parseArgs } from "node:util"
import { command } from "../../test/support/Service.ts"
import { Callers } from "./Callers.ts"
import * as Deployment from "./Deployment.ts"
import { booksOf, handlesOf, logOf, metric, part, residentOf, retainedOf, secondsOf } from "./Measure.ts"
import * as Vendor from "./Vendor.ts"
import { findings, median } from "./Verdict.ts"
import type { Sample } from "./Verdict.ts"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    callers: { type: "string", default: "1000" },
    rate: { type: "string" },
    lives: { type: "string" },
    snapshots: { type: "string" }
  }
})
const minutes = Number(values.minutes)
const count = Number(values.callers)
const isShort = minutes < 10

const print = (text: string) => process.stdout.write(`${text}\n`)
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** The length of an interval, in seconds. */
const interval = isShort ? 10 : 60

/** The share of the run that each life gets. In a long run, the middle life gets half of the time, to reveal slow growth. */
const lives = (values.lives ?? (isShort ? "1,1,1" : "1,1,1,6,1,1,1")).split(",").map(Number)

/** Another process locks the database during this interval of each life. */
const lockedIn = 2
/** The lock duration, in milliseconds. */
const locked_ms = 3_000

/** In every `measureEvery`th interval and a life's last one, new calls pause until no call is open, and memory is measured. */
const measureEvery = 2

/** How long the vendor keeps idle connections open, in milliseconds. Some of these connections belong to this script. */
const idle_ms = 90_000
const idleMax = 16

const columns = [
  "minute",
  "calls/s",
  "p50 ms",
  "p99 ms",
  "vendor ms",
  "CPU %",
  "µs per call",
  "main MB",
  "writer MB",
  "resident",
  "handles"
]
const row = (cells: ReadonlyArray<string>) =>
  print(cells.map((cell, index) => (index === columns.length + 2 ? `  ${cell}` : cell.padStart(10))).join(""))

const vendor = await Vendor.make()
const deployment = await Deployment.make({
  vendor: vendor.url,
  callers: count,
  snapshots: values.snapshots
})
const callers = new Callers(deployment)
const samples: Array<Sample> = []
const began = performance.now()
const handlesAtFirst = handlesOf(deployment.service())
/** The process's resources, and the time, at the start of the interval. */
let seconds = 0
let seenAt = 0

const gauges = ["tollgate_open_calls", "tollgate_reserved_usd", "tollgate_unsettled_calls"] as const

/** Describes the work that is still open. */
const openWork = async (): Promise<ReadonlyArray<string>> => {
  const text = (await deployment.service().call("/metrics")).body as string
  return gauges.flatMap((name) => (metric(text, name) === 0 ? [] : [`${name} is ${metric(text, name)} at rest`]))
}

/** Waits until a condition holds or `millis` have passed. */
const waitFor = async (is: () => Promise<boolean>, millis: number): Promise<void> => {
  const until = performance.now() + millis
  while (!(await is()) && performance.now() < until) await pause(250)
}

/** Pauses the callers, then measures memory after full collections while no call is open. */
const measureRetained = async (): Promise<ReadonlyArray<number>> => {
  const service = deployment.service()
  let threads: ReadonlyArray<number> = []
  await callers.holding(async () => {
    await waitFor(async () => (await openWork()).length === 0, 15_000)
    threads = await retainedOf(deployment.memory, service)
  })
  return threads
}

const sample = async (life: number, bornAt: number, isRested: boolean): Promise<void> => {
  const service = deployment.service()
  const { counts, direct, latencies } = callers.take()
  const sorted = latencies.toSorted((one, other) => one - other)
  const elapsed = (performance.now() - seenAt) / 1000
  const used = secondsOf(service) - seconds
  const calls = [...counts.values()].reduce((sum, times) => sum + times, 0)
  const measured = {
    life,
    age: (performance.now() - bornAt) / 60_000,
    resident: residentOf(service),
    handles: handlesOf(service) - handlesAtFirst,
    log: logOf(service),
    p50: part(sorted, 0.5),
    p99: part(sorted, 0.99),
    direct: direct.length === 0 ? 0 : median(direct)
  }
  const threads = isRested ? await measureRetained() : []
  samples.push({ ...measured, retained: isRested ? threads.reduce((sum, size) => sum + size, 0) : undefined })
  const others = [...counts].filter(([name]) => name !== "200").map(([name, times]) => `${name}: ${times}`)
  const { handles, log, p50, p99, resident } = measured
  row([
    ((performance.now() - began) / 60_000).toFixed(1),
    (calls / elapsed).toFixed(0),
    p50.toFixed(1),
    p99.toFixed(0),
    measured.direct.toFixed(1),
    ((100 * used) / elapsed).toFixed(0),
    ((1_000_000 * used) / Math.max(1, calls)).toFixed(0),
    ...[0, 1].map((thread) => threads[thread]?.toFixed(1) ?? ""),
    resident.toFixed(0),
    String(handles),
    log.toFixed(1),
    booksOf(service).toFixed(0),
    others.join(", ")
  ])
  // Discard the callers' observations from the collections.
  callers.take()
  seconds = secondsOf(service)
  seenAt = performance.now()
}

/** Runs one life of the process, and locks its database once. */
const live = async (life: number, millis: number): Promise<void> => {
  const bornAt = performance.now()
  seconds = secondsOf(deployment.service())
  seenAt = bornAt
  const turns = Math.max(1, Math.round(millis / (interval * 1_000)))
  for (let turn = 1; turn <= turns; turn++) {
    if (turn === lockedIn) await deployment.lock(locked_ms)
    await pause(bornAt + turn * interval * 1_000 - performance.now())
    await sample(life, bornAt, turn % measureEvery === 0 || turn === turns)
  }
}

/** Checks the state after all callers have stopped and returns the faults. */
const finalFaults = async (): Promise<ReadonlyArray<string>> => {
  const wrong: Array<string> = []
  const service = deployment.service()
  await waitFor(async () => (await openWork()).length === 0, 60_000)
  wrong.push(...(await openWork()), ...deployment.faults())
  let recorded = 0
  // Use one key of each user, except the user whose callers disconnect early.
  for (const key of deployment.keys.slice(0, deployment.people.length - 1)) {
    const path = "/v1/usage?start_time=2020-01-01T00:00:00Z&end_time=2100-01-01T00:00:00Z"
    recorded += (await service.call(path, { token: key })).body.successful_requests
  }
  print(`${callers.acknowledged} calls were acknowledged, ${recorded} are recorded as successes`)
  if (recorded < callers.acknowledged)
    wrong.push(`${callers.acknowledged - recorded} acknowledged calls are not recorded`)
  const handles = () => handlesOf(service) - handlesAtFirst
  await waitFor(async () => handles() <= idleMax, idle_ms)
  print(`${handlesOf(service)} handles are open at rest; before the first call there were ${handlesAtFirst}`)
  if (handles() > idleMax) wrong.push(`${handles()} handles were left open`)
  const verified = await command(["verify"], { DATA_DIR: deployment.folder })
  print(verified.stdout.trim())
  if (verified.code !== 0) wrong.push(`verify: ${verified.stderr}`)
  return wrong
}

/** Measures the maximum rate and returns half of it, in calls per second. */
const halfMaxRate = async (): Promise<number> => {
  await pause(3_000)
  callers.take()
  await pause(5_000)
  const rate = callers.take().latencies.length / 5 / 2
  callers.at(rate)
  return rate
}

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void deployment.end().finally(() => process.exit(1)))

let isRight = false
try {
  if (values.rate !== undefined) callers.at(Number(values.rate))
  callers.begin(count)
  const rate = values.rate === undefined ? await halfMaxRate() : Number(values.rate)
  print(`${count} callers, ${rate.toFixed(0)} calls/s, one line per ${interval} s; log and file in MB`)
  row([...columns, "log", "file", "  others"])
  await pause(2_000)
  callers.take()
  const parts = lives.reduce((sum, one) => sum + one, 0)
  for (const [life, one] of lives.entries()) {
    if (life > 0) {
      const signal = life % 2 === 1 ? "SIGTERM" : "SIGKILL"
      print(`   ${signal}: ready again after ${(await deployment.restart(signal)).toFixed(0)} ms`)
    }
    await live(life, (minutes * 60_000 * one) / parts)
  }
  await callers.end()
  const found = findings(samples, count)
  for (const { flat, what } of found) print(`${flat ? "flat" : "GROWS"}: ${what}`)
  const wrong = await finalFaults()
  for (const one of wrong) print(`WRONG: ${one}`)
  if (values.snapshots !== undefined) print(`snapshots: ${deployment.memory}-*.heapsnapshot`)
  isRight = found.every(({ flat }) => flat) && wrong.length === 0
  print(isRight ? "the soak test passed" : "THE SOAK TEST FAILED")
} finally {
  await deployment.end()
  vendor.close()
}
process.exitCode = isRight ? 0 : 1
