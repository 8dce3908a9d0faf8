/**
 * Joins the metered calls with a vendor's bill and finds the cause of each difference. The functions are pure: they convert two arrays to
 * differences. The differences for a day and model add up exactly to the bill minus the expected cost.
 *
 * Where the specification is silent:
 * - A call that the vendor lists is joined by the vendor's id. All other lines are joined by day, model and kind of token.
 * - A different time zone is accepted as a cause only if the metered hours, shifted by whole hours, match the vendor's quantities for every day
 *   exactly.
 * - A difference in quantity is priced at the metered price of its kind. The remainder is a difference in price, unless the vendor's last digits
 *   explain it.
 * - If the bill lists no calls, the vendor's number of requests distinguishes unknown calls from failed ones. Failed calls are considered first, then
 *   retries.
 */
import { day as dayMillis, hour as hourMillis, toDay } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { BilledKind, BilledLine, BillWindow } from "../../upstream/billing/Bill.ts"
import { joinCalls } from "./CallJoin.ts"
import { nameLookup } from "./ModelNames.ts"
import { attoInNano, magnitude, nanoOf } from "./Reconciliation.ts"
import type { Cause, Compared, Difference, Expected, Joined, Metered, MeteredCall } from "./Reconciliation.ts"

type Kinds = Map<BilledKind, Expected>

/** The metered sums for a model and day. */
interface Own {
  readonly kinds: Kinds
  requests: number
  failed: number
  cut: number
  retries: number
  charged: Nano
}

/** The billed sums for a model, day and kind. */
interface Charge {
  quantity: number | null
  amount: Nano | null
  /** The unit of the amounts' last digit. */
  resolution: Nano
  tier: string | undefined
}

/** The bill for a model and day. */
interface Theirs {
  readonly kinds: Map<BilledKind, Charge>
  requests: number | undefined
}

const emptyOwn = (): Own => ({ kinds: new Map(), requests: 0, failed: 0, cut: 0, retries: 0, charged: 0n })

const add = (own: Own, metered: Metered): void => {
  for (const [kind, { atto, quantity }] of Object.entries(metered.kinds) as ReadonlyArray<[BilledKind, Expected]>) {
    const before = own.kinds.get(kind) ?? { quantity: 0, atto: 0n }
    own.kinds.set(kind, { quantity: before.quantity + quantity, atto: before.atto + atto })
  }
  own.requests += metered.requests
  own.failed += metered.failed
  own.cut += metered.cut
  own.retries += metered.retries
  own.charged += metered.charged
}

type ByDay<A> = ReadonlyMap<string, A>

/** Sums a model by day, where the day begins `shift` hours after midnight UTC. */
const ownDays = (metered: ReadonlyArray<Metered>, { first, last }: BillWindow, shift: number): ByDay<Own> => {
  const days = new Map<string, Own>()
  for (const one of metered) {
    const day = toDay(one.hour - shift * hourMillis)
    if (day < first || day > last) continue
    let own = days.get(day)
    if (own === undefined) days.set(day, (own = emptyOwn()))
    add(own, one)
  }
  return days
}

const billedDays = (lines: ReadonlyArray<BilledLine>): ByDay<Theirs> => {
  const days = new Map<string, Theirs>()
  for (const line of lines) {
    let theirs = days.get(line.day)
    if (theirs === undefined) days.set(line.day, (theirs = { kinds: new Map(), requests: undefined }))
    if (line.requests !== undefined) theirs.requests = (theirs.requests ?? 0) + line.requests
    const charge = theirs.kinds.get(line.kind)
    if (charge === undefined) {
      const { amount, quantity, resolution, tier } = line
      theirs.kinds.set(line.kind, { quantity, amount, resolution: amount === null ? 0n : resolution, tier })
      continue
    }
    if (line.quantity !== null) charge.quantity = (charge.quantity ?? 0) + line.quantity
    if (line.amount !== null) {
      charge.amount = (charge.amount ?? 0n) + line.amount
      charge.resolution += line.resolution
    }
    charge.tier ??= line.tier
  }
  return days
}

/** Returns whether the metered tokens match the vendor's quantities on every day. */
const agrees = (own: ByDay<Own>, theirs: ByDay<Theirs>): boolean => {
  for (const day of new Set([...own.keys(), ...theirs.keys()])) {
    const kinds = theirs.get(day)?.kinds
    const mine = own.get(day)?.kinds
    for (const kind of new Set([...(kinds?.keys() ?? []), ...(mine?.keys() ?? [])])) {
      if (kind === "all") continue
      if ((kinds?.get(kind)?.quantity ?? 0) !== (mine?.get(kind)?.quantity ?? 0)) return false
    }
  }
  return true
}

const shifts = Array.from({ length: 27 }, (_, i) => i - 12)
  .filter((shift) => shift !== 0)
  .toSorted((a, b) => Math.abs(a) - Math.abs(b))

/** Returns the number of hours from midnight UTC to the start of the vendor's day. Returns 0 if the days agree or no shift explains them. */
const shiftOf = (metered: ReadonlyArray<Metered>, theirs: ByDay<Theirs>, window: BillWindow): number => {
  const isCounted = [...theirs.values()].some(({ kinds }) => [...kinds.values()].some(({ quantity }) => quantity))
  if (!isCounted || agrees(ownDays(metered, window, 0), theirs)) return 0
  return shifts.find((shift) => agrees(ownDays(metered, window, shift), theirs)) ?? 0
}

const expectedOf = (own: Own): Nano => nanoOf([...own.kinds.values()].reduce((sum, { atto }) => sum + atto, 0n))

const billedOf = (theirs: Theirs | undefined): Nano =>
  [...(theirs?.kinds.values() ?? [])].reduce((sum, { amount }) => sum + (amount ?? 0n), 0n)

class Found {
  readonly list: Array<Difference> = []
  readonly day: string
  readonly model: string

  constructor(day: string, model: string) {
    this.day = day
    this.model = model
  }

  add(cause: Cause, kind: BilledKind, amount: Nano, quantity: number | null, note: string | null = null): void {
    if (amount === 0n && (quantity === null || quantity === 0)) return
    const { day, model } = this
    this.list.push({ day, model, kind, cause, amount, quantity, note, call: null, usage_id: null })
  }

  get sum(): Nano {
    return this.list.reduce((sum, { amount }) => sum + amount, 0n)
  }
}

const promptKinds: ReadonlyArray<BilledKind> = ["input", "cached_input", "cache_write", "cache_write_1h"]

/** Returns the billed minus the expected tokens by kind. Omits a kind without a quantity. */
const quantitiesOf = (own: Own, theirs: Theirs): ReadonlyMap<BilledKind, number> => {
  const counted = new Map<BilledKind, number>()
  const isCounted = [...theirs.kinds.values()].some(({ quantity }) => quantity !== null)
  if (!isCounted) return counted
  for (const kind of new Set([...own.kinds.keys(), ...theirs.kinds.keys()])) {
    if (kind === "all" || kind === "request") continue
    const quantity = theirs.kinds.get(kind)?.quantity
    // A kind with an amount but no quantity was not counted. A kind without any line has no tokens.
    if (quantity === null) continue
    counted.set(kind, (quantity ?? 0) - (own.kinds.get(kind)?.quantity ?? 0))
  }
  return counted
}

/** Finds the cause of different token counts for a model and day. */
const causeOfQuantities = (own: Own, theirs: Theirs, counted: ReadonlyMap<BilledKind, number>): Cause => {
  const prompt = promptKinds.map((kind) => counted.get(kind) ?? 0)
  const output = counted.get("output") ?? 0
  if (output === 0 && prompt.some((tokens) => tokens !== 0) && prompt.reduce((a, b) => a + b, 0) === 0) return "kind"
  const more = theirs.requests === undefined ? undefined : theirs.requests - own.requests
  if (more !== undefined && more < 0) return "not_billed"
  const isMore = output > 0 || prompt.some((tokens) => tokens > 0)
  if (more === undefined || more > 0) {
    const least = more ?? 1
    if (isMore && own.failed >= least) return "failed_here"
    if (isMore && own.retries >= least) return "retry"
    if (more !== undefined) return own.failed + own.retries >= more && isMore ? "failed_here" : "coverage"
  }
  return output > 0 && own.cut > 0 && prompt.every((tokens) => tokens === 0) ? "cut_stream" : "quantity"
}

/** Prices tokens at the metered price of their kind, or at the vendor's price if the service metered none of that kind. */
const priceOf = (own: Own, theirs: Theirs, kind: BilledKind, tokens: number): Nano => {
  const mine = own.kinds.get(kind)
  if (mine !== undefined && mine.quantity > 0) return nanoOf((mine.atto * BigInt(tokens)) / BigInt(mine.quantity))
  const { amount = null, quantity = null } = theirs.kinds.get(kind) ?? {}
  return amount === null || quantity === null || quantity === 0
    ? 0n
    : nanoOf((amount * attoInNano * BigInt(tokens)) / BigInt(quantity))
}

/** Finds the cause of a difference that different token counts do not explain. */
const causeOfRest = (rest: Nano, tolerance: Nano, tier: string | undefined, isCounted: boolean): Cause => {
  if (magnitude(rest) <= tolerance) return "rounding"
  if (tier !== undefined) return "kind"
  return isCounted ? "price" : "unexplained"
}

/** Compares a model and day that occur on both sides. */
const compare = (found: Found, own: Own, theirs: Theirs): void => {
  const counted = quantitiesOf(own, theirs)
  const cause = causeOfQuantities(own, theirs, counted)
  const all = theirs.kinds.get("all")
  const isCounted = counted.size > 0
  const note = theirs.requests === undefined ? null : `${theirs.requests} billed requests, ${own.requests} metered`
  let rest = all === undefined ? 0n : (all.amount ?? 0n) - expectedOf(own)
  for (const kind of new Set([...own.kinds.keys(), ...theirs.kinds.keys()])) {
    if (kind === "all") continue
    const charge = theirs.kinds.get(kind)
    const tokens = counted.get(kind) ?? 0
    const amount = tokens === 0 ? 0n : priceOf(own, theirs, kind, tokens)
    if (all !== undefined) {
      if (tokens !== 0) found.add(cause, kind, amount, tokens, note)
      rest -= amount
      continue
    }
    const difference = (charge?.amount ?? 0n) - nanoOf(own.kinds.get(kind)?.atto ?? 0n)
    if (tokens !== 0) found.add(cause, kind, amount, tokens, note)
    // The vendor may have rounded each call's amount.
    const tolerance = (charge?.resolution ?? 0n) + BigInt(own.requests) + 1n
    const left = difference - amount
    if (left !== 0n) found.add(causeOfRest(left, tolerance, charge?.tier, isCounted), kind, left, null, charge?.tier)
  }
  if (all === undefined || rest === 0n) return
  const tolerance = all.resolution + BigInt(own.requests) + 1n
  found.add(causeOfRest(rest, tolerance, all.tier, isCounted), "all", rest, null)
}

/** Finds the differences for a model and day. `own` contains the metered calls of the vendor's day. */
const differencesOf = (day: string, model: string, own: Own | undefined, theirs: Theirs | undefined): Found => {
  const found = new Found(day, model)
  if (own === undefined || (own.requests === 0 && own.kinds.size === 0 && own.failed === 0 && own.retries === 0)) {
    for (const [kind, { amount, quantity }] of theirs?.kinds ?? [])
      found.add(kind === "other" ? "not_usage" : "coverage", kind, amount ?? 0n, quantity)
  } else if (theirs === undefined) {
    for (const [kind, { atto, quantity }] of own.kinds) found.add("not_billed", kind, -nanoOf(atto), -quantity)
  } else compare(found, own, theirs)
  return found
}

/** Makes the sum exact: each kind is rounded, but the total only once. */
const settleRounding = (found: Found, difference: Nano): void => {
  const left = difference - found.sum
  if (left !== 0n) found.add(magnitude(left) <= 16n ? "rounding" : "unexplained", "all", left, null)
}

const noteOf = (shift: number): string => `the vendor's day begins at ${shift < 0 ? shift + 24 : shift}:00 UTC`

const joinModel = (
  model: string,
  metered: ReadonlyArray<Metered>,
  lines: ReadonlyArray<BilledLine>,
  window: BillWindow
): Joined => {
  const theirs = billedDays(lines)
  const shift = shiftOf(metered, theirs, window)
  const own = ownDays(metered, window, 0)
  const moved = shift === 0 ? own : ownDays(metered, window, shift)
  const compared: Array<Compared> = []
  const differences: Array<Difference> = []
  for (const day of [...new Set([...own.keys(), ...moved.keys(), ...theirs.keys()])].toSorted()) {
    const found = differencesOf(day, model, moved.get(day), theirs.get(day))
    const mine = own.get(day) ?? emptyOwn()
    const expected = expectedOf(mine)
    if (shift !== 0)
      found.add("time_zone", "all", expectedOf(moved.get(day) ?? emptyOwn()) - expected, null, noteOf(shift))
    const billed = billedOf(theirs.get(day))
    settleRounding(found, billed - expected)
    compared.push({ day, model, billed, expected, charged: mine.charged, requests: mine.requests })
    differences.push(...found.list)
  }
  return { compared, differences }
}

export const grouped = <A>(list: ReadonlyArray<A>, keyOf: (one: A) => string): ReadonlyMap<string, Array<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const one of list) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return groups
}

/**
 * Joins the metered hours with the bill for these days. `metered` should include the hours of the adjacent days, to allow for other time zones. If
 * the bill lists calls, joins them by id.
 */
export const join = (
  metered: ReadonlyArray<Metered>,
  billed: ReadonlyArray<BilledLine>,
  window: BillWindow,
  calls: ReadonlyArray<MeteredCall> = []
): Joined => {
  const listed = billed.filter(({ call }) => call !== undefined)
  if (listed.length > 0) return joinCalls(calls, listed, window)
  const nameOf = nameLookup(new Set(metered.map(({ model }) => model)))
  const lines = grouped(
    billed.filter(({ day }) => day >= window.first && day <= window.last),
    ({ kind, model }) => (kind === "other" ? model : nameOf(model))
  )
  const own = grouped(metered, ({ model }) => model)
  const parts = [...new Set([...own.keys(), ...lines.keys()])]
    .toSorted()
    .map((model) => joinModel(model, own.get(model) ?? [], lines.get(model) ?? [], window))
  return {
    compared: parts.flatMap(({ compared }) => compared),
    differences: parts.flatMap(({ differences }) => differences)
  }
}

/** How much time a reader must add before and after the days to allow for other time zones, in milliseconds. */
export const marginMillis = dayMillis
