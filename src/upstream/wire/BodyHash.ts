/**
 * SHA-256 hashes of the bodies of calls, in base64. A usage record stores the hash of the request and of the answer, so that a customer can prove with
 * the receipt which bytes a charge was for. Only the hashes are stored.
 */
import { createHash, hash } from "node:crypto"
import type { Hash } from "node:crypto"
import { Effect } from "effect"
import { turn } from "../../kernel/Pieces.ts"

/** Returns the hash of a whole body. */
export const bodyHash = (body: Uint8Array | string): string => hash("sha256", body, "base64")

/** The number of bytes to hash at a time. A large piece takes half a millisecond. */
const pieceSize = 512 * 1024

/** Returns the hash of a body that may be long. It yields to other work between pieces. */
export const bodyHashInPieces = (body: Uint8Array): Effect.Effect<string> =>
  body.length <= pieceSize
    ? Effect.sync(() => bodyHash(body))
    : Effect.gen(function* () {
        const all = createHash("sha256")
        for (let at = 0; at < body.length; at += pieceSize) {
          if (at > 0) yield* turn
          all.update(body.subarray(at, at + pieceSize))
        }
        return all.digest("base64")
      })

/** The number of bytes to gather before hashing them. An update costs about as much as hashing a kilobyte. */
const gatheredMax = 8 * 1024
/** The gathered chunks in one piece, for one step. All hashers share it. */
const piece = Buffer.allocUnsafeSlow(gatheredMax)

/** Hashes a body that arrives in chunks. Small chunks are gathered, so a short body is hashed in one step at its end. */
export class BodyHasher {
  private chunks: Array<Uint8Array> = []
  private length = 0
  private hash: Hash | undefined

  /** Adds a chunk. Its bytes must not change afterwards. */
  add(chunk: Uint8Array): void {
    if (this.length + chunk.length > gatheredMax) this.update(this.gathered())
    if (chunk.length > gatheredMax) return this.update(chunk)
    this.chunks.push(chunk)
    this.length += chunk.length
  }

  /** Returns the hash of all chunks. Nothing may be added afterwards. */
  end(): string {
    if (this.hash === undefined) return bodyHash(this.gathered())
    this.update(this.gathered())
    return this.hash.digest("base64")
  }

  private update(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.hash ??= createHash("sha256")
    this.hash.update(bytes)
  }

  /** Removes the gathered chunks and returns them in one piece. It is valid until the next call. */
  private gathered(): Uint8Array {
    let end = 0
    for (const chunk of this.chunks) {
      piece.set(chunk, end)
      end += chunk.length
    }
    this.chunks = []
    this.length = 0
    return piece.subarray(0, end)
  }
}
