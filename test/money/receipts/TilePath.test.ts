import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { pathOfTile, tileOfPath } from "../../../src/money/receipts/TilePath.ts"

describe("the path of a tile", () => {
  it("is that of the specification", () => {
    expect(pathOfTile({ level: 2, n: 1_234_067, width: 256 })).toBe("2/x001/x234/067")
    expect(pathOfTile({ level: 0, n: 7, width: 112 })).toBe("0/007.p/112")
  })

  it("of more entries than an integer can count is not read", () => {
    expect(tileOfPath(`0/${"x999/".repeat(7)}999`)).toBeUndefined()
  })

  it("is read back, and no other path is read as a tile", () => {
    const tiles = fc.record({
      level: fc.nat(63),
      n: fc.oneof(fc.nat(2_000), fc.nat(2 ** 40)),
      width: fc.integer({ min: 1, max: 256 })
    })
    fc.assert(fc.property(tiles, (tile) => void expect(tileOfPath(pathOfTile(tile))).toEqual(tile)))
    const characters = fc.constantFrom(..."0123456789x/.p")
    fc.assert(
      fc.property(fc.string({ unit: characters, maxLength: 14 }), (path) => {
        const tile = tileOfPath(path)
        if (tile !== undefined) expect(pathOfTile(tile)).toBe(path)
      }),
      { numRuns: 2_000 }
    )
  })
})
