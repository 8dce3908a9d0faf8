/** Refusals of a configuration document, in words for an operator who mistyped an entry. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { decodeFile } from "../../src/app/Config.ts"

const refusal = (document: unknown): string =>
  Either.match(decodeFile(document, "--config t.json"), {
    onLeft: ({ message }) => message,
    onRight: () => "taken"
  })

describe("an unknown entry", () => {
  it("is named with the entry that was meant, and not with all others", () => {
    expect(refusal({ modles: [] })).toBe(
      "--config t.json is invalid:\n  modles: is unknown; did you mean bodies or models?"
    )
  })

  it("like no other is answered by where the entries are explained", () => {
    expect(refusal({ zzz: 1 })).toContain('  zzz: is unknown; "tollgate help configure" lists the entries')
  })

  it("in a small object is answered by the known ones", () => {
    expect(refusal({ metrics: { zzz: 1 } })).toContain("  metrics.zzz: is unknown; the entries here are token_env")
  })
})
