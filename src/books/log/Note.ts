/** Checkpoints (C2SP tlog-checkpoint) as signed notes (C2SP signed-note) with Ed25519. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, sign, verify } from "node:crypto"
import type { JsonWebKey, KeyObject } from "node:crypto"

/** A key that signs notes: its name and its public key in base64. */
export interface NoteKey {
  readonly name: string
  readonly public: string
}

/** The identifier of Ed25519 in a note. */
const ed25519 = Buffer.of(1)

const keyIdOf = ({ name, public: key }: NoteKey): Buffer =>
  hash("sha256", Buffer.concat([Buffer.from(`${name}\n`), ed25519, Buffer.from(key, "base64")]), "buffer").subarray(
    0,
    4
  )

/** Returns the verifier key in the format of Go's `sumdb/note`: name, key id and public key. */
export const verifierKey = (key: NoteKey): string =>
  `${key.name}+${keyIdOf(key).toString("hex")}+${Buffer.concat([ed25519, Buffer.from(key.public, "base64")]).toString("base64")}`

/** Creates a key pair: the public key in base64, and the private key as a JSON Web Key. */
export const newKey = (): { readonly public: string; readonly secret: string } => {
  const { privateKey } = generateKeyPairSync("ed25519")
  return { public: publicOf(privateKey), secret: JSON.stringify(privateKey.export({ format: "jwk" })) }
}

export const secretKey = (secret: string): KeyObject =>
  createPrivateKey({ key: JSON.parse(secret) as JsonWebKey, format: "jwk" })

/** Returns the public key of a private key, in base64. */
export const publicOf = (secret: KeyObject): string =>
  Buffer.from(createPublicKey(secret as never).export({ format: "jwk" }).x!, "base64url").toString("base64")

const publicKey = (key: string): KeyObject =>
  createPublicKey({
    key: { kty: "OKP", crv: "Ed25519", x: Buffer.from(key, "base64").toString("base64url") },
    format: "jwk"
  })

/** Signs a note. Returns the text and its signature. The text must end with a line break. */
export const signed = (text: string, key: NoteKey, secret: KeyObject): string => {
  const signature = Buffer.concat([keyIdOf(key), sign(null, Buffer.from(text), secret)])
  return `${text}\n— ${key.name} ${signature.toString("base64")}\n`
}

/** Returns the text of a note signed by one of the keys; `undefined` if none signed it or if a signature by one of them is wrong. */
export const opened = (note: string, keys: ReadonlyArray<NoteKey>): string | undefined => {
  const end = note.lastIndexOf("\n\n")
  if (end < 0 || !note.endsWith("\n")) return undefined
  const text = note.slice(0, end + 1)
  let isSigned = false
  for (const line of note.slice(end + 2, -1).split("\n")) {
    const [, name, base64] = /^— ([^\s+]+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? []
    if (name === undefined || base64 === undefined) return undefined
    const bytes = Buffer.from(base64, "base64")
    // Base64 with stray bits would be another text for equal bytes.
    if (bytes.toString("base64") !== base64) return undefined
    const key = keys.find((one) => one.name === name && keyIdOf(one).equals(bytes.subarray(0, 4)))
    if (key === undefined) continue
    if (!verify(null, Buffer.from(text), publicKey(key.public), bytes.subarray(4))) return undefined
    isSigned = true
  }
  return isSigned ? text : undefined
}

/** The head of the tree that a checkpoint states. */
export interface TreeHead {
  readonly origin: string
  readonly size: number
  readonly root: Uint8Array
}

export const checkpointText = ({ origin, root, size }: TreeHead): string =>
  `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`
