/** Bodies of requests: how they may come, how much of them there may be, and that every refusal is read by its client. */
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib"
import { make } from "../../src/http/transport/Bytes.ts"
import { head, limit, line, routes, serve } from "./Edge.ts"
import type { Edge } from "./Edge.ts"

let edge: Edge
beforeAll(async () => {
  edge = await serve()
})
afterAll(() => edge.stop())

const post = async (path: string, body: string | Buffer, headers: Record<string, string> = {}) => {
  const response = await fetch(edge.url + path, {
    method: "POST",
    headers: { authorization: "Bearer x", ...headers },
    body: body as unknown as string
  })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>
  }
}

describe.each(routes)("a body at %s", (path) => {
  const text = JSON.stringify({ said: "hello ".repeat(40_000) })

  it.each([
    ["gzip", gzipSync(text)],
    ["x-gzip", gzipSync(text)],
    ["GZIP", gzipSync(text)],
    ["br", brotliCompressSync(text)],
    ["deflate", deflateSync(text)],
    ["deflate", deflateRawSync(text)],
    ["identity", Buffer.from(text)]
  ])("is decoded from %s", async (encoding, body) => {
    const answer = await post(path, body, { "content-encoding": encoding })
    expect([answer.status, answer.body.length]).toEqual([200, text.length])
  })

  it("of another encoding is refused with 415", async () => {
    const answer = await post(path, "x", { "content-encoding": "zstd" })
    expect([answer.status, answer.body.code]).toEqual([415, "unsupported_encoding"])
  })

  it("that cannot be decoded is refused, cut short or not in that encoding at all", async () => {
    const whole = gzipSync(text)
    for (const body of [whole.subarray(0, whole.length - 20), Buffer.from(text)]) {
      const answer = await post(path, body, { "content-encoding": "gzip" })
      expect([answer.status, answer.body.code, answer.body.details]).toEqual([
        400,
        "invalid_request",
        { field: "", rule: "must be valid gzip data" }
      ])
    }
  })

  it("that decodes to more than the limit is refused, however short it came", async () => {
    const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024))
    expect(bomb.length).toBeLessThan(limit)
    expect((await post(path, bomb, { "content-encoding": "gzip" })).status).toBe(413)
  })

  it("is counted as it came too: what decodes to nothing is not without end", async () => {
    const nothing = gzipSync("")
    const body = Buffer.concat(Array.from({ length: Math.ceil((2 * limit) / nothing.length) }, () => nothing))
    expect((await post(path, body, { "content-encoding": "gzip" })).status).toBe(413)
  })

  it("is taken in pieces of a byte", async () => {
    const connection = await line(edge.port)
    connection.write(head(path, "Transfer-Encoding: chunked", "Connection: close"))
    connection.write("1\r\nx\r\n".repeat(100_000) + "0\r\nX-Trailer: yes\r\n\r\n")
    expect(await connection.closed).toMatch(/^HTTP\/1.1 200 [^]*"length":100000/)
  })

  it("that is too large is refused in words that its client reads", async () => {
    for (const [i, declared] of [true, false, true, false].entries()) {
      const connection = await line(edge.port)
      const body = Buffer.alloc(8 * limit, "x")
      connection.write(
        head(path, declared ? `Content-Length: ${body.length}` : "Transfer-Encoding: chunked", "Connection: close")
      )
      if (!declared) connection.write(`${body.length.toString(16)}\r\n`)
      connection.write(body)
      if (!declared) connection.write("\r\n0\r\n\r\n")
      expect([i, await connection.closed]).toEqual([i, expect.stringMatching(/^HTTP\/1.1 413 [^]*payload_too_large/)])
    }
  })

  it("that is too large leaves its connection to the next request", async () => {
    const connection = await line(edge.port)
    connection.write(head(path, `Content-Length: ${2 * limit}`))
    connection.write(Buffer.alloc(2 * limit, "x"))
    connection.write(head(path, "Content-Length: 2") + "{}")
    expect(await connection.until(/ 200 /)).toMatch(/^HTTP\/1.1 413 [^]*HTTP\/1.1 200 /)
    connection.socket.destroy()
  })

  it("is refused before it comes where its client asks first, and asked for where it fits", async () => {
    const large = await line(edge.port)
    large.write(head(path, `Content-Length: ${2 * limit}`, "Expect: 100-continue"))
    expect(await large.closed).toMatch(/^HTTP\/1.1 413 [^]*connection: close/i)

    const small = await line(edge.port)
    small.write(head(path, "Content-Length: 5", "Expect: 100-continue", "Connection: close"))
    expect(await small.until(/\r\n\r\n/)).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\n$/)
    small.write("hello")
    expect(await small.closed).toMatch(/HTTP\/1.1 200 [^]*"length":5/)
  })
})

it.each([...routes, "/json"])(
  "a body at %s is asked for in front of its own answer, behind earlier ones",
  async (path) => {
    const connection = await line(edge.port)
    const body = '{"name":"Ada"}'
    const asks = (...more: ReadonlyArray<string>) =>
      head(path, "Content-Type: application/json", `Content-Length: ${body.length}`, "Expect: 100-continue", ...more) +
      body
    // The first answer is a while in coming.
    const first = "GET /way?how=settles%20first HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n"
    connection.write(first + asks() + asks("Connection: close"))
    const parts = (await connection.closed).split(/(?=HTTP\/1.1 )/)
    const answers = parts.filter((one) => !one.startsWith("HTTP/1.1 100 Continue\r\n\r\n"))
    expect(answers).toHaveLength(3)
    for (const answer of answers) {
      const [top, content] = answer.split("\r\n\r\n")
      expect([Number(/content-length: (\d+)/i.exec(top!)?.[1]), content]).toEqual([
        content!.length,
        expect.stringMatching(/^\{/)
      ])
    }
  }
)

describe.each(["/lane", "/router"])("at %s", (path) => {
  it("a byte order mark is ignored", async () => {
    const answer = await post(path, "\uFEFF{}")
    expect(answer.body).toEqual({ length: 2, start: "{}" })
  })
})

it("a byte order mark, an encoding and a limit are the same where a route reads JSON", async () => {
  const body = '\uFEFF{"name":"Ada"}'
  expect((await post("/json", body, { "content-type": "application/json" })).body).toEqual({ name: "Ada" })
  const packed = await post("/json", gzipSync(body), { "content-type": "application/json", "content-encoding": "gzip" })
  expect(packed.body).toEqual({ name: "Ada" })
  const large = JSON.stringify({ name: "x".repeat(2 * limit) })
  expect((await post("/json", large, { "content-type": "application/json" })).status).toBe(413)
})

it("a route without a credential takes 64 KiB", async () => {
  const json = (length: number) => JSON.stringify({ name: "x".repeat(length - '{"name":""}'.length) })
  const sent = async (length: number) =>
    (await post("/json", json(length), { "content-type": "application/json" })).status
  expect([await sent(64 * 1024), await sent(64 * 1024 + 1)]).toEqual([200, 413])
})

describe("bodies that stall", () => {
  let slow: Edge
  beforeAll(async () => {
    slow = await serve({ window_ms: 300, bytes_total: 8 * limit })
  })
  afterAll(() => slow.stop())

  it.each(routes)("at %s are answered 408, and their connection is closed", async (path) => {
    const never = await line(slow.port)
    never.write(head(path, "Content-Length: 100"))
    const midway = await line(slow.port)
    midway.write(head(path, `Content-Length: ${limit}`))
    midway.write(Buffer.alloc(limit - 1, "x"))
    const dripping = await line(slow.port)
    dripping.write(head(path, `Content-Length: ${limit}`))
    const drip = setInterval(() => dripping.socket.writable && dripping.write("x"), 20)
    for (const one of [never, midway, dripping]) {
      expect(await one.closed).toMatch(/^HTTP\/1.1 408 [^]*connection: close[^]*"code":"request_timeout"/i)
    }
    clearInterval(drip)
  })

  it("are not those that come slowly, but steadily", async () => {
    // A window that a busy machine does not miss between two pieces. The body takes longer than one.
    const window_ms = 5_000
    const patient = await serve({ window_ms, bytes_total: 8 * limit })
    const connection = await line(patient.port)
    connection.write(head("/lane", `Content-Length: ${limit}`, "Connection: close"))
    const piece = limit / 64
    let sent = 0
    for (; sent < limit - piece; sent += piece) {
      connection.write(Buffer.alloc(piece, "x"))
      await new Promise((resolve) => setTimeout(resolve, window_ms / 50))
    }
    connection.write(Buffer.alloc(limit - sent, "x"))
    expect(await connection.closed).toMatch(/^HTTP\/1.1 200 /)
    await patient.stop()
  })

  it("do not hold the connection of a refused request either", async () => {
    const connection = await line(slow.port)
    connection.write(head("/nowhere", `Content-Length: ${limit}`))
    expect(await connection.closed).toMatch(/^HTTP\/1.1 404 /)
  })
})

describe("more bodies than there is room for", () => {
  it.each(routes)("at %s are refused with 503, while short ones go on", async (path) => {
    const small = await serve({ bytes_total: 8 * limit })
    const connections = await Promise.all(Array.from({ length: 8 }, () => line(small.port)))
    for (const connection of connections) {
      connection.write(head(path, `Content-Length: ${limit}`))
      connection.write(Buffer.alloc(limit - 10, "x"))
    }
    // All are nobody's, who takes no more than he leaves: three fit, and the others are told.
    const told = () => connections.filter(({ text }) => / 503 [^]*retry-after: 5\r\n[^]*"code":"busy"/i.test(text()))
    while (told().length < 5) await later()

    const short = await fetch(`${small.url}${path}`, { method: "POST", headers: { authorization: "x" }, body: "{}" })
    expect(short.status).toBe(200)

    // What was held is given back: by those who went away, and by those who were answered.
    for (const connection of connections) connection.socket.destroy()
    const again = async () =>
      (await fetch(`${small.url}${path}`, { method: "POST", headers: { authorization: "x" }, body: "x".repeat(limit) }))
        .status
    while ((await again()) === 503) await later()
    expect(await Promise.all([again(), again(), again()])).toEqual([200, 200, 200])
    for (let i = 0; i < 10; i++) expect(await again()).toBe(200)
    await small.stop()
  })
})

it("without a credential leave room to other networks, however many one of them sends", async () => {
  const small = await serve({ bytes_total: 8 * limit })
  const connections = await Promise.all(Array.from({ length: 16 }, () => line(small.port)))
  for (const connection of connections) {
    connection.write(head("/json", "Content-Type: application/json", `Content-Length: ${64 * 1024}`))
    connection.write(Buffer.alloc(64 * 1024 - 1, " "))
  }
  // Eight would fill the room of half a megabyte.
  const told = () => connections.filter(({ text }) => / 503 [^]*"code":"busy"/i.test(text()))
  while (told().length < 8) await later()
  const sent = async (network: string) => {
    const headers = { "content-type": "application/json", "x-forwarded-for": network }
    return (await fetch(`${small.url}/json`, { method: "POST", headers, body: '{"name":"Ada"}' })).status
  }
  expect([await sent("203.0.113.7"), await sent("2001:db8::7")]).toEqual([200, 200])
  for (const connection of connections) connection.socket.destroy()
  await small.stop()
})

it("without a credential take no room from those with one, where they may be long either", async () => {
  const small = await serve({ bytes_total: 8 * limit })
  const connections = await Promise.all(Array.from({ length: 140 }, () => line(small.port)))
  for (const connection of connections) {
    connection.write(head("/hook", "Content-Type: application/json", `Content-Length: ${64 * 1024}`))
    connection.write(Buffer.alloc(64 * 1024 - 1, " "))
  }
  while (!connections.some(({ text }) => / 503 [^]*"code":"busy"/i.test(text()))) await later()
  for (const path of routes) {
    const sent = await fetch(`${small.url}${path}`, {
      method: "POST",
      headers: { authorization: "x" },
      body: "x".repeat(1_000)
    })
    expect([path, sent.status]).toEqual([path, 200])
  }
  for (const connection of connections) connection.socket.destroy()
  await small.stop()
})

describe("the budget", () => {
  const mega = 1024 * 1024
  const budget = () => make({ bytes_total: 256 * mega, window_ms: 1 })

  it("leaves room to others, whatever one account takes", () => {
    const { share } = budget()
    const greedy = Array.from({ length: 300 }, () => share("greedy"))
    const took = greedy.filter((one) => one.take(mega)).length
    expect(took).toBe(112)
    expect(share("other").take(33 * mega)).toBe(true)
    expect(share(undefined).take(mega)).toBe(true)
    // Short ones have an eighth for themselves.
    const short = Array.from({ length: 10_000 }, () => share("greedy")).filter((one) => one.take(60_000)).length
    expect(short * 60_000).toBeGreaterThan(32 * mega)
    for (const one of greedy) one.release()
    expect(share("another").take(10 * mega)).toBe(true)
  })

  it("leaves room to others, whatever one account takes in short bodies", () => {
    const { share } = budget()
    const greedy = Array.from({ length: 10_000 }, () => share("greedy"))
    const took = greedy.filter((one) => one.take(60_000)).length
    expect(took).toBe(Math.floor((192 * mega) / 60_000))
    expect(share("other").take(60_000)).toBe(true)
    const large = share("other")
    expect([large.take(60_000), large.take(20 * mega), large.take(20 * mega)]).toEqual([true, true, false])
    for (const one of greedy) one.release()
    expect(large.take(20 * mega)).toBe(true)
  })

  it("counts an answer that has come, whether or not there was room", () => {
    const { share } = budget()
    const [answer, body] = [share("one"), share("one")]
    expect([answer.take(100 * mega), body.take(30 * mega)]).toEqual([true, false])
    answer.become(60_000)
    expect(body.take(100 * mega)).toBe(true)
    answer.become(150 * mega)
    expect([share("other").take(mega), share("other").take(1_000)]).toEqual([false, true])
    for (const one of [answer, body]) one.release()
    expect(share("other").take(100 * mega)).toBe(true)
  })

  it("has a part of its own for routes without a credential, and neither takes from the other", () => {
    const all = budget()
    const strangers = Array.from({ length: 10_000 }, () => all.open.share("a network"))
    const took = strangers.filter((one) => one.take(60_000)).length
    expect(took).toBe(140)
    expect([all.isTight(), all.share("paying").take(100 * mega), all.open.share("a network").take(60_000)]).toEqual([
      false,
      true,
      false
    ])
    const others = Array.from({ length: 1_000 }, () => all.open.share("another network"))
    expect(others.filter((one) => one.take(60_000)).length).toBe(70)
    for (let i = 0; i < 600; i++) all.share("paying").take(60_000)
    expect(all.isTight()).toBe(true)
    for (const one of strangers) one.release()
    expect(all.open.share("a network").take(60_000)).toBe(true)
  })

  it("has everything back when all is released, in whatever pieces it was taken", () => {
    const action = fc.record({
      holder: fc.integer({ min: 0, max: 3 }),
      count: fc.integer({ min: 1, max: 9 * mega }),
      becomes: fc.option(fc.nat(9 * mega), { nil: undefined })
    })
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), fc.array(fc.nat(59)), (actions, released) => {
        const { share } = budget()
        const shares = actions.map(({ holder }) => share(String(holder)))
        actions.forEach(({ becomes, count }, i) => {
          for (let left = count; left > 0 && shares[i]!.take(Math.min(left, 50_000)); left -= 50_000);
          if (becomes !== undefined) shares[i]!.become(becomes)
        })
        for (const i of released) shares[i]?.release()
        for (const one of shares) one.release()
        expect(share("0").take(112 * mega)).toBe(true)
        expect(share("1").take(56 * mega)).toBe(true)
      })
    )
  })
})

const later = () => new Promise((resolve) => setTimeout(resolve, 20))

describe("a path as the router reads it", () => {
  it.each(["/json", "/json/", "/json?a=b", "/json;a=b", "/json#a", "/js%6fn"])(
    "%s has the limit and the words",
    async (path) => {
      const ask = async (body: string) => {
        const connection = await line(edge.port)
        connection.write(
          head(path, "Content-Type: application/json", `Content-Length: ${body.length}`, "Connection: close")
        )
        connection.write(body)
        return connection.closed
      }
      expect(await ask(JSON.stringify({ name: "x".repeat(70_000) }))).toMatch(/^HTTP\/1.1 413 [^]*payload_too_large/)
      expect(await ask("{")).toMatch(/^HTTP\/1.1 400 [^]*not JSON/)
      expect(await ask('{"name":"x"}')).toMatch(/^HTTP\/1.1 200 /)
    }
  )
})
