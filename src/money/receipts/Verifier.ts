/**
 * Verifies receipts. The code needs only WebCrypto, so it runs in Node, browsers and Deno. It trusts only the verifier keys passed to it. A receipt
 * proves that its entry is in the log with the checkpoint's root, and that a key signed the checkpoint.
 */

/** A receipt in the service's JSON format. */
export interface ReceiptFile {
  readonly leaf: string
  readonly index: number
  readonly proof: string
  readonly checkpoint: string
}

/** A ledger entry, as stated by its leaf. Amounts are in nano-USD, and the time is in milliseconds since 1970. */
export interface ReceiptEntry {
  readonly account: string
  readonly number: number
  readonly type: string
  readonly amount: bigint
  /** The account's balance after the entry, and its giftable part. */
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
}

/** The receipt proves nothing. The message states the reason. */
export class ReceiptInvalid extends Error {
  override readonly name = "ReceiptInvalid"
}

const refuse = (message: string): never => {
  throw new ReceiptInvalid(message)
}

type Bytes = Uint8Array<ArrayBuffer>

const utf8 = (text: string): Bytes => new TextEncoder().encode(text) as Bytes

const bytesOf = (base64: string): Bytes => {
  let binary: string
  try {
    binary = atob(base64)
  } catch {
    return refuse("a value is not base64")
  }
  // Each byte string must have only one spelling.
  if (btoa(binary) !== base64) return refuse("a value is not base64")
  return Uint8Array.from(binary, (char) => char.charCodeAt(0))
}

const joined = (...parts: ReadonlyArray<Uint8Array>): Bytes => {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

const sha256 = async (...parts: ReadonlyArray<Uint8Array>): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)))

const isSame = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, i) => byte === other[i])

// ---- notes --------------------------------------------------------------------------------------------------------------

interface Key {
  readonly name: string
  readonly id: Bytes
  readonly type: number
  readonly public: Bytes
}

/** The signature types: Ed25519 over the note, or over a witness's time and the note (C2SP tlog-cosignature). */
const ed25519 = 1
const cosignature = 4

/** Parses a verifier key: `<name>+<key id in hex>+<base64 of the type and the public key>`. */
const keyOf = async (text: string): Promise<Key> => {
  const [, name = "", hex = "", base64 = ""] = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text.trim()) ?? []
  if (name === "") return refuse(`${text.trim().slice(0, 80)} is not a verifier key`)
  const typed = bytesOf(base64)
  const type = typed[0]!
  if (typed.length !== 33 || (type !== ed25519 && type !== cosignature)) return refuse(`the key ${name} is not Ed25519`)
  const id = (await sha256(utf8(`${name}\n`), typed)).subarray(0, 4)
  const shown = [...id].map((byte) => byte.toString(16).padStart(2, "0")).join("")
  return shown === hex
    ? { name, id, type, public: typed.subarray(1) }
    : refuse(`the key id of ${name} does not match its key`)
}

/** Returns whether the signature is valid, given the bytes after the key id. */
const isSigned = async (key: Key, text: string, signature: Bytes): Promise<boolean> => {
  const stamp = key.type === cosignature ? signature.subarray(0, 8) : undefined
  if (signature.length !== (stamp === undefined ? 64 : 72)) return false
  const signed =
    stamp === undefined
      ? utf8(text)
      : utf8(`cosignature/v1\ntime ${new DataView(stamp.slice().buffer).getBigUint64(0)}\n${text}`)
  const subject = await crypto.subtle.importKey("raw", key.public, { name: "Ed25519" }, false, ["verify"])
  return crypto.subtle.verify({ name: "Ed25519" }, subject, signature.subarray(stamp === undefined ? 0 : 8), signed)
}

/** Returns the text of a signed note, and the trusted keys that signed it. */
const opened = async (
  note: string,
  keys: ReadonlyArray<Key>
): Promise<{ readonly text: string; readonly signers: ReadonlyArray<Key> }> => {
  const end = note.lastIndexOf("\n\n")
  if (end < 0 || !note.endsWith("\n")) return refuse("the checkpoint is not a signed note")
  const text = note.slice(0, end + 1)
  const signers: Array<Key> = []
  for (const line of note.slice(end + 2, -1).split("\n")) {
    const [, name = "", base64 = ""] = /^— ([^\s+]+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? []
    if (name === "") return refuse("the checkpoint is not a signed note")
    const bytes = bytesOf(base64)
    const key = keys.find((one) => one.name === name && isSame(one.id, bytes.subarray(0, 4)))
    // Signatures by unknown keys prove nothing.
    if (key === undefined) continue
    if (!(await isSigned(key, text, bytes.subarray(4)))) return refuse(`the signature of ${name} is wrong`)
    if (!signers.includes(key)) signers.push(key)
  }
  return { text, signers }
}

// ---- the tree -----------------------------------------------------------------------------------------------------------

const hashSize = 32
const leafPrefix = Uint8Array.of(0)
const nodePrefix = Uint8Array.of(1)

/** Computes the root that an inclusion proof leads to (RFC 9162, section 2.1.3.2). */
const rootBy = async (leaf: string, index: number, size: number, proof: Bytes): Promise<Bytes> => {
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) return refuse("the index is not in the log")
  if (proof.length % hashSize !== 0) return refuse("the proof is not a list of hashes")
  let node = index
  let last = size - 1
  let hash = await sha256(leafPrefix, utf8(leaf))
  for (let at = 0; at < proof.length; at += hashSize) {
    if (last === 0) return refuse("the proof is too long")
    const beside = proof.subarray(at, at + hashSize)
    if (node % 2 === 1 || node === last) {
      hash = await sha256(nodePrefix, beside, hash)
      for (; node % 2 === 0 && node !== 0; last = Math.floor(last / 2)) node /= 2
    } else hash = await sha256(nodePrefix, hash, beside)
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 ? hash : refuse("the proof is too short")
}

// ---- the leaf -----------------------------------------------------------------------------------------------------------

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

const quoted = (text: string): string => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === "string") return value
  } catch {
    // The value is refused below.
  }
  return refuse("the leaf contains an unquoted string")
}

const digits = (text: string): string => (/^-?\d+$/.test(text) ? text : refuse("the leaf contains an invalid number"))

const entryOf = (leaf: string): ReceiptEntry => {
  const [version, ...lines] = leaf.split("\n")
  if (version !== "tollgate-entry/1") return refuse("the leaf is of an unknown kind")
  if (lines.length !== fields.length + 1 || lines.at(-1) !== "") return refuse("the leaf contains unexpected fields")
  const values = {} as Record<(typeof fields)[number], string>
  for (const [i, name] of fields.entries()) {
    if (!lines[i]!.startsWith(`${name} `)) return refuse("the leaf contains unexpected fields")
    values[name] = lines[i]!.slice(name.length + 1)
  }
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

// ---- receipts -----------------------------------------------------------------------------------------------------------

/** Reads the receipt in a JSON document. */
export const read = (text: string): ReceiptFile => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refuse("it is not a JSON document")
  }
  const { checkpoint, index, leaf, proof } = (value ?? {}) as Partial<Record<keyof ReceiptFile, unknown>>
  return typeof leaf === "string" &&
    typeof index === "number" &&
    typeof proof === "string" &&
    typeof checkpoint === "string"
    ? { leaf, index, proof, checkpoint }
    : refuse("it is not a receipt: a receipt must contain leaf, index, proof and checkpoint")
}

/** Options for verifying a receipt. */
export interface VerifyOptions {
  /** The number of witnesses that must have cosigned. 0 by default. */
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
    return refuse("the checkpoint contains no size")
  if (!signers.some(({ name, type }) => type === ed25519 && name === origin))
    return refuse("the checkpoint is not signed by a key of its log that you trust")
  const cosigned = signers.filter(({ type }) => type === cosignature).length
  if (cosigned < witnesses) return refuse(`${cosigned} witnesses cosigned the checkpoint, but ${witnesses} must`)
  const found = await rootBy(receipt.leaf, receipt.index, Number(count), bytesOf(receipt.proof))
  if (!isSame(found, bytesOf(root))) return refuse("the entry is not in the log: the proof leads to another root")
  return { entry, index: receipt.index, origin, size: Number(count), root, signers: signers.map(({ name }) => name) }
}

/** Joins all fields of an entry. */
const textOf = (entry: ReceiptEntry): string => Object.values(entry).join("\n")

/** Lists the missing numbers between the first and the last receipt of each account, and contradictory entries. */
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
