/** Sums a vendor's days and models, in nano-USD. */
import type { Schemas } from "../app/Client.ts"
import { bookDay } from "../moments.ts"
import { nano, sum } from "../money.ts"

export type Period = Schemas["ReconciliationPeriod"]
export type Cause = Schemas["ReconciledDifference"]["cause"]

/** A vendor's bill next to the metered calls. `drift` is `billed` minus `expected`. */
export interface Compared {
  readonly billed: bigint
  readonly expected: bigint
  readonly charged: bigint
  readonly requests: number
}

export const drift = ({ billed, expected }: Compared): bigint => billed - expected

export interface Group extends Compared {
  readonly key: string
  readonly name: string
  /** The group's day or model; `undefined` if the rows are not grouped by it. */
  readonly day: string | undefined
  readonly model: string | undefined
}

export type Grouping = "day" | "model" | "row"

const keyOf = ({ day, model }: Period["rows"][number], by: Grouping): Pick<Group, "day" | "key" | "model" | "name"> => {
  switch (by) {
    case "day":
      return { key: day, name: bookDay(day), day, model: undefined }
    case "model":
      return { key: model, name: model, day: undefined, model }
    case "row":
      return { key: `${day} ${model}`, name: `${bookDay(day)} · ${model}`, day, model }
  }
}

const plus = (group: Group, row: Period["rows"][number]): Group => ({
  ...group,
  billed: group.billed + nano(row.billed),
  expected: group.expected + nano(row.expected),
  charged: nano(row.charged) + group.charged,
  requests: group.requests + row.requests
})

const nothing: Compared = { billed: 0n, expected: 0n, charged: 0n, requests: 0 }

/** Sums a period. The amounts come from `days`, because `rows` can be truncated. `requests` covers only `rows`. */
export const totalOf = ({ days, rows }: Period): Compared => ({
  billed: sum(days.map(({ billed }) => billed)),
  expected: sum(days.map(({ expected }) => expected)),
  charged: sum(days.map(({ charged }) => charged)),
  requests: rows.reduce((total, { requests }) => total + requests, 0)
})

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value)

/** Groups rows. Days are sorted newest first, and models by the size of their drift, largest first. */
export const groupsOf = (rows: Period["rows"], by: Grouping): ReadonlyArray<Group> => {
  const groups = new Map<string, Group>()
  for (const row of rows) {
    const named = keyOf(row, by)
    groups.set(named.key, plus(groups.get(named.key) ?? { ...nothing, ...named }, row))
  }
  const list = [...groups.values()]
  return by === "model"
    ? list.toSorted((a, b) => (magnitude(drift(b)) > magnitude(drift(a)) ? 1 : -1))
    : list.toSorted((a, b) => (a.day! < b.day! ? 1 : -1))
}

export interface CauseSum {
  readonly cause: Cause
  readonly amount: bigint
  readonly lines: number
}

/** Sums the causes of all days, largest amount first. */
export const causesOf = (days: Period["days"]): ReadonlyArray<CauseSum> => {
  const sums = new Map<Cause, CauseSum>()
  for (const { amount, cause, lines } of days.flatMap(({ causes }) => causes)) {
    const before = sums.get(cause) ?? { cause, amount: 0n, lines: 0 }
    sums.set(cause, { cause, amount: nano(amount) + before.amount, lines: before.lines + lines })
  }
  return [...sums.values()].toSorted((a, b) => (magnitude(b.amount) > magnitude(a.amount) ? 1 : -1))
}

/** Returns the share of the bill that known calls account for, from 0 to 1. The service computes a day's coverage in the same way. */
export const coverageOf = (billed: bigint, causes: ReadonlyArray<CauseSum>): number => {
  const unknown = causes.find(({ cause }) => cause === "coverage")?.amount ?? 0n
  if (billed <= 0n) return unknown > 0n ? 0 : 1
  return Math.max(0, 1 - Number(unknown) / Number(billed))
}
