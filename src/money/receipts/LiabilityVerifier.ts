/**
 * Verifies proofs of liabilities: that a balance is in the total of all balances at the end of a day, and that the log's key signed the total. It
 * needs only WebCrypto and trusts only the verifier keys passed to it.
 */
import {
  bytesOf,
  digits,
  ed25519,
  isSame,
  keyOf,
  membersOf,
  nodesOf,
  verifyNote,
  quoted,
  refuse,
  rootBy,
  sha256,
  utf8,
  valuesOf
} from "./Verifier.ts"
import type { Bytes, VerifiedReceipt } from "./Verifier.ts"

/** A proof of liabilities, in the form that the service returns. */
export interface LiabilityFile {
  readonly leaf: string
  readonly index: number
  readonly proof: string
  readonly statement: string
}

/** The signed total of a day. Amounts are in nano-USD. */
export interface VerifiedTotal {
  readonly origin: string
  /** The UTC day at whose end these balances were current. */
  readonly day: string
  readonly total: bigint
  /** The number of accounts. */
  readonly accounts: number
  /** The number of entries in the log at the end of the day. */
  readonly entries: number
  /** The root of the tree, in base64. */
  readonly root: string
}

export interface VerifiedLiability extends VerifiedTotal {
  readonly account: string
  readonly balance: bigint
  /** The account's last ledger entry number at the end of the day. */
  readonly entry: number
}

/** Reads the proof in a JSON document; `undefined` if the document has no statement, as a receipt has none. */
export const readLiability = (text: string): LiabilityFile | undefined => {
  const { index, leaf, proof, statement } = membersOf(text)
  if (typeof statement !== "string") return undefined
  return typeof leaf === "string" && typeof index === "number" && typeof proof === "string"
    ? { leaf, index, proof, statement }
    : refuse("it is not a proof of liabilities: a proof has leaf, index, proof and statement")
}

/** Verifies the statement of a day with the verifier keys that you trust. Rejects with `ReceiptInvalid`. */
export const verifyTotal = async (statement: string, keys: ReadonlyArray<string>): Promise<VerifiedTotal> => {
  const { signers, text } = await verifyNote(statement, await Promise.all(keys.map(keyOf)))
  const names = ["log", "day", "total", "accounts", "entries", "root"] as const
  const { accounts, day, entries, log, root, total } = valuesOf(text, "tollgate-liabilities/1", names)
  if (!signers.some(({ name, type }) => type === ed25519 && name === log))
    return refuse("the statement is not signed by a key of its log that you trust")
  return {
    origin: log,
    day,
    total: BigInt(digits(total)),
    accounts: Number(digits(accounts)),
    entries: Number(digits(entries)),
    root
  }
}

/** A node: the sum of the balances below it, and its hash. */
interface Node {
  readonly sum: bigint
  readonly hash: Bytes
}

const sumSize = 16
const nodeSize = sumSize + 32

const sumOf = (bytes: Bytes): bigint => bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)

const sumBytes = (sum: bigint): Bytes =>
  Uint8Array.from({ length: sumSize }, (_, i) => Number((sum >> BigInt(8 * (sumSize - 1 - i))) & 255n))

const parentOf = async (left: Node, right: Node): Promise<Node> => ({
  sum: left.sum + right.sum,
  hash: await sha256(Uint8Array.of(1), sumBytes(left.sum), left.hash, sumBytes(right.sum), right.hash)
})

/** Verifies that a balance is in the total of its day, with the verifier keys that you trust. Rejects with `ReceiptInvalid`. */
export const verifyLiability = async (file: LiabilityFile, keys: ReadonlyArray<string>): Promise<VerifiedLiability> => {
  const stated = await verifyTotal(file.statement, keys)
  const names = ["account", "day", "balance", "entry", "salt"] as const
  const leaf = valuesOf(file.leaf, "tollgate-balance/1", names)
  if (leaf.day !== stated.day) return refuse("the balance is of another day than the total")
  const balance = BigInt(digits(leaf.balance))
  if (balance < 0n) return refuse("the balance is negative")
  const start: Node = { sum: balance, hash: await sha256(Uint8Array.of(0), utf8(file.leaf)) }
  const path = nodesOf(bytesOf(file.proof), nodeSize).map((bytes): Node => ({
    sum: sumOf(bytes.subarray(0, sumSize)),
    hash: bytes.subarray(sumSize)
  }))
  const root = await rootBy(start, { index: file.index, size: stated.accounts }, path, parentOf)
  if (!isSame(root.hash, bytesOf(stated.root)) || root.sum !== stated.total)
    return refuse("the balance is not in the total: the proof leads to another root")
  return { ...stated, account: quoted(leaf.account), balance, entry: Number(digits(leaf.entry)) }
}

/** Lists the contradictions between balances at the end of days and receipts of the same account. */
export const contradictions = (
  receipts: ReadonlyArray<VerifiedReceipt>,
  liabilities: ReadonlyArray<VerifiedLiability>
): ReadonlyArray<string> =>
  liabilities.flatMap(({ account, balance, day, entries, entry: last }) =>
    receipts
      .filter(({ entry }) => entry.account === account)
      .flatMap(({ entry, index }) => {
        if (entry.number === last && entry.balance !== balance)
          return [`${account}: the balance of ${day} is not that of entry ${last}`]
        // Entries of the day are in the log up to its end, and later ones after it.
        return entry.number <= last === index < entries
          ? []
          : [
              `${account}: the balance of ${day} ends with entry ${last}, but entry ${entry.number} is at ${index} in the log`
            ]
      })
  )
