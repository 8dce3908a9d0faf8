/** Prices finer than money: exact until the one rounding of a charge. */
import { Either, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { affordable, charge, toDecimal, UsdPer } from "../../src/kernel/Price.ts"
import type { UnitPrice } from "../../src/kernel/Price.ts"

const price = (atto: bigint) => atto as UnitPrice

/** 37.5 nano-USD a token. */
const halves = price(37_500_000_000n)

describe("a charge", () => {
  it.each([
    [1, 38n],
    [2, 75n],
    [3, 113n],
    [1_000_001, 37_500_038n]
  ])("of %i tokens at 37.5 nano-USD is %s", (units, expected) => {
    expect(charge([{ units, price: halves }])).toBe(expected)
  })

  it("is rounded once, not a line at a time", () => {
    const line = { units: 1, price: halves }
    expect(charge([line, line])).toBe(75n)
    expect(charge([])).toBe(0n)
  })

  it("is the exact sum of fractions, rounded half-up", () => {
    const line = fc.record({ units: fc.nat(10_000_000), price: fc.bigInt(0n, 10n ** 18n).map(price) })
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
        // A fraction of nano-USD, numerator over 10^9: twice the charge less one is at most twice the sum, and so on.
        const sum = lines.reduce((sum, { price, units }) => sum + BigInt(units) * price, 0n)
        const nano = charge(lines)
        expect((2n * nano - 1n) * 10n ** 9n <= 2n * sum).toBe(true)
        expect((2n * nano + 1n) * 10n ** 9n > 2n * sum).toBe(true)
      })
    )
  })
})

describe("what an amount affords", () => {
  it("is as many units as it pays for, and not one more", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 12n), fc.bigInt(1n, 10n ** 14n).map(price), (amount, price) => {
        const units = affordable(amount, price)
        fc.pre(units !== Number.POSITIVE_INFINITY)
        expect(BigInt(units) * price <= amount * 1_000_000_000n).toBe(true)
        expect(BigInt(units + 1) * price > amount * 1_000_000_000n).toBe(true)
      })
    )
  })

  it("has no end where a unit is free, or there are more than can be counted", () => {
    expect(affordable(0n, price(0n))).toBe(Number.POSITIVE_INFINITY)
    expect(affordable(10n ** 18n, price(1n))).toBe(Number.POSITIVE_INFINITY)
    expect(affordable(0n, price(1n))).toBe(0)
  })
})

describe("a price in the configuration", () => {
  it.each([
    [1, "0.000000042", 42_000_000_000n],
    [1, 4.2e-8, 42_000_000_000n],
    [1_000, "0.0375", 37_500_000_000_000n],
    [1_000_000, "0.0375", 37_500_000_000n],
    [1_000_000, 0.15, 150_000_000_000n],
    [1_000_000, "0", 0n],
    [1_000_000, "0.0000000000005", 1n],
    [1_000_000, "0.0000000000004", 0n]
  ] as const)("per %i units of %s", (units, literal, expected) => {
    expect(Schema.decodeUnknownSync(UsdPer(units))(literal)).toBe(expected)
  })

  it.each(["-1", -0.01, "free", "", "1e9999", "NaN", null, true, Number.NaN])("%j is none", (literal) => {
    expect(Either.isLeft(Schema.decodeUnknownEither(UsdPer(1))(literal))).toBe(true)
  })

  it.each([1, 1_000, 1_000_000] as const)("per %i units is written and read back exactly", (units) => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 24n).map(price), (one) => {
        const written = Schema.encodeSync(UsdPer(units))(one)
        expect(Schema.decodeUnknownSync(UsdPer(units))(written)).toBe(one)
      })
    )
  })

  it("is shown for one unit", () => {
    expect(toDecimal(halves)).toBe("0.0000000375")
    expect(toDecimal(price(0n))).toBe("0")
    expect(toDecimal(price(25n * 10n ** 17n))).toBe("2.5")
  })
})
