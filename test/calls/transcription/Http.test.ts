/** Forms as clients of every kind send them, and keys across the two routes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { gzipSync } from "node:zlib"
import { head, line } from "../../http/Edge.ts"
import { start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

let service: Service
let who: Person
beforeAll(async () => {
  service = await start()
  who = await service.signIn("hears@example.com")
})
afterAll(() => service.discard())

/** A form with one file, its headers as they are given. */
const form = (disposition: string, type = "content-type: audio/wav\r\n") =>
  `--x\r\ncontent-disposition: form-data; name="file"; ${disposition}\r\n${type}\r\n${"a".repeat(16_000)}\r\n--x--\r\n`

const send = (raw: string, type = "multipart/form-data; boundary=x", more: object = {}, path = "/v1/transcriptions") =>
  service.call(path, { token: who.token, raw, headers: { "content-type": type, ...more } })

describe("a form", () => {
  it.each([
    ["multipart/form-data"],
    ["multipart/form-data; boundary="],
    ['multipart/form-data; boundary=""'],
    ["multipart/form-data; boundary=a@b"],
    ["multipart/form-datax; boundary=x"],
    ["multipart/form-data; charset=utf-8"]
  ])("of type %j is refused", async (type) => {
    const { body, status } = await send(form('filename="a.wav"'), type)
    expect([status, body.code]).toEqual([400, "invalid_request"])
  })

  it.each([["Multipart/Form-Data; Boundary=x"], ['multipart/form-data;boundary="x"']])(
    "of type %j is read",
    async (type) => {
      expect((await send(form('filename="a.wav"'), type)).status).toBe(200)
    }
  )

  it("has a boundary of a length that a body can be searched for", async () => {
    const statusWith = async (boundary: string) => {
      const raw = form('filename="a.wav"').replaceAll("--x", `--${boundary}`)
      return (await send(raw, `multipart/form-data; boundary=${boundary}`)).status
    }
    expect([await statusWith("b".repeat(70)), await statusWith("b".repeat(1_000))]).toEqual([200, 400])
  })

  it.each([
    ['filename="日本.wav"', "日本.wav"],
    ['filename="😀.wav"', "😀.wav"],
    ['filename="a–b.wav"', "a–b.wav"],
    ['filename="a;b.wav"', "a;b.wav"],
    ['filename="a\\"b.wav"', 'a"b.wav'],
    ["filename=a.wav", "a.wav"],
    [`filename="x.wav"; filename*=UTF-8''%E6%97%A5.wav`, "日.wav"]
  ])("takes a file with %s", async (disposition, name) => {
    for (const type of ["content-type: audio/wav\r\n", ""]) {
      const { body, status } = await send(form(disposition, type))
      expect([status, body.text]).toEqual([200, `1 seconds of ${name}`])
    }
  })

  it("with a file name that is encoded wrong is refused, as is one that ends early or has a file for a text", async () => {
    const model = '--x\r\ncontent-disposition: form-data; name="model"; filename="m"\r\n\r\nwhisper-1\r\n'
    for (const raw of [
      form("filename*=UTF-8''%E6%97%A"),
      form('filename="a.wav"').slice(0, -20),
      model + form('filename="a.wav"')
    ]) {
      const { body, status } = await send(raw)
      expect([status, body.code]).toEqual([400, "invalid_request"])
    }
  })

  it("names every value that a field may have", async () => {
    const field = '--x\r\ncontent-disposition: form-data; name="response_format"\r\n\r\nmorse\r\n'
    const { body } = await send(field + form('filename="a.wav"'))
    expect(body.details.rule).toBe("must be one of json, text, verbose_json, srt, vtt")
  })
})

it("a key of one route is not good for the other, whose answer has another shape", async () => {
  const key = { "idempotency-key": "one-key-two-routes" }
  const ask = (path: string) => send(form('filename="a.wav"'), undefined, key, path)
  expect((await ask("/v1/transcriptions")).status).toBe(200)
  const { body, status } = await ask("/v1/tools/transcriptions")
  expect([status, body.code]).toEqual([409, "idempotency_key_reused"])
})

describe("a form's bytes", () => {
  it("may be encoded; the file counts as it is decoded", async () => {
    const raw = gzipSync(form('filename="a.wav"'))
    const type = "multipart/form-data; boundary=x"
    const { body, status } = await send(raw as unknown as string, type, { "content-encoding": "gzip" })
    expect([status, body.text]).toEqual([200, "1 seconds of a.wav"])
    const bomb = gzipSync(form('filename="a.wav"').replace("a".repeat(16_000), "a".repeat(26 * 1024 * 1024)))
    const refused = await send(bomb as unknown as string, type, { "content-encoding": "gzip" })
    expect([refused.status, refused.body.code]).toEqual([413, "payload_too_large"])
    expect((await send("x", type, { "content-encoding": "zstd" })).status).toBe(415)
  })

  it("are refused with 413 in words that reach every client, declared or not", async () => {
    const type = "Content-Type: multipart/form-data; boundary=x"
    const begun = '--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    const piece = Buffer.alloc(1024 * 1024, "a")
    for (let i = 0; i < 10; i++) {
      const declared = i % 2 === 0
      const connection = await line(service.port)
      const length = 40 * piece.length
      connection.write(
        head("/v1/transcriptions", type, declared ? `Content-Length: ${length}` : "Transfer-Encoding: chunked").replace(
          "Bearer x",
          `Bearer ${who.token}`
        )
      )
      const write = (bytes: string | Buffer) => {
        if (!declared) connection.write(`${bytes.length.toString(16)}\r\n`)
        connection.write(bytes)
        if (!declared) connection.write("\r\n")
      }
      write(begun)
      for (let n = 0; n < 40; n++) write(n === 39 && declared ? piece.subarray(begun.length) : piece)
      if (!declared) connection.write("0\r\n\r\n")
      expect(await connection.until(/payload_too_large/)).toMatch(/^HTTP\/1.1 413 /)
      connection.socket.destroy()
    }
    for (let i = 0; i < 20; i++) {
      const json = { model: "sandbox-video", prompt: "x".repeat(10 * 1024 * 1024) }
      const { body, status } = await service.call("/v1/tools/media/generate", { token: who.token, json })
      expect([status, body.code]).toEqual([413, "payload_too_large"])
    }
  })

  it("that stall share one budget: beyond it an upload is told to come again, while others go on", async () => {
    const length = 25 * 1024 * 1024
    const request = head(
      "/v1/transcriptions",
      "Content-Type: multipart/form-data; boundary=x",
      `Content-Length: ${length}`
    )
    const lines = await Promise.all(
      Array.from({ length: 11 }, async () => {
        const connection = await line(service.port)
        connection.write(request.replace("Bearer x", `Bearer ${who.token}`))
        connection.write('--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n')
        connection.write(Buffer.alloc(23 * 1024 * 1024, "a"))
        return connection
      })
    )
    const busy = await Promise.race(lines.map((connection) => connection.until(/\r\n\r\n/)))
    expect(busy).toMatch(/^HTTP\/1.1 503 [^]*retry-after: \d+/i)
    expect((await send(form('filename="a.wav"'))).status).toBe(200)
    for (const { socket } of lines) socket.destroy()
    // What they held is given back.
    for (let i = 0; i < 100; i++) {
      const { status } = await send(form('filename="a.wav"').replace("a".repeat(16_000), "a".repeat(20_000_000)))
      if (status !== 503) return expect(status).toBe(200)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect.unreachable()
  })
})
