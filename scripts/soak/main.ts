/**
 * The service under half load for an hour: `npm run soak -- --minutes 60`
 *
 *   --minutes M    how long (60); the build must be there (`npm run build`)
 *   --callers N    how many call, each with a key and a connection of its own (1,000)
 *   --rate R       calls a second; half of what is answered at most, unless it is given
 *
 * A provider fails now and then, some callers leave, and the process is ended and started again, by SIGTERM and SIGKILL in turn. Each line is
 * an interval: what callers saw, and what the process uses. At the end every call that was acknowledged must be in the records, nothing may
 * be set aside, `tollgate verify` must hold, and memory, handles, the log of SQLite and latency must not have grown: of each the
 * last third of the intervals is compared with the first. In a run of less than half an hour latency is only told.
 */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { command } from "../../test/support/Service.ts"
import type { Service } from "../../test/support/Service.ts"
import { Callers } from "./Callers.ts"
import * as Deployment from "./Deployment.ts"
import * as Vendor from "./Vendor.ts"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    callers: { type: "string", default: "1000" },
    rate: { type: "string" }
  }
})
const minutes = Number(values.minutes)
const count = Number(values.callers)

const print = (text: string) => process.stdout.write(`${text}\n`)
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** Twenty intervals a run, of five seconds at least; the process is started again after every fifth. */
const interval = Math.max(5_000, (minutes * 60_000) / 20)
const restartedAfter = 5

interface Sample {
  readonly resident: number
  readonly handles: number
  readonly log: number
  readonly p50: number
  readonly p99: number
}

const sizeOf = (file: string): number => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) / 1024 / 1024

const sampleOf = ({ folder, process: { pid } }: Service, latencies: ReadonlyArray<number>): Sample => {
  const sorted = latencies.toSorted((one, other) => one - other)
  const at = (part: number) => sorted[Math.floor(part * (sorted.length - 1))] ?? 0
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  return {
    resident: Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024,
    handles: readdirSync(`/proc/${pid}/fd`).length,
    log: sizeOf(join(folder, "tollgate.db-wal")),
    p50: at(0.5),
    p99: at(0.99)
  }
}

const columns = ["minute", "calls/s", "p50 ms", "p99 ms", "MB", "handles", "log MB", "file MB", "others"]
const row = (cells: ReadonlyArray<string>) =>
  print(cells.map((cell, index) => (index === cells.length - 1 ? `  ${cell}` : cell.padStart(9))).join(""))

/** How much each may have grown from the first third to the last: a part of it, and something beside. */
const allowed: Readonly<Record<keyof Sample, readonly [part: number, beside: number]>> = {
  resident: [0.15, 15],
  handles: [0.05, 30],
  log: [0.25, 8],
  p50: [0.5, 5],
  p99: [1, 100]
}

const mean = (all: ReadonlyArray<number>): number => all.reduce((sum, one) => sum + one, 0) / all.length

/** Says of each measure whether it is flat; answers whether those are that must be. */
const judge = (samples: ReadonlyArray<Sample>): boolean => {
  const third = Math.floor(samples.length / 3)
  let isFlat = true
  for (const name of Object.keys(allowed) as ReadonlyArray<keyof Sample>) {
    const [first, last] = [samples.slice(0, third), samples.slice(-third)].map((some) =>
      mean(some.map((one) => one[name]))
    )
    const [part, beside] = allowed[name]
    const flat = last! <= first! * (1 + part) + beside
    print(
      `${name}: ${first!.toFixed(1)} in the first third, ${last!.toFixed(1)} in the last: ${flat ? "flat" : "GROWS"}`
    )
    if (!flat && (minutes >= 30 || !name.startsWith("p"))) isFlat = false
  }
  return isFlat
}

const settle = async (deployment: Deployment.Deployment, acknowledged: number): Promise<ReadonlyArray<string>> => {
  const wrong: Array<string> = []
  const service = deployment.service()
  const isOpen = async () => !/^tollgate_open_calls 0$/m.test((await service.call("/metrics")).body as string)
  for (let tries = 0; tries < 120 && (await isOpen()); tries++) await pause(500)
  if (await isOpen()) wrong.push("calls are open at rest")
  let recorded = 0
  for (const key of deployment.keys.slice(0, deployment.people.length)) {
    const path = "/v1/usage?start_time=2020-01-01T00:00:00Z&end_time=2100-01-01T00:00:00Z"
    recorded += (await service.call(path, { token: key })).body.successful_requests
  }
  print(`${acknowledged} calls were acknowledged, ${recorded} are recorded as successes`)
  if (recorded < acknowledged) wrong.push(`${acknowledged - recorded} acknowledged calls are not recorded`)
  const verified = await command(["verify"], { DATA_DIR: deployment.folder })
  print(verified.stdout.trim())
  if (verified.code !== 0) wrong.push(`verify: ${verified.stderr}`)
  return wrong
}

const vendor = await Vendor.make()
const deployment = await Deployment.make(vendor.url, count)
const callers = new Callers(deployment)
let isRight = false
try {
  callers.begin(count)
  await pause(3_000)
  callers.take()
  await pause(5_000)
  const most = callers.take().latencies.length / 5
  const rate = values.rate === undefined ? most / 2 : Number(values.rate)
  callers.at(rate)
  print(
    `${count} callers, ${most.toFixed(0)} calls/s at most, ${rate.toFixed(0)} from now on; ${(interval / 1000).toFixed(0)} s a line`
  )
  row(columns)
  await pause(2_000)
  callers.take()
  const samples: Array<Sample> = []
  for (let turn = 1; turn <= Math.max(6, Math.round((minutes * 60_000) / interval)); turn++) {
    await pause(interval)
    const { counts, latencies } = callers.take()
    const sample = sampleOf(deployment.service(), latencies)
    // What a start takes is told apart.
    if (turn % restartedAfter !== 1) samples.push(sample)
    const calls = [...counts.values()].reduce((sum, one) => sum + one, 0)
    const others = [...counts].filter(([name]) => name !== "200").map(([name, times]) => `${name}: ${times}`)
    const figures = [
      sample.p50,
      sample.p99,
      sample.resident,
      sample.handles,
      sample.log,
      sizeOf(join(deployment.folder, "tollgate.db"))
    ]
    row([
      ((turn * interval) / 60_000).toFixed(1),
      (calls / (interval / 1000)).toFixed(0),
      ...figures.map((one) => one.toFixed(1)),
      others.join(", ")
    ])
    if (turn % restartedAfter === 0) {
      const signal = turn % (2 * restartedAfter) === 0 ? "SIGKILL" : "SIGTERM"
      print(`   ${signal}: ready again after ${(await deployment.restart(signal)).toFixed(0)} ms`)
    }
  }
  await callers.end()
  const isFlat = judge(samples)
  const wrong = await settle(deployment, callers.acknowledged)
  for (const one of wrong) print(`WRONG: ${one}`)
  isRight = isFlat && wrong.length === 0
} finally {
  await deployment.end()
  vendor.close()
}
process.exitCode = isRight ? 0 : 1
