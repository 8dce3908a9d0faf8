/** Money and prices: exact from the literal to the answer. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { amountMax, fromDecimal, toDecimal, toNumber } from "../../src/kernel/Money.ts"
import { affordable, charge } from "../../src/kernel/Price.ts"
import type { UnitPrice } from "../../src/kernel/Price.ts"

describe("a decimal literal", () => {
  it.each([
    ["1.005", 2, 101n],
    ["2.675", 2, 268n],
    ["1.004999999999999999", 2, 100n],
    ["0.1", 9, 100_000_000n],
    ["4.2e-8", 9, 42n],
    ["1e9", 9, 10n ** 18n],
    ["-1.005", 2, -101n],
    ["0.0000000005", 9, 1n],
    ["0.00000000049", 9, 0n],
    ["5e-400", 9, 0n],
    ["0e9999", 9, 0n]
  ])("%s at %i places is %s", (text, places, expected) => {
    expect(fromDecimal(text, places)).toBe(expected)
  })

  it.each(["", ".", "1.2.3", "abc", "1e99999", "0x10", "Infinity", "NaN", "1,5", " 1"])("%j is none", (text) => {
    expect(fromDecimal(text, 9)).toBeUndefined()
  })
})

describe("an amount", () => {
  it("is written and read back exactly, up to 10^9 USD", () => {
    fc.assert(
      fc.property(fc.bigInt(-amountMax, amountMax), (amount) => {
        expect(fromDecimal(toDecimal(amount), 9)).toBe(amount)
      })
    )
  })

  it("is shown without binary noise", () => {
    expect(toNumber(fromDecimal("0.1", 9)! + fromDecimal("0.2", 9)!)).toBe(0.3)
    fc.assert(
      fc.property(fc.bigInt(-8_000_000_000_000_000n, 8_000_000_000_000_000n), (amount) => {
        expect(fromDecimal(String(toNumber(amount)), 9)).toBe(amount)
      })
    )
  })
})

describe("a charge", () => {
  const price = (atto: bigint) => atto as UnitPrice

  it("may have a price finer than money, and is rounded once, half-up", () => {
    // 37.5 nano-USD a token.
    expect(charge([{ units: 1, price: price(37_500_000_000n) }])).toBe(38n)
    expect(charge([{ units: 2, price: price(37_500_000_000n) }])).toBe(75n)
    expect(
      charge([
        { units: 1, price: price(37_500_000_000n) },
        { units: 1, price: price(37_500_000_000n) }
      ])
    ).toBe(75n)
  })

  it("is the nearest nano-USD to the exact sum", () => {
    const line = fc.record({ units: fc.nat(1_000_000), price: fc.bigInt(0n, 10n ** 15n).map(price) })
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
        const exact = lines.reduce((sum, { price, units }) => sum + BigInt(units) * price, 0n)
        const off = charge(lines) * 1_000_000_000n - exact
        expect(off > -500_000_000n && off <= 500_000_000n).toBe(true)
      })
    )
  })

  it("affords what it says that it affords, and not one unit more", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 12n), fc.bigInt(1n, 10n ** 14n).map(price), (amount, price) => {
        const units = affordable(amount, price)
        if (units === Number.POSITIVE_INFINITY) return
        expect(BigInt(units) * price <= amount * 1_000_000_000n).toBe(true)
        expect(BigInt(units + 1) * price > amount * 1_000_000_000n).toBe(true)
      })
    )
  })
})
