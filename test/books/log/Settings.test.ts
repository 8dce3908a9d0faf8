/** The `log` part of the configuration: valid witnesses, and every mistake in its own words. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { decodeFile } from "../../../src/app/Config.ts"
import * as Note from "../../../src/books/log/Note.ts"

const keyOf = (name: string, key = Note.newKey().public) => Note.cosignerKey({ name, public: key })

const problem = (log: object): string => Either.getOrThrow(Either.flip(decodeFile({ log }, "the file"))).message

const url = "https://w.example/a"

describe("the witnesses of the configuration", () => {
  it("are all required by default, and a proof of liabilities is published", () => {
    const key = keyOf("w.example/a")
    const { log } = Either.getOrThrow(decodeFile({ log: { witnesses: [{ url, key }] } }, "the file"))
    expect(log.witnesses).toEqual([{ url, key: Note.cosignerOf(key), verifier: key }])
    expect(log).toMatchObject({ cosign_seconds: 1_000, liabilities: true })
    expect(Either.getOrThrow(decodeFile({}, "the file")).log).toMatchObject({ witnesses: [], liabilities: true })
  })

  it("need an address and a key that makes cosignatures", () => {
    const key = keyOf("w.example/a")
    for (const wrong of ["ftp://w.example", "w.example", "https://w.example/?a=b"])
      expect(problem({ witnesses: [{ url: wrong, key }] })).toContain("log.witnesses.0.url: must be a URL")
    const plain = Note.verifierKey({ name: "w.example/a", public: Note.newKey().public })
    const damaged = key.slice(0, -2) + (key.at(-2) === "A" ? "B" : "A") + key.slice(-1)
    for (const wrong of ["x", plain, damaged, key.replace("w.example", "v.example"), ""])
      expect(problem({ witnesses: [{ url, key: wrong }] })).toContain(
        "log.witnesses.0.key: must be a verifier key for Ed25519"
      )
  })

  it("have short names, and are few, because each receipt contains a line per witness", () => {
    const [longest, longer] = ["w".repeat(48), `${"w".repeat(47)}\u00e9`]
    const witnesses = Array.from({ length: 9 }, (_, i) => ({ url: `${url}${i}`, key: keyOf(`w${i}`) }))
    const decoded = Either.getOrThrow(decodeFile({ log: { witnesses: witnesses.slice(1) } }, "the file"))
    expect(decoded.log.witnesses).toHaveLength(8)
    expect(problem({ witnesses })).toContain("log.witnesses: must contain at most 8 witnesses")
    expect(problem({ witnesses: [{ url, key: keyOf(longer) }] })).toContain(
      "log.witnesses.0.key: must contain a name of at most 48 bytes"
    )
    expect(Either.isRight(decodeFile({ log: { witnesses: [{ url, key: keyOf(longest) }] } }, "the file"))).toBe(true)
  })

  it("are different operators, and not fewer than are required", () => {
    const shared = Note.newKey().public
    const key = keyOf("w.example/a", shared)
    const second = (one: object) =>
      problem({
        witnesses: [
          { url, key },
          { url: "https://x.example", key: keyOf("x"), ...one }
        ]
      })
    expect(second({ key: keyOf("w.example/a") })).toContain("log.witnesses.1.key: an earlier witness has this name")
    expect(second({ key: keyOf("other", shared) })).toContain("log.witnesses.1.key: an earlier witness has this name")
    expect(second({ url })).toContain("log.witnesses.1.url: an earlier witness has this address")
    expect(problem({ required: 1 })).toContain("log.required: must be at most 0")
    expect(problem({ witnesses: [{ url, key }], required: 2 })).toContain("log.required: must be at most 1")
    expect(problem({ witnesses: [{ url, key }], required: 0 })).toContain(
      "log.required: must be a positive whole number"
    )
  })
})
