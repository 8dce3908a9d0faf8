/** A software authenticator with ES256 passkeys. Tests can change every part of its responses. */
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto"
import type { KeyObject } from "node:crypto"

type Cbor = number | string | Uint8Array | ReadonlyMap<number | string, Cbor>

/** Encodes the head of a CBOR item: its major type and its length or value. */
const head = (major: number, n: number): Buffer => {
  if (n < 24) return Buffer.from([(major << 5) | n])
  if (n < 256) return Buffer.from([(major << 5) | 24, n])
  return Buffer.from([(major << 5) | 25, n >> 8, n & 255])
}

const cbor = (value: Cbor): Buffer => {
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  return Buffer.concat([head(5, value.size), ...[...value].flatMap(([key, inner]) => [cbor(key), cbor(inner)])])
}

const sha256 = (bytes: string | Uint8Array): Buffer => createHash("sha256").update(bytes).digest()

const present = 0x01
const verified = 0x04
const attested = 0x40

/** Changes to a response. */
export interface Spoiled {
  readonly origin?: string
  readonly rp_id?: string
  readonly type?: string
  readonly challenge?: string
  /** Whether the user was verified, not only present. */
  readonly verified?: boolean
  readonly counter?: number
  readonly userHandle?: string
  /** Signs with a different key. */
  readonly forged?: boolean
}

export class Authenticator {
  readonly id = randomBytes(32).toString("base64url")
  readonly #origin: string
  readonly #keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }
  #user = ""
  /** The signature counter. A multi-device authenticator keeps it at 0. */
  counter: number
  readonly #counts: boolean

  constructor(origin: string, { counts = true }: { readonly counts?: boolean } = {}) {
    this.#origin = origin
    this.#counts = counts
    this.counter = 0
    this.#keys = generateKeyPairSync("ec", { namedCurve: "P-256" })
  }

  /** Acts as `navigator.credentials.create`. */
  create(
    options: {
      readonly challenge: string
      readonly rp: { readonly id: string }
      readonly user: { readonly id: string }
    },
    spoiled: Spoiled = {}
  ) {
    this.#user = options.user.id
    const id = Buffer.from(this.id, "base64url")
    const { x, y } = this.#keys.publicKey.export({ format: "jwk" }) as { readonly x: string; readonly y: string }
    const key = cbor(
      new Map<number, Cbor>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x, "base64url")],
        [-3, Buffer.from(y, "base64url")]
      ])
    )
    const credential = Buffer.concat([Buffer.alloc(16), Buffer.from([id.length >> 8, id.length & 255]), id, key])
    const authData = this.#authData(options.rp.id, attested, credential, spoiled)
    const attestationObject = cbor(
      new Map<string, Cbor>([
        ["fmt", "none"],
        ["attStmt", new Map()],
        ["authData", authData]
      ])
    )
    return {
      id: this.id,
      rawId: this.id,
      type: "public-key",
      response: {
        clientDataJSON: this.#clientData("webauthn.create", options.challenge, spoiled).toString("base64url"),
        attestationObject: attestationObject.toString("base64url"),
        transports: ["internal", "hybrid", "telepathy"]
      }
    }
  }

  /** Acts as `navigator.credentials.get`. */
  get(options: { readonly challenge: string; readonly rpId: string }, spoiled: Spoiled = {}) {
    if (this.#counts) this.counter++
    const clientData = this.#clientData("webauthn.get", options.challenge, spoiled)
    const authData = this.#authData(options.rpId, 0, Buffer.alloc(0), spoiled)
    const key =
      spoiled.forged === true ? generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey : this.#keys.privateKey
    const signature = sign("sha256", Buffer.concat([authData, sha256(clientData)]), key)
    return {
      id: this.id,
      rawId: this.id,
      type: "public-key",
      response: {
        clientDataJSON: clientData.toString("base64url"),
        authenticatorData: authData.toString("base64url"),
        signature: signature.toString("base64url"),
        userHandle: spoiled.userHandle ?? this.#user
      }
    }
  }

  #clientData(type: string, challenge: string, spoiled: Spoiled): Buffer {
    const data = { type, challenge, origin: this.#origin, crossOrigin: false }
    const { challenge: other = challenge, origin = this.#origin, type: kind = type } = spoiled
    return Buffer.from(JSON.stringify({ ...data, challenge: other, origin, type: kind }))
  }

  #authData(rpId: string, flags: number, rest: Buffer, spoiled: Spoiled): Buffer {
    const { counter = this.counter, rp_id = rpId, verified: isVerified = true } = spoiled
    const count = Buffer.alloc(4)
    count.writeUInt32BE(counter)
    return Buffer.concat([sha256(rp_id), Buffer.from([present | (isVerified ? verified : 0) | flags]), count, rest])
  }
}
