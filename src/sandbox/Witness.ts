/**
 * A witness of transparency logs (C2SP tlog-witness): it cosigns a checkpoint only if it extends every checkpoint of that log that it has
 * cosigned. It verifies consistency proofs as in RFC 9162, section 2.1.4.2, with its own code, and keeps its state in memory only.
 */
import { createPrivateKey, hash } from "node:crypto"
import type { KeyObject } from "node:crypto"
import * as Note from "../books/log/Note.ts"
import type { NoteKey, TreeHead } from "../books/log/Note.ts"
import type { Whole } from "./Outside.ts"

const sha256 = (...parts: ReadonlyArray<Uint8Array>): Buffer => hash("sha256", Buffer.concat(parts), "buffer")
const emptyRoot = sha256()
const nodePrefix = Buffer.of(1)
const proofMax = 63

const half = (index: number): number => Math.floor(index / 2)

interface Grown {
  readonly from: Pick<TreeHead, "size" | "root">
  readonly to: Pick<TreeHead, "size" | "root">
  readonly proof: ReadonlyArray<Uint8Array>
}

/** Returns whether the proof shows that the tree `to` begins with the tree `from`. */
export const isConsistent = ({ from, proof, to }: Grown): boolean => {
  if (from.size === 0) return proof.length === 0
  if (from.size === to.size) return proof.length === 0 && Buffer.compare(from.root, to.root) === 0
  if (from.size > to.size || proof.length === 0) return false
  // If the old size is a power of two, the old root is a node of the new tree, so the proof omits it.
  const isComplete = Number.isInteger(Math.log2(from.size))
  const path = isComplete ? [from.root, ...proof] : proof
  let [first, second] = [from.size - 1, to.size - 1]
  for (; first % 2 === 1; second = half(second)) first = half(first)
  let early = path[0]!
  let late = early
  for (const node of path.slice(1)) {
    if (second === 0) return false
    if (first % 2 === 1 || first === second) {
      early = sha256(nodePrefix, node, early)
      late = sha256(nodePrefix, node, late)
      for (; first % 2 === 0 && first !== 0; second = half(second)) first = half(first)
    } else late = sha256(nodePrefix, late, node)
    first = half(first)
    second = half(second)
  }
  return second === 0 && Buffer.compare(early, from.root) === 0 && Buffer.compare(late, to.root) === 0
}

interface Request {
  readonly old: number
  readonly proof: ReadonlyArray<Buffer>
  readonly checkpoint: string
}

/** Parses the body of `add-checkpoint`; `undefined` if it is malformed. */
const requestOf = (body: string): Request | undefined => {
  const [, digits, lines, checkpoint] = /^old (0|[1-9]\d*)\n((?:[A-Za-z0-9+/]{43}=\n)*)\n([^]+)$/.exec(body) ?? []
  if (digits === undefined || checkpoint === undefined || !Number.isSafeInteger(Number(digits))) return undefined
  const proof = (lines ?? "").split("\n").slice(0, -1)
  if (proof.length > proofMax) return undefined
  return { old: Number(digits), proof: proof.map((line) => Buffer.from(line, "base64")), checkpoint }
}

const reply = (status: number, body: string, type = "text/plain; charset=utf-8"): Whole => ({
  status,
  headers: { "content-type": type },
  body
})

/** Derives a private key from a text. Anyone who knows the text can sign. */
const keyFrom = (text: string): KeyObject =>
  createPrivateKey({
    // The PKCS #8 encoding of an Ed25519 key is a fixed prefix followed by the seed.
    key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), sha256(Buffer.from(text))]),
    format: "der",
    type: "pkcs8"
  })

export class Witness {
  readonly key: NoteKey
  /** The newest head that this witness cosigned, by origin. */
  readonly logs = new Map<string, TreeHead>()
  private readonly secret: KeyObject
  private readonly keysOf: (origin: string) => Promise<ReadonlyArray<NoteKey> | undefined>
  private readonly now: () => number

  /** `keysOf` returns the keys that the witness trusts for an origin; `undefined` if it does not know the log. `now` is in milliseconds. */
  constructor(
    name: string,
    keysOf: (origin: string) => Promise<ReadonlyArray<NoteKey> | undefined>,
    now: () => number
  ) {
    this.secret = keyFrom(`the witness ${name}`)
    this.key = { name, public: Note.publicOf(this.secret) }
    this.keysOf = keysOf
    this.now = now
  }

  get verifier(): string {
    return Note.cosignerKey(this.key)
  }

  /** Replies to `add-checkpoint`. */
  async add(body: string): Promise<Whole> {
    const request = requestOf(body)
    const parts = request === undefined ? undefined : Note.partsOf(request.checkpoint)
    if (request === undefined || parts === undefined) return reply(400, "the request is malformed\n")
    const { checkpoint, old, proof } = request
    const head = Note.treeHeadOf(parts.text)
    if (head === undefined || old > head.size) return reply(400, "the checkpoint is malformed\n")
    const keys = await this.keysOf(head.origin)
    if (keys === undefined) return reply(404, "the log is not known\n")
    if (Note.opened(checkpoint, keys) === undefined) return reply(403, "no trusted key signed the checkpoint\n")
    return this.cosign(old, proof, head, parts.text)
  }

  /** Compares and stores synchronously, so that two concurrent requests cannot both pass. */
  private cosign(old: number, proof: ReadonlyArray<Buffer>, head: TreeHead, text: string): Whole {
    const from = this.logs.get(head.origin) ?? { size: 0, root: emptyRoot }
    if (old !== from.size) return reply(409, `${from.size}\n`, "text/x.tlog.size")
    const isOther = from.size === head.size && Buffer.compare(from.root, head.root) !== 0
    if (isOther) return reply(409, `${from.size}\n`, "text/x.tlog.size")
    if (!isConsistent({ from, to: head, proof })) return reply(422, "the consistency proof is wrong\n")
    this.logs.set(head.origin, head)
    return reply(200, `${Note.cosignatureOf(text, this.key, this.secret, Math.floor(this.now() / 1000))}\n`)
  }
}
