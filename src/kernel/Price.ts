/**
 * Unit prices, as exact integers of 10^-18 USD, because a price such as 37.5 nano-USD per token is finer than money. A charge is summed exactly
 * and then rounded once, half-up to nano-USD.
 */
import { ParseResult, Schema } from "effect"
import { divideHalfUp, fromDecimal } from "./Money.ts"
import type { Nano } from "./Money.ts"

/** A price per unit, in 10^-18 USD. `charge` converts it to the scale of money. */
export type UnitPrice = bigint & { readonly UnitPrice: unique symbol }

const attoInNano = 1_000_000_000n

/** A number of units at a unit price. `units` is a whole number, for example of tokens, characters, images or milliseconds. */
export interface Line {
  readonly units: number
  readonly price: UnitPrice
}

export const charge = (lines: ReadonlyArray<Line>): Nano => {
  let atto = 0n
  for (const { price, units } of lines) atto += BigInt(units) * price
  return divideHalfUp(atto, attoInNano)
}

/** Returns the number of units that `amount` buys, or `Infinity` if they are free or the number is not a safe integer. */
export const affordable = (amount: Nano, price: UnitPrice): number => {
  const units = price === 0n ? undefined : (amount * attoInNano) / price
  return units === undefined || units > BigInt(Number.MAX_SAFE_INTEGER) - 1n ? Number.POSITIVE_INFINITY : Number(units)
}

/** Formats the price per unit in USD as a decimal string, such as `0.00000015`. */
export const toDecimal = (price: UnitPrice): string => {
  const fraction = (price % 10n ** 18n).toString().padStart(18, "0").replace(/0+$/, "")
  return `${price / 10n ** 18n}${fraction === "" ? "" : `.${fraction}`}`
}

/**
 * Creates a schema for a price in the configuration: a decimal string or number in USD per `units` units. The price per unit is rounded to 10^-18
 * USD.
 */
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
          ? ParseResult.fail(new ParseResult.Type(ast, literal, "must be a non-negative decimal number of USD"))
          : ParseResult.succeed(price as UnitPrice)
      },
      encode: (price) => ParseResult.succeed(toDecimal((price * BigInt(units)) as UnitPrice))
    }
  )
}
