/** No token is charged twice and none is left out, whatever lines a price has and whatever a vendor reports. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { charge } from "../../../src/kernel/Price.ts"
import { completionDetails, detailNames, promptDetails } from "../../../src/kernel/TokenDetails.ts"
import type { TokenDetails } from "../../../src/kernel/TokenDetails.ts"
import { billed, linesAt, priced } from "../../../src/books/prices/Lines.ts"
import type { Figures, PriceLine, Quantity } from "../../../src/books/prices/Lines.ts"

const price = fc.bigInt(0n, 10n ** 15n) as fc.Arbitrary<UnitPrice>
const lineOf = (quantity: Quantity, price: UnitPrice, above?: number): PriceLine => ({
  quantity,
  unit: "token",
  price,
  ...(above !== undefined && { above })
})
const detailLines = fc
  .dictionary(fc.constantFrom(...detailNames), price)
  .map((prices) => Object.entries(prices).map(([name, price]) => lineOf(name as Quantity, price as UnitPrice)))
const lines = fc
  .tuple(
    price,
    price,
    detailLines,
    fc.array(
      fc.tuple(fc.integer({ min: 1, max: 400 }), fc.constantFrom("prompt_tokens" as const, ...detailNames), price)
    )
  )
  .map(([prompt, completion, details, tiers]): ReadonlyArray<PriceLine> => [
    lineOf("prompt_tokens", prompt),
    lineOf("completion_tokens", completion),
    ...details,
    lineOf("requests", 7n as UnitPrice),
    ...tiers.map(([above, quantity, price]) => lineOf(quantity, price, above))
  ])

/** Details that can be: those of a total are together no more than it. */
const figures: fc.Arbitrary<Figures> = fc
  .tuple(
    fc.nat(300),
    fc.nat(300),
    fc.array(fc.nat(50), { minLength: detailNames.length, maxLength: detailNames.length })
  )
  .map(([plain, answer, counts]) => {
    const token_details: TokenDetails = Object.fromEntries(detailNames.map((name, i) => [name, counts[i]!]))
    const sum = (names: ReadonlyArray<keyof TokenDetails>) => names.reduce((n, name) => n + token_details[name]!, 0)
    const prompt_tokens = plain + sum(promptDetails)
    const completion_tokens = answer + sum(completionDetails)
    return { prompt_tokens, completion_tokens, units: 1, requests: 1, token_details }
  })

const ofPrompt = new Set<Quantity>(["prompt_tokens", ...promptDetails])

describe("the lines of a price", () => {
  it("charge each token once: by its own line, or that of what it is a part of", () => {
    fc.assert(
      fc.property(lines, figures, (lines, figures) => {
        const bill = billed(lines, figures)
        expect(new Set(bill.map(({ line }) => line.quantity)).size).toBe(bill.length)
        const tokens = (of: boolean) =>
          bill
            .filter(({ line }) => line.quantity !== "requests" && ofPrompt.has(line.quantity) === of)
            .reduce((n, { units }) => n + units, 0)
        expect([tokens(true), tokens(false)]).toEqual([figures.prompt_tokens, figures.completion_tokens])
        for (const { units } of bill) expect(units).toBeGreaterThanOrEqual(0)
        expect(priced(lines, figures)).toBe(charge(bill))
      }),
      { numRuns: 3_000 }
    )
  })

  it("are a partition at every token: its price is that of the nearest line", () => {
    fc.assert(
      fc.property(lines, figures, (lines, figures) => {
        const counting = linesAt(lines, figures.prompt_tokens)
        const find = (...quantities: ReadonlyArray<Quantity>) =>
          quantities.map((one) => counting.find(({ quantity }) => quantity === one)).find((line) => line !== undefined)!
        const wholes: Partial<Record<Quantity, ReadonlyArray<Quantity>>> = {
          cached_audio_tokens: ["cached_tokens", "prompt_tokens"],
          cache_write_1h_tokens: ["cache_write_tokens", "prompt_tokens"]
        }
        let exact = find("requests").price as bigint
        let [prompt, completion] = [figures.prompt_tokens, figures.completion_tokens]
        for (const name of detailNames) {
          const tokens = figures.token_details![name]!
          const isPrompt = ofPrompt.has(name)
          const own = find(name, ...(wholes[name] ?? [isPrompt ? "prompt_tokens" : "completion_tokens"]))
          exact += BigInt(tokens) * own.price
          if (isPrompt) prompt -= tokens
          else completion -= tokens
        }
        exact += BigInt(prompt) * find("prompt_tokens").price + BigInt(completion) * find("completion_tokens").price
        expect(priced(lines, figures)).toBe(charge([{ units: 1, price: exact as UnitPrice }]))
      }),
      { numRuns: 3_000 }
    )
  })

  it("for longer prompts count above so many tokens, and the highest of them", () => {
    const one = (above: number | undefined, price: bigint) => lineOf("prompt_tokens", price as UnitPrice, above)
    const lines = [one(undefined, 1n), one(200, 2n), one(100, 3n)]
    expect([0, 100, 101, 200, 201].map((tokens) => linesAt(lines, tokens)[0]?.price)).toEqual([1n, 1n, 3n, 3n, 2n])
  })
})
