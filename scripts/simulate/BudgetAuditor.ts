/**
 * The checks of budgets and runs after a story, based on the calls' times and outcomes. No limit may have been exceeded, each refusal must have been
 * justified, and the figures that the service shows must match the calls. If the order of two events is unknown, the checks accept
 * either order.
 */
import { countsCall, never, periodOf } from "./Budgets.ts"
import type { Budgeted, Budgets, Look, Terms } from "./Budgets.ts"
import { limitIn, modelEndpoints, priceOf } from "./World.ts"
import type { LimitOf } from "./Story.ts"
import type { Asked, Call, World } from "./World.ts"

export interface BudgetRecord {
  readonly account_id: string
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cost: number
  readonly endpoint: string
  readonly usage_source?: string
  readonly timestamp: string
}

type Unit = keyof LimitOf
const units = ["mills", "tokens", "requests", "concurrent"] as const
const unitTexts = { mills: "USD", tokens: "tokens", requests: "requests", concurrent: "open calls" }

/** How long a fault can delay a call's end after its client has disconnected, in milliseconds. */
const minute = 60_000

/** Converts USD to thousandths of a USD, rounded to nano-USD. */
const millsOf = (usd: number): number => Math.round(usd * 1e9) / 1e6
const sumOf = (all: ReadonlyArray<number>): number => Math.round(all.reduce((sum, one) => sum + one, 0) * 1e6) / 1e6

const amountOf = (unit: "mills" | "tokens", { completion_tokens, cost, prompt_tokens }: BudgetRecord): number =>
  unit === "mills" ? millsOf(cost) : prompt_tokens + completion_tokens

const wallOf = ({ timestamp }: BudgetRecord): number => Date.parse(timestamp)

export class BudgetAuditor {
  private readonly world: World
  private readonly budgets: Budgets
  private readonly quiet: number
  /** Whether the wall clock was set back. If so, only budgets without a period can be checked. */
  private readonly isBack: boolean
  private readonly exact = new Map<Call, ReadonlyArray<BudgetRecord>>()
  private readonly records: ReadonlyArray<BudgetRecord>

  constructor(world: World, records: ReadonlyArray<BudgetRecord>, quiet: number, isBack: boolean) {
    this.world = world
    this.budgets = world.budgets
    this.quiet = quiet
    this.isBack = isBack
    this.records = records
    const ofModels = records.filter(
      ({ endpoint, usage_source }) => modelEndpoints.has(endpoint) && usage_source === undefined
    )
    for (const call of world.calls)
      this.exact.set(
        call,
        ofModels.filter(({ prompt_tokens }) => prompt_tokens === call.words)
      )
  }

  private find(what: string): void {
    this.world.findings.push(what)
  }

  audit(): void {
    for (const budget of this.budgets.all) this.overshoot(budget)
    for (const look of this.budgets.looks) this.look(look)
    for (const call of this.world.calls) for (const asked of call.asked) this.refusal(call, asked)
    this.ended()
  }

  private isChecked({ period }: Budgeted): boolean {
    return !this.isBack || period === "total"
  }

  private recordsOf(call: Call): ReadonlyArray<BudgetRecord> {
    return this.exact.get(call)!
  }

  // ---- which calls a budget counted -------------------------------------------------------------------------------------

  /** Returns the calls that the budget must have counted if they were admitted. */
  private certain(budget: Budgeted): ReadonlyArray<Call> {
    return this.world.calls.filter((call) => countsCall(budget, call) && call.asked[0]!.from >= budget.known)
  }

  private possible(budget: Budgeted): ReadonlyArray<Call> {
    const { from } = budget.terms[0]!
    return this.world.calls.filter(
      (call) => countsCall(budget, call) && (call.seen.length === 0 || call.seen.some(({ at }) => at >= from))
    )
  }

  /** Returns the records that match no known model call: estimates and, for the whole tenant, tools. */
  private others(budget: Budgeted, wall: number): ReadonlyArray<BudgetRecord> {
    return this.records.filter(
      (record) =>
        record.account_id === budget.who.account &&
        wallOf(record) >= wall &&
        (modelEndpoints.has(record.endpoint) ? record.usage_source !== undefined : budget.on === "tenant")
    )
  }

  private hasTools({ on, who }: Budgeted): boolean {
    const { jobs, searches, uses } = this.world
    return on === "tenant" && [...jobs, ...searches, ...uses].some((one) => one.who === who)
  }

  // ---- overshoot --------------------------------------------------------------------------------------------------------

  /**
   * Returns the maximum limit that may have applied, including raises, or `undefined` if the budget may have had no enforced limit at some time.
   */
  private mostOf({ ending, raises, terms }: Budgeted, unit: Unit): number | undefined {
    if (ending || terms.some(({ limit, mode }) => mode === "notify" || limit[unit] === undefined)) return undefined
    const most = Math.max(...terms.map(({ limit }) => limit[unit]!))
    return unit === "mills" ? sumOf([most, ...raises]) : most
  }

  private overshoot(budget: Budgeted): void {
    if (!this.isChecked(budget)) return
    const calls = this.certain(budget)
    for (const unit of units) {
      const most = this.mostOf(budget, unit)
      // Other calls can use the tokens of a released call before that call settles.
      if (most === undefined || (unit === "tokens" && this.world.lapses.length > 0)) continue
      for (const used of this.usedBy(budget, calls, unit))
        if (used > most) this.find(`${budget.name} of ${most} ${unitTexts[unit]} let through ${used}`)
    }
  }

  /** Returns the calls' usage in each period, or the maximum number of open calls for `concurrent`. */
  private usedBy(budget: Budgeted, calls: ReadonlyArray<Call>, unit: Unit): ReadonlyArray<number> {
    if (unit === "concurrent") return [this.openAtOnce(calls)]
    const used = new Map<number, Array<number>>()
    const add = (period: number, amount: number) => used.set(period, [...(used.get(period) ?? []), amount])
    for (const call of calls)
      if (unit !== "requests")
        for (const record of this.recordsOf(call)) add(periodOf(budget, wallOf(record)), amountOf(unit, record))
      else if (call.seen.length > 0) {
        const period = periodOf(budget, call.asked[0]!.wallFrom)
        if (period === periodOf(budget, call.seen[0]!.wall)) add(period, 1)
      }
    return [...used.values()].map(sumOf)
  }

  /** Returns the maximum number of calls that were certainly open at the same time, because their vendors were working on them. */
  private openAtOnce(calls: ReadonlyArray<Call>): number {
    const { ends } = this.world.computer
    const changes: Array<readonly [at: number, by: number]> = []
    for (const { asked, seen } of calls) {
      const [first] = seen
      if (first === undefined || first.manner.kind !== "late" || asked.length > 1) continue
      const until = Math.min(
        first.at + first.manner.millis,
        asked[0]!.until === 0 ? never : asked[0]!.until,
        ends.get(first.life) ?? never,
        ...this.world.lapses.filter((at) => at >= asked[0]!.from)
      )
      if (until > first.at) changes.push([first.at, 1], [until, -1])
    }
    let [open, most] = [0, 0]
    for (const [, by] of changes.sort(([at, by], [otherAt, otherBy]) => at - otherAt || by - otherBy))
      most = Math.max(most, (open += by))
    return most
  }

  // ---- what was shown ---------------------------------------------------------------------------------------------------

  private look(look: Look): void {
    const { from, of, shown, wallFrom, wallUntil } = look
    const { open_calls, reserved, spent } = shown
    const isQuiet = from >= this.quiet
    if (isQuiet && (reserved.usd !== 0 || reserved.tokens !== 0 || open_calls !== 0))
      this.find(
        `${of.name} has ${reserved.usd} USD and ${reserved.tokens} tokens reserved for ${open_calls} open calls in a quiet world`
      )
    const full = {
      mills: sumOf([millsOf(spent.usd), millsOf(reserved.usd)]),
      tokens: spent.tokens + reserved.tokens,
      requests: spent.requests,
      concurrent: open_calls
    }
    for (const unit of units) {
      const most = this.mostOf(of, unit)
      if (most !== undefined && full[unit] > most && (unit !== "tokens" || this.world.lapses.length === 0))
        this.find(`${of.name} of ${most} ${unitTexts[unit]} shows ${full[unit]}`)
    }
    const period = periodOf(of, wallFrom)
    if (period !== periodOf(of, wallUntil) || !this.isChecked(of) || (this.isBack && !isQuiet)) return
    for (const unit of ["mills", "tokens"] as const)
      this.agree(look, unit, unit === "mills" ? millsOf(spent.usd) : spent.tokens, period, isQuiet)
    this.requests(look, period)
    if (!isQuiet || shown.by_model === undefined) return
    const sum = sumOf(shown.by_model.map(({ cost_usd }) => millsOf(cost_usd)))
    if (sum !== millsOf(spent.usd)) this.find(`${of.name} shows ${spent.usd} USD, but its models ${sum / 1_000}`)
  }

  /** Reports a shown amount that is below the minimum or above the maximum of the charges. */
  private agree(
    { from, of, wallUntil }: Look,
    unit: "mills" | "tokens",
    shown: number,
    period: number,
    quiet: boolean
  ) {
    const inPeriod = (call: Call) => this.recordsOf(call).filter((record) => wallOf(record) >= period)
    const settled = this.certain(of).filter((call) => quiet || isOver(call, from))
    const least = sumOf(settled.flatMap(inPeriod).map((record) => amountOf(unit, record)))
    const most = sumOf(
      [...this.possible(of).flatMap(inPeriod), ...this.others(of, period)]
        .filter((record) => this.isBack || wallOf(record) <= wallUntil)
        .map((record) => amountOf(unit, record))
    )
    if (shown < least || shown > most)
      this.find(
        `${of.name} shows ${shown} ${unit === "mills" ? "thousandths of a USD" : unit} as spent, but its calls used ${least === most ? least : `${least} to ${most}`}`
      )
  }

  private requests({ from, of, shown, until }: Look, period: number): void {
    const least = this.certain(of).filter(
      ({ asked, seen }) => seen.length > 0 && seen[0]!.at < from && asked[0]!.wallFrom >= period
    ).length
    const most = this.hasTools(of)
      ? never
      : this.possible(of).flatMap((call) =>
          call.asked.filter((asked) => {
            const last = Math.max(asked.until === 0 ? never : asked.wallUntil, ...call.seen.map(({ wall }) => wall))
            return !isRefused(call, asked) && asked.from <= until && last + minute >= period
          })
        ).length
    const { requests } = shown.spent
    if (requests < least || requests > most)
      this.find(`${of.name} shows ${requests} requests, but at least ${least} and at most ${most} were admitted`)
  }

  // ---- refusals ---------------------------------------------------------------------------------------------------------

  private refusal(call: Call, asked: Asked): void {
    const { heard } = asked
    if (heard === undefined || !heard.complete || (heard.status !== 402 && heard.status !== 429)) return
    const id = /"budget_id":\s*"([^"]+)"/.exec(heard.text)?.[1]
    if (id === undefined) return
    const shown = /"unit":\s*"([a-z]+)"/.exec(heard.text)?.[1]
    const unit = shown === "usd" ? "mills" : (shown as Unit)
    const budget = this.budgets.all.find((one) => one.id === id)
    // A budget's id is unknown if its creation got no response and the budget was then deleted.
    if (budget === undefined) return this.find(`call ${call.id} was refused by ${id}, which no one created`)
    if (!countsCall(budget, call)) return this.find(`call ${call.id} was refused by ${budget.name} of other people`)
    if (asked.from > budget.ended && budget.kind === "budget")
      return this.find(`call ${call.id} was refused by ${budget.name}, which had been deleted`)
    const terms = budget.terms.filter((one) => mayApply(budget.terms, one, asked))
    if (terms.every(({ mode }) => mode === "notify"))
      return this.find(`call ${call.id} was refused by ${budget.name}, which only notifies`)
    const limits = terms.flatMap(({ limit, mode }) => (mode === "notify" ? [] : (limit[unit] ?? [])))
    if (limits.length === 0)
      return this.find(`call ${call.id} was refused by ${budget.name}, which does not limit ${unitTexts[unit]}`)
    const used = this.mostUsed(budget, call, asked, unit)
    if (used + needOf(call, unit) <= Math.min(...limits))
      this.find(
        `call ${call.id} was refused by ${budget.name} of ${Math.min(...limits)} ${unitTexts[unit]}, of which at most ${used} were used`
      )
  }

  /** Returns the maximum that other calls may have used and reserved when a call was refused, or `never` if that is unknown. */
  private mostUsed(budget: Budgeted, refused: Call, { from, until, wallFrom }: Asked, unit: Unit): number {
    if (!this.isChecked(budget) || this.hasTools(budget) || refused.asked.length > 1) return never
    const period = periodOf(budget, wallFrom)
    const used = this.possible(budget).flatMap((call) => {
      if (call === refused) return []
      const attempts = call.asked.filter((asked) => asked.from <= until && !isRefused(call, asked)).length
      if (attempts === 0) return []
      const over = isOver(call, from)
      if (unit === "concurrent") return over ? [] : [attempts]
      if (unit === "requests") return [attempts]
      const costs = this.recordsOf(call).filter((record) => wallOf(record) >= period)
      const cost = sumOf(costs.map((record) => amountOf(unit, record)))
      const isKnown = over && this.recordsOf(call).length > 0
      return [isKnown ? cost : Math.max(cost, attempts * needOf(call, unit))]
    })
    return sumOf(used)
  }

  // ---- runs -------------------------------------------------------------------------------------------------------------

  private ended(): void {
    for (const { asked, id, runs } of this.world.calls)
      for (const { from, heard, wallFrom } of asked) {
        if (heard?.complete !== true || heard.status !== 200) continue
        const over = runs.find(({ ended, expires }) => from > ended || (!this.isBack && wallFrom > expires))
        if (over !== undefined) this.find(`call ${id} was served under ${over.name}, which had ended`)
      }
  }
}

/** Returns whether all of the call's attempts had succeeded before this time. A response completes only after the settlement. */
const isOver = ({ asked }: Call, at: number): boolean =>
  asked.every(({ heard, until }) => heard?.complete === true && heard.status === 200 && until < at)

/** Returns whether this attempt was certainly not admitted. */
const isRefused = ({ seen }: Call, { heard }: Asked): boolean =>
  seen.length === 0 && heard?.complete === true && refusals.has(heard.status)

const refusals: ReadonlySet<number> = new Set([400, 401, 402, 403, 409, 429])

const mayApply = (all: ReadonlyArray<Terms>, one: Terms, { from, until }: Asked): boolean =>
  one.from <= until && !all.some((later) => later !== one && later.from >= one.until && later.until <= from)

/** Returns the maximum that a call can reserve in this unit, or `never` without a completion limit. A prompt's tokens cannot exceed its bytes. */
const needOf = ({ deed, words }: Call, unit: Unit): number => {
  if (unit === "requests" || unit === "concurrent") return 1
  const answer = limitIn(deed)
  if (answer === undefined) return never
  const prompt = 2 * words + 400
  return unit === "tokens" ? prompt + answer : Number(priceOf(deed.model, prompt, answer)) / 1e6
}
