// Loads the console's views over a database like the one in `growth`, but with 200 callers in the large tenant. Each view's initial queries are sent
// concurrently, as the page sends them: one first load, then `readings` reloads. It then measures the latency of calls while a client reads the slowest views.
import type { ChildProcess } from "node:child_process"
import { join } from "node:path"
import { fillBooks, peopleOf, untilAtRest } from "../books.ts"
import { chatCalls } from "../calls.ts"
import { contender, count, drive, inUnit, print, say, table } from "../frame.ts"
import type { Bench, Contender, Part, Results } from "../frame.ts"
import { startGateway } from "../gateway.ts"
import type { Caller, Gateway } from "../gateway.ts"
import { median } from "../numbers.ts"
import { cpu, stop } from "../processes.ts"
import { startOutside } from "../world.ts"

const hour = 3_600_000
const day = 24 * hour
const members = 200
/** The number of reloads per view, after the first load. */
const readings = 5

interface View {
  readonly name: string
  /** The credential that the queries use. */
  readonly by: "person" | "operator"
  /** The view's initial queries, sent concurrently. A path with the prefix `POST ` is sent as a POST. */
  readonly asks: ReadonlyArray<string>
}

/** The page shell's queries, part of each user view. */
const shell = ["/v1/me", "/v1/me/memberships", "/v1/notifications?per_page=1"]

const span = (days: number, step: number): readonly [start: string, end: string] => {
  const end = Math.ceil((Date.now() + 1) / step) * step
  return [new Date(end - days * day).toISOString(), new Date(end).toISOString()]
}
const dayText = (ago: number): string => new Date(Date.now() - ago * day).toISOString().slice(0, 10)

interface Known {
  readonly tenant: string
  readonly member: Caller
  readonly usage_id: string
}

const usageViews = ({ member, tenant }: Known): ReadonlyArray<View> => {
  const usage = `/v1/tenants/${tenant}/usage`
  const keys = `/v1/tenants/${tenant}/applications?per_page=200`
  const asked = (by: string, [start, end]: readonly [string, string], grain: "hour" | "day") =>
    `${usage}/series?start_time=${start}&end_time=${end}&grain=${grain}&by=${by}&top=8`
  const records = ([start, end]: readonly [string, string], more = "sort=timestamp") =>
    `${usage}?start_date=${start}&end_date=${end}&${more}&direction=desc&per_page=50`
  const view = (name: string, ...asks: ReadonlyArray<string>): View => ({
    name: `usage: ${name}`,
    by: "person",
    asks: [...shell, keys, ...asks]
  })
  const [month, quarter, year] = [span(30, day), span(90, day), span(365, day)]
  const names = ["model", "application", "account", "payer", "endpoint", "provider"]
  return [
    view("a day by model", asked("model", span(1, hour), "hour"), records(span(1, hour))),
    view("a week by model", asked("model", span(7, hour), "hour"), records(span(7, hour))),
    ...names.map((by) => view(`a month by ${by}`, asked(by, month, "day"), records(month))),
    view("a quarter by model", asked("model", quarter, "day"), records(quarter)),
    ...names.map((by) => view(`a year by ${by}`, asked(by, year, "day"), records(year))),
    ...names.map((by) => view(`a year of hours by ${by}`, asked(by, year, "hour"), records(year))),
    ...["cost", "total_tokens", "latency"].flatMap((sort) => [
      view(`a month by model, sorted by ${sort}`, asked("model", month, "day"), records(month, `sort=${sort}`)),
      view(`a year by model, sorted by ${sort}`, asked("model", year, "day"), records(year, `sort=${sort}`))
    ]),
    view("sorted by cost, alone", records(year, "sort=cost")),
    ...[
      ["one model", "model=bench-model"],
      ["one person", `account_id=${member.account}`],
      ["one key", `application_id=${member.application}`],
      ["one provider", "provider=bench-2"],
      ["failures", "success=false"],
      ["failures of one person", `success=false&account_id=${member.account}`],
      ["a model without calls", "model=none"]
    ].map(([name, filter]) => view(`records of a year, ${name}`, records(year, filter)))
  ]
}

const personViews = (known: Known): ReadonlyArray<View> => {
  const { tenant, usage_id } = known
  const of = `/v1/tenants/${tenant}`
  const view = (name: string, ...asks: ReadonlyArray<string>): View => ({
    name,
    by: "person",
    asks: [...shell, ...asks]
  })
  const [start, end] = span(30, day)
  const window = (days: number) => `start_date=${span(days, day)[0]}&end_date=${end}`
  const billing = [`${of}/billing`, `${of}/billing/auto-reload`]
  return [
    view(
      "home",
      ...billing,
      `${of}/billing/amounts`,
      `${of}/billing/ledger?page=1&per_page=7`,
      `${of}/usage/series?start_time=${start}&end_time=${end}&grain=day&by=model&top=8`,
      `${of}/usage?per_page=10`,
      `${of}/applications?per_page=200`,
      "/v1/transfers?status=pending&per_page=1"
    ),
    ...usageViews(known),
    view("one call explained", `/v1/usage/${usage_id}/explain`),
    view("keys", `${of}/applications?per_page=200`),
    view("credit", ...billing, `${of}/billing/amounts`, `${of}/billing/ledger?page=1&per_page=25`),
    ...["call", "purchase", "registration_bonus,signup_grant,admin"].map((source) =>
      view(`credit, entries of ${source}`, `${of}/billing/ledger?page=1&per_page=25&source=${source}`)
    ),
    view("transfers", `${of}/billing/transfers?page=1&per_page=20`, "/v1/transfers?page=1&per_page=20"),
    view("team", `${of}/members`, `${of}/invites`, `${of}/plan`),
    ...[30, 365].map((days) => view(`team: usage of ${days} days`, `${of}/usage/team?${window(days)}`)),
    view(
      "team: who pays",
      "/v1/me/billing-sources",
      "/v1/me/billing-sources/capacity",
      `/v1/me/billing-sources/usage?${window(30)}`
    ),
    view("notifications", "/v1/notifications?page=1&per_page=25"),
    view("playground", "/v1/models", "/v1/tools/media/models", "/v1/tools/media/jobs?page=1&per_page=12")
  ]
}

const operatorViews = ({ member, tenant, usage_id }: Known): ReadonlyArray<View> => {
  const view = (name: string, ...asks: ReadonlyArray<string>): View => ({
    name: `operator: ${name}`,
    by: "operator",
    asks
  })
  const at = (path: string) => `/v1/operator/${path}`
  const costs = (days: number) => at(`costs?from=${dayText(days - 1)}&to=${dayText(0)}`)
  return [
    ...[90, 30, 7].map((days) => view(`costs of ${days} days`, costs(days))),
    view("overview", at("flight"), at("upstreams"), at("loops"), at("verify")),
    view("invariants", `POST ${at("invariants")}`),
    ...["bench1", "bench7@example.com", tenant, usage_id].map((text, i) =>
      view(`found by ${["a name", "an address", "a tenant's id", "a call's id"][i]}`, at(`search?q=${text}&limit=20`))
    ),
    view("tenants", at("tenants?limit=25")),
    view(
      "a tenant",
      at(`tenants/${tenant}`),
      at(`tenants/${tenant}/usage?per_page=15`),
      at(`tenants/${tenant}/ledger?page=1&per_page=25`)
    ),
    view("a person", at(`people/${member.account}`)),
    view("a call explained", at(`usage/${usage_id}/explain`)),
    view("reservations", at("reservations?limit=50")),
    view("owed", at("owed")),
    view("audit log", at("audit?limit=50")),
    view("sessions", at("sessions"))
  ]
}

// ---- queries ------------------------------------------------------------------------------------------------------------

type Tokens = Readonly<Record<View["by"], string>>

const asking =
  ({ port }: Gateway, tokens: Tokens) =>
  async (by: View["by"], ask: string): Promise<string> => {
    const [method, path] = ask.startsWith("POST ") ? ["POST", ask.slice(5)] : ["GET", ask]
    const asked = () =>
      fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { authorization: `Bearer ${tokens[by]}` } })
    // Retry once, because the service may have closed an idle connection.
    const answer = await asked().catch(asked)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${ask} returned ${answer.status}: ${text.slice(0, 300)}`)
    return text
  }

type Ask = ReturnType<typeof asking>

/** Returns the time until all of a view's responses have arrived, in milliseconds. */
const timeOf = async (ask: Ask, { asks, by }: View): Promise<number> => {
  const began = performance.now()
  await Promise.all(asks.map((one) => ask(by, one)))
  return performance.now() - began
}

const timeViews = async (
  results: Results,
  ask: Ask,
  pid: number,
  views: ReadonlyArray<View>
): Promise<ReadonlyArray<View>> => {
  const rows: Array<ReadonlyArray<string>> = [["view", "first", "again, median", "slowest", "CPU"]]
  const timed: Array<{ readonly view: View; readonly p50: number }> = []
  const slowest = { name: "", millis: 0 }
  for (const view of views) {
    const first = await timeOf(ask, view)
    const before = cpu(pid)
    const again: Array<number> = []
    for (let i = 0; i < readings; i++) again.push(await timeOf(ask, view))
    const spent = (cpu(pid) - before) / 1000 / readings
    const [p50, most] = [median(again), Math.max(first, ...again)]
    timed.push({ view, p50 })
    const millis = Math.max(first, p50)
    if (millis > slowest.millis) Object.assign(slowest, { name: view.name, millis })
    rows.push([view.name, ...[first, p50, most, spent].map((millis) => inUnit(millis, "ms", 0))])
    results.measurements.push({ part: "console", contender: view.name, first, p50, slowest: most, cpu: spent })
  }
  print(table(rows))
  results.reach({
    what: `slowest view, the first time or again (${slowest.name})`,
    measured: slowest.millis,
    unit: "ms",
    most: 1000
  })
  return timed.toSorted((a, b) => b.p50 - a.p50).map(({ view }) => view)
}

// ---- concurrent calls ---------------------------------------------------------------------------------------------------

const untilStopped = async (signal: AbortSignal, look: () => Promise<unknown>): Promise<void> => {
  while (!signal.aborted) await look()
}

/** Measures the latency of calls: first alone, then while a client repeatedly reads each of these views, and finally alone. */
const timeCalls = async (
  bench: Bench,
  load: ChildProcess,
  service: Contender,
  ask: Ask,
  views: ReadonlyArray<View>
): Promise<void> => {
  const workload = chatCalls({ name: "chat", connections: 8 })
  const rate = 50
  await drive(load, service, workload, { seconds: 2, rate })
  const rows: Array<ReadonlyArray<string>> = [["calls, 50 a second", "p50", "p99"]]
  for (const view of [undefined, ...views, undefined]) {
    const stopping = new AbortController()
    const looking = view === undefined ? Promise.resolve() : untilStopped(stopping.signal, () => timeOf(ask, view))
    const { p50, p99 } = await drive(load, service, workload, { seconds: 2 * bench.options.seconds, rate })
    stopping.abort()
    await looking
    const name = view === undefined ? "alone" : `beside ${view.name}`
    rows.push([name, inUnit(p50, "ms", 1), inUnit(p99, "ms", 1)])
    bench.results.measurements.push({ part: "console, calls", contender: name, p50, p99 })
  }
  print(`\n${table(rows)}`)
}

// ---- the part -----------------------------------------------------------------------------------------------------------

const run = async (bench: Bench): Promise<void> => {
  const { cores, directory, options } = bench
  const folder = options.keep ?? join(directory, "console")
  const books = await fillBooks(bench, folder, { members })
  const people = peopleOf(folder)
  const { load, outside, upstream } = await startOutside(cores)
  const service = await startGateway({
    name: "gateway",
    main: options.main,
    cores,
    outside,
    directory: join(folder, "gateway")
  })
  say(`console: at rest after ${(await untilAtRest(service.pid)).toFixed(0)} s`)
  const tokens = {
    person: await service.tokenOf(0),
    operator: (await service.operate("operator", "--token", "--name", "bench")).trim()
  }
  const ask = asking(service, tokens)
  const [{ tenant }, member] = [people[0]!, people[members >> 1]!]
  const newest = JSON.parse(
    await ask("person", `/v1/tenants/${tenant}/usage?per_page=1&account_id=${people[0]!.account}`)
  ) as {
    readonly result: { readonly records: ReadonlyArray<{ readonly id: string }> }
  }
  const known: Known = { tenant, member, usage_id: newest.result.records[0]!.id }
  print(
    `\nViews of the console over ${count(books.calls)} calls, ${count(books.firstCalls)} of them by ${members} people in the viewed tenant\n`
  )
  const slowest = await timeViews(bench.results, ask, service.pid, [...operatorViews(known), ...personViews(known)])
  await timeCalls(bench, load, contender({ ...service, keys: [people[0]!.key] }), ask, [
    ...slowest.slice(0, 3),
    ...slowest.slice(3).filter(({ name }) => name === "team: usage of 365 days")
  ])
  await service.stop()
  for (const child of [load, upstream]) await stop(child)
}

export const consoleViews: Part = {
  name: "console",
  about: "every view of the console with 5 million calls (takes minutes; only on request)",
  run
}
