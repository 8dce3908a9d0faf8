/**
 * The Merkle tree of RFC 6962 over SHA-256, stored as tiles (C2SP tlog-tiles). A tile on level 0 contains 256 leaf hashes. A tile on a higher level
 * contains the root hashes of 256 full tiles below it. The last tile of a level may be partial. Tiles never shrink.
 */
import { hash } from "node:crypto"
import type { Range } from "../../kernel/Pieces.ts"

/** The number of hashes in a full tile, and the hash and tile sizes in bytes. */
export const tileWidth = 256
export const hashSize = 32
export const tileSize = tileWidth * hashSize

const sha256 = (data: Uint8Array | string): Buffer => hash("sha256", data, "buffer")

/** Hashes a leaf: a zero byte followed by its text. */
export const leafHash = (text: string): Buffer => sha256(`\0${text}`)

const pair = Buffer.alloc(1 + 2 * hashSize, 1)

/** Hashes an inner node from its children's hashes. */
export const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => {
  pair.set(left, 1)
  pair.set(right, 1 + hashSize)
  return sha256(pair)
}

/** Computes the root of a complete subtree from the hashes on its lowest level. Their number must be a power of two. */
export const subtreeRoot = (hashes: Uint8Array): Buffer => {
  const row = Buffer.from(hashes)
  for (let length = row.length; length > hashSize; length /= 2) {
    for (let at = 0; at < length; at += 2 * hashSize) {
      row.set(nodeHash(row.subarray(at, at + hashSize), row.subarray(at + hashSize, at + 2 * hashSize)), at / 2)
    }
  }
  return row.subarray(0, hashSize)
}

export interface TileKey {
  readonly level: number
  /** The tile's index within the level. */
  readonly n: number
}

export interface Tile extends TileKey {
  readonly hashes: Uint8Array
}

/** Returns the number of leaves below a full tile. */
export const spanOf = (level: number): number => tileWidth ** (level + 1)

/** Returns the number of hashes in a level's partial last tile; 0 if there is none. */
export const edgeWidth = (size: number, level: number): number => Math.floor(size / tileWidth ** level) % tileWidth

/** Returns the number of tile levels in a tree of this size. */
export const levelsOf = (size: number): number => {
  let levels = 0
  while (size >= tileWidth ** levels) levels++
  return size === 0 ? 0 : levels
}

// ---- appending ----------------------------------------------------------------------------------------------------------

/** A tree's size, and each level's partial tile (empty if there is none). Appending needs nothing else. */
export interface Edge {
  readonly size: number
  readonly tiles: ReadonlyArray<Uint8Array>
}

const empty = new Uint8Array(0)

export const emptyEdge: Edge = { size: 0, tiles: [] }

/** Appends leaf hashes. Returns the new edge and the changed tiles. */
export const append = (
  edge: Edge,
  leaves: Uint8Array
): { readonly edge: Edge; readonly changed: ReadonlyArray<Tile> } => {
  const tiles = [...edge.tiles]
  const changed: Array<Tile> = []
  for (let level = 0, added = leaves; added.length > 0; level++) {
    const hashes = Buffer.concat([tiles[level] ?? empty, added])
    const first = Math.floor(edge.size / spanOf(level))
    const full = Math.floor(hashes.length / tileSize)
    const roots = Buffer.alloc(full * hashSize)
    for (let i = 0; i < full; i++) {
      const tile = hashes.subarray(i * tileSize, (i + 1) * tileSize)
      changed.push({ level, n: first + i, hashes: tile })
      roots.set(subtreeRoot(tile), i * hashSize)
    }
    const rest = hashes.subarray(full * tileSize)
    if (rest.length > 0) changed.push({ level, n: first + full, hashes: rest })
    tiles[level] = rest
    added = roots
  }
  return { edge: { size: edge.size + leaves.length / hashSize, tiles }, changed }
}

/** Computes the tree's root. */
export const rootOf = ({ tiles }: Edge): Buffer => {
  let root: Buffer | undefined
  for (const tile of tiles) {
    let end = tile.length
    for (let length = hashSize; end > 0; length *= 2) {
      if (((end / length) & 1) === 0) continue
      const left = subtreeRoot(tile.subarray(end - length, end))
      root = root === undefined ? left : nodeHash(left, root)
      end -= length
    }
  }
  return root ?? sha256("")
}

// ---- proofs -------------------------------------------------------------------------------------------------------------

/** Returns the largest power of two below `size`. */
const split = (size: number): number => {
  let power = 1
  while (power * 2 < size) power *= 2
  return power
}

/** Returns the leaf ranges whose roots prove the leaf at `index` in a tree of this size, from the leaf upwards. */
export const inclusionRanges = (index: number, size: number): ReadonlyArray<Range> => {
  const ranges: Array<Range> = []
  for (let [from, to] = [0, size]; to - from > 1;) {
    const middle = from + split(to - from)
    if (index < middle) {
      ranges.push({ from: middle, to })
      to = middle
    } else {
      ranges.push({ from, to: middle })
      from = middle
    }
  }
  return ranges.toReversed()
}

/** Returns the leaf ranges whose roots prove that the tree of `old` leaves is a prefix of the tree of `size` leaves. */
export const consistencyRanges = (old: number, size: number): ReadonlyArray<Range> => {
  if (old === 0 || old === size) return []
  const ranges: Array<Range> = []
  let [from, to] = [0, size]
  while (to !== old) {
    const middle = from + split(to - from)
    if (old <= middle) {
      ranges.push({ from: middle, to })
      to = middle
    } else {
      ranges.push({ from, to: middle })
      from = middle
    }
  }
  if (from > 0) ranges.push({ from, to })
  return ranges.toReversed()
}

/** A complete subtree within one tile: `count` hashes from `at`. */
interface Part extends TileKey {
  readonly at: number
  readonly count: number
}

/** Returns a range's complete subtrees, largest first. The range must begin at a multiple of the first subtree's size. */
const partsOf = ({ from, to }: Range): ReadonlyArray<Part> => {
  const parts: Array<Part> = []
  for (let start = from; start < to;) {
    let count = 1
    let level = 0
    let leaves = 1
    while (leaves * 2 <= to - start) {
      leaves *= 2
      count *= 2
      if (count === tileWidth) {
        count = 1
        level++
      }
    }
    const first = start / tileWidth ** level
    parts.push({ level, n: Math.floor(first / tileWidth), at: first % tileWidth, count })
    start += leaves
  }
  return parts
}

/** Returns the tiles with the hashes for these ranges' roots. */
export const tilesOf = (ranges: ReadonlyArray<Range>): ReadonlyArray<TileKey> => {
  const keys = new Map(ranges.flatMap(partsOf).map(({ level, n }) => [`${level}/${n}`, { level, n }]))
  return [...keys.values()]
}

/** Computes the root of each range. The tiles may be wider than in the tree that the ranges belong to. */
export const rootsOf = (ranges: ReadonlyArray<Range>, tileOf: (key: TileKey) => Uint8Array): ReadonlyArray<Buffer> =>
  ranges.map((range) =>
    partsOf(range)
      .map((part) => subtreeRoot(tileOf(part).subarray(part.at * hashSize, (part.at + part.count) * hashSize)))
      .reduceRight((right, left) => nodeHash(left, right))
  )
