/**
 * A vendor's bill, in a form common to all vendors. Its lines are grouped by UTC day, model and kind of token, and by call if the vendor lists calls.
 */
import { amountMax, fromDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"

/** The kinds of billed items. `all` is a single amount for all tokens of a model. `other` is a charge for anything but a model's usage. */
export const billedKinds = [
  "input",
  "cached_input",
  "cache_write",
  "cache_write_1h",
  "output",
  "request",
  "all",
  "other"
] as const
export type BilledKind = (typeof billedKinds)[number]

export interface BilledLine {
  /** The UTC day: `2026-03-01`. */
  readonly day: string
  /** The vendor's name for the model, or the name of a charge that belongs to no model. */
  readonly model: string
  readonly kind: BilledKind
  /** The number of tokens, or of requests for `request`. Null if the line states none. */
  readonly quantity: number | null
  /** Null if the line reports usage without a price. */
  readonly amount: Nano | null
  /** The precision of the amount: the unit of its last digit, but at least one nano-USD. A sum of lines adds up their precisions. */
  readonly resolution: Nano
  /** The number of requests. Only one line per day and model states it. */
  readonly requests?: number | undefined
  /** The service tier, such as `batch` or `priority`. Absent for the standard tier. */
  readonly tier?: string | undefined
  /** The vendor's id of the call. */
  readonly call?: string | undefined
}

/** A range of UTC days, both inclusive. */
export interface BillWindow {
  readonly first: string
  readonly last: string
}

/** Thrown if a bill cannot be read. The message must not contain a credential. */
export class NoBill extends Error {}

export interface Amount {
  readonly amount: Nano
  readonly resolution: Nano
}

const amountLengthMax = 64

/** Reads a decimal number in units of 10^-`minor` USD (2 for cents), rounded half-up to nano-USD. Throws `NoBill` for any other value. */
export const amountIn = (value: unknown, minor = 0): Amount => {
  const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : ""
  const amount = text.length > amountLengthMax ? undefined : fromDecimal(text, 9 - minor)
  if (amount === undefined || amount > amountMax || amount < -amountMax)
    throw new NoBill(`${JSON.stringify(text.slice(0, 40))} is not an amount`)
  const exponent = Number(/e([+-]?\d+)$/i.exec(text)?.[1] ?? 0)
  const digits = (/\.(\d*)/.exec(text)?.[1]?.length ?? 0) - exponent
  const places = 9 - minor - digits
  return { amount, resolution: places > 0 && places <= 9 ? 10n ** BigInt(places) : 1n }
}

const shortly = (value: unknown): string => JSON.stringify(value).slice(0, 40)

/** Reads a count of tokens or requests. A missing count is 0. Throws `NoBill` for any other value. */
export const countIn = (value: unknown): number => {
  if (value === undefined || value === null) return 0
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value
  throw new NoBill(`${shortly(value)} is not a count`)
}

export type Json = Readonly<Record<string, unknown>>

export const objectIn = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {}

export const listIn = (value: unknown, name: string): ReadonlyArray<Json> => {
  if (Array.isArray(value)) return value.map(objectIn)
  throw new NoBill(`the response contains no list ${name}`)
}

export const textIn = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** Throws `NoBill` for any currency other than USD. */
export const inUsd = (currency: unknown): void => {
  if (typeof currency !== "string" || currency.toLowerCase() !== "usd")
    throw new NoBill(`${shortly(currency ?? null)} is not USD`)
}
