/** JSON of requests: what is parsed, and what would hold up everybody else. */
import { Either } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { depthMax, parse, parseExact, partsMax } from "../../src/http/transport/Json.ts"

const refusal = (text: string) => Either.getOrThrow(Either.flip(parse(Buffer.from(text)))).body
const long = "x".repeat(70_000)

describe("a long text", () => {
  it("is refused before it is parsed when it has too many parts, or is too deep", () => {
    for (const piece of ["{},", "[],", '"",', "1,", '"a":1,']) {
      const text = `[${piece.repeat(partsMax)}0]`
      expect(refusal(text)).toEqual({
        error: "the request has too many parts",
        code: "invalid_request",
        details: { field: "", rule: `must contain at most ${partsMax} values and names` }
      })
    }
    for (const brackets of ["[", '{"a":', '[{"a":']) {
      expect(refusal(brackets.repeat(70_000)).details).toEqual({
        field: "",
        rule: `must be nested at most ${depthMax} levels deep`
      })
    }
  })

  it("is refused for its depth however short it is", () => {
    const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`
    expect(refusal(nested(depthMax + 1)).details).toEqual({
      field: "",
      rule: `must be nested at most ${depthMax} levels deep`
    })
    expect(Either.isRight(parse(Buffer.from(nested(depthMax))))).toBe(true)
  })

  it("is parsed when it is a long conversation, or pictures in it", () => {
    const content = [
      { type: "text", text: 'say "[{,:}]\\" to \\\\' },
      { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(1_000)}` } }
    ]
    const tool_calls = [{ id: "call_1", type: "function", function: { name: "f", arguments: '{"a":[1,2,3]}' } }]
    const body = { messages: Array.from({ length: 5_000 }, (_, i) => ({ role: "user", content, tool_calls, i })) }
    expect(Either.getOrThrow(parse(Buffer.from(JSON.stringify(body))))).toEqual(body)
    const prompt = Array.from({ length: 200_000 }, (_, i) => i)
    expect(Either.getOrThrow(parse(Buffer.from(JSON.stringify({ prompt }))))).toEqual({ prompt })
  })

  it("is the same that any parser reads, whatever stands in its strings", () => {
    const value = fc.jsonValue({ depthSize: "medium" })
    const hostile = fc.stringMatching(/^["\\[\]{},:a]*$/, { size: "large" })
    fc.assert(
      fc.property(value, hostile, (value, hostile) => {
        const text = JSON.stringify([long, hostile, value, { [hostile]: `${hostile}\\` }])
        expect(Either.getOrThrow(parse(Buffer.from(text)))).toEqual(JSON.parse(text))
      })
    )
  })

  it("is refused as no JSON when it ends within a string", () => {
    expect(refusal(`["${long}`).error).toBe("the request body is not JSON")
    expect(refusal(`["${long}\\"`).error).toBe("the request body is not JSON")
  })
})

describe("numbers", () => {
  it("keep their digits where money may stand, and are doubles where a double has them", () => {
    const read = (text: string) => Either.getOrThrow(parseExact(Buffer.from(text)))
    const [long, short, text] = read('[999999998.999999812, 0.30, "1234567890123456789"]') as [
      unknown,
      unknown,
      unknown
    ]
    expect([String(long), short, text]).toEqual(["999999998.999999812", 0.3, "1234567890123456789"])
    expect(String((read('{"a":1.0050000000000000000001e0}') as { a: unknown }).a)).toBe("1.0050000000000000000001e0")
    expect(read('{"a":0.000000000000000000001,"b":10000000000000000000000}')).toEqual({ a: 1e-21, b: 1e22 })
    expect(read('{"a":1,"a":1234567890.1234567890}')).toEqual({ a: expect.objectContaining({}) })
    expect(
      Either.isLeft(parseExact(Buffer.from(`${"[".repeat(60_000)}1234567890123456789${"]".repeat(60_000)}`)))
    ).toBe(true)
  })

  it("of any length are read in one pass, whatever zeros they have", () => {
    // An attempt for each zero would take half a minute.
    const zeros = "0".repeat(200_000)
    for (const literal of [`1${zeros}1`, `-0.${zeros}1${zeros}2e-5`]) {
      expect(String(Either.getOrThrow(parseExact(Buffer.from(literal))))).toBe(literal)
    }
    expect(Either.getOrThrow(parseExact(Buffer.from(`1.5${zeros}`)))).toBe(1.5)
  }, 10_000)
})
