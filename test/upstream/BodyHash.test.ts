import { Effect } from "effect"
import fc from "fast-check"
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { bodyHash, bodyHashInChunks, BodyHasher } from "../../src/upstream/wire/BodyHash.ts"

const expected = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("base64")

describe("the hash of a body", () => {
  it("is the same in one step, in pieces, and in chunks of any size", async () => {
    const size = fc.oneof(fc.nat(50), fc.nat(9_000), fc.nat(20_000))
    await fc.assert(
      fc.asyncProperty(fc.array(size, { maxLength: 12 }), async (sizes) => {
        const chunks = sizes.map((size, i) => Buffer.alloc(size, `chunk ${i}`))
        const whole = Buffer.concat(chunks)
        const hasher = new BodyHasher()
        for (const chunk of chunks) hasher.add(chunk)
        expect(hasher.end()).toBe(expected(whole))
        expect(bodyHash(whole)).toBe(expected(whole))
        expect(await Effect.runPromise(bodyHashInChunks(whole))).toBe(expected(whole))
      })
    )
    const long = Buffer.alloc(1_300_000, "long")
    expect(await Effect.runPromise(bodyHashInChunks(long))).toBe(expected(long))
  })
})
