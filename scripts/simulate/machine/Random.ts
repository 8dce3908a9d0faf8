/** Seeded randomness. Equal seeds produce equal numbers on every machine. */
import { createHash } from "node:crypto"

export interface Random {
  /** Returns a number in [0, 1). */
  readonly next: () => number
  /** Returns an integer in [0, `count`). */
  readonly below: (count: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(items: ReadonlyArray<A>) => A
  readonly bytes: (count: number) => Buffer
}

/** Creates an sfc32 generator with a hash of the seed as its initial state. */
export const random = (seed: string): Random => {
  const state = createHash("sha256").update(seed).digest()
  let [a, b, c, d] = [0, 4, 8, 12].map((at) => state.readInt32LE(at)) as [number, number, number, number]
  const word = (): number => {
    const t = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return t >>> 0
  }
  const next = () => word() / 2 ** 32
  const below = (count: number) => Math.floor(next() * count)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (items) => items[below(items.length)]!,
    bytes: (count) => {
      const bytes = Buffer.allocUnsafe(count)
      for (let i = 0; i < count; i++) bytes[i] = word() & 255
      return bytes
    }
  }
}
