/** An amount in a request. It must be above 0 and at most `amountMax`. It is never rounded. */
import { ParseResult, Schema } from "effect"
import { Decimal } from "./Decimal.ts"
import { amountMax, fromDecimal, toDecimal, toJson } from "./Money.ts"
import type { Nano } from "./Money.ts"

const rule = `a decimal number above 0 and up to ${toDecimal(amountMax)}, with at most 9 places`

/** Parses a decimal literal. Returns `undefined` if the amount is out of range or would have to be rounded. */
export const amountOf = (text: string): Nano | undefined => {
  const amount = text.length > 40 ? undefined : fromDecimal(text, 9)
  const isExact = amount !== undefined && fromDecimal(text, 18) === amount * 1_000_000_000n
  return isExact && amount > 0n && amount <= amountMax ? amount : undefined
}

export const Amount: Schema.Schema<Nano, number | Decimal> = Schema.transformOrFail(
  Schema.Union(Schema.JsonNumber, Schema.instanceOf(Decimal)).annotations({
    message: () => ({ message: `must be ${rule}`, override: true })
  }),
  Schema.BigIntFromSelf,
  {
    strict: true,
    decode: (number, _, ast) => {
      const amount = amountOf(String(number))
      return amount === undefined
        ? ParseResult.fail(new ParseResult.Type(ast, number, `must be ${rule}`))
        : ParseResult.succeed(amount)
    },
    encode: (amount) => ParseResult.succeed(toJson(amount))
  }
).annotations({ jsonSchema: { type: "number", description: rule } })
