/** JSON of requests: what is parsed, and what would hold up everybody else. */
import { Effect, Either } from "effect"
import fc from "fast-check"
import { describe, expect, it, vi } from "vitest"
import { depthMax, parse, parseExact, parseInPieces, partsMax } from "../../src/http/transport/Json.ts"

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

describe("a text with pictures", () => {
  const inPieces = (text: string | Buffer) => Effect.runPromise(parseInPieces(Buffer.from(text)))
  const picture = (data: string) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } })

  it("is read without parsing them", async () => {
    const value = {
      messages: [{ content: [picture("A".repeat(3_000_000)), picture("B".repeat(400_000)), picture("C")] }]
    }
    const text = JSON.stringify(value)
    const parsing = vi.spyOn(JSON, "parse")
    const read = await inPieces(text)
    const longest = Math.max(...parsing.mock.calls.map(([text]) => text.length))
    parsing.mockRestore()
    expect(longest).toBeLessThan(1_000)
    expect(Either.getOrThrow(read)).toEqual(value)
  })

  it("is read in pieces with escapes and other alphabets, wherever these are cut", async () => {
    const piece = 256 * 1024
    for (const odd of ["\\/", '\\"', "\\\\", "\\\\\\\\\\u00e9", "\\ud83d\\ude00", "é", "€", "😀", "\\\\u0041"]) {
      for (let at = 0; at <= 14; at++) {
        // A body of less than a megabyte is parsed at once.
        const text = `["${"A".repeat(piece - at)}${odd.repeat(3)}${"B".repeat(900_000)}"]`
        const parsing = vi.spyOn(JSON, "parse")
        const read = await inPieces(text)
        const longest = Math.max(...parsing.mock.calls.map(([text]) => text.length))
        parsing.mockRestore()
        expect(longest).toBeLessThan(piece + 10)
        const same = JSON.stringify(Either.getOrThrow(read)) === JSON.stringify(JSON.parse(text))
        expect([odd, at, same]).toEqual([odd, at, true])
      }
    }
  })

  it("is read as any parser reads it, whatever stands where", async () => {
    const data = "A".repeat(1_100_000)
    const texts = [
      JSON.stringify({ ["__proto__"]: 1, a: data }),
      `{"__proto__":"${data}"}`,
      `{"a":"${data}","a":1}`,
      `{"a":1,"a":"${data}"}`,
      `{"${data}":"${data}"}`,
      `["${data}\\n","${data}é","${data}\\u00e9"]`,
      `"${data}"`,
      `[${Array.from({ length: 200 }, () => `"${"b".repeat(10_000)}"`).join()}]`
    ]
    for (const text of texts) {
      const read = Either.getOrThrow(await inPieces(text))
      expect(JSON.stringify(read)).toBe(JSON.stringify(JSON.parse(text)))
    }
  })

  it("is refused where it is no JSON", async () => {
    const data = "A".repeat(1_100_000)
    for (const text of [`["${data}`, `["${data}\n"]`, `["${data}"]]`, `{"a":${data}}`, `["${data}\\x"]`]) {
      expect(Either.isLeft(await inPieces(text))).toBe(true)
    }
    const parts = `{"a":"${data}","b":[${"1,".repeat(partsMax)}1]}`
    expect(Either.getOrThrow(Either.flip(await inPieces(parts))).message).toBe("the request has too many parts")
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
