/**
 * SHA-256 hashes of call bodies, in base64. A usage record contains the request and response hashes, so that a customer can prove with the receipt
 * which bytes a charge was for. Only the hashes are saved.
 */
import { createHash, hash } from "node:crypto"
import type { Hash } from "node:crypto"
import { Effect } from "effect"
import { turn } from "../../kernel/Pieces.ts"

/** Returns the hash of a whole body. */
export const bodyHash = (body: Uint8Array | string): string => hash("sha256", body, "base64")

/** The chunk size for hashing, in bytes. A chunk takes half a millisecond. */
const chunkSize = 512 * 1024

/** Returns the hash of a body that may be long. It yields to the event loop between chunks. */
export const bodyHashInChunks = (body: Uint8Array): Effect.Effect<string> =>
  body.length <= chunkSize
    ? Effect.sync(() => bodyHash(body))
    : Effect.gen(function* () {
        const hasher = createHash("sha256")
        for (let at = 0; at < body.length; at += chunkSize) {
          if (at > 0) yield* turn
          hasher.update(body.subarray(at, at + chunkSize))
        }
        return hasher.digest("base64")
      })

/** The number of bytes to gather before hashing them. An update costs about as much as hashing a kilobyte. */
const gatheredMax = 8 * 1024
/** A buffer for gathered chunks, shared by all hashers and used for one step. */
const gatherBuffer = Buffer.allocUnsafeSlow(gatheredMax)

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

  /** Removes the gathered chunks and returns them in one buffer, which is valid until the next call. */
  private gathered(): Uint8Array {
    let end = 0
    for (const chunk of this.chunks) {
      gatherBuffer.set(chunk, end)
      end += chunk.length
    }
    this.chunks = []
    this.length = 0
    return gatherBuffer.subarray(0, end)
  }
}
