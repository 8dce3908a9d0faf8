import { describe, expect, it } from "vitest"
import { decode, encode, inOrder, Merge } from "../../../src/books/ledger/totals/RecordOrder.ts"
import type { Direction, RecordOrder } from "../../../src/books/ledger/totals/RecordOrder.ts"
import { valueOf } from "../../../src/books/ledger/totals/Varints.ts"
import type { Value } from "../../../src/books/ledger/totals/Varints.ts"

const large = 2n ** 63n - 1n

const places = (...pairs: ReadonlyArray<readonly [Value, number]>): RecordOrder => ({
  values: pairs.map(([value]) => value),
  seqs: pairs.map(([, seq]) => seq)
})

const merged = (direction: Direction, ...orders: ReadonlyArray<RecordOrder>) => {
  const merge = new Merge<number>(direction)
  for (const [i, order] of orders.entries()) merge.add(i, order)
  const pairs: Array<readonly [Value, number]> = []
  while (!merge.isEmpty) merge.drain(3, (value, seq) => void pairs.push([value, seq]))
  return pairs
}

describe("RecordOrder", () => {
  it("a block comes back as it was, whatever its numbers", () => {
    for (const block of [
      places([0, 1]),
      places([5, 9], [5, 12], [6, 3], [200, 2 ** 40]),
      places([-7, 3], [-7, 4], [0, 2], [300, 1]),
      places([0, 4], [Number.MAX_SAFE_INTEGER, 3], [valueOf(2n ** 53n), 2], [valueOf(2n ** 53n + 1n), 1], [large, 5]),
      places([-large, 1], [large, 2])
    ]) {
      expect(decode(encode(block), block.values[0]!)).toEqual(block)
    }
    expect(decode(encode(places()), 0)).toEqual(places())
  })

  it("orders by value, and equal values by record", () => {
    expect(inOrder(places([3, 1], [large, 2], [1, 3], [3, 4], [1, 5]))).toEqual(
      places([1, 3], [1, 5], [3, 1], [3, 4], [large, 2])
    )
  })

  it.each(["asc", "desc"] as const)("merges many orders into one, %s", (direction) => {
    const all: Array<readonly [Value, number]> = Array.from({ length: 500 }, (_, i) => [(i * 7919) % 31, i])
    const orders = Array.from({ length: 7 }, (_, i) =>
      inOrder(places(...all.filter(([, seq]) => (seq * 31) % 11 === i)))
    )
    orders.push(inOrder(places(...all.filter(([, seq]) => (seq * 31) % 11 > 6))), places())
    const sign = direction === "asc" ? 1 : -1
    expect(merged(direction, ...orders)).toEqual(
      all.toSorted((a, b) => sign * (Number(a[0]) - Number(b[0]) || a[1] - b[1]))
    )
  })
})
