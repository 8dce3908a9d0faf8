/**
 * A Merkle sum tree over SHA-256, in the shape of RFC 6962. A node has a hash and the sum of the amounts below it. An inner node's hash covers the
 * hash and the sum of each child, so amounts cannot be shifted between the children.
 */
import { hash } from "node:crypto"

export interface SumNode {
  readonly hash: Uint8Array
  /** In nano-USD, never negative. */
  readonly sum: bigint
}

export const hashSize = 32
/** The size of a big-endian sum in bytes. It fits 2^60 amounts of 64 bits. */
export const sumSize = 16

const sha256 = (data: Uint8Array | string): Buffer => hash("sha256", data, "buffer")

/** Hashes a leaf: a zero byte followed by its text. The text must contain the amount. */
export const leafHash = (text: string): Buffer => sha256(`\0${text}`)

/** Encodes a node as bytes: its sum, then its hash. */
export const bytesOf = ({ hash, sum }: SumNode): Buffer => {
  const bytes = Buffer.alloc(sumSize + hashSize)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, sum >> 64n), 0)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, sum), 8)
  bytes.set(hash, sumSize)
  return bytes
}

const prefix = Buffer.of(1)

const parentOf = (left: SumNode, right: SumNode): SumNode => ({
  hash: sha256(Buffer.concat([prefix, bytesOf(left), bytesOf(right)])),
  sum: left.sum + right.sum
})

/** The root of an empty tree. */
export const emptyRoot: SumNode = { hash: sha256(""), sum: 0n }

/** Computes the root over nodes, which are leaves or the roots of complete subtrees of equal size. The last subtree may be smaller. */
export const rootOf = (nodes: ReadonlyArray<SumNode>): SumNode => {
  // The roots of the complete subtrees so far, largest first.
  const roots: Array<{ readonly node: SumNode; readonly size: number }> = []
  for (const node of nodes) {
    let one = { node, size: 1 }
    while (roots.at(-1)?.size === one.size) {
      const left = roots.pop()!
      one = { node: parentOf(left.node, one.node), size: 2 * one.size }
    }
    roots.push(one)
  }
  return (
    roots
      .map(({ node }) => node)
      .reduceRight<SumNode | undefined>(
        (right, left) => (right === undefined ? left : parentOf(left, right)),
        undefined
      ) ?? emptyRoot
  )
}

/** Returns the inclusion path of the node at `index`: the sibling nodes from the leaf upwards. */
export const pathOf = (nodes: ReadonlyArray<SumNode>, index: number): ReadonlyArray<SumNode> => {
  const path: Array<SumNode> = []
  for (let [from, to] = [0, nodes.length]; to - from > 1;) {
    let half = 1
    while (half * 2 < to - from) half *= 2
    const middle = from + half
    if (index < middle) {
      path.push(rootOf(nodes.slice(middle, to)))
      to = middle
    } else {
      path.push(rootOf(nodes.slice(from, middle)))
      from = middle
    }
  }
  return path.toReversed()
}
