import { describe, expect, it } from "vitest"
import fc from "fast-check"
import { JsonOutline } from "../../src/kernel/JsonOutline.ts"

const outlined = (json: string | Buffer, names: ReadonlyArray<string>, depth: number, size: number) => {
  const outline = new JsonOutline({ names: new Set(names), depth })
  const bytes = Buffer.from(json)
  for (let at = 0; at < bytes.length; at += size) outline.take(bytes.subarray(at, at + size))
  return outline
}

const emptied = (value: unknown): unknown =>
  Array.isArray(value) ? [] : typeof value === "object" && value !== null ? {} : typeof value === "string" ? "" : value

/** The same by way of the whole value. */
const expected = (value: unknown, names: ReadonlyArray<string>, depth: number, at = 1): unknown => {
  if (Array.isArray(value)) return value.map((one) => expected(one, names, depth, at + 1))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      at === depth && names.includes(name) ? emptied(one) : expected(one, names, depth, at + 1)
    ])
  )
}

describe("an outline", () => {
  it("is the object with its long members left empty, however its bytes come", () => {
    const name = fc.constantFrom("long", "data", "usage", 'lo"ng', "\\", "é")
    const word = fc.oneof(
      fc.string(),
      fc.string({ unit: "binary" }),
      fc.constantFrom("\\", '"', '\\"', "{[", "]}", ",:")
    )
    const { object } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        word,
        fc.double({ noNaN: true }),
        fc.boolean(),
        fc.constant(null),
        tie("list"),
        tie("object")
      ),
      list: fc.array(tie("value"), { maxLength: 4 }),
      object: fc.dictionary(name, tie("value"), { maxKeys: 4 })
    }))
    fc.assert(
      fc.property(
        object,
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        (value, size, depth, wide) => {
          const json = JSON.stringify(value, null, wide ? 2 : 0)
          const read = JSON.parse(json) as unknown
          expect(outlined(json, ["long"], depth, size).value).toEqual(expected(read, ["long"], depth))
        }
      ),
      { numRuns: 2_000 }
    )
  })

  it("knows where the bytes stand that it left empty", () => {
    const json = '{"data":[{"long":[1,2]},{"long":"ab\\"c","usage":1}]}'
    for (const size of [1, 3, 100]) {
      const { emptied } = outlined(json, ["long"], 3, size)
      expect(emptied.map(({ from, to }) => json.slice(from, to))).toEqual(["1,2", 'ab\\"c'])
    }
  })

  it("is none of what is no whole object, or of one that is long elsewhere", () => {
    for (const json of ['{"long":[1,2', "[1]", '"a"', "", '{"long":[]', '{"long":[]}}', '{"long":[]} x', '{"a":tru}']) {
      expect(outlined(json, ["long"], 1, 7).value).toBeUndefined()
    }
    const many = Object.fromEntries(Array.from({ length: 300_000 }, (_, i) => [`name${i}`, i]))
    expect(outlined(JSON.stringify(many), ["long"], 1, 65_536).value).toBeUndefined()
    expect(outlined(JSON.stringify({ a: { b: "a".repeat(3_000_000) } }), ["long"], 2, 65_536).value).toBeUndefined()
    expect(outlined(JSON.stringify({ long: "a".repeat(3_000_000) }), ["long"], 1, 65_536).value).toEqual({ long: "" })
  })

  it("leaves other members of the object itself empty too if they are very long", () => {
    const item = { token: '"}],\\', ids: [[1], {}, "é"], usage: 7 }
    const fillers = [
      "a\\".repeat(300_000),
      Array.from({ length: 20_000 }, () => item),
      Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, item])),
      [["x".repeat(600_000)], "b"]
    ]
    for (const filler of fillers) {
      for (const size of [1_013, 65_536]) {
        const value = { first: "a", other: filler, usage: { n: 1 }, another: filler, long: [1], last: [2] }
        const outline = outlined(JSON.stringify(value), ["long"], 1, size)
        const empty = emptied(filler)
        expect(outline.value).toEqual({ ...value, other: empty, another: empty, long: [] })
        expect(outline.emptied).toHaveLength(1)
        expect(outline.bytes.length).toBeLessThan(1_000)
      }
    }
  })

  it("has its bytes, also of what is no JSON", () => {
    expect(outlined('{"long":[1,2],"usage":{"n":1},}', ["long"], 1, 3).bytes.toString()).toBe(
      '{"long":[],"usage":{"n":1},}'
    )
  })
})
