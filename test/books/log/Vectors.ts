/** Test vectors of the log for other implementations: a log of made-up entries with a key whose private half is public. */
import { createPrivateKey, hash } from "node:crypto"
import type { LoggedEntry } from "../../../src/books/ledger/rows/EntriesInOrder.ts"
import { leafOf } from "../../../src/books/log/Leaf.ts"
import * as Note from "../../../src/books/log/Note.ts"
import * as Tree from "../../../src/books/log/Tree.ts"
import type { TileKey } from "../../../src/books/log/Tree.ts"
import { pathOfTile } from "../../../src/money/receipts/TilePath.ts"

export const origin = "log.example/tollgate"

const seed = hash("sha256", "tollgate test vectors", "buffer")

/** PKCS #8 of an Ed25519 key is a fixed prefix and the seed. */
const secret = createPrivateKey({
  key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]),
  format: "der",
  type: "pkcs8"
})
const key = { secret, key: { name: origin, public: Note.publicOf(secret) } }

const texts = ["A call", 'quotes " and \\', "two\nlines", "ünïcödé — 文字", ""]

const entryOf = (i: number): LoggedEntry => ({
  seq: 2 * i + 1,
  billing_account_id: `bil_${i % 3}`,
  number: Math.floor(i / 3) + 1,
  type: i % 7 === 0 ? "credit" : "debit",
  amount: String(BigInt(i + 1) ** 5n),
  balance: String(9_007_199_254_740_993n + BigInt(i)),
  giftable: String(i),
  source: i % 7 === 0 ? "purchase" : null,
  reference_id: `use_${i}`,
  description: texts[i % texts.length]!,
  at: 1_767_225_600_000 + i,
  vendor_request: i % 7 === 0 || i % 5 === 0 ? null : i % 5 === 1 ? "req_a - req_b" : `req_${i}`,
  request_hash: i % 3 === 0 ? null : hash("sha256", `request ${i}`, "base64"),
  answer_hash: i % 4 === 3 ? null : hash("sha256", `answer ${i}`, "base64")
})

/** The first leaf of form 2. */
const secondForm = 1_000

const sizes = [1, 2, 3, 7, 255, 256, 257, 1_000, 65_537]

/** The tree of the largest size, leaf by leaf text, with all its tiles. */
const build = () => {
  const leaves = Array.from({ length: sizes.at(-1)! }, (_, i) =>
    leafOf("salt of the vectors", entryOf(i), i < secondForm ? 1 : 2)
  )
  const { changed } = Tree.append(Tree.emptyEdge, Buffer.concat(leaves.map(Tree.leafHash)))
  const tiles = new Map(changed.map(({ hashes, level, n }) => [`${level}/${n}`, hashes]))
  return { leaves, tileOf: ({ level, n }: TileKey) => tiles.get(`${level}/${n}`)! }
}

const base64 = (hashes: ReadonlyArray<Uint8Array>): string => Buffer.concat(hashes).toString("base64")

/** The partial and full tiles of a small tree, by path. */
const tilesOf = (size: number, tileOf: (key: TileKey) => Uint8Array) =>
  Object.fromEntries(
    Array.from({ length: Tree.levelsOf(size) }, (_, level) => {
      const full = Math.floor(size / Tree.spanOf(level))
      const width = Tree.edgeWidth(size, level)
      const widths = [...Array.from({ length: full }, () => Tree.tileWidth), ...(width > 0 ? [width] : [])]
      return widths.map((width, n) => [
        `tile/${pathOfTile({ level, n, width })}`,
        base64([tileOf({ level, n }).subarray(0, width * Tree.hashSize)])
      ])
    }).flat()
  )

export const vectors = () => {
  const { leaves, tileOf } = build()
  const checkpointOf = (size: number): string => {
    const root = size === 1 ? Tree.leafHash(leaves[0]!) : Tree.rootsOf([{ from: 0, to: size }], tileOf)[0]!
    return Note.signed(Note.checkpointText({ origin, size, root }), key.key, key.secret)
  }
  const receipts = sizes.flatMap((size) => {
    const indices = [...new Set([0, 1, 255, 256, Math.floor(size / 2), size - 2, size - 1])]
    return indices
      .filter((index) => index >= 0 && index < size)
      .map((index) => ({
        leaf: leaves[index]!,
        index,
        proof: base64(Tree.rootsOf(Tree.inclusionRanges(index, size), tileOf)),
        checkpoint: checkpointOf(size)
      }))
  })
  const consistency = sizes.slice(0, -1).map((old, i) => {
    const size = sizes[i + 1]!
    return { old, size, proof: base64(Tree.rootsOf(Tree.consistencyRanges(old, size), tileOf)) }
  })
  return {
    key: Note.verifierKey(key.key),
    empty: Note.signed(
      Note.checkpointText({ origin, size: 0, root: Tree.rootOf(Tree.emptyEdge) }),
      key.key,
      key.secret
    ),
    receipts,
    consistency,
    tiles: { size: 1_000, files: tilesOf(1_000, tileOf) }
  }
}
