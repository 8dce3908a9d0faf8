/** Money: exact from the literal to the answer. */
import { Either, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parseExact } from "../../src/http/transport/Json.ts"
import { write } from "../../src/kernel/Decimal.ts"
import { amountMax, divideHalfUp, fromDecimal, fromRow, toDecimal, toJson, Usd } from "../../src/kernel/Money.ts"

describe("a decimal literal", () => {
  it.each([
    ["1.005", 2, 101n],
    ["2.675", 2, 268n],
    ["1.004999999999999999", 2, 100n],
    ["1.", 2, 100n],
    ["+7", 0, 7n],
    ["007", 0, 7n],
    ["0.1", 9, 100_000_000n],
    ["4.2e-8", 9, 42n],
    ["42E-9", 9, 42n],
    ["4.2e+1", 0, 42n],
    ["1e9", 9, 10n ** 18n],
    ["123456789.987654321", 9, 123_456_789_987_654_321n],
    // Away from zero on either side.
    ["-1.005", 2, -101n],
    ["-1.0049", 2, -100n],
    ["-4.2e-8", 9, -42n],
    ["-0", 9, 0n],
    ["0.0000000005", 9, 1n],
    ["0.00000000049", 9, 0n],
    ["5e-400", 9, 0n],
    ["1e-9999", 9, 0n],
    ["-1e-9999", 9, 0n],
    ["0e9999", 9, 0n],
    ["1e300", 0, 10n ** 300n]
  ])("%s at %i places is %s", (text, places, expected) => {
    expect(fromDecimal(text, places)).toBe(expected)
  })

  it.each([
    "",
    ".",
    ".5",
    "-",
    "1.2.3",
    "abc",
    "1e",
    "1e9999",
    "-1e9999",
    "1e99999",
    "0x10",
    "Infinity",
    "NaN",
    "1,5",
    " 1",
    "1n",
    "1_0"
  ])("%j is none", (text) => {
    expect(fromDecimal(text, 9)).toBeUndefined()
  })

  it("is rounded half-up at any place, wherever its point stands", () => {
    const digits = fc.bigInt(0n, 10n ** 30n)
    fc.assert(
      fc.property(
        digits,
        fc.integer({ min: -20, max: 20 }),
        fc.integer({ min: 0, max: 18 }),
        (digits, exponent, places) => {
          const shift = places + exponent
          const expected = shift >= 0 ? digits * 10n ** BigInt(shift) : divideHalfUp(digits, 10n ** BigInt(-shift))
          expect(fromDecimal(`${digits}e${exponent}`, places)).toBe(expected)
          expect(fromDecimal(`-${digits}e${exponent}`, places)).toBe(-expected)
        }
      )
    )
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

  it.each([
    [0n, "0"],
    [-42n, "-0.000000042"],
    [12n * 10n ** 9n, "12"],
    [300_000_000n, "0.3"],
    [amountMax, "1000000000"]
  ])("%s nano-USD is written %s", (amount, text) => {
    expect(toDecimal(amount)).toBe(text)
  })

  it("is shown without binary noise", () => {
    expect(toJson(fromDecimal("0.1", 9)! + fromDecimal("0.2", 9)!)).toBe(0.3)
    fc.assert(
      fc.property(fc.bigInt(-8_000_000_000_000_000n, 8_000_000_000_000_000n), (amount) => {
        expect(fromDecimal(String(toJson(amount)), 9)).toBe(amount)
      })
    )
  })

  it("is a literal with all its digits in JSON, up to 10^9 USD, and is read from it", () => {
    const wire = Schema.Struct({ amount: Usd })
    const round = (amount: bigint) => {
      const text = write({ amount: Schema.encodeSync(Usd)(amount) })
      expect(fromDecimal(/^\{"amount":(.*)\}$/.exec(text)![1]!, 9)).toBe(amount)
      const read = Either.getOrThrow(parseExact(Buffer.from(text)))
      expect(Schema.decodeUnknownSync(wire)(read)).toEqual({ amount })
    }
    fc.assert(fc.property(fc.bigInt(-amountMax, amountMax), round), { numRuns: 2_000 })
    for (const amount of [
      -8_417_337_377_956_404n,
      8_388_607_999_999_999n,
      999_999_998_999_999_812n,
      amountMax,
      amountMax - 1n,
      -amountMax + 1n
    ])
      round(amount)
    expect(write({ balance: toJson(999_999_998_999_999_812n) })).toBe('{"balance":999999998.999999812}')
    // A number that was not sent to be money is what a double makes of it.
    expect(Either.getOrThrow(parseExact(Buffer.from("[0.1, 123456789012345, 1e300]")))).toEqual([
      0.1, 123456789012345, 1e300
    ])
  })

  it("comes from a row with all its digits", () => {
    expect(fromRow("999999999999999993")).toBe(999_999_999_999_999_993n)
  })
})

describe("money on the wire", () => {
  const decode = Schema.decodeUnknownEither(Usd)

  it("is a number, read by its literal", () => {
    expect(decode(1.005)).toEqual(Either.right(1_005_000_000n))
    expect(decode(4.2e-8)).toEqual(Either.right(42n))
    expect(decode(1e21)).toEqual(Either.right(10n ** 30n))
    expect(decode(-0.5)).toEqual(Either.right(-500_000_000n))
    expect(Schema.encodeSync(Usd)(300_000_000n)).toBe(0.3)
  })

  it.each(["1", null, true, Number.NaN, Number.POSITIVE_INFINITY, {}])("%j is none", (value) => {
    expect(Either.isLeft(decode(value))).toBe(true)
  })
})
