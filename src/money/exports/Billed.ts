/**
 * Divides a charge among the lines of its price.
 *
 * Where the specification is silent:
 * - The amounts of a call's lines are exact, and the charge is their sum rounded once to nano-USD, less the part that the balance did not cover. The
 *   charge is divided in proportion to the lines. The parts are whole nano-USD and add up to the charge exactly.
 * - If the price lines do not explain a call's charge, the call has one line: one request at the price of the charge. Examples are a call with an
 *   unknown price version, and a failed call that was charged.
 * - A line's list price is its price divided by the factors that it includes, rounded half-up to 18 decimal places.
 */
import { fromDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { billed, unitWords } from "../../books/prices/Lines.ts"
import type { PriceLine } from "../../books/prices/Lines.ts"
import type { ExportedCall } from "./Export.ts"

/** A part of a call's charge. */
export interface Part {
  /** The priced quantity, such as `prompt_tokens`. For `units`, their name, such as `image`. `call` if the price lines do not explain the charge. */
  readonly meter: string
  /** The singular name of the meter's unit, such as `cached prompt token`. */
  readonly word: string
  /** The price's unit, such as `token`. */
  readonly unit: string
  /** Set if the price applies only to prompts with more tokens than this. */
  readonly above: number | undefined
  readonly quantity: number
  readonly list_price: UnitPrice
  readonly price: UnitPrice
  /** The part of the charge, in nano-USD. */
  readonly charge: Nano
}

const attoInNano = 1_000_000_000n
const million = 1_000_000n

const listPriceOf = ({ factors, price }: PriceLine): UnitPrice => {
  let [dividend, divisor] = [price as bigint, 1n]
  for (const factor of factors ?? []) {
    dividend *= million
    divisor *= fromDecimal(factor, 6)!
  }
  return ((dividend + divisor / 2n) / divisor) as UnitPrice
}

const wholeCall = ({ charge }: ExportedCall): Part => {
  const price = (charge * attoInNano) as UnitPrice
  const [meter, word, unit] = ["call", "request", "request"]
  return { meter, word, unit, above: undefined, quantity: 1, list_price: price, price, charge }
}

/** Returns the parts of a charge, in price line order. Their charges add up to the call's. */
export const partsOf = (call: ExportedCall): ReadonlyArray<Part> => {
  const lines = billed(call.lines, { ...call, requests: 1 }).filter(({ units }) => units > 0)
  const total = lines.reduce((sum, { price, units }) => sum + BigInt(units) * price, 0n)
  if (total === 0n || charge(lines) !== call.charge + call.uncollected) return [wholeCall(call)]
  let [exact, assigned] = [0n, 0n]
  return lines.map(({ line, price, units }): Part => {
    exact += BigInt(units) * price
    const before = assigned
    assigned = (call.charge * exact) / total
    return {
      meter: line.quantity === "units" ? line.unit.replaceAll(" ", "_") : line.quantity,
      word: unitWords[line.quantity] ?? line.unit,
      unit: line.unit,
      above: line.above,
      quantity: units,
      list_price: listPriceOf(line),
      price,
      charge: assigned - before
    }
  })
}
