/** Sends thousands of plans and shrinks every fault that it finds. */
import fc from "fast-check"
import type { Route } from "./Document.ts"
import { wrongIn } from "./Judge.ts"
import type { Wrong } from "./Judge.ts"
import { piecesOf } from "./Plan.ts"
import type { Plan } from "./Plan.ts"
import { plansOf } from "./Plans.ts"
import { exchange } from "./Wire.ts"
import type { Answer, Received } from "./Wire.ts"
import type { World } from "./World.ts"

export interface Found {
  readonly wrong: Wrong
  readonly plan: Plan
  readonly seed: number
}

export interface Counts {
  requests: number
  /** The number of responses by status. `closed`, `left` and `late` mean that there was no response. */
  readonly statuses: Map<string, number>
  readonly routes: Map<string, number>
  slowest_ms: number
}

export interface Options {
  readonly seed: number
  readonly requests: number
  readonly until?: number
  readonly workers: number
  /** Whether some clients wait many seconds until the service times out. */
  readonly patient: boolean
  /** Limits the run to routes with names that contain this string. */
  readonly route?: string
  readonly progress?: (counts: Counts) => void
  /** Called with each shrunk fault. */
  readonly told?: (found: Found) => void
}

/** The maximum duration of a response, in milliseconds. The service allows 20 seconds for a head, 15 for a body and a minute for an image. */
const limit_ms = 75_000

/** Returns whether the response is an event stream, which never ends. */
const isEndless = ({ headers, status }: Answer): boolean =>
  status === 200 && headers.get("content-type") === "text/event-stream"

const addressOf = (number: number): string => `127.${1 + (number >> 14)}.${(number >> 7) & 127}.${1 + (number & 127)}`

/** Sends a plan. Returns the response and its fault, if any. */
export const send = async (
  { document, known, routes, service }: World,
  plan: Plan
): Promise<{ received: Received; wrong: Wrong | undefined }> => {
  const route = routes.find(({ name }) => name === plan.route)!
  const received = await exchange({
    port: service.port,
    from: addressOf(plan.from),
    pieces: piecesOf(plan, known()),
    pause_ms: plan.pause_ms,
    end: plan.end,
    methods: Array.from({ length: plan.times }, () => plan.method),
    isEndless: route.path.endsWith("/events") ? isEndless : () => false,
    limit_ms
  })
  return { received, wrong: wrongIn(document, route, plan, received) }
}

/** The maximum number of requests for shrinking a fault. */
const shrinksMax = 150
/** The number of requests after which used resources are renewed. */
const renewedAfter = 2_500

export const run = async (
  world: World,
  options: Options
): Promise<{ readonly counts: Counts; readonly found: ReadonlyArray<Found> }> => {
  const counts: Counts = { requests: 0, statuses: new Map(), routes: new Map(), slowest_ms: 0 }
  const found: Array<Found> = []
  const kinds = new Set<string>()
  const routes = world.routes.filter(({ name }) => name.includes(options.route ?? ""))
  if (routes.length === 0) throw new Error(`no route's name contains ${options.route}`)
  const isOver = () => counts.requests >= options.requests || Date.now() > (options.until ?? Infinity)
  // Build the generators once, because building one costs more than sending its requests.
  const plans = new Map(
    routes.map((route) => [route.name, plansOf(world.document.components.schemas, route, options.patient)])
  )
  let renewed = 0
  let renewing: Promise<void> = Promise.resolve()

  const note = (route: string, received: Received) => {
    counts.requests++
    counts.routes.set(route, (counts.routes.get(route) ?? 0) + 1)
    counts.slowest_ms = Math.max(counts.slowest_ms, received.millis)
    const statuses =
      received.answers.length === 0 ? [received.end] : received.answers.map(({ status }) => String(status))
    for (const status of statuses) counts.statuses.set(status, (counts.statuses.get(status) ?? 0) + 1)
    options.progress?.(counts)
  }

  /** Sends a few plans for one route, generated from their own seed. */
  const fuzzRoute = async (route: Route, seed: number, most: number): Promise<void> => {
    let last: Found | undefined
    let sent = 0
    const property = fc.asyncProperty(plans.get(route.name)!, async (plan) => {
      if (last === undefined ? isOver() : ++sent > shrinksMax) return
      const { received, wrong } = await send(world, plan)
      note(route.name, received)
      if (wrong === undefined || kinds.has(wrong.kind) || (last !== undefined && last.wrong.kind !== wrong.kind)) return
      last = { wrong, plan, seed }
      throw new Error(wrong.kind)
    })
    await fc.check(property, { seed, numRuns: most, endOnFailure: false })
    if (last === undefined) return
    const known = last as Found
    if (!kinds.has(known.wrong.kind)) {
      found.push(known)
      options.told?.(known)
    }
    kinds.add(known.wrong.kind)
  }

  let turn = 0
  const work = async (): Promise<void> => {
    while (!isOver()) {
      await renewing
      if (counts.requests - renewed > renewedAfter) {
        renewed = counts.requests
        renewing = world.renew()
        continue
      }
      const now = turn++
      await fuzzRoute(routes[now % routes.length]!, (options.seed + now * 7_919) | 0, plansATurn)
    }
  }
  await Promise.all(Array.from({ length: options.workers }, work))
  return { counts, found }
}

const plansATurn = 8
