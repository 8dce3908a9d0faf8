/** The edges of the real service: digits of money, bodies that are long or hostile, pages beyond the end, what a browser is told. */
import { FetchHttpClient } from "@effect/platform"
import { Effect } from "effect"
import { connect } from "node:net"
import { gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person
let key: string

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
  key = await service.key(ada)
})
afterAll(() => service.discard())

/** The answer's bytes, as they are. */
const text = async (path: string, token: string): Promise<string> =>
  (await fetch(service.url + path, { headers: { authorization: `Bearer ${token}` } })).text()

const raw = (bytes: ReadonlyArray<string | Buffer>): Promise<string> =>
  new Promise((resolve, reject) => {
    let answer = ""
    const socket = connect(service.port, "127.0.0.1", () => {
      for (const piece of bytes) socket.write(piece)
    })
    socket.setEncoding("latin1").on("data", (piece: string) => (answer += piece))
    socket.on("error", reject).on("close", () => resolve(answer))
  })

describe("money", () => {
  it("has all its digits in every answer", async () => {
    const rich = await service.signIn("rich@example.com")
    const { control } = await service.sandbox()
    // Six more were given at the first sign-in.
    const granted = await fetch(`${control}/credit`, {
      method: "POST",
      body: `{"tenant_id":"${rich.tenant_id}","amount":999999990.999999812,"source":"purchase"}`
    })
    expect(await granted.text()).toContain('"amount":999999990.999999812')
    const billing = `/v1/tenants/${rich.tenant_id}/billing`
    expect(await text(`${billing}/credits`, rich.token)).toContain('"balance":999999996.999999812}')
    expect(await text(billing, rich.token)).toMatch(
      /"credits":999999996.999999812,.*"giftable_credits":999999990.999999812/
    )
    expect(await text(`${billing}/ledger`, rich.token)).toMatch(
      /"amount":999999990.999999812,"balance":999999996.999999812/
    )
    expect(await text("/v1/me/billing-sources", rich.token)).toContain('"balance":999999996.999999812')

    // And the typed client decodes them.
    const { make } = await import("../../src/app/entry/client.ts")
    const read = Effect.gen(function* () {
      const client = yield* make(service.url)
      return yield* client.billing.credits({ path: { tenant_id: rich.tenant_id as never } })
    }).pipe(
      Effect.provide(FetchHttpClient.layer),
      Effect.provideService(FetchHttpClient.RequestInit, { headers: { authorization: `Bearer ${rich.token}` } })
    )
    // By a parser that has doubles only.
    const { balance } = (await Effect.runPromise(read)).result
    expect(Number(balance - 999_999_996_999_999_812n)).toBeCloseTo(0, -3)
  })
})

describe("a long body", () => {
  it("of a caller without credit is refused before it is read", async () => {
    const poor = await service.signIn("poor@example.com", { email_verified: false })
    const token = await service.key(poor)
    expect(await service.balance(poor)).toBe(0)
    // Nothing but the head is sent, of a length that is never reached.
    for (const [path, type] of [
      ["/v1/chat/completions", "application/json"],
      ["/v1/completions/", "application/json"],
      ["/v1/transcriptions", "multipart/form-data; boundary=b"]
    ]) {
      const head = ["Host: x", `Authorization: Bearer ${token}`, `Content-Type: ${type}`, "Expect: 100-continue"]
      const answer = await raw([`POST ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\nContent-Length: 20000000\r\n\r\n`])
      expect([path, answer]).toEqual([path, expect.stringMatching(/^HTTP\/1\.1 402 insufficient credits\r\n/)])
    }
    // Sent all the same, it is read and thrown away: the answer comes either way.
    const chat = await service.call("/v1/chat/completions", { token, raw: Buffer.alloc(20_000_000, "x") })
    expect([chat.status, chat.body]).toEqual([
      402,
      { error: "insufficient credits", code: "insufficient_credits", details: { available_usd: 0 } }
    ])
    expect(await service.usage(poor)).toEqual([])
  })

  it("with a key that was used is answered by what is kept, though nothing is left", async () => {
    const spender = await service.signIn("spender@example.com")
    const token = await service.key(spender)
    // 6 USD at 15 a million.
    const message = { role: "user", content: `${"x".repeat(100_000)} ${"word ".repeat(100)}` }
    const json = { model: "sandbox-large", messages: [message], max_tokens: 100 }
    const headers = { "idempotency-key": "a-key-of-some-length" }
    const first = await service.call("/v1/chat/completions", { token, json, headers })
    expect(first.status).toBe(200)
    await service.control(`/tenants/${spender.tenant_id}`, { billing_status: "suspended" })
    const refused = await service.call("/v1/chat/completions", { token, json })
    expect(refused.status).toBe(402)
    const again = await service.call("/v1/chat/completions", { token, json, headers })
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, "true"])
    expect(again.body).toEqual(first.body)
  })

  it("of too many parts is refused before it holds up anybody", async () => {
    const body = Buffer.from(`[${"{},".repeat(11_000_000)}{}]`)
    const call = service.call("/v1/chat/completions", { token: key, raw: body })
    const answer = await call
    expect([answer.status, answer.body.code, answer.body.details.rule]).toEqual([
      400,
      "invalid_request",
      "must contain at most 250000 values and names"
    ])
  })

  it("is a conversation of thousands of messages, packed or not", async () => {
    const content = [{ type: "text", text: 'What does it say about {this}, [that] and "those"?' }]
    const messages = Array.from({ length: 4_000 }, () => ({ role: "user", content }))
    const body = JSON.stringify({ model: "sandbox-small", messages, max_tokens: 5 })
    const packed = { token: key, raw: gzipSync(`\uFEFF${body}`), headers: { "content-encoding": "gzip" } }
    expect((await service.call("/v1/chat/completions", packed)).status).toBe(200)
    expect((await service.call("/v1/chat/completions", { token: key, raw: body })).status).toBe(200)
  })

  it("that is too large ends in its 413, whichever way its client sends it", async () => {
    const body = Buffer.alloc(10 * 1024 * 1024, "x")
    const form = Buffer.concat([
      Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a.mp3"\r\n\r\n'),
      Buffer.alloc(27 * 1024 * 1024, "x"),
      Buffer.from("\r\n--b--\r\n")
    ])
    const head = (path: string, length: number, type: string) =>
      [`POST ${path} HTTP/1.1`, "Host: x", `Authorization: Bearer ${key}`, `Content-Type: ${type}`]
        .concat([`Content-Length: ${length}`, "Connection: close", "", ""])
        .join("\r\n")
    for (let i = 0; i < 5; i++) {
      for (const [path, sent, type] of [
        ["/v1/tools/media/generate", body, "application/json"],
        ["/v1/transcriptions", form, "multipart/form-data; boundary=b"]
      ] as const) {
        expect(await raw([head(path, sent.length, type), sent])).toMatch(/^HTTP\/1\.1 413 [^]*payload_too_large/)
        const fetched = await service.call(path, { token: key, raw: sent, headers: { "content-type": type } })
        expect([fetched.status, fetched.body.code]).toEqual([413, "payload_too_large"])
      }
    }
  })
})

describe("a page beyond the end", () => {
  const lists = () => [
    `/v1/tenants/${ada.tenant_id}/usage`,
    `/v1/tenants/${ada.tenant_id}/usage?sort=cost`,
    `/v1/tenants/${ada.tenant_id}/usage?sort=latency&direction=asc`,
    `/v1/tenants/${ada.tenant_id}/billing/ledger`,
    `/v1/tenants/${ada.tenant_id}/billing/transfers`,
    `/v1/tenants/${ada.tenant_id}/applications`,
    "/v1/transfers",
    "/v1/notifications"
  ]

  it("is empty, however far", async () => {
    for (const path of lists()) {
      for (const page of [2, 1_000, 999_999_999_999_999]) {
        const query = `${path.includes("?") ? "&" : "?"}per_page=200&page=${page}`
        const { body, status } = await service.call(path + query, { token: ada.token })
        expect([path, page, status, body.result?.page, body.result?.records]).toEqual([path, page, 200, page, []])
      }
    }
  })

  it("is none when it is no positive whole number", async () => {
    for (const path of lists()) {
      for (const page of ["0", "-1", "1.5", "x", "", "1e3", "9".repeat(30)]) {
        const query = `${path.includes("?") ? "&" : "?"}page=${page}`
        const { body, status } = await service.call(path + query, { token: ada.token })
        expect([path, page, status, body.details?.field]).toEqual([path, page, 400, "page"])
      }
    }
  })
})

describe("HEAD", () => {
  it("is GET without its body, but never a call that costs", async () => {
    for (const path of ["/healthz", "/v1/prices"]) {
      expect((await service.call(path, { method: "HEAD" })).status).toBe(200)
    }
    for (const path of ["/v1/search?query=x", "/v1/tools/search?query=x"]) {
      const before = await service.balance(ada)
      const answer = await service.call(path, { method: "HEAD", token: key })
      expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET"])
      expect(await service.balance(ada)).toBe(before)
    }
  })
})

describe("the document", () => {
  it("says of end_time what is true", async () => {
    const { paths } = (await service.call("/openapi.json")).body
    const described = (name: string) =>
      paths["/v1/usage"].get.parameters.find((parameter: { name: string }) => parameter.name === name).schema
        .description
    expect(described("end_time")).toBe("RFC 3339, date and time; the first instant after the window")
    const bare = await service.call("/v1/usage?end_time=2026-03-31", { token: key })
    expect([bare.status, bare.body]).toEqual([
      400,
      { error: "Invalid end_time format", details: { field: "end_time", rule: "must be an RFC 3339 date and time" } }
    ])
  })
})
