/**
 * RecordOrder of records in the order of a value: which value, which record. Of two that are equal the later record is the greater. Blocks of
 * them as bytes, and the merge of several orders into one.
 */
import { exactMax, valueOf, VarintReader, VarintWriter } from "./Varints.ts"
import type { Value } from "./Varints.ts"

export type Direction = "asc" | "desc"

/** RecordOrder in ascending order: the value and the `seq` of each. */
export interface RecordOrder {
  readonly values: ReadonlyArray<Value>
  readonly seqs: ReadonlyArray<number>
}

/** They add up as this does it, whichever of the two a value is. */
export const plus = (a: Value, b: Value): Value => {
  if (typeof a === "number" && typeof b === "number" && Math.abs(a + b) <= exactMax) return a + b
  return valueOf(BigInt(a) + BigInt(b))
}

export const minus = (a: Value, b: Value): Value => {
  if (typeof a === "number" && typeof b === "number" && Math.abs(a - b) <= exactMax) return a - b
  return valueOf(BigInt(a) - BigInt(b))
}

/** RecordOrder that were read in the order of `seq`, in that of the value. */
export const inOrder = ({ seqs, values }: RecordOrder): RecordOrder => {
  // A stable sort: equal values stay in the order of `seq`.
  const order = Array.from(values, (_, i) => i).sort((a, b) => {
    const [left, right] = [values[a]!, values[b]!]
    return left < right ? -1 : left > right ? 1 : 0
  })
  return { values: order.map((i) => values[i]!), seqs: order.map((i) => seqs[i]!) }
}

// ---- bytes --------------------------------------------------------------------------------------------------------------

/**
 * A block as bytes: the least `seq`, then of each place how much its value is above that before it (above `first` of the first), and how
 * far its `seq` is above the least.
 */
export const encode = ({ seqs, values }: RecordOrder): Uint8Array => {
  const numbers = new VarintWriter()
  const least = seqs.reduce((a, b) => Math.min(a, b), exactMax)
  numbers.put(least)
  let last = values[0] ?? 0
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!
    numbers.put(minus(value, last))
    numbers.put(seqs[i]! - least)
    last = value
  }
  return numbers.written()
}

/** The places of a block whose first value is `first`. */
export const decode = (bytes: Uint8Array, first: Value): RecordOrder => {
  const values: Array<Value> = []
  const seqs: Array<number> = []
  const numbers = new VarintReader(bytes)
  const least = numbers.number()
  let value = first
  while (!numbers.isDone) {
    value = plus(value, numbers.next())
    values.push(value)
    seqs.push(least + numbers.number())
  }
  return { values, seqs }
}

// ---- several orders as one ----------------------------------------------------------------------------------------------

/** An order under way: the block that it is in, and the place where it stands. */
interface Head {
  places: RecordOrder
  at: number
}

/**
 * Merges orders that are passed in block by block. `drain` yields places until a block is used up. The caller then passes in the next block
 * of that order, if there is one, and calls it again.
 */
export class Merge<Order> {
  // A heap: each stands before the two at twice its place and one or two beyond.
  private readonly heap: Array<Head & { readonly order: Order }> = []
  private readonly descending: boolean

  constructor(direction: Direction) {
    this.descending = direction === "desc"
  }

  /** Hands in the next block of an order, from the place `at` on. */
  add(order: Order, places: RecordOrder, at = this.descending ? places.seqs.length - 1 : 0): void {
    if (at < 0 || at >= places.seqs.length) return
    let place = this.heap.push({ order, places, at }) - 1
    while (place > 0) {
      const above = (place - 1) >> 1
      if (!this.isBefore(place, above)) return
      this.swap(place, above)
      place = above
    }
  }

  get isEmpty(): boolean {
    return this.heap.length === 0
  }

  /** Gives out up to `count` places, in order. Answers the order whose block is used up; `undefined` where `count` came first. */
  drain(count: number, give: (value: Value, seq: number) => void): Order | undefined {
    const step = this.descending ? -1 : 1
    for (let left = count; left > 0; left--) {
      const first = this.heap[0]!
      const { order, places } = first
      give(places.values[first.at]!, places.seqs[first.at]!)
      first.at += step
      if (first.at >= 0 && first.at < places.seqs.length) {
        this.sink()
        continue
      }
      const last = this.heap.pop()!
      if (this.heap.length > 0) {
        this.heap[0] = last
        this.sink()
      }
      return order
    }
    return undefined
  }

  /** Puts the first where it belongs. */
  private sink(): void {
    const { length } = this.heap
    for (let place = 0; ;) {
      let least = place
      for (let below = 2 * place + 1; below <= 2 * place + 2; below++) {
        if (below < length && this.isBefore(below, least)) least = below
      }
      if (least === place) return
      this.swap(place, least)
      place = least
    }
  }

  private isBefore(a: number, b: number): boolean {
    const [left, right] = [this.heap[a]!, this.heap[b]!]
    const [x, y] = [left.places.values[left.at]!, right.places.values[right.at]!]
    if (x !== y) return x < y !== this.descending
    return left.places.seqs[left.at]! < right.places.seqs[right.at]! !== this.descending
  }

  private swap(a: number, b: number): void {
    const head = this.heap[a]!
    this.heap[a] = this.heap[b]!
    this.heap[b] = head
  }
}
