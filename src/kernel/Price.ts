/**
 * Unit prices, which may be finer than money, such as 37.5 nano-USD per token. They are exact integers of 10^-18 USD. A charge is summed exactly and
 * rounded half-up once, to nano-USD.
 */
import { ParseResult, Schema } from "effect"
import { divideHalfUp, fromDecimal } from "./Money.ts"
import type { Nano } from "./Money.ts"

/** A price per unit, in 10^-18 USD. Its scale differs from money, and `charge` converts it. */
export type UnitPrice = bigint & { readonly UnitPrice: unique symbol }

const attoInNano = 1_000_000_000n

/** A number of units at a price. `units` is an integer: tokens, characters, images, milliseconds. */
export interface Line {
  readonly units: number
  readonly price: UnitPrice
}

/** The total price of the lines. */
export const charge = (lines: ReadonlyArray<Line>): Nano => {
  let atto = 0n
  for (const { price, units } of lines) atto += BigInt(units) * price
  return divideHalfUp(atto, attoInNano)
}

/** The maximum number of units that `amount` can buy at the price; `Infinity` if they are free or too many for a number. */
export const affordable = (amount: Nano, price: UnitPrice): number => {
  const units = price === 0n ? undefined : (amount * attoInNano) / price
  return units === undefined || units > BigInt(Number.MAX_SAFE_INTEGER) - 1n ? Number.POSITIVE_INFINITY : Number(units)
}

/** The price of one unit in USD, as a decimal string: `0.00000015`. */
export const toDecimal = (price: UnitPrice): string => {
  const fraction = (price % 10n ** 18n).toString().padStart(18, "0").replace(/0+$/, "")
  return `${price / 10n ** 18n}${fraction === "" ? "" : `.${fraction}`}`
}

/** A price in the configuration: a decimal (text or number) in USD per `units` units. The resolution is 10^-18 USD per unit. */
export const UsdPer = (units: 1 | 1_000 | 1_000_000): Schema.Schema<UnitPrice, string | number> => {
  const places = 18 - String(units).length + 1
  return Schema.transformOrFail(
    Schema.Union(Schema.String, Schema.JsonNumber),
    Schema.declare((value): value is UnitPrice => typeof value === "bigint"),
    {
      strict: true,
      decode: (literal, _, ast) => {
        const price = fromDecimal(String(literal), places)
        return price === undefined || price < 0n
          ? ParseResult.fail(new ParseResult.Type(ast, literal, "a price is a decimal number of USD, zero or more"))
          : ParseResult.succeed(price as UnitPrice)
      },
      encode: (price) => ParseResult.succeed(toDecimal((price * BigInt(units)) as UnitPrice))
    }
  )
}
