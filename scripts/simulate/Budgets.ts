/** Sends a story's requests for budgets and runs, and records their times and outcomes. `BudgetAuditor` compares them with the calls. */
import { bodyOf } from "./Client.ts"
import type { Heard } from "./Client.ts"
import { periodStart } from "./Periods.ts"
import type { BudgetPeriod, Deed, LimitOf } from "./Story.ts"
import type { Call, Person, World } from "./World.ts"

type Of<D extends Deed["do"]> = Extract<Deed, { readonly do: D }>

export interface Terms {
  readonly limit: LimitOf
  readonly mode: "refuse" | "notify"
  /** The request time. `until` is the acknowledgement time, or `never` if the outcome is unknown. */
  readonly from: number
  until: number
}

export interface Budgeted {
  readonly kind: "budget" | "run"
  readonly name: string
  readonly who: Person
  /** The calls that the budget counts: all of the user's calls, calls with the budget key, or a run's calls. */
  readonly on: "tenant" | "key" | "run"
  readonly period: BudgetPeriod
  readonly terms: Array<Terms>
  /** All requested raises, in thousandths of a USD. */
  readonly raises: Array<number>
  /** The id; `undefined` until a response shows it. */
  id: string | undefined
  /** When the creation was acknowledged; `never` if the outcome is unknown. */
  known: number
  /** When the end was acknowledged. */
  ended: number
  /** Whether the deletion has been requested. */
  ending: boolean
}

export interface Run extends Budgeted {
  readonly kind: "run"
  readonly above: ReadonlyArray<Run>
  key: string
  /** The expiry, on the wall clock. */
  expires: number
}

/** A budget or run as the service shows it. */
export interface Look {
  readonly of: Budgeted
  readonly from: number
  readonly wallFrom: number
  readonly until: number
  readonly wallUntil: number
  readonly shown: {
    readonly spent: { readonly usd: number; readonly tokens: number; readonly requests: number }
    readonly reserved: { readonly usd: number; readonly tokens: number }
    readonly open_calls: number
    readonly by_model?: ReadonlyArray<{ readonly cost_usd: number }>
  }
}

export const never = Number.POSITIVE_INFINITY

export class Budgets {
  readonly budgets: Array<Budgeted> = []
  readonly runs: Array<Run> = []
  readonly looks: Array<Look> = []
  private readonly world: World
  private names = 0

  constructor(world: World) {
    this.world = world
  }

  get all(): ReadonlyArray<Budgeted> {
    return [...this.budgets, ...this.runs]
  }

  private get now(): number {
    return this.world.computer.machine.now
  }

  async make({ limit, mode, on, period, who }: Of<"budget">): Promise<string> {
    const person = this.world.person(who)
    if (on === "key" && person.budgeted.key === "") return "there is no such key"
    const terms: Terms = { limit, mode, from: this.now, until: never }
    const budget: Budgeted = {
      kind: "budget",
      name: `budget ${++this.names}`,
      who: person,
      on,
      period,
      terms: [terms],
      raises: [],
      id: undefined,
      known: never,
      ended: never,
      ending: false
    }
    this.budgets.push(budget)
    const heard = await this.world.asPerson(person, `/v1/tenants/${person.tenant}/budgets`, {
      json: {
        name: budget.name,
        limit: wire(limit),
        period,
        mode,
        ...(on === "key" && { applies_to: { key: person.budgeted.id } })
      }
    })
    if (heard.complete && heard.status === 201) {
      budget.id = bodyOf(heard).result.id
      budget.known = terms.until = this.now
    }
    return told(budget.name, heard)
  }

  private pathOf({ id, who }: Budgeted): string {
    return `/v1/tenants/${who.tenant}/budgets/${id}`
  }

  private which(which: number): Budgeted | undefined {
    return this.world.one(
      this.budgets.filter(({ ending, id }) => id !== undefined && !ending),
      which
    )
  }

  async change({ limit, mode, which }: Of<"rebudget">): Promise<string> {
    const budget = this.which(which)
    if (budget === undefined) return "there is none"
    const terms: Terms = { limit, mode, from: this.now, until: never }
    budget.terms.push(terms)
    const heard = await this.world.asPerson(budget.who, this.pathOf(budget), {
      method: "PATCH",
      json: { limit: { usd: null, tokens: null, requests: null, concurrent: null, ...wire(limit) }, mode }
    })
    if (heard.complete && heard.status === 200) terms.until = this.now
    return told(budget.name, heard)
  }

  async raise({ millis, mills, which }: Of<"raise">): Promise<string> {
    const budget = this.which(which)
    if (budget === undefined) return "there is none"
    budget.raises.push(mills)
    const until = new Date(this.world.computer.machine.wall() + millis).toISOString()
    const json = { usd: mills / 1_000, until }
    return told(budget.name, await this.world.asPerson(budget.who, `${this.pathOf(budget)}/raise`, { json }))
  }

  async drop({ which }: Of<"drop">): Promise<string> {
    const budget = this.which(which)
    if (budget === undefined) return "there is none"
    budget.ending = true
    const heard = await this.world.asPerson(budget.who, this.pathOf(budget), { method: "DELETE" })
    if (heard.complete && heard.status === 200) budget.ended = this.now
    return told(budget.name, heard)
  }

  /** Returns the run that a step refers to, or `undefined` for the budget key or if there are no runs. */
  run(under: number | "key"): Run | undefined {
    return under === "key"
      ? undefined
      : this.world.one(
          this.runs.filter(({ key }) => key !== ""),
          under
        )
  }

  async begin({ limit, seconds, under, who, wide }: Of<"run">): Promise<string> {
    const parent = this.run(under)
    const person = parent?.who ?? this.world.person(who)
    const key = parent?.key ?? person.budgeted.key
    if (key === "") return "there is no such key"
    const above = parent === undefined ? [] : [parent, ...parent.above]
    const requestedLimit = wide && parent !== undefined ? wider(parent.terms[0]!.limit) : limit
    const from = this.now
    const name = `run ${++this.names}`
    const json = { name, limit: wire(requestedLimit), expires_in: seconds }
    const heard = await this.world.ask("/v1/runs", { token: key, json })
    const limits = above.map(({ terms }) => terms[0]!.limit)
    const isWide = limits.some((limit) => isWider(requestedLimit, limit))
    if (heard.complete && heard.status === 201 && isWide)
      this.world.findings.push(
        `${name} was created with ${JSON.stringify(requestedLimit)}, wider than ${JSON.stringify(limits)}`
      )
    if (heard.complete && heard.status === 400 && !isWide && above.length < 8)
      this.world.findings.push(
        `${name} is within the limits of its parents, but was refused: ${heard.text.slice(0, 200)}`
      )
    if (!heard.complete || heard.status !== 201) return told(name, heard)
    const { api_key, expires_at, id } = bodyOf(heard).result
    this.runs.push({
      kind: "run",
      name,
      who: person,
      on: "run",
      period: "total",
      terms: [{ limit: requestedLimit, mode: "refuse", from, until: this.now }],
      raises: [],
      id,
      known: this.now,
      ended: never,
      ending: false,
      above,
      key: api_key,
      expires: Date.parse(expires_at)
    })
    return told(name, heard)
  }

  async end({ which }: Of<"end">): Promise<string> {
    const run = this.world.one(this.runs, which)
    if (run === undefined) return "there is none"
    const heard = await this.world.ask(`/v1/runs/${run.id}`, { token: run.who.budgeted.key, method: "DELETE" })
    if (heard.complete && heard.status === 200) run.ended = Math.min(run.ended, this.now)
    return told(run.name, heard)
  }

  async check({ which }: Of<"check">): Promise<string> {
    const found = this.world.one(
      this.all.filter(({ id }) => id !== undefined),
      which
    )
    return found === undefined ? "there is none" : this.look(found)
  }

  /** Reads a budget or run, records it if the request succeeds, and returns a description of the response. */
  async look(of: Budgeted): Promise<string> {
    const { machine } = this.world.computer
    const [from, wallFrom] = [machine.now, machine.wall()]
    const path = of.kind === "run" ? `/v1/runs/${of.id}` : this.pathOf(of)
    const heard = await this.world.asPerson(of.who, path)
    if (heard.complete && heard.status === 200)
      this.looks.push({
        of,
        from,
        wallFrom,
        until: machine.now,
        wallUntil: machine.wall(),
        shown: bodyOf(heard).result
      })
    return told(of.name, heard)
  }

  /** Looks up missing budget ids and reads all remaining budgets and runs. Call it when the world is idle. */
  async lookAtAll(): Promise<void> {
    for (const who of new Set(this.budgets.map((budget) => budget.who))) {
      const heard = await this.world.asPerson(who, `/v1/tenants/${who.tenant}/budgets`)
      const listed: ReadonlyArray<{ id: string; name: string }> = bodyOf(heard)?.result?.budgets ?? []
      for (const budget of this.budgets)
        if (budget.who === who) budget.id ??= listed.find(({ name }) => name === budget.name)?.id
    }
    for (const one of this.all) {
      if (one.id === undefined || one.ending) continue
      const count = this.looks.length
      const what = await this.look(one)
      // The service deletes runs a month after they end.
      if (this.looks.length === count && !(one.kind === "run" && this.world.farAt !== undefined))
        this.world.findings.push(`${one.name} cannot be read: ${what}`)
    }
  }
}

const told = (what: string, { complete, error, status }: Heard): string =>
  `${what}: ${status}${complete ? "" : ` (${error ?? "cut"})`}`

const wire = ({ mills, ...limit }: LimitOf) => ({ ...(mills !== undefined && { usd: mills / 1_000 }), ...limit })

const units = ["mills", "tokens", "requests", "concurrent"] as const

const wider = (limit: LimitOf): LimitOf => {
  const unit = units.find((one) => limit[one] !== undefined)!
  return { [unit]: limit[unit]! + 1 }
}

const isWider = (limit: LimitOf, above: LimitOf): boolean =>
  units.some((unit) => limit[unit] !== undefined && above[unit] !== undefined && limit[unit] > above[unit])

/** Returns whether a budget counts a call, assuming that the budget exists when the call starts. */
export const countsCall = (budget: Budgeted, call: Call): boolean => {
  if (budget.on === "run") return call.runs.some((run) => run === budget)
  return call.who === budget.who && (budget.on === "tenant" || call.budgeted)
}

export const periodOf = ({ period }: Pick<Budgeted, "period">, wall: number): number => periodStart(period, wall)
