/** Forms as clients of every kind send them, and keys across the two routes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

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
    expect(body.details.rule).toBe("one of json, text, verbose_json, srt, vtt")
  })
})

it("a key of one route is not good for the other, whose answer has another shape", async () => {
  const key = { "idempotency-key": "one-key-two-routes" }
  const ask = (path: string) => send(form('filename="a.wav"'), undefined, key, path)
  expect((await ask("/v1/transcriptions")).status).toBe(200)
  const { body, status } = await ask("/v1/tools/transcriptions")
  expect([status, body.code]).toEqual([409, "idempotency_key_reused"])
})
