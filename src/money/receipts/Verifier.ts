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

/** A ledger entry, as recorded in its leaf. Amounts are in nano-USD; the time is a Unix time in milliseconds. */
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
  /** The vendors' ids of a charge's requests, separated by spaces; the last one served the call. Empty if the leaf contains none. */
  readonly vendor_requests: string
  /** The SHA-256 hashes of a charge's request and response, in base64. Empty if the leaf contains none. */
  readonly request_hash: string
  readonly answer_hash: string
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
  /** The trusted witnesses that cosigned the checkpoint, with the Unix time of each cosignature in milliseconds. */
  readonly cosigned: ReadonlyArray<{ readonly name: string; readonly time: number }>
}

/** The receipt is invalid. The message contains the reason. */
export class ReceiptInvalid extends Error {
  override readonly name = "ReceiptInvalid"
}

export const refuse = (message: string): never => {
  throw new ReceiptInvalid(message)
}

export type Bytes = Uint8Array<ArrayBuffer>

export const utf8 = (text: string): Bytes => new TextEncoder().encode(text) as Bytes

export const bytesOf = (base64: string): Bytes => {
  const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64)
  const binary = isBase64 ? atob(base64) : ""
  // Each byte string must have only one encoding.
  return btoa(binary) === base64
    ? Uint8Array.from(binary, (char) => char.charCodeAt(0))
    : refuse("a value is not base64")
}

const concat = (parts: ReadonlyArray<Uint8Array>): Bytes => Uint8Array.from(parts.flatMap((part) => [...part]))

export const sha256 = async (...parts: ReadonlyArray<Uint8Array>): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", concat(parts)))

export const isSame = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, i) => byte === other[i])

interface Key {
  readonly name: string
  readonly id: Bytes
  readonly type: number
  readonly public: Bytes
}

/** The signature types: Ed25519 over the note, or over a witness's time and the note (C2SP tlog-cosignature). */
export const ed25519 = 1
export const cosignature = 4

/** Parses a verifier key: `<name>+<key id in hex>+<base64 of the type and the public key>`. */
export const keyOf = async (text: string): Promise<Key> => {
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

/** Reads a cosignature's Unix time, in seconds. */
const secondsOf = (signature: Bytes): bigint => new DataView(signature.slice().buffer).getBigUint64(0)

/** Returns whether the signature is valid, given the bytes after the key id. */
const isSigned = async (key: Key, text: string, signature: Bytes): Promise<boolean> => {
  const at = key.type === cosignature ? 8 : 0
  // A `Date` cannot represent a later time.
  if (signature.length !== at + 64 || (at > 0 && secondsOf(signature) > 8_640_000_000_000n)) return false
  const signed = utf8(at > 0 ? `cosignature/v1\ntime ${secondsOf(signature)}\n${text}` : text)
  const subject = await crypto.subtle.importKey("raw", key.public, { name: "Ed25519" }, false, ["verify"])
  return crypto.subtle.verify({ name: "Ed25519" }, subject, signature.subarray(at), signed)
}

/** A trusted key that signed. `time` is a Unix time in milliseconds for a witness, and 0 for any other key. */
export type Signer = Key & { readonly time: number }

/** Returns a signed note's text, and the trusted keys that signed it. */
export const verifyNote = async (
  note: string,
  keys: ReadonlyArray<Key>
): Promise<{ readonly text: string; readonly signers: ReadonlyArray<Signer> }> => {
  const end = note.lastIndexOf("\n\n")
  if (end < 0 || !note.endsWith("\n")) return refuse("there is no signed note")
  const text = note.slice(0, end + 1)
  const signers: Array<Signer> = []
  for (const line of note.slice(end + 2, -1).split("\n")) {
    const [, name = "", base64 = ""] = /^— ([^\s+]+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? []
    if (name === "") return refuse("there is no signed note")
    const bytes = bytesOf(base64)
    const key = keys.find((one) => one.name === name && isSame(one.id, bytes.subarray(0, 4)))
    // Signatures by unknown keys prove nothing.
    if (key === undefined) continue
    if (!(await isSigned(key, text, bytes.subarray(4)))) return refuse(`the signature of ${name} is wrong`)
    const time = key.type === cosignature ? 1_000 * Number(secondsOf(bytes.subarray(4))) : 0
    // A key under a second name is still one signer.
    if (!signers.some((one) => one.type === key.type && isSame(one.public, key.public))) signers.push({ ...key, time })
  }
  return { text, signers }
}

const parsed = (text: string, message: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return refuse(message)
  }
}

/** Parses a JSON document whose members are read one by one. */
export const membersOf = (text: string): Readonly<Record<string, unknown>> =>
  (parsed(text, "it is not a JSON document") ?? {}) as Readonly<Record<string, unknown>>

const notQuoted = "the leaf contains an unquoted string"

export const quoted = (text: string): string => {
  const value = parsed(text, notQuoted)
  return typeof value === "string" ? value : refuse(notQuoted)
}

export const digits = (text: string): string =>
  /^-?\d+$/.test(text) ? text : refuse("the leaf contains an invalid number")

/** Reads a text of a version line and then lines `name value`, in this order. */
export const valuesOf = <Name extends string>(
  text: string,
  version: string,
  names: ReadonlyArray<Name>
): Readonly<Record<Name, string>> => {
  const [first, ...lines] = text.split("\n")
  if (first !== version) return refuse(`the leaf or statement is not of the kind ${version}`)
  if (
    lines.length !== names.length + 1 ||
    lines.at(-1) !== "" ||
    !names.every((name, i) => lines[i]!.startsWith(`${name} `))
  )
    return refuse(`the leaf or statement contains unexpected fields`)
  return Object.fromEntries(names.map((name, i) => [name, lines[i]!.slice(name.length + 1)])) as Record<Name, string>
}

/** Splits bytes into nodes of this length. */
export const nodesOf = (bytes: Bytes, length: number): ReadonlyArray<Bytes> =>
  bytes.length % length === 0
    ? Array.from({ length: bytes.length / length }, (_, i) => bytes.subarray(i * length, (i + 1) * length))
    : refuse("the proof is not a list of nodes")

/** Computes the root that an inclusion proof leads to (RFC 9162, section 2.1.3.2). */
export const rootBy = async <Node>(
  leaf: Node,
  { index, size }: { readonly index: number; readonly size: number },
  path: ReadonlyArray<Node>,
  parentOf: (left: Node, right: Node) => Promise<Node>
): Promise<Node> => {
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) return refuse("the index is not in the tree")
  let [node, last, found] = [index, size - 1, leaf]
  for (const beside of path) {
    if (last === 0) return refuse("the proof is too long")
    if (node % 2 === 1 || node === last) {
      found = await parentOf(beside, found)
      for (; node % 2 === 0 && node !== 0; last = Math.floor(last / 2)) node /= 2
    } else found = await parentOf(found, beside)
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 ? found : refuse("the proof is too short")
}

type Optional = "vendor" | "request" | "answer"
type Field = Exclude<keyof ReceiptEntry, "vendor_requests" | "request_hash" | "answer_hash"> | Optional | "salt"
const fields = "account number type amount balance giftable source reference description time salt".split(
  " "
) as Field[]
/** The lines that a leaf of form 2 may contain before its last line, in this order. */
const optional: ReadonlyArray<Optional> = ["vendor", "request", "answer"]

const hashIn = (base64 = ""): string =>
  base64 === "" || bytesOf(base64).length === 32 ? base64 : refuse("the leaf contains an invalid hash")

const entryOf = (leaf: string): ReceiptEntry => {
  const form = leaf.startsWith("tollgate-entry/2\n") ? 2 : 1
  // A string in the leaf contains no line break, so this finds only lines.
  const found = form === 1 ? [] : optional.filter((name) => leaf.includes(`\n${name} `))
  const values = valuesOf(leaf, `tollgate-entry/${form}`, [...fields.slice(0, -1), ...found, "salt"])
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
    time: Number(digits(values.time)),
    vendor_requests: values.vendor === undefined ? "" : quoted(values.vendor),
    request_hash: hashIn(values.request),
    answer_hash: hashIn(values.answer)
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
  const { signers, text } = await verifyNote(receipt.checkpoint, await Promise.all(keys.map(keyOf)))
  const [origin = "", count = "", root = ""] = text.split("\n")
  if (!/^(0|[1-9]\d*)$/.test(count) || origin === "" || !Number.isSafeInteger(Number(count)))
    return refuse("the checkpoint contains no size")
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
