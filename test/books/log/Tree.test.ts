/** The tree against the definitions of RFC 6962, written out naively. */
import { describe, expect, it } from "vitest"
import fc from "fast-check"
import { hash } from "node:crypto"
import * as Tree from "../../../src/books/log/Tree.ts"
import type { Edge, TileKey } from "../../../src/books/log/Tree.ts"

const sha = (...parts: ReadonlyArray<Uint8Array>): Buffer => hash("sha256", Buffer.concat(parts), "buffer")
const split = (n: number): number => 2 ** Math.floor(Math.log2(n - 1))

/** MTH of RFC 6962, section 2.1. */
const mth = (leaves: ReadonlyArray<string>): Buffer => {
  if (leaves.length === 0) return sha()
  if (leaves.length === 1) return sha(Buffer.of(0), Buffer.from(leaves[0]!))
  const k = split(leaves.length)
  return sha(Buffer.of(1), mth(leaves.slice(0, k)), mth(leaves.slice(k)))
}

/** PATH of RFC 6962, section 2.1.1. */
const path = (m: number, leaves: ReadonlyArray<string>): ReadonlyArray<Buffer> => {
  if (leaves.length === 1) return []
  const k = split(leaves.length)
  return m < k
    ? [...path(m, leaves.slice(0, k)), mth(leaves.slice(k))]
    : [...path(m - k, leaves.slice(k)), mth(leaves.slice(0, k))]
}

/** SUBPROOF of RFC 6962, section 2.1.2. */
const subproof = (m: number, leaves: ReadonlyArray<string>, isWhole: boolean): ReadonlyArray<Buffer> => {
  if (m === leaves.length) return isWhole ? [] : [mth(leaves)]
  const k = split(leaves.length)
  return m <= k
    ? [...subproof(m, leaves.slice(0, k), isWhole), mth(leaves.slice(k))]
    : [...subproof(m - k, leaves.slice(k), false), mth(leaves.slice(0, k))]
}

const leavesOf = (size: number): ReadonlyArray<string> => Array.from({ length: size }, (_, i) => `leaf ${i}`)

/** A tree with the tiles that it wrote, appended in pieces of these sizes. */
const built = (leaves: ReadonlyArray<string>, pieces: ReadonlyArray<number>) => {
  const tiles = new Map<string, Uint8Array>()
  let edge: Edge = Tree.emptyEdge
  for (let from = 0, i = 0; from < leaves.length; i++) {
    const to = Math.min(leaves.length, from + pieces[i % pieces.length]!)
    const made = Tree.append(edge, Buffer.concat(leaves.slice(from, to).map(Tree.leafHash)))
    for (const { hashes, level, n } of made.changed) tiles.set(`${level}/${n}`, hashes)
    edge = made.edge
    from = to
  }
  return { edge, tiles, tileOf: ({ level, n }: TileKey) => tiles.get(`${level}/${n}`)! }
}

const sizes = fc.oneof(fc.integer({ min: 1, max: 700 }), fc.constantFrom(1, 2, 255, 256, 257, 511, 512, 513))
const pieces = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 })

describe("the tree of the log", () => {
  it("has the root of RFC 6962, however its leaves were appended", () => {
    fc.assert(
      fc.property(sizes, pieces, (size, pieces) => {
        const leaves = leavesOf(size)
        const { edge } = built(leaves, pieces)
        expect(edge.size).toBe(size)
        expect(Tree.rootOf(edge).toString("hex")).toBe(mth(leaves).toString("hex"))
      }),
      { numRuns: 60 }
    )
    expect(Tree.rootOf(Tree.emptyEdge)).toEqual(mth([]))
  })

  it("has the tiles of the specification", () => {
    const { edge, tiles } = built(leavesOf(70_000), [5_000, 17])
    const widths = (level: number) =>
      [...tiles].flatMap(([key, hashes]) => (key.startsWith(`${level}/`) ? [hashes.length / Tree.hashSize] : []))
    expect(widths(0).filter((width) => width === 256)).toHaveLength(273)
    expect(tiles.get("0/273")!.length / Tree.hashSize).toBe(112)
    expect(widths(1)).toEqual([256, 17])
    expect(widths(2)).toEqual([1])
    expect([0, 1, 2].map((level) => Tree.edgeWidth(70_000, level))).toEqual([112, 17, 1])
    expect(edge.tiles.map((tile) => tile.length / Tree.hashSize)).toEqual([112, 17, 1])
    expect([0, 1, 255, 256, 65_535, 65_536].map(Tree.levelsOf)).toEqual([0, 1, 1, 2, 2, 3])
  })

  it("proves each leaf as RFC 6962 does, also to an earlier size", () => {
    fc.assert(
      fc.property(sizes, fc.nat(300), pieces, fc.nat(), (size, later, pieces, at) => {
        const leaves = leavesOf(size + later)
        const index = at % size
        const { tileOf } = built(leaves, pieces)
        const ranges = Tree.inclusionRanges(index, size)
        expect(Tree.rootsOf(ranges, tileOf)).toEqual(path(index, leaves.slice(0, size)))
        for (const key of Tree.tilesOf(ranges)) expect(tileOf(key)).toBeDefined()
      }),
      { numRuns: 40 }
    )
  })

  it("proves that it only grew, as RFC 6962 does", () => {
    fc.assert(
      fc.property(sizes, fc.nat(300), pieces, (old, more, pieces) => {
        const leaves = leavesOf(old + more)
        const { tileOf } = built(leaves, pieces)
        expect(Tree.rootsOf(Tree.consistencyRanges(old, old + more), tileOf)).toEqual(subproof(old, leaves, true))
      }),
      { numRuns: 40 }
    )
  })
})
