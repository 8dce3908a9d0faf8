/** Joins calls by the vendor's id, so that each difference identifies its call. */
import { toDay } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { BilledKind, BilledLine, BillWindow } from "../../upstream/billing/Bill.ts"
import { nanoOf } from "./Reconciliation.ts"
import type { Cause, Compared, Difference, Expected, Joined, MeteredCall } from "./Reconciliation.ts"

interface BilledCall {
  readonly id: string
  readonly day: string
  readonly model: string
  readonly kinds: Map<BilledKind, number>
  amount: Nano
  resolution: Nano
  tier: string | undefined
}

const billedCalls = (lines: ReadonlyArray<BilledLine>): ReadonlyMap<string, BilledCall> => {
  const calls = new Map<string, BilledCall>()
  for (const { amount, call: id = "", day, kind, model, quantity, resolution, tier } of lines) {
    let call = calls.get(id)
    if (call === undefined)
      calls.set(id, (call = { id, day, model, kinds: new Map(), amount: 0n, resolution: 0n, tier: undefined }))
    if (quantity !== null && kind !== "all" && kind !== "request")
      call.kinds.set(kind, (call.kinds.get(kind) ?? 0) + quantity)
    if (amount !== null) {
      call.amount += amount
      call.resolution += resolution
    }
    call.tier ??= tier
  }
  return calls
}

const attoOf = ({ kinds }: MeteredCall): bigint =>
  Object.values(kinds).reduce((sum, { atto }: Expected) => sum + atto, 0n)

const tokensOf = (kinds: MeteredCall["kinds"], kind: BilledKind): number => kinds[kind]?.quantity ?? 0

/**
 * Prices the difference between billed and metered tokens at the metered price of each kind. Returns that price in 10^-18 USD, and the difference in
 * tokens.
 */
const atOwnPrices = (own: MeteredCall, { kinds }: BilledCall): { readonly atto: bigint; readonly tokens: number } => {
  let atto = 0n
  let tokens = 0
  for (const kind of new Set([...kinds.keys(), ...(Object.keys(own.kinds) as ReadonlyArray<BilledKind>)])) {
    if (kind === "request") continue
    const more = (kinds.get(kind) ?? 0) - tokensOf(own.kinds, kind)
    const mine = own.kinds[kind]
    tokens += more
    if (more === 0) continue
    // A kind that was not metered is priced like the prompt's other tokens.
    const priced = mine !== undefined && mine.quantity > 0 ? mine : own.kinds.input
    if (priced !== undefined && priced.quantity > 0) atto += (priced.atto * BigInt(more)) / BigInt(priced.quantity)
  }
  return { atto, tokens }
}

const differs = (own: MeteredCall, { kinds }: BilledCall): boolean =>
  kinds.size > 0 && [...kinds].some(([kind, quantity]) => quantity !== tokensOf(own.kinds, kind))

const compareCall = (own: MeteredCall, billed: BilledCall): ReadonlyArray<Difference> => {
  const expected = nanoOf(attoOf(own))
  const difference = billed.amount - expected
  const line = (cause: Cause, amount: Nano, quantity: number | null, note: string | null = null): Difference => ({
    day: toDay(own.hour),
    model: own.model,
    kind: "all",
    cause,
    amount,
    quantity,
    note,
    call: billed.id,
    usage_id: own.usage_id
  })
  if (own.failed > 0) return difference === 0n ? [] : [line("failed_here", difference, null)]
  const found: Array<Difference> = []
  let left = difference
  if (differs(own, billed)) {
    const { atto, tokens } = atOwnPrices(own, billed)
    const amount = nanoOf(atto)
    const cause: Cause = tokens === 0 ? "kind" : own.cut > 0 && tokens > 0 ? "cut_stream" : "quantity"
    // A changed kind is priced at the vendor's price.
    found.push(line(cause, cause === "kind" ? difference : amount, tokens))
    left -= cause === "kind" ? difference : amount
  }
  if (left === 0n) return found
  const isRounding = (left < 0n ? -left : left) <= billed.resolution + 1n
  const cause: Cause = isRounding ? "rounding" : billed.tier !== undefined ? "kind" : "price"
  return [...found, line(cause, left, null, billed.tier ?? null)]
}

/** Returns the difference for a billed call that is not the last attempt of any record. */
const unknownCall = (billed: BilledCall, retriedBy: MeteredCall | undefined): Difference => ({
  day: billed.day,
  model: billed.model,
  kind: "all",
  cause: retriedBy === undefined ? "coverage" : "retry",
  amount: billed.amount,
  quantity: [...billed.kinds.values()].reduce((sum, tokens) => sum + tokens, 0),
  note: null,
  call: billed.id,
  usage_id: retriedBy?.usage_id ?? null
})

const notBilled = (own: MeteredCall): ReadonlyArray<Difference> => {
  const amount = -nanoOf(attoOf(own))
  if (amount === 0n) return []
  const { call = null, hour, model, usage_id } = own
  return [
    { day: toDay(hour), model, kind: "all", cause: "not_billed", amount, quantity: null, note: null, call, usage_id }
  ]
}

class Sums {
  private readonly groups = new Map<string, Compared>()

  add(day: string, model: string, more: Partial<Omit<Compared, "day" | "model">>): void {
    const key = `${day}\n${model}`
    const before = this.groups.get(key) ?? { day, model, billed: 0n, expected: 0n, charged: 0n, requests: 0 }
    this.groups.set(key, {
      day,
      model,
      billed: before.billed + (more.billed ?? 0n),
      expected: before.expected + (more.expected ?? 0n),
      charged: before.charged + (more.charged ?? 0n),
      requests: before.requests + (more.requests ?? 0)
    })
  }

  get list(): ReadonlyArray<Compared> {
    return [...this.groups.values()].toSorted((a, b) => (a.day + a.model < b.day + b.model ? -1 : 1))
  }
}

/** Joins calls by id. A call that occurs on both sides counts on its metered day. Metered calls outside the window serve only for lookup. */
export const joinCalls = (
  calls: ReadonlyArray<MeteredCall>,
  lines: ReadonlyArray<BilledLine>,
  { first, last }: BillWindow
): Joined => {
  const billed = billedCalls(lines)
  const retriedBy = new Map(calls.flatMap((own) => own.retried.map((id) => [id, own] as const)))
  const known = new Set<string>()
  const sums = new Sums()
  const differences: Array<Difference> = []
  const isWithin = (day: string) => day >= first && day <= last
  for (const own of calls) {
    const day = toDay(own.hour)
    const theirs = own.call === undefined ? undefined : billed.get(own.call)
    if (theirs !== undefined) known.add(theirs.id)
    if (!isWithin(day)) continue
    const { charged, model, requests } = own
    sums.add(day, model, { expected: nanoOf(attoOf(own)), charged, requests, billed: theirs?.amount ?? 0n })
    differences.push(...(theirs === undefined ? notBilled(own) : compareCall(own, theirs)))
  }
  for (const theirs of billed.values()) {
    if (known.has(theirs.id) || !isWithin(theirs.day)) continue
    sums.add(theirs.day, theirs.model, { billed: theirs.amount })
    differences.push(unknownCall(theirs, retriedBy.get(theirs.id)))
  }
  return { compared: sums.list, differences }
}
