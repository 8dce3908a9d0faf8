/** Checkpoints (C2SP tlog-checkpoint) as signed notes (C2SP signed-note) with Ed25519, and witnesses' cosignatures (C2SP tlog-cosignature). */
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, sign, verify } from "node:crypto"
import type { JsonWebKey, KeyObject } from "node:crypto"

/** A key for signing notes: its name and the public key in base64. */
export interface NoteKey {
  readonly name: string
  readonly public: string
}

/** The signature types of keys: Ed25519 over the note, and over a witness's time and the note. */
const ed25519: Buffer = Buffer.of(1)
const cosignature: Buffer = Buffer.of(4)

const keyIdOf = ({ name, public: key }: NoteKey, type = ed25519): Buffer =>
  hash("sha256", Buffer.concat([Buffer.from(`${name}\n`), type, Buffer.from(key, "base64")]), "buffer").subarray(0, 4)

const verifierKeyOf = (key: NoteKey, type: Buffer): string =>
  `${key.name}+${keyIdOf(key, type).toString("hex")}+${Buffer.concat([type, Buffer.from(key.public, "base64")]).toString("base64")}`

/** Returns the key's verifier key in the format of Go's `sumdb/note`: name, key id and public key. */
export const verifierKey = (key: NoteKey): string => verifierKeyOf(key, ed25519)

/** Returns a witness's verifier key, whose type is that of cosignatures. */
export const cosignerKey = (key: NoteKey): string => verifierKeyOf(key, cosignature)

const parsed = (text: string, type: Buffer): NoteKey | undefined => {
  const [, name, base64] = /^([^\s+]+)\+[0-9a-f]{8}\+([A-Za-z0-9+/]+=*)$/.exec(text) ?? []
  if (name === undefined || base64 === undefined) return undefined
  const key = { name, public: Buffer.from(base64, "base64").subarray(1).toString("base64") }
  // Check the id and the type in the text.
  return Buffer.from(key.public, "base64").length === 32 && verifierKeyOf(key, type) === text ? key : undefined
}

/** Parses a log's verifier key; `undefined` if the text is not a verifier key for Ed25519 signatures. */
export const logKeyOf = (text: string): NoteKey | undefined => parsed(text, ed25519)

/** Parses a witness's verifier key; `undefined` if the text is not a verifier key for Ed25519 cosignatures. */
export const cosignerOf = (text: string): NoteKey | undefined => parsed(text, cosignature)

/** Creates a key pair. The public key is in base64, and the private key is a JSON Web Key. */
export const newKey = (): { readonly public: string; readonly secret: string } => {
  const { privateKey } = generateKeyPairSync("ed25519")
  return { public: publicOf(privateKey), secret: JSON.stringify(privateKey.export({ format: "jwk" })) }
}

export const secretKey = (secret: string): KeyObject =>
  createPrivateKey({ key: JSON.parse(secret) as JsonWebKey, format: "jwk" })

/** Returns a private key's public key, in base64. */
export const publicOf = (secret: KeyObject): string =>
  Buffer.from(createPublicKey(secret as never).export({ format: "jwk" }).x!, "base64url").toString("base64")

const publicKey = (key: string): KeyObject =>
  createPublicKey({
    key: { kty: "OKP", crv: "Ed25519", x: Buffer.from(key, "base64").toString("base64url") },
    format: "jwk"
  })

/** Signs a text, which must end with a line break. Returns the note: the text and its signature. */
export const signed = (text: string, key: NoteKey, secret: KeyObject): string => {
  const signature = Buffer.concat([keyIdOf(key), sign(null, Buffer.from(text), secret)])
  return `${text}\n— ${key.name} ${signature.toString("base64")}\n`
}

interface Signature {
  readonly name: string
  readonly id: Buffer
  /** The bytes after the key id. */
  readonly bytes: Buffer
}

const signatureOf = (line: string): Signature | undefined => {
  const [, name, base64] = /^— ([^\s+]+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? []
  if (name === undefined || base64 === undefined) return undefined
  const bytes = Buffer.from(base64, "base64")
  // Reject base64 with stray bits, which would be another text for the same bytes.
  if (bytes.toString("base64") !== base64) return undefined
  return { name, id: bytes.subarray(0, 4), bytes: bytes.subarray(4) }
}

const isBy = ({ id, name }: Signature, key: NoteKey, type: Buffer): boolean =>
  name === key.name && keyIdOf(key, type).equals(id)

/** Splits a note into its text and its signature lines; `undefined` if it is not a note. */
export const partsOf = (note: string): { readonly text: string; readonly lines: ReadonlyArray<string> } | undefined => {
  const end = note.lastIndexOf("\n\n")
  return end < 0 || !note.endsWith("\n")
    ? undefined
    : { text: note.slice(0, end + 1), lines: note.slice(end + 2, -1).split("\n") }
}

/** Returns the note's text if one of the keys signed it; `undefined` if none did, a signature by one is wrong, or a signature line is malformed. */
export const opened = (note: string, keys: ReadonlyArray<NoteKey>): string | undefined => {
  const parts = partsOf(note)
  if (parts === undefined) return undefined
  const { lines, text } = parts
  let isSigned = false
  for (const line of lines) {
    const signature = signatureOf(line)
    if (signature === undefined) return undefined
    const key = keys.find((one) => isBy(signature, one, ed25519))
    if (key === undefined) continue
    if (!verify(null, Buffer.from(text), publicKey(key.public), signature.bytes)) return undefined
    isSigned = true
  }
  return isSigned ? text : undefined
}

// ---- cosignatures -------------------------------------------------------------------------------------------------------

const timeLength = 8

const cosigned = (text: string, seconds: bigint): Buffer => Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`)

/** Returns whether a signature line has this witness's name and key id. Does not verify the signature. */
export const isCosignatureBy = (line: string, key: NoteKey): boolean => {
  const signature = signatureOf(line)
  return signature !== undefined && isBy(signature, key, cosignature)
}

/** Returns the Unix time, in seconds, of a witness's cosignature of the text; `undefined` if the line is not a valid cosignature. */
export const cosignedAt = (line: string, text: string, key: NoteKey): number | undefined => {
  const signature = signatureOf(line)
  if (signature === undefined || !isBy(signature, key, cosignature)) return undefined
  const { bytes } = signature
  if (bytes.length !== timeLength + 64) return undefined
  const seconds = bytes.readBigUInt64BE()
  // This is the maximum JavaScript date.
  if (seconds > 8_640_000_000_000n) return undefined
  return verify(null, cosigned(text, seconds), publicKey(key.public), bytes.subarray(timeLength))
    ? Number(seconds)
    : undefined
}

/** Creates a witness's cosignature line for the text. `seconds` is the Unix time in seconds. */
export const cosignatureOf = (text: string, key: NoteKey, secret: KeyObject, seconds: number): string => {
  const time = Buffer.alloc(timeLength)
  time.writeBigUInt64BE(BigInt(seconds))
  const bytes = Buffer.concat([keyIdOf(key, cosignature), time, sign(null, cosigned(text, BigInt(seconds)), secret)])
  return `— ${key.name} ${bytes.toString("base64")}`
}

// ---- checkpoints --------------------------------------------------------------------------------------------------------

/** The tree head in a checkpoint. */
export interface TreeHead {
  readonly origin: string
  readonly size: number
  readonly root: Uint8Array
}

export const checkpointText = ({ origin, root, size }: TreeHead): string =>
  `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`

/** Parses a checkpoint's text without extension lines; `undefined` for any other text. */
export const treeHeadOf = (text: string): TreeHead | undefined => {
  const [, origin, digits, base64] = /^([^\n]+)\n(0|[1-9]\d*)\n([A-Za-z0-9+/]{43}=)\n$/.exec(text) ?? []
  const head = { origin: origin ?? "", size: Number(digits), root: Buffer.from(base64 ?? "", "base64") }
  return origin !== undefined && Number.isSafeInteger(head.size) && checkpointText(head) === text ? head : undefined
}
