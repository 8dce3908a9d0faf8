import { Either, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { PageQuery, Paginated, paginated } from "../../src/kernel/Page.ts"

const decode = Schema.decodeUnknownEither(Schema.Struct(PageQuery))

describe("the query of a page", () => {
  it.each([
    [{}, { page: 1, per_page: 50 }],
    [{ page: "3" }, { page: 3, per_page: 50 }],
    [
      { page: "007", per_page: "10" },
      { page: 7, per_page: 10 }
    ],
    [{ per_page: "200" }, { page: 1, per_page: 200 }],
    [{ per_page: "201" }, { page: 1, per_page: 200 }],
    [{ page: "999999999999999" }, { page: 999_999_999_999_999, per_page: 50 }]
  ])("%j is %j", (query, page) => {
    expect(decode(query)).toEqual(Either.right(page))
  })

  it.each(["", "0", "000", "-1", "1.5", "1e3", "+1", " 1", "abc", "1000000000000000"])(
    "%j is no page, nor a size of one",
    (text) => {
      expect(Either.isLeft(decode({ page: text }))).toBe(true)
      expect(Either.isLeft(decode({ per_page: text }))).toBe(true)
    }
  )
})

describe("a page", () => {
  it.each([
    [0, 0],
    [1, 1],
    [10, 1],
    [11, 2],
    [20, 2]
  ])("of ten, of %i records, is one of %i", (total_records, total_pages) => {
    expect(paginated({ page: 2, per_page: 10 }, total_records, ["a"])).toEqual({
      page: 2,
      per_page: 10,
      total_pages,
      total_records,
      records: ["a"]
    })
  })

  it("is written with its records in their own schema", () => {
    const page = paginated({ page: 1, per_page: 10 }, 1, [7])
    expect(Schema.encodeSync(Paginated(Schema.NumberFromString))(page)).toEqual({
      page: 1,
      per_page: 10,
      total_pages: 1,
      total_records: 1,
      records: ["7"]
    })
  })
})
