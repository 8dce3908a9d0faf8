/** Checks that an idle service has no open reservations or calls, does not leak resources, and passes verification. */
import { readdirSync, readFileSync } from "node:fs"
import { command } from "../../test/support/Service.ts"
import type { Service } from "../../test/support/Service.ts"

export interface AtRest {
  readonly wrong: ReadonlyArray<string>
  /** A description of the process's resource use. */
  readonly used: string
}

/** The maximum resident memory at rest after any number of requests, in MB. */
const residentMax = 700

const handlesOf = ({ process: { pid } }: Service): number => readdirSync(`/proc/${pid}/fd`).length

const residentOf = ({ process: { pid } }: Service): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

const figure = (metrics: string, name: string): number => Number(new RegExp(`^${name} (.*)$`, "m").exec(metrics)?.[1])

/** The number of connections that may stay open for some time, to vendors and from the sandbox's own clients. */
const idleMax = 16

/** Matches an expected log line. A signed payment for an unknown tenant is not a service fault. */
const expected = /"received a payment for a tenant that does not exist"/

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Waits up to two minutes for a condition. Returns whether it holds. The service closes idle keep-alive connections after 65 seconds. */
const becomes = async (is: () => Promise<boolean>): Promise<boolean> => {
  for (let tries = 0; tries < 480; tries++) {
    if (await is()) return true
    await pause(250)
  }
  return false
}

/** Records the process's state. The returned function waits until the service is idle, then checks it. `hangUp` closes idle connections. */
export const restOf = (service: Service, hangUp = () => {}): (() => Promise<AtRest>) => {
  const handles = handlesOf(service)
  return () => rest(service, handles, hangUp)
}

const rest = async (service: Service, handles: number, hangUp: () => void): Promise<AtRest> => {
  const wrong: Array<string> = []
  const metrics = async (): Promise<string> => (await service.call("/metrics")).body
  const gauges = ["tollgate_open_calls", "tollgate_reserved_usd", "tollgate_unsettled_calls"] as const
  const isQuiet = await becomes(async () => {
    const text = await metrics()
    return gauges.every((name) => figure(text, name) === 0)
  })
  const text = await metrics()
  if (!isQuiet)
    wrong.push(`calls are open at rest: ${gauges.map((name) => `${name} ${figure(text, name)}`).join(", ")}`)
  hangUp()
  const isClosed = await becomes(async () => handlesOf(service) <= handles + idleMax)
  if (!isClosed) wrong.push(`${handlesOf(service)} handles are open at rest, but ${handles} were at the start`)
  if (residentOf(service) > residentMax) wrong.push(`${residentOf(service).toFixed(0)} MB are resident at rest`)
  const errors = service.stderr
    .join("")
    .split("\n")
    .filter((line) => /"logLevel":"(?:ERROR|FATAL)"/.test(line) && !expected.test(line))
  if (errors.length > 0) wrong.push(`${errors.length} errors were logged, starting with: ${errors[0]!.slice(0, 2_000)}`)
  const verified = await command(["verify"], { DATA_DIR: service.folder })
  if (verified.code !== 0) wrong.push(`verify: ${verified.stdout}${verified.stderr}`)
  return {
    wrong,
    used: `${residentOf(service).toFixed(0)} MB resident, ${handlesOf(service)} handles (${handles} at the start)`
  }
}
