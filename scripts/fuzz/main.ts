/**
 * Sends hostile requests, vendor responses or payment events, generated from a seed: `npm run fuzz -- ...`
 *
 * (neither)           requests of all kinds, for each route of `/openapi.json` and each credential
 * --vendors           wrong responses from vendors, in every protocol
 * --webhooks          events from the payment processor: forged, corrupted, duplicated, out of order
 *
 * --requests N        number of requests (10,000)
 * --seed S            the seed, which every run prints
 * --route TEXT        only routes, or calls to vendors, whose name contains this string, such as "POST /v1/chat"
 * --replay FILE       sends a saved plan (`fuzz-*.json`) and prints the result
 * --patient           some clients stall until the service times out, which takes up to 25 seconds each
 * --workers N         concurrent requests (12)
 *
 * Each response must have a documented status and content type, and a body that is valid for its schema. No response may be a 500 caused by a fault
 * in the service, or reveal an internal detail. Each request must get a response or a closed connection within a bounded time. At the end, no
 * reservation, call or handle may be open, the log must not contain errors, memory must be bounded, and `tollgate verify` must succeed. A violation
 * is shrunk (fast-check), printed and saved in a file. The tests run part of this script (`test/fuzz`).
 */
import { readFileSync, writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { bytesOf } from "./Plan.ts"
import type { Plan } from "./Plan.ts"
import type { AtRest } from "./Rest.ts"
import * as Requests from "./Run.ts"
import * as RequestsWorld from "./World.ts"
import * as Vendors from "./vendors/Run.ts"
import * as VendorsWorld from "./vendors/World.ts"
import * as Webhooks from "./webhooks/Run.ts"
import * as WebhooksWorld from "./webhooks/World.ts"

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "10000" },
    seed: { type: "string" },
    route: { type: "string" },
    replay: { type: "string" },
    patient: { type: "boolean", default: false },
    vendors: { type: "boolean", default: false },
    webhooks: { type: "boolean", default: false },
    workers: { type: "string", default: "12" }
  }
})

const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed)
const requests = Number(values.requests)
const workers = Number(values.workers)

const print = (text: string) => process.stdout.write(`${text}\n`)

/** Formats the first 2,000 bytes as text, with one line per HTTP line. */
const shown = (bytes: Buffer): string =>
  JSON.stringify(bytes.toString("latin1").slice(0, 2_000))
    .slice(1, -1)
    .replaceAll(String.raw`\r\n`, "\\r\\n\n      ")
    .replaceAll(String.raw`\"`, '"')

const table = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, count]) => `${name}: ${count}`)
    .join(", ")

const progress = (): ((count: number, statuses: ReadonlyMap<string, number>) => void) => {
  let told = Date.now()
  return (count, statuses) => {
    if (Date.now() - told < 30_000) return
    told = Date.now()
    print(`  ${count}; ${table(statuses)}`)
  }
}

let files = 0

/** Saves a plan to a file and returns a line with the command that replays it. */
const kept = (plan: unknown, flag: string): string => {
  const file = `fuzz-${seed}-${++files}.json`
  writeFileSync(file, `${JSON.stringify(plan, undefined, 2)}\n`)
  return `  to repeat: npm run fuzz --${flag} --replay ${file}`
}

const planIn = <A>(): A => JSON.parse(readFileSync(values.replay!, "utf8")) as A

const told = (faults: number, { used, wrong }: AtRest): boolean => {
  for (const one of wrong) print(`WRONG at rest: ${one}`)
  print(`at rest: ${used}`)
  return faults === 0 && wrong.length === 0
}

// ---- requests -------------------------------------------------------------------------------------------------------------------

const ofRequests = async (): Promise<boolean> => {
  const world = await RequestsWorld.make()
  try {
    if (values.replay !== undefined) return await replay(world)
    print(`seed ${seed}, ${requests} requests to ${world.routes.length} routes`)
    const began = performance.now()
    const report = progress()
    const { counts, found } = await Requests.run(world, {
      seed,
      requests,
      workers,
      patient: values.patient,
      ...(values.route !== undefined && { route: values.route }),
      progress: (counts) => report(counts.requests, counts.statuses),
      told: ({ plan, seed, wrong }) => {
        print(`WRONG: ${wrong.kind}\n    ${wrong.what}`)
        const ways = `${plan.times > 1 ? `, ${plan.times} times concurrently` : ""}${plan.pieces > 1 ? `, in ${plan.pieces} pieces` : ""}`
        print(`  by ${plan.credential}${ways} (seed ${seed}):\n      ${shown(bytesOf(plan, world.known()))}`)
        print(kept(plan, ""))
      }
    })
    const seconds = (performance.now() - began) / 1000
    print(`${counts.requests} requests in ${seconds.toFixed(0)} s; ${table(counts.statuses)}`)
    const least = Math.min(...counts.routes.values())
    print(
      `the slowest took ${counts.slowest_ms.toFixed(0)} ms; each of the ${counts.routes.size} routes received at least ${least}`
    )
    return told(found.length, await world.rest())
  } finally {
    await world.end()
  }
}

const replay = async (world: RequestsWorld.World): Promise<boolean> => {
  const plan = planIn<Plan>()
  const { received, wrong } = await Requests.send(world, plan)
  print(shown(bytesOf(plan, world.known())))
  for (const { body, headers, status } of received.answers) {
    const head = [...headers].map((header) => header.join(": ")).join("\n")
    print(`${status}\n${head}\n\n${body.toString().slice(0, 4_000)}`)
  }
  print(`${received.end} after ${received.millis.toFixed(0)} ms`)
  if (wrong !== undefined) print(`WRONG: ${wrong.kind}\n  ${wrong.what}`)
  return wrong === undefined
}

// ---- vendors ----------------------------------------------------------------------------------------------------------------------

const ofVendors = async (): Promise<boolean> => {
  const world = await VendorsWorld.make()
  try {
    if (values.replay !== undefined) {
      const wrong = await Vendors.send(world, planIn<Vendors.Plan>(), print)
      print(wrong === undefined ? "right" : `WRONG: ${wrong.kind}\n  ${wrong.what}`)
      return wrong === undefined
    }
    print(`seed ${seed}, ${requests} calls to hostile vendors`)
    const began = performance.now()
    const report = progress()
    const { counts, found } = await Vendors.run(world, {
      seed,
      calls: requests,
      workers,
      patient: true,
      ...(values.route !== undefined && { named: values.route }),
      progress: (counts) => report(counts.calls, counts.statuses),
      told: ({ kind, plan, what }) => {
        print(
          `WRONG: ${kind}\n    ${what}\n  by ${JSON.stringify(plan.changes).slice(0, 500)}\n${kept(plan, " --vendors")}`
        )
      }
    })
    const seconds = (performance.now() - began) / 1000
    print(`${counts.calls} calls in ${seconds.toFixed(0)} s; ${table(counts.statuses)}`)
    print(`the slowest took ${counts.slowest_ms.toFixed(0)} ms`)
    return told(found.length, await world.rest())
  } finally {
    await world.end()
  }
}

// ---- payment events -----------------------------------------------------------------------------------------------------------

const ofWebhooks = async (): Promise<boolean> => {
  const world = await WebhooksWorld.make()
  try {
    print(`seed ${seed}, ${requests} events`)
    const { counts, found } = await Webhooks.run(world, { seed, events: requests })
    for (const one of found) print(`WRONG: ${one}`)
    print(table(counts))
    return told(found.length, await world.rest())
  } finally {
    await world.end()
  }
}

const isRight = await (values.vendors ? ofVendors() : values.webhooks ? ofWebhooks() : ofRequests())
process.exitCode = isRight ? 0 : 1
