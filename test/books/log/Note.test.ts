/** Notes and checkpoints, against the example of Go's `sumdb/note`. */
import { describe, expect, it } from "vitest"
import fc from "fast-check"
import * as Note from "../../../src/books/log/Note.ts"

/** The example of Go's documentation, whose private key is public. */
const peter = {
  name: "PeterNeumann",
  public: Buffer.from("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "base64").subarray(1).toString("base64")
}
const text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
const note = `${text}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n`

describe("a signed note", () => {
  it("is read as Go reads it", () => {
    expect(Note.verifierKey(peter)).toBe("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    expect(Note.opened(note, [peter])).toBe(text)
    expect(Note.opened(note, [])).toBeUndefined()
    expect(Note.opened(note, [{ ...peter, name: "Peter" }])).toBeUndefined()
  })

  it("is signed as Go signs it", () => {
    const seed = Buffer.from("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz", "base64").subarray(1)
    const secret = Note.secretKey(
      JSON.stringify({
        kty: "OKP",
        crv: "Ed25519",
        d: seed.toString("base64url"),
        x: Buffer.from(peter.public, "base64").toString("base64url")
      })
    )
    expect(Note.signed(text, peter, secret)).toBe(note)
  })

  it("opens with its key and with none of its bytes changed", () => {
    const made = Note.newKey()
    const key = { name: "log.example", public: made.public }
    const checkpoint = Note.signed(
      Note.checkpointText({ origin: "log.example", size: 7, root: Buffer.alloc(32, 5) }),
      key,
      Note.secretKey(made.secret)
    )
    expect(Note.opened(checkpoint, [key])).toBe(`log.example\n7\n${Buffer.alloc(32, 5).toString("base64")}\n`)
    const bytes = Buffer.from(checkpoint)
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const changed = Buffer.from(bytes)
        changed[at]! ^= change
        expect(Note.opened(changed.toString("utf8"), [key])).toBeUndefined()
      }),
      { numRuns: 400 }
    )
  })
})
