// Fills a database with a year of calls from a thousand tenants. One tenant makes a third of them. `--keep` preserves the folder for later runs.
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { manyCallers } from "./calls.ts"
import type { Filled, FillOrder } from "./fill.ts"
import { count, say } from "./frame.ts"
import type { Bench } from "./frame.ts"
import { startGateway } from "./gateway.ts"
import type { Caller } from "./gateway.ts"
import { ask, cpu, root, sleep, startPart, stop } from "./processes.ts"
import { startOutside } from "./world.ts"

const day = 86_400_000
/** The number of calls per progress line. */
const progressInterval = 100_000

/** A description of the filled database, saved in the folder as `filled.json`. */
export interface Books {
  readonly calls: number
  /** The number of calls in the largest tenant (a third of all calls), and their total cost in nano-USD. */
  firstCalls: number
  firstDue: number
  readonly sizes: Array<number>
}

export interface BooksWanted {
  /** The number of callers in the first tenant, each with a key. */
  readonly members: number
  /** The database is copied after these numbers of calls, and at the end. By default, it is not copied. */
  readonly copiesAt?: ReadonlyArray<number>
}

const databaseOf = (folder: string): string => join(folder, "gateway", "data", "tollgate.db")
const peopleFile = (folder: string): string => join(folder, "people.json")
export const copyOf = (folder: string, size: number): string => join(folder, `at-${size}.db`)
export const peopleOf = (folder: string): ReadonlyArray<Caller> =>
  JSON.parse(readFileSync(peopleFile(folder), "utf8")) as ReadonlyArray<Caller>

/** Signs up a thousand people, with the clock set back 366 days. The first `members` of them get keys in the first person's tenant. */
const signUp = async ({ cores, options }: Bench, folder: string, members: number): Promise<void> => {
  say(`books: signing up ${manyCallers} people, dated a year ago`)
  const shifted = pathToFileURL(join(root, "scripts", "bench", "shifted-clock.mjs"))
  shifted.searchParams.set("days", "366")
  const flags = ["--import", shifted.href]
  const { load, outside, upstream } = await startOutside(cores, flags)
  const service = await startGateway({
    name: "gateway",
    main: options.main,
    cores,
    outside,
    directory: join(folder, "gateway"),
    flags
  })
  await service.addCallers(manyCallers)
  await service.becomeTeam(0)
  const people = [...service.callers]
  for (let i = 1; i < members; i++) people[i] = { ...people[i]!, ...(await service.addKey(0)) }
  writeFileSync(peopleFile(folder), JSON.stringify(people))
  await service.stop()
  for (const child of [load, upstream]) await stop(child)
}

export const startFill = async (core: string | undefined, folder: string, database: string, labels = 0) => {
  const child = startPart(core, "fill.ts", [database, peopleFile(folder), String(labels)])
  await ask(child)
  return {
    pid: child.pid!,
    make: (order: FillOrder) => ask<Filled>(child, order),
    end: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve))
      child.send({ end: true } satisfies FillOrder)
      await ended
    }
  }
}

export const fillBooks = async (bench: Bench, folder: string, { copiesAt, members }: BooksWanted): Promise<Books> => {
  const { calls, labels } = bench.options
  const file = join(folder, "filled.json")
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as Books
  mkdirSync(folder, { recursive: true })
  await signUp(bench, folder, members)
  const sizes = [...(copiesAt ?? []).filter((size) => size < calls), calls]
  const books: Books = { calls, firstCalls: 0, firstDue: 0, sizes }
  const now = Date.now()
  const at = (call: number) => now - 365 * day + (365 * day * call) / calls
  const began = performance.now()
  let made = 0
  for (const size of sizes) {
    const filling = await startFill(undefined, folder, databaseOf(folder), labels)
    while (made < size) {
      const some = Math.min(progressInterval, size - made)
      const { firstCalls, firstDue, rate } = await filling.make({ calls: some, from: at(made), to: at(made + some) })
      made += some
      books.firstCalls += firstCalls
      books.firstDue += firstDue
      say(
        `books: ${count(made)} of ${count(calls)} calls, ${Math.round(rate)}/s, ${((performance.now() - began) / 1000).toFixed(0)} s`
      )
    }
    await filling.end()
    if (existsSync(`${databaseOf(folder)}-wal`)) throw new Error("the filled database still has a write-ahead log")
    if (copiesAt !== undefined) copyFileSync(databaseOf(folder), copyOf(folder, size))
  }
  writeFileSync(file, JSON.stringify(books))
  return books
}

/**
 * Waits until the process uses less than a twentieth of a core in two consecutive intervals of three seconds. Returns the waiting time in seconds.
 * After a fill, the service indexes the records in the background, because it was not running while they were written.
 */
export const untilAtRest = async (pid: number): Promise<number> => {
  const began = performance.now()
  for (let calm = 0; calm < 2;) {
    const before = cpu(pid)
    await sleep(3_000)
    calm = cpu(pid) - before < 3_000_000 / 20 ? calm + 1 : 0
  }
  return (performance.now() - began) / 1000
}
