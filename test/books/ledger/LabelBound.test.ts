import { describe, expect, it } from "vitest"
import { LabelBound } from "../../../src/books/ledger/rows/LabelBound.ts"

const january = Date.UTC(2026, 0, 5)
const call = (tenant_id: string, i: number) => ({ tenant_id, tags: `run=${i}`, end_user: `user ${i % 7}` })

describe("combinations of labels", () => {
  it("beyond the bound are stored as others, and known ones as before", () => {
    const bound = new LabelBound(50)
    for (let i = 0; i < 50; i++) expect(bound.bounded(call("a", i), january)).toEqual(call("a", i))
    expect(bound.bounded(call("a", 50), january)).toEqual({ tenant_id: "a", tags: "tags=(other)", end_user: "(other)" })
    expect(bound.bounded({ tenant_id: "a", tags: undefined, end_user: "new" }, january)).toEqual({
      tenant_id: "a",
      tags: undefined,
      end_user: "(other)"
    })
    for (let i = 0; i < 50; i++) expect(bound.bounded(call("a", i), january)).toEqual(call("a", i))
    // Calls without labels, and other tenants.
    expect(bound.bounded({ tenant_id: "a", tags: undefined, end_user: undefined }, january).end_user).toBe(undefined)
    expect(bound.bounded(call("b", 50), january)).toEqual(call("b", 50))
  })

  it("have room again in the next month", () => {
    const bound = new LabelBound(1)
    const tagsAt = (i: number, at: number) => bound.bounded(call("a", i), at).tags
    expect([tagsAt(1, january), tagsAt(2, january)]).toEqual(["run=1", "tags=(other)"])
    const february = Date.UTC(2026, 1, 1)
    expect([tagsAt(2, february - 1), tagsAt(2, february), tagsAt(3, february)]).toEqual([
      "tags=(other)",
      "run=2",
      "tags=(other)"
    ])
    // A call that began in January.
    expect(tagsAt(2, january)).toBe("run=2")
  })

  it("are about as many as the bound, if there are more than a set holds", () => {
    const bound = new LabelBound()
    const isStored = (i: number): boolean => bound.bounded(call("a", i), january).tags === `run=${i}`
    const stored = Array.from({ length: 200_000 }, (_, i) => i).filter(isStored)
    expect(stored.length).toBeGreaterThan(95_000)
    expect(stored.length).toBeLessThan(125_000)
    expect(stored.slice(0, 90_000).every((one, i) => one === i)).toBe(true)
    expect(stored.every(isStored)).toBe(true)
  })
})
