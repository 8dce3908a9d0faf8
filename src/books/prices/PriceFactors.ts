/**
 * Price factors: markups or discounts, written as exact decimals. Each unit price is multiplied by the factor before a charge is summed and rounded.
 * The factor is therefore part of the price's version, the reserved bound and the explanation of the charge.
 *
 * Where the specification is silent:
 * - A unit price has at most 18 decimal places. A product with more decimal places is rounded half-up once, when the price version is made.
 * - The factor of the credential's tenant applies, no matter which account pays. A tenant's own factor takes precedence over the factor of its plan.
 */
import { Context, Layer, ParseResult, Schema } from "effect"
import { divideHalfUp, fromDecimal } from "../../kernel/Money.ts"
import type { UnitPrice } from "../../kernel/Price.ts"

/** A factor. `text` is the decimal in the configuration, and `millionths` is its value. */
export interface PriceFactor {
  readonly text: string
  readonly millionths: bigint
}

const million = 1_000_000n
const rule = 'must be a decimal number above 0 and at most 1000, with at most 6 decimal places, such as "1.15"'

/** A factor in the configuration. The value 1 means no factor. */
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

export const times = (price: UnitPrice, { millionths }: PriceFactor): UnitPrice =>
  divideHalfUp(price * millionths, million) as UnitPrice

export interface PriceFactorsContract {
  /** Returns the factor for a tenant's calls; `undefined` means the list price. Called for every call, so it must read only from memory. */
  readonly of: (tenant: string) => PriceFactor | undefined
  /** Every factor that `of` can return. */
  readonly all: ReadonlyArray<PriceFactor>
}

export class PriceFactors extends Context.Tag("tollgate/prices/PriceFactors")<PriceFactors, PriceFactorsContract>() {
  /** Makes all tenants pay list prices. */
  static readonly layerNone = Layer.succeed(PriceFactors, { of: () => undefined, all: [] })
}
