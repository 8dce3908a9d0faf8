/**
 * Orders records by a value, as pairs of value and `seq` called places. Among records with equal values, the later record is greater. Blocks of
 * places can be encoded as bytes, and orders can be merged.
 */
import { exactMax, valueOf, VarintReader, VarintWriter } from "./Varints.ts"
import type { Value } from "./Varints.ts"

export type Direction = "asc" | "desc"

/** Places in ascending order: the value and the `seq` of each. */
export interface RecordOrder {
  readonly values: ReadonlyArray<Value>
  readonly seqs: ReadonlyArray<number>
}

/** Adds two values. The result is a number if that is exact. */
export const plus = (a: Value, b: Value): Value => {
  if (typeof a === "number" && typeof b === "number" && Math.abs(a + b) <= exactMax) return a + b
  return valueOf(BigInt(a) + BigInt(b))
}

export const minus = (a: Value, b: Value): Value => {
  if (typeof a === "number" && typeof b === "number" && Math.abs(a - b) <= exactMax) return a - b
  return valueOf(BigInt(a) - BigInt(b))
}

/** Sorts places by value. The input must be in the order of `seq`. */
export const inOrder = ({ seqs, values }: RecordOrder): RecordOrder => {
  // The sort is stable, so equal values remain in the order of `seq`.
  const order = Array.from(values, (_, i) => i).sort((a, b) => {
    const [left, right] = [values[a]!, values[b]!]
    return left < right ? -1 : left > right ? 1 : 0
  })
  return { values: order.map((i) => values[i]!), seqs: order.map((i) => seqs[i]!) }
}

// ---- bytes --------------------------------------------------------------------------------------------------------------

/**
 * Encodes a block as bytes: the lowest `seq`, then two differences for each place. The first is its value minus the previous value (0 for the first
 * place). The second is its `seq` minus the lowest `seq`.
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

/** Decodes a block's places. `first` is its first value. */
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

/** An order's current block during a merge, and the position in it. */
interface Head {
  places: RecordOrder
  at: number
}

/**
 * Merges orders that are added block by block. `drain` passes on places until a block is exhausted. The caller then adds that order's next block, if
 * there is one, and calls `drain` again.
 */
export class Merge<Order> {
  // A binary heap. The children of the element at `i` are at `2 * i + 1` and `2 * i + 2`.
  private readonly heap: Array<Head & { readonly order: Order }> = []
  private readonly descending: boolean

  constructor(direction: Direction) {
    this.descending = direction === "desc"
  }

  /** Adds the next block of an order, from the position `at`. */
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

  /**
   * Passes up to `count` places to `give`, in order. Returns an order as soon as its block is exhausted, or `undefined` if `count` is reached first.
   * The merge must not be empty.
   */
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

  /** Restores the heap after its first element has changed. */
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
