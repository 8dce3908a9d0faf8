/** What an answer says beside its body: the reason phrase, cross-origin headers; and that the lane and the router say the same. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { phraseOf, reasonOf } from "../../src/http/transport/Reason.ts"
import { preflight } from "../../src/http/transport/CrossOrigin.ts"
import { head, line, serve } from "./Edge.ts"
import type { Edge } from "./Edge.ts"

let edge: Edge
beforeAll(async () => {
  edge = await serve()
})
afterAll(() => edge.stop())

const answerTo = async (bytes: string): Promise<string> => {
  const connection = await line(edge.port)
  connection.write(bytes)
  return connection.closed
}

describe("the reason phrase", () => {
  it("is the text of the error, in visible ASCII and not too long", () => {
    expect(phraseOf("insufficient credits")).toBe("insufficient credits")
    expect(phraseOf("name: “Ada”\r\nSet-Cookie: x=1\t\u0000 é")).toBe("name: Ada Set-Cookie: x=1")
    expect(phraseOf("\u0000\r\n")).toBeUndefined()
    expect(phraseOf("x".repeat(5_000))).toHaveLength(200)
  })

  it("is HTTP's own where there is no such text", () => {
    expect(reasonOf(200, '{"error":"x"}')).toBeUndefined()
    expect(reasonOf(400, "<html>")).toBeUndefined()
    expect(reasonOf(400, "null")).toBeUndefined()
    expect(reasonOf(400, '{"error":5}')).toBeUndefined()
    expect(reasonOf(422, '{"error":{"message":"state: too long"}}')).toBe("state: too long")
    expect(reasonOf(400, Buffer.from('{"error":"no"}'))).toBe("no")
  })

  it.each(["/lane", "/router", "/stream"])("stands in the status line of %s", async (path) => {
    expect(await answerTo(head(path, "Content-Encoding: zip", "Content-Length: 1", "Connection: close") + "x")).toMatch(
      /^HTTP\/1\.1 415 the request body's Content-Encoding must be gzip, br or deflate\r\n/
    )
  })

  it("stands in that of every other refusal", async () => {
    for (const [request, line] of [
      ["GET /nowhere HTTP/1.1\r\nConnection: close\r\n\r\n", "404 no such route"],
      ["DELETE /get HTTP/1.1\r\nConnection: close\r\n\r\n", "405 Method Not Allowed"],
      ["hello\r\n\r\n", "400 this is not an HTTP request"],
      [`GET /get HTTP/1.1\r\nX: ${"a".repeat(40_000)}\r\n\r\n`, "431 the request's headers are too long"],
      [`GET /${"a".repeat(40_000)} HTTP/1.1\r\n\r\n`, "431 the request's headers are too long"],
      ["CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n", "405 Method Not Allowed"]
    ] as const) {
      expect((await answerTo(request)).split("\r\n")[0]).toBe(`HTTP/1.1 ${line}`)
    }
  })
})

describe("the lane and the router", () => {
  /** The answer, without what is different each time. */
  const comparable = (answer: string) => {
    const [top, body] = answer.split("\r\n\r\n") as [string, string]
    const [status, ...headers] = top.split("\r\n")
    return {
      status,
      headers: headers
        .filter((header) => !/^(x-request-id|date|keep-alive):/i.test(header))
        .map((h) => h.toLowerCase())
        .sort(),
      body
    }
  }

  it.each([
    ["an answer", ["Content-Length: 2"], "{}"],
    ["a body that is too large", ["Content-Length: 2000000"], "x".repeat(2_000_000)],
    ["another encoding", ["Content-Length: 1", "Content-Encoding: zip"], "x"],
    ["bytes of no encoding", ["Content-Length: 1", "Content-Encoding: gzip"], "x"]
  ])("answer the same to %s", async (_, headers, body) => {
    const [lane, router] = await Promise.all(
      ["/lane", "/router"].map((path) => answerTo(head(path, ...headers, "Connection: close") + body))
    )
    expect(comparable(lane!)).toEqual(comparable(router!))
  })
})

describe("a preflight", () => {
  it("is allowed the headers that it asks for", async () => {
    const asked = "authorization, content-type, x-stainless-arch, x-stainless-retry-count, x_odd!"
    const answer = await fetch(`${edge.url}/lane`, {
      method: "OPTIONS",
      headers: {
        origin: "https://example.com",
        "access-control-request-method": "POST",
        "access-control-request-headers": asked
      }
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get("access-control-allow-headers")).toBe(asked)
    expect(answer.headers.get("vary")).toContain("Access-Control-Request-Headers")
  })

  it("gets no header that is none, and not without end", () => {
    expect(preflight("x-one,, a b, x:y, é, x-two")["access-control-allow-headers"]).toBe("x-one, x-two")
    const many = preflight(Array.from({ length: 5_000 }, (_, i) => `x-${i}`).join(","))
    expect(many["access-control-allow-headers"].split(",")).toHaveLength(100)
    expect(preflight("")["access-control-allow-headers"]).toContain("Idempotency-Key")
  })
})

describe("bytes that are no request, or two", () => {
  it.each([
    ["two lengths", head("/lane", "Content-Length: 2", "Content-Length: 3") + "{}x"],
    [
      "a length and a transfer encoding",
      head("/lane", "Content-Length: 2", "Transfer-Encoding: chunked") + "0\r\n\r\n"
    ],
    [
      "a transfer encoding and a length",
      head("/lane", "Transfer-Encoding: chunked", "Content-Length: 2") + "0\r\n\r\n"
    ],
    ["a length that is none", head("/lane", "Content-Length: 2x") + "{}"],
    ["a transfer encoding that is none", head("/lane", "Transfer-Encoding: x") + "{}"],
    ["chunked in disguise", head("/lane", "Transfer-Encoding: chunked, identity") + "0\r\n\r\n"],
    ["a header with a space before its colon", head("/lane", "Content-Length : 2") + "{}"]
  ])("are refused, and nothing behind them is answered: %s", async (_, bytes) => {
    const answer = await answerTo(bytes + "GET /get HTTP/1.1\r\nHost: x\r\n\r\n")
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
  })

  it("do not spoil the answer before them", async () => {
    const connection = await line(edge.port)
    connection.write(head("/lane", "Content-Length: 2") + "{}" + head("/router", "Content-Length: 2") + "{}")
    expect(await connection.until(/"start"[^]*"start":"{}"}/)).not.toMatch(/ 400 /)
    connection.write("nonsense\r\n\r\n")
    expect(await connection.closed).toMatch(/"start":"{}"}HTTP\/1\.1 400 this is not an HTTP request\r\n/)
  })

  it.each([
    ["what a client sends that asked for the end", ["Connection: close"], "GET /get HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["what is no request", [], "nonsense\r\n\r\n"]
  ])("do not take the place of the answer before them: %s", async (_, headers, behind) => {
    for (const path of ["/lane", "/router"]) {
      const answer = await answerTo(head(path, "Content-Length: 2", ...headers) + "{}" + behind)
      expect(answer).toMatch(/^HTTP\/1\.1 200 /)
      expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
    }
  })

  it("may ask to become something else, and are answered as what they are", async () => {
    const upgrade = [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: eA=="
    ]
    const connection = await line(edge.port)
    connection.write(["GET /get HTTP/1.1", "Host: x", ...upgrade, "", ""].join("\r\n"))
    expect(await connection.until(/\r\n\r\n.*}/)).toMatch(/^HTTP\/1\.1 200 OK/)
    connection.socket.destroy()
  })

  it("may have a thousand headers", async () => {
    const flood = Array.from({ length: 1_000 }, (_, i) => `x${i}: 1`)
    expect(await answerTo(["GET /get HTTP/1.1", "Connection: close", ...flood, "", ""].join("\r\n"))).toMatch(
      /^HTTP\/1\.1 200 /
    )
  })

  it("may be HEAD, which has no body", async () => {
    const answer = await answerTo("HEAD /get HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/)
  })
})
