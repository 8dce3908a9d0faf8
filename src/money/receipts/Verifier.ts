/**
 * Verifies receipts. It needs only WebCrypto, so it runs in Node, browsers and Deno, and it trusts only the verifier keys that it is given. A receipt
 * proves that its entry is in the log with the checkpoint's root, and that a key signed the checkpoint.
 */
import { bytesOf, cosignature, digits, ed25519, isSame, keyOf, nodesOf, opened } from "./Notes.ts"
import { membersOf, quoted, refuse, rootBy, sha256, utf8, valuesOf } from "./Notes.ts"
export { ReceiptInvalid } from "./Notes.ts"

/** A receipt, in the form that the service returns. */
export interface ReceiptFile {
  readonly leaf: string
  readonly index: number
  readonly proof: string
  readonly checkpoint: string
}

/** A ledger entry, as its leaf states it. Amounts are in nano-USD, the time in milliseconds since 1970. */
export interface ReceiptEntry {
  readonly account: string
  readonly number: number
  readonly type: string
  readonly amount: bigint
  /** The account's balance after the entry, and how much of it is giftable. */
  readonly balance: bigint
  readonly giftable: bigint
  /** `call` for a charge. */
  readonly source: string
  /** The usage id, for a charge. */
  readonly reference: string
  readonly description: string
  readonly time: number
}

export interface VerifiedReceipt {
  readonly entry: ReceiptEntry
  readonly index: number
  readonly origin: string
  readonly size: number
  /** The root of the log, in base64. */
  readonly root: string
  /** The names of the trusted keys that signed the checkpoint. */
  readonly signers: ReadonlyArray<string>
  /** The trusted witnesses that cosigned the checkpoint, and when, in milliseconds since 1970. */
  readonly cosigned: ReadonlyArray<{ readonly name: string; readonly time: number }>
}

const fields = [
  "account",
  "number",
  "type",
  "amount",
  "balance",
  "giftable",
  "source",
  "reference",
  "description",
  "time",
  "salt"
] as const

const entryOf = (leaf: string): ReceiptEntry => {
  const values = valuesOf(leaf, "tollgate-entry/1", fields)
  return {
    account: quoted(values.account),
    number: Number(digits(values.number)),
    type: values.type,
    amount: BigInt(digits(values.amount)),
    balance: BigInt(digits(values.balance)),
    giftable: BigInt(digits(values.giftable)),
    source: values.source,
    reference: quoted(values.reference),
    description: quoted(values.description),
    time: Number(digits(values.time))
  }
}

/** Reads the receipt in a JSON document. */
export const read = (text: string): ReceiptFile => {
  const { checkpoint, index, leaf, proof } = membersOf(text)
  return typeof leaf === "string" &&
    typeof index === "number" &&
    typeof proof === "string" &&
    typeof checkpoint === "string"
    ? { leaf, index, proof, checkpoint }
    : refuse("it is not a receipt: a receipt has leaf, index, proof and checkpoint")
}

/** Options for verifying a receipt. */
export interface VerifyOptions {
  /** The number of witnesses among the keys that must have cosigned. 0 by default. */
  readonly witnesses?: number
}

/** Verifies a receipt with the verifier keys that you trust. Rejects with `ReceiptInvalid`. */
export const verify = async (
  receipt: ReceiptFile,
  keys: ReadonlyArray<string>,
  { witnesses = 0 }: VerifyOptions = {}
): Promise<VerifiedReceipt> => {
  const entry = entryOf(receipt.leaf)
  const { signers, text } = await opened(receipt.checkpoint, await Promise.all(keys.map(keyOf)))
  const [origin = "", count = "", root = ""] = text.split("\n")
  if (!/^(0|[1-9]\d*)$/.test(count) || origin === "" || !Number.isSafeInteger(Number(count)))
    return refuse("the checkpoint has no size")
  if (!signers.some(({ name, type }) => type === ed25519 && name === origin))
    return refuse("the checkpoint is not signed by a key of its log that you trust")
  const cosigned = signers.filter(({ type }) => type === cosignature).map(({ name, time }) => ({ name, time }))
  if (cosigned.length < witnesses)
    return refuse(`${cosigned.length} witnesses cosigned the checkpoint, but ${witnesses} must`)
  const place = { index: receipt.index, size: Number(count) }
  const hash = await sha256(Uint8Array.of(0), utf8(receipt.leaf))
  const path = nodesOf(bytesOf(receipt.proof), 32)
  const found = await rootBy(hash, place, path, (left, right) => sha256(Uint8Array.of(1), left, right))
  if (!isSame(found, bytesOf(root))) return refuse("the entry is not in the log: the proof leads to another root")
  const names = signers.map(({ name }) => name)
  return { entry, ...place, origin, root, signers: names, cosigned }
}

/** All fields of an entry. */
const textOf = (entry: ReceiptEntry): string => Object.values(entry).join("\n")

/** Lists the numbers missing between the first and the last receipt of each account, and entries that contradict each other. */
export const gaps = (receipts: ReadonlyArray<VerifiedReceipt>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const inOrder = receipts
    .map(({ entry }) => entry)
    .toSorted((one, other) =>
      one.account === other.account ? one.number - other.number : one.account < other.account ? -1 : 1
    )
  for (const [i, entry] of inOrder.entries()) {
    const before = inOrder[i - 1]
    if (before?.account !== entry.account) continue
    const after = before.balance + (entry.type === "credit" ? entry.amount : -entry.amount)
    if (entry.number > before.number + 1)
      found.push(`${entry.account}: no receipt for the entries ${before.number + 1} to ${entry.number - 1}`)
    else if (entry.number === before.number + 1 && entry.balance !== after)
      found.push(`${entry.account}: the balance of entry ${entry.number} does not follow from the entry before`)
    else if (entry.number === before.number && textOf(entry) !== textOf(before))
      found.push(`${entry.account}: two entries have the number ${entry.number}`)
  }
  return found
}
