/**
 * Exact amounts in USD. An amount is a number if a double can represent all its digits, and a string otherwise (see `app/Client.ts`).
 * Calculations use a `bigint` in nano-USD: `nano` converts to it, and `usd` converts back to a string.
 */

export type Usd = number | string

const digits = 9
const scale = 10n ** BigInt(digits)

/** Converts an amount to nano-USD. Truncates finer digits, which occur in unit prices. Returns 0 for text that is not a decimal. */
export const nano = (amount: Usd): bigint => {
  const text = typeof amount === "number" ? withoutExponent(amount) : amount
  const parts = /^(-?)(\d*)(?:\.(\d*))?$/.exec(text)
  if (parts === null) return 0n
  const [, sign, whole, fraction = ""] = parts
  const value = BigInt(whole || "0") * scale + BigInt(fraction.slice(0, digits).padEnd(digits, "0"))
  return sign === "-" ? -value : value
}

/** Formats a number without an exponent: `1e-7` becomes `0.0000001`. */
const withoutExponent = (value: number): string => {
  const text = String(value)
  return /e/i.test(text) ? value.toFixed(Math.abs(value) < 1 ? 18 : 0).replace(/\.?0+$/, "") : text
}

/** Converts nano-USD to a decimal string in USD, in the contract's format: `5.98432175`. */
export const usd = (value: bigint): string => {
  const absolute = value < 0n ? -value : value
  const fraction = (absolute % scale).toString().padStart(digits, "0").replace(/0+$/, "")
  const text = `${absolute / scale}${fraction === "" ? "" : `.${fraction}`}`
  return value < 0n ? `-${text}` : text
}

export const sum = (amounts: Iterable<Usd>): bigint => {
  let total = 0n
  for (const amount of amounts) total += nano(amount)
  return total
}

/** Converts an amount to a double for use in a plot. `plotted` formats such values. */
export const approximate = (amount: Usd): number => Number(amount)

const formats = new Map<string, Intl.NumberFormat>()
const format = (minPlaces: number, maxPlaces: number): Intl.NumberFormat => {
  const name = `${minPlaces} ${maxPlaces}`
  const made =
    formats.get(name) ??
    new Intl.NumberFormat(undefined, {
      style: "currency",
      currency: "USD",
      currencyDisplay: "narrowSymbol",
      minimumFractionDigits: minPlaces,
      maximumFractionDigits: maxPlaces
    })
  formats.set(name, made)
  return made
}

const literal = (value: bigint): Intl.StringNumericLiteral => usd(value) as Intl.StringNumericLiteral

/** Formats an amount with all its digits, and at least two decimal places: `$5.98432175`. */
export const exact = (amount: Usd): string => format(2, digits).format(literal(nano(amount)))

/** Formats a plotted value with all its digits. Below nine million dollars, a double is exact to the nano-USD. */
export const plotted = (value: number): string => exact(usd(BigInt(Math.round(value * 1e9))))

/** A formatted amount in parts. Views dim `rest`, the digits after the cents. */
export interface Parts {
  readonly head: string
  readonly rest: string
  /** The space and the currency, in languages that put them after the number. */
  readonly tail: string
}

/** Splits an amount into its parts. `minPlaces` and `maxPlaces` limit the number of decimal places. */
export const parts = (amount: Usd, minPlaces = 2, maxPlaces = digits): Parts => {
  let head = ""
  let rest = ""
  let tail = ""
  let isPastFraction = false
  for (const { type, value } of format(minPlaces, maxPlaces).formatToParts(literal(nano(amount)))) {
    if (type === "fraction") {
      head += value.slice(0, 2)
      rest = value.slice(2)
      isPastFraction = true
    } else if (isPastFraction) tail += value
    else head += value
  }
  return { head, rest, tail }
}

/** Returns the number of decimal places for three significant digits, from 2 to 9: 2 for 12.5, 6 for 0.000123. */
export const shortDigits = (amount: Usd): number => {
  const value = nano(amount)
  const absolute = value < 0n ? -value : value
  if (absolute === 0n || absolute >= scale) return 2
  const leading = digits - absolute.toString().length
  return Math.min(digits, Math.max(2, leading + 3))
}

/** Formats an amount to three significant digits, and at least two decimal places: `$0.000123`. */
export const short = (amount: Usd): string => format(2, shortDigits(amount)).format(literal(nano(amount)))
