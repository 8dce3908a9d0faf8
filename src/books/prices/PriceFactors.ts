/**
 * Factors on prices: a markup or a discount, as an exact decimal. A factor multiplies each unit price before a charge is summed and rounded,
 * so it is a part of the price's version, of the bound that a call reserves, and of its explanation.
 *
 * Where the specification is silent:
 * - A unit price has at most 18 places. One that a factor makes finer is rounded half-up there, in its version, once for all calls.
 * - The factor of the tenant whose credential calls counts, for any payer. A factor of its own goes before that of its plan.
 */
import { Context, Layer, ParseResult, Schema } from "effect"
import { divideHalfUp, fromDecimal } from "../../kernel/Money.ts"
import type { UnitPrice } from "../../kernel/Price.ts"

/** `text` is the decimal of the configuration, `millionths` its value. */
export interface PriceFactor {
  readonly text: string
  readonly millionths: bigint
}

const million = 1_000_000n
const rule = 'a decimal number above 0 and up to 1000, as text, with at most 6 places: "1.15"'

/** A factor in the configuration. 1 is no factor. */
export const PriceFactor: Schema.Schema<PriceFactor, string | number> = Schema.transformOrFail(
  Schema.Union(Schema.String, Schema.JsonNumber).annotations({ message: () => ({ message: rule, override: true }) }),
  Schema.declare((value): value is PriceFactor => typeof value === "object"),
  {
    strict: true,
    decode: (literal, _, ast) => {
      const text = String(literal)
      const millionths = text.length > 20 ? undefined : fromDecimal(text, 6)
      const isExact = millionths !== undefined && fromDecimal(text, 12) === millionths * million
      return isExact && millionths > 0n && millionths <= 1_000n * million
        ? ParseResult.succeed({ text, millionths })
        : ParseResult.fail(new ParseResult.Type(ast, literal, rule))
    },
    encode: ({ text }) => ParseResult.succeed(text)
  }
)

export const isOne = ({ millionths }: PriceFactor): boolean => millionths === million

/** The unit price at a factor. */
export const times = (price: UnitPrice, { millionths }: PriceFactor): UnitPrice =>
  divideHalfUp(price * millionths, million) as UnitPrice

export interface PriceFactorsContract {
  /** The factor for calls of a tenant; `undefined` at list price. It is asked for each call, and looks into memory only. */
  readonly of: (tenant: string) => PriceFactor | undefined
  /** Every factor that `of` may answer. */
  readonly all: ReadonlyArray<PriceFactor>
}

export class PriceFactors extends Context.Tag("tollgate/prices/PriceFactors")<PriceFactors, PriceFactorsContract>() {
  /** Everyone pays list prices. */
  static readonly layerNone = Layer.succeed(PriceFactors, { of: () => undefined, all: [] })
}
