/**
 * Money as exact integers of nano-USD (10^-9 USD; 1 credit = 1 USD). Amounts are decimal literals on the wire, and are read from database rows as
 * text.
 *
 * Where the specification is silent:
 * - Money appears as a JSON number with all its digits. An amount that a double cannot represent (possible only above 8 million USD) is a
 *   `kernel/Decimal` until `http/transport/Json` or `http/transport/Reply` writes it. In a request, a number of this size is read from its literal.
 */
import { ParseResult, Schema } from "effect"
import { Decimal } from "./Decimal.ts"

/** An amount in nano-USD. */
export type Nano = bigint

export const usd: Nano = 1_000_000_000n
/** One cent, in nano-USD. */
export const cent: Nano = usd / 100n

/** The maximum amount in the books: 10^9 USD. */
export const amountMax: Nano = 1_000_000_000n * usd

const literal = /^([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/

/**
 * Parses a decimal literal as an integer of 10^-`places`. Further digits are rounded half-up (away from zero). Returns `undefined` if the string is
 * not a decimal literal or the number is too large.
 */
export const fromDecimal = (text: string, places: number): bigint | undefined => {
  const match = literal.exec(text)
  if (match === null) return undefined
  const [, sign, whole = "0", fraction = "", exponent = "0"] = match
  const digits = BigInt(whole + fraction)
  const shift = places - fraction.length + Number(exponent)
  // A number this small is zero.
  if (shift < -400) return 0n
  if (shift > 400) return digits === 0n ? 0n : undefined
  const magnitude = shift >= 0 ? digits * 10n ** BigInt(shift) : divideHalfUp(digits, 10n ** BigInt(-shift))
  return sign === "-" ? -magnitude : magnitude
}

/** Divides two non-negative integers and rounds half-up. */
export const divideHalfUp = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor / 2n) / divisor

/** Formats an amount in USD as an exact decimal string, such as `-0.000000042`, `12` or `0.3`. */
export const toDecimal = (amount: Nano): string => {
  const magnitude = amount < 0n ? -amount : amount
  const fraction = (magnitude % usd).toString().padStart(9, "0").replace(/0+$/, "")
  return `${amount < 0n ? "-" : ""}${magnitude / usd}${fraction === "" ? "" : `.${fraction}`}`
}

/** 2^23 USD. Above this, adjacent doubles differ by more than a nano-USD. */
const doubleMax: Nano = 8_388_608n * usd

/**
 * Converts the amount to a JSON number in USD with all its digits. The result is a double if a double is exact (always up to 8 million USD),
 * otherwise a `Decimal`.
 */
export const toJson = (amount: Nano): number | Decimal => {
  if (amount > -doubleMax && amount < doubleMax) return Number(amount) / 1e9
  const literal = toDecimal(amount)
  return String(Number(literal)) === literal ? Number(literal) : new Decimal(literal)
}

/** Money on the wire: a JSON number in USD. It is read from its decimal literal and rounded half-up to nano-USD. */
export const Usd: Schema.Schema<Nano, number | Decimal> = Schema.transformOrFail(
  Schema.Union(Schema.JsonNumber, Schema.instanceOf(Decimal)).annotations({
    message: () => ({ message: "a number", override: true })
  }),
  Schema.BigIntFromSelf,
  {
    strict: true,
    decode: (number, _, ast) => {
      const amount = fromDecimal(String(number), 9)
      return amount === undefined
        ? ParseResult.fail(new ParseResult.Type(ast, number, "must be an amount in USD"))
        : ParseResult.succeed(amount)
    },
    encode: (amount) => ParseResult.succeed(toJson(amount))
  }
).annotations({ identifier: "Usd", jsonSchema: { type: "number", description: "USD; 1 credit = 1 USD" } })

/** Reads money from a row. The column must be selected as `CAST(column AS TEXT)`, because the driver's numbers lose digits above 2^53. */
export const fromRow = (text: string): Nano => BigInt(text)
