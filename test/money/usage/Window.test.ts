import { describe, expect, it } from "@effect/vitest"
import { day, hour } from "../../../src/kernel/Moment.ts"
import { endOf, partsOf, startOf, wholeDays } from "../../../src/money/usage/Window.ts"

const at = (text: string) => startOf(text) as number

describe("Window", () => {
  it("reads instants, and a bare date as the whole of it", () => {
    expect(startOf("2026-03-31")).toBe(Date.UTC(2026, 2, 31))
    expect(endOf("2026-03-31")).toBe(Date.UTC(2026, 3, 1))
    expect(endOf("2026-03-31T00:00:00Z")).toBe(Date.UTC(2026, 2, 31))
    expect(endOf("2026-03-31T12:00:00.250+02:00")).toBe(Date.UTC(2026, 2, 31, 10, 0, 0, 250))
    expect([startOf(undefined), endOf(undefined)]).toEqual([null, null])
    for (const text of ["", "yesterday", "2026-02-30", "2026-03-31T12:00", "1700000000"]) {
      expect([startOf(text), endOf(text)]).toEqual([undefined, undefined])
    }
  })

  it("is cut into whole days, whole hours, and what is left", () => {
    expect(partsOf({ start: at("2026-03-01T10:20:00Z"), end: at("2026-03-04T02:30:00Z") })).toEqual([
      { grain: null, start: at("2026-03-01T10:20:00Z"), end: at("2026-03-01T11:00:00Z") },
      { grain: hour, start: at("2026-03-01T11:00:00Z"), end: at("2026-03-02") },
      { grain: day, start: at("2026-03-02"), end: at("2026-03-04") },
      { grain: hour, start: at("2026-03-04"), end: at("2026-03-04T02:00:00Z") },
      { grain: null, start: at("2026-03-04T02:00:00Z"), end: at("2026-03-04T02:30:00Z") }
    ])
    expect(partsOf({ start: at("2026-03-01T10:20:00Z"), end: at("2026-03-01T10:40:00Z") })).toHaveLength(1)
    expect(partsOf({ start: at("2026-03-02"), end: at("2026-03-01") })).toEqual([])
    expect(partsOf({ start: null, end: null })).toEqual([
      { grain: day, start: expect.any(Number), end: expect.any(Number) }
    ])
  })

  it("its parts lie end to end", () => {
    const ends = [
      "2025-12-31T23:59:59.999Z",
      "2026-01-01",
      "2026-01-01T00:00:00.001Z",
      "2026-01-03T05:00:00Z",
      "2027-01-01"
    ]
    for (const [i, start] of ends.entries()) {
      for (const end of ends.slice(i + 1)) {
        const parts = partsOf({ start: at(start), end: at(end) })
        expect(parts.map((part) => part.start)).toEqual([at(start), ...parts.slice(0, -1).map((part) => part.end)])
        expect(parts.at(-1)!.end).toBe(at(end))
        for (const part of parts) {
          if (part.grain !== null) expect([part.start % part.grain, part.end % part.grain]).toEqual([0, 0])
        }
      }
    }
  })

  it("touches whole days", () => {
    expect(wholeDays({ start: at("2026-03-01T10:20:00Z"), end: at("2026-03-02T00:00:00.001Z") })).toEqual({
      start: at("2026-03-01"),
      end: at("2026-03-03")
    })
    expect(wholeDays({ start: at("2026-03-01"), end: at("2026-03-02") })).toEqual({
      start: at("2026-03-01"),
      end: at("2026-03-02")
    })
  })
})
