// Fills a database with a year of calls from a thousand tenants, a third of them from one tenant. Measures the cost of a charge after 10 thousand, a
// million and all calls, the latency of each of that tenant's views over HTTP, and the duration of `verify`.
import type { ChildProcess } from "node:child_process"
import { join } from "node:path"
import { copyOf, fillBooks, peopleOf, startFill, untilAtRest } from "../books.ts"
import type { Books } from "../books.ts"
import { credit, models } from "../calls.ts"
import type { Workload } from "../calls.ts"
import { contender, count, drive, inUnit, print, say, table } from "../frame.ts"
import type { Bench, Part, Results } from "../frame.ts"
import { startGateway } from "../gateway.ts"
import type { Caller, Gateway } from "../gateway.ts"
import { median } from "../numbers.ts"
import { cpu, stop } from "../processes.ts"
import { startOutside } from "../world.ts"

const day = 86_400_000
/** The call counts after which the database is copied, in addition to the end, so that a single run can compare the cost of charges. */
const copiesAt = [10_000, 1_000_000]
const readings = 15

// ---- reading ------------------------------------------------------------------------------------------------------------

interface View {
  readonly name: string
  readonly path: string
  readonly sorted: boolean
}

/** Returns views that filter or group by a tag, an end user or a model. */
const labelledViews = (usage: string, labels: number): ReadonlyArray<View> => {
  const one = Math.floor(labels / 2)
  const [from, to] = [30, 0].map((days) => new Date(Date.now() - days * day).toISOString())
  const series = `${usage}/series?start_time=${from}&end_time=${to}`
  return [
    { name: "records of a tag", path: `${usage}?tag=task=${one}`, sorted: false },
    { name: "records of a tag, any value", path: `${usage}?tag=task`, sorted: false },
    { name: "records of an end user", path: `${usage}?end_user=user-${one}`, sorted: false },
    { name: "records of a model", path: `${usage}?model=${models[0]}`, sorted: false },
    { name: "rollup by day, of a tag", path: `${usage}/rollup?rollup=daily&tag=task=${one}`, sorted: false },
    { name: "series of 30 days by tag", path: `${series}&by=tag:task`, sorted: false },
    { name: "series of 30 days by end user", path: `${series}&by=end_user`, sorted: false },
    { name: "series of 30 days by model", path: `${series}&by=model`, sorted: false }
  ]
}

const viewsOf = (
  { tenant }: Caller,
  { firstCalls }: Books,
  labels: number,
  cursor: string,
  sortedCursor: string
): ReadonlyArray<View> => {
  const usage = `/v1/tenants/${tenant}/usage`
  const ledger = `/v1/tenants/${tenant}/billing/ledger`
  const ago = (days: number) => new Date(Date.now() - days * day).toISOString()
  const pages = Math.ceil(firstCalls / 50)
  const plain = (name: string, path: string): View => ({ name, path, sorted: false })
  const sorted = (name: string, path: string): View => ({ name, path, sorted: true })
  return [
    plain("records, first page", usage),
    plain("records, 200 a page", `${usage}?per_page=200`),
    plain("records, page in the middle", `${usage}?page=${Math.ceil(pages / 2)}`),
    plain("records, last page", `${usage}?page=${pages}`),
    plain("records, oldest first", `${usage}?direction=asc`),
    plain("records, by cursor", `${usage}?cursor=${encodeURIComponent(cursor)}`),
    plain("records, of 30 days", `${usage}?start_date=${ago(60)}&end_date=${ago(30)}`),
    ...["cost", "total_tokens", "latency"].flatMap((field) => [
      sorted(`records by ${field}`, `${usage}?sort=${field}`),
      sorted(`records by ${field}, least first`, `${usage}?sort=${field}&direction=asc`)
    ]),
    // Only the first 20,000 sorted records are available by page number.
    sorted("records by cost, page 400", `${usage}?sort=cost&page=${Math.min(400, pages)}`),
    sorted("records by cost, by cursor", `${usage}?sort=cost&cursor=${encodeURIComponent(sortedCursor)}`),
    sorted("records by cost, of 30 days", `${usage}?sort=cost&start_date=${ago(60)}&end_date=${ago(30)}`),
    plain("summary", "/v1/usage"),
    plain("summary, of 30 days to the millisecond", `/v1/usage?start_time=${ago(60)}&end_time=${ago(30)}`),
    plain("rollup by day", `${usage}/rollup?rollup=daily`),
    plain("rollup by month", `${usage}/rollup?rollup=monthly`),
    plain("rollup by year", `${usage}/rollup?rollup=annual`),
    plain("rollup by day, of 30 days", `${usage}/rollup?rollup=daily&start_date=${ago(60)}&end_date=${ago(30)}`),
    plain("rollup by day, of one provider", `${usage}/rollup?rollup=daily&provider=bench&usage_type=inference`),
    plain("team usage by day", `${usage}/team?rollup=daily`),
    plain("team usage by month", `${usage}/team?rollup=monthly`),
    plain("balance", `/v1/tenants/${tenant}/billing/credits`),
    plain("ledger, first page", ledger),
    plain("ledger, 200 a page", `${ledger}?per_page=200`),
    plain("ledger, page in the middle", `${ledger}?page=${Math.ceil(pages / 2)}`),
    plain("ledger, last page", `${ledger}?page=${pages}`),
    ...(labels === 0 ? [] : labelledViews(usage, labels))
  ]
}

interface RecordsPage {
  readonly result: { readonly total_records: number; readonly next_cursor: string }
}

const readViews = async (
  { options: { labels }, results }: Bench,
  load: ChildProcess,
  service: Gateway,
  books: Books,
  first: Caller
): Promise<void> => {
  const token = await service.tokenOf(0)
  const get = async <A>(path: string): Promise<A> => {
    const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, {
      headers: { authorization: `Bearer ${token}` }
    })
    return (await answer.json()) as A
  }
  const usage = `/v1/tenants/${first.tenant}/usage`
  const { result } = await get<RecordsPage>(usage)
  if (result.total_records !== books.firstCalls) {
    throw new Error(`the first tenant made ${books.firstCalls} calls, but its usage shows ${result.total_records}`)
  }
  const credits = await get<{ readonly result: { readonly balance: number } }>(
    `/v1/tenants/${first.tenant}/billing/credits`
  )
  const taken = Math.round((credit - credits.result.balance) * 1e9)
  if (taken !== books.firstDue)
    throw new Error(`the first tenant's calls cost ${books.firstDue}, but its balance fell by ${taken}`)

  const bySort = await get<RecordsPage>(`${usage}?sort=cost`)
  const at = contender({ ...service, keys: [token] })
  const rows: Array<ReadonlyArray<string>> = [["view", "first", "p50", "slowest"]]
  const slowest = { plain: 0, sorted: 0 }
  for (const view of viewsOf(first, books, labels, result.next_cursor, bySort.result.next_cursor)) {
    const { name, path, sorted } = view
    const workload: Workload = {
      name,
      method: "GET",
      path,
      bodies: [""],
      stream: false,
      callers: 1,
      connections: 1,
      price: 0
    }
    const once = await drive(load, at, workload, { seconds: 60, calls: 1 })
    const run = await drive(load, at, workload, { seconds: 60, calls: readings })
    const kind = sorted ? "sorted" : "plain"
    slowest[kind] = Math.max(slowest[kind], run.p50)
    rows.push([name, ...[once.p50, run.p50, run.p99].map((millis) => inUnit(millis, "ms", 1))])
    results.measurements.push({ part: "growth", contender: name, first: once.p50, p50: run.p50, slowest: run.p99 })
  }
  print(
    `\nViews of a tenant with ${count(books.firstCalls)} of ${count(books.calls)} calls, over HTTP, one at a time\n`
  )
  print(table(rows))
  reachViews(results, slowest)
}

const reachViews = (results: Results, slowest: { readonly plain: number; readonly sorted: number }): void => {
  results.reach({ what: "5 slowest view except sorted pages, p50", measured: slowest.plain, unit: "ms", most: 20 })
  results.reach({ what: "9 slowest sorted page, p50", measured: slowest.sorted, unit: "ms", most: 50 })
}

const timeVerify = async (results: Results, service: Gateway): Promise<void> => {
  const began = performance.now()
  const said = await service.operate("verify")
  const seconds = (performance.now() - began) / 1000
  print(`\nverify beside the running service: ${seconds.toFixed(1)} s: ${said.trim().split("\n").at(-1)}`)
  results.measurements.push({ part: "growth", contender: "verify", seconds })
}

// ---- charging -----------------------------------------------------------------------------------------------------------

/** Measures charges dated now, alternating between the databases of each size. */
const chargeAtSizes = async ({ cores, options, results }: Bench, folder: string, { calls, sizes }: Books) => {
  const sides = await Promise.all(sizes.map((size) => startFill(cores.served, folder, copyOf(folder, size))))
  const rates = sizes.map((): Array<number> => [])
  const costs = sizes.map((): Array<number> => [])
  for (const side of sides) await side.make({ seconds: options.warmup / 2 })
  for (let round = 0; round < options.rounds; round++) {
    for (const [i, { make, pid }] of sides.entries()) {
      const before = cpu(pid)
      const filled = await make({ seconds: options.seconds })
      rates[i]!.push(filled.rate)
      costs[i]!.push((cpu(pid) - before) / filled.calls)
    }
    say(`growth: charges, round ${round + 1}: ${rates.map((of) => Math.round(of.at(-1)!)).join(", ")}`)
  }
  for (const { end } of sides) await end()
  const medians = rates.map(median)
  const row = (size: number, i: number) => [
    count(size),
    count(medians[i]!),
    median(costs[i]!).toFixed(1),
    inUnit(medians[0]! / medians[i]!, "x")
  ]
  print("\nCharges at the ledger, a thousand callers, 256 at a time, by the number of calls in the database\n")
  print(table([["calls", "charges/s", "CPU µs", "cost relative to the smallest"], ...sizes.map(row)]))
  results.reach({
    what: `5 cost of a charge at ${count(calls)} calls, relative to ${count(sizes[0]!)}`,
    measured: medians[0]! / medians.at(-1)!,
    unit: "x",
    most: 1.2
  })
}

// ---- the part -----------------------------------------------------------------------------------------------------------

const run = async (bench: Bench): Promise<void> => {
  const { cores, directory, options } = bench
  const folder = options.keep ?? join(directory, "growth")
  const books = await fillBooks(bench, folder, { members: 1, copiesAt })
  const [first] = peopleOf(folder)
  const { load, outside, upstream } = await startOutside(cores)
  const service = await startGateway({
    name: "gateway",
    main: options.main,
    cores,
    outside,
    directory: join(folder, "gateway")
  })
  const seconds = await untilAtRest(service.pid)
  print(`\nThe service became idle ${seconds.toFixed(0)} s after its start on the filled database`)
  await readViews(bench, load, service, books, first!)
  await timeVerify(bench.results, service)
  await service.stop()
  for (const child of [load, upstream]) await stop(child)
  await chargeAtSizes(bench, folder, books)
}

export const growth: Part = {
  name: "growth",
  about: "5 million calls over a year: charges, every view, verify (takes minutes; only on request)",
  run
}
