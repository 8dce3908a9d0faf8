import { Either, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Moment, parse, toIso } from "../../src/kernel/Moment.ts"

describe("an RFC 3339 text", () => {
  it.each([
    ["2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000Z"],
    ["2026-03-01T10:00:00.5Z", "2026-03-01T10:00:00.500Z"],
    ["2026-03-01T10:00:00.123456789Z", "2026-03-01T10:00:00.123Z"],
    ["2026-03-01t10:00:00z", "2026-03-01T10:00:00.000Z"],
    ["2026-03-01 10:00:00Z", "2026-03-01T10:00:00.000Z"],
    ["2026-03-01T10:00:00+02:00", "2026-03-01T08:00:00.000Z"],
    ["2026-03-01T00:30:00-05:30", "2026-03-01T06:00:00.000Z"],
    ["2026-03-01", "2026-03-01T00:00:00.000Z"],
    ["2024-02-29", "2024-02-29T00:00:00.000Z"],
    ["2000-02-29T23:59:59Z", "2000-02-29T23:59:59.000Z"],
    ["1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"]
  ])("%s is %s", (text, iso) => {
    expect(toIso(parse(text)!)).toBe(iso)
  })

  it.each([
    "",
    "now",
    "2026",
    "2026-03",
    "2026-3-1",
    "01.03.2026",
    "20260301T100000Z",
    "1772359200000",
    // Without an offset it names no instant.
    "2026-03-01T10:00:00",
    "2026-03-01T10:00Z",
    "2026-03-01T10:00:00+0200",
    "2026-03-01T10:00:00+25:00",
    "2026-03-01T10:00:00.Z",
    "2026-02-30",
    "2026-02-29",
    "1900-02-29",
    "2026-04-31T00:00:00Z",
    "2026-00-10",
    "2026-13-10",
    "2026-01-00",
    "2026-01-32",
    "2026-03-01T24:00:00Z",
    "2026-03-01T10:60:00Z",
    "2026-03-01T10:00:60Z",
    " 2026-03-01",
    "2026-03-01\n"
  ])("%j names no instant", (text) => {
    expect(parse(text)).toBeUndefined()
  })

  it("is what an instant is written as, to the millisecond", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) }), (millis) => {
        expect(parse(toIso(millis))).toBe(millis)
      })
    )
  })
})

it("on the wire an instant is a text, and anything else is refused", () => {
  expect(Schema.decodeUnknownSync(Moment)("2026-03-01")).toBe(Date.UTC(2026, 2, 1))
  expect(Schema.encodeSync(Moment)(0)).toBe("1970-01-01T00:00:00.000Z")
  for (const wrong of ["yesterday", 0, null]) {
    expect(Either.isLeft(Schema.decodeUnknownEither(Moment)(wrong))).toBe(true)
  }
})
