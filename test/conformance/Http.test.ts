/** What holds on every route: JSON errors, methods, bodies, cross-origin access, the documents. */
import { connect } from "node:net"
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

/** Bytes as they are, and what comes back. */
const raw = (bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(service.port, "127.0.0.1", () => socket.write(bytes))
    let text = ""
    socket.setEncoding("utf8").on("data", (piece) => (text += piece))
    socket.on("close", () => resolve(text)).on("error", reject)
  })

describe("errors", () => {
  it.each([
    ["an unknown path", "GET", "/v1/nowhere", undefined, 404, "not_found"],
    ["a wrong method", "DELETE", "/v1/prices", undefined, 405, undefined],
    ["a wrong method on a fast route", "GET", "/v1/chat/completions", undefined, 405, undefined],
    ["a body that is no JSON", "POST", "/v1/auth/token", "{", 400, "invalid_request"],
    ["a body of another shape", "POST", "/v1/auth/token", "[]", 400, "invalid_request"],
    ["an id longer than any", "GET", `/v1/accounts/${"x".repeat(300)}`, undefined, 401, undefined],
    ["a path of another case", "GET", "/V1/prices", undefined, 404, "not_found"],
    ["a path with two slashes", "GET", "//v1/prices", undefined, 404, "not_found"],
    [
      "a body that is nested too deeply",
      "POST",
      "/v1/auth/revoke",
      `{"token":${"[".repeat(60_000)}`,
      400,
      "invalid_request"
    ],
    ["a field of the wrong type", "POST", "/v1/auth/revoke", '{"token":5}', 400, "invalid_request"]
  ])("%s", async (_, method, path, body, status, code) => {
    const answer = await service.call(path, {
      method,
      ...(body !== undefined && { raw: body, headers: { "content-type": "application/json" } })
    })
    expect(answer.status).toBe(status)
    expect(answer.headers.get("content-type")).toContain("application/json")
    expect(typeof answer.body.error).toBe("string")
    expect(answer.body.code).toBe(code)
    expect(answer.headers.get("x-request-id")).toMatch(/^req_/)
    expect(JSON.stringify(answer.body)).not.toMatch(/at .*\.(ts|js)/)
  })

  it("are not made of a trailing slash, and neither is a redirect", async () => {
    expect((await service.call("/v1/prices/")).status).toBe(200)
    expect((await service.call("/v1/chat/completions/", { token: key, json: {} })).status).toBe(400)
  })

  it("name the methods that a path has", async () => {
    const answer = await service.call("/v1/prices", { method: "POST", json: {} })
    expect(answer.headers.get("allow")).toBe("GET")
    expect(answer.body.error).toBe("Method Not Allowed")
  })

  it("name the field and the rule", async () => {
    const answer = await service.call("/v1/auth/revoke", { json: { token: 5 } })
    expect(answer.body.details).toMatchObject({ field: "token" })
  })

  it("come for a form where JSON is expected", async () => {
    const form = new FormData()
    form.set("token", "x")
    const answer = await fetch(`${service.url}/v1/auth/revoke`, { method: "POST", body: form })
    expect([answer.status, (await answer.json()).code]).toEqual([400, "invalid_request"])
  })

  it("are made of no value that is too deep to be read", async () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
    const message = `{"model":"auto","messages":[{"role":"user","content":${deep}}]}`
    const short = `${"[".repeat(30_000)}${"]".repeat(30_000)}`
    const tools = `{"model":"auto","messages":[{"role":"user","content":"x"}],"tools":${short}}`
    const decision = `{"state":${deep},"options":["a","b"]}`
    for (const [path, body] of [
      ["/v1/chat/completions", message],
      ["/v1/chat/completions", tools],
      ["/v1/decisions", decision]
    ] as const) {
      const answer = await service.call(path, { token: key, raw: body })
      expect([path, answer.status, answer.body.code]).toEqual([path, 400, "invalid_request"])
    }
  })

  it("repeat of what a client sent only the beginning", async () => {
    const long = '"'.repeat(300_000)
    // As long as a body of these may be.
    const shorter = '"'.repeat(30_000)
    for (const [path, json] of [
      ["/v1/auth/revoke", { token: [shorter] }],
      ["/v1/auth/token", { client_id: "x", grant_type: shorter }],
      ["/v1/chat/completions", { model: [long], messages: [] }],
      [
        "/v1/chat/completions",
        { model: "auto", messages: [{ role: "user", content: "x" }], logit_bias: { [long]: [long] } }
      ]
    ] as const) {
      const { body, status } = await service.call(path, { token: key, json })
      expect([path, status]).toEqual([path, 400])
      expect(JSON.stringify(body).length).toBeLessThan(2_000)
    }
  })

  it("reach a client whose body is too large, declared or not", async () => {
    const large = "x".repeat(2 * 1024 * 1024)
    const declared = await service.call("/v1/auth/token", { raw: large })
    expect([declared.status, declared.body.code]).toEqual([413, "payload_too_large"])

    const chunked = await fetch(`${service.url}/v1/auth/token`, {
      method: "POST",
      duplex: "half",
      body: new ReadableStream({
        pull(controller) {
          controller.enqueue(new TextEncoder().encode("y".repeat(64 * 1024)))
          if (++pulled > 64) controller.close()
        }
      })
    } as RequestInit)
    expect(chunked.status).toBe(413)

    const chat = await service.call("/v1/chat/completions", { token: key, raw: "z".repeat(33 * 1024 * 1024) })
    expect([chat.status, chat.body.code]).toEqual([413, "payload_too_large"])
  })
  let pulled = 0

  it("answer bytes that are no HTTP", async () => {
    expect(await raw("hello there\r\n\r\n")).toMatch(/^HTTP\/1.1 400 [^]*"error":"this is not an HTTP request"/)
    expect(await raw(`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${"a".repeat(40_000)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 431 /)
    expect(await raw("hello there\r\n\r\n")).toMatch(/x-request-id: req_[^]*\r\n/)
    expect(await raw("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")).toMatch(
      /^HTTP\/1.1 405 [^]*"error":"Method Not Allowed"/
    )
    expect((await service.call("/healthz")).status).toBe(200)
  })

  it("send a client of responses that asks for a WebSocket to the plain route at once", async () => {
    const handshake = (path: string) =>
      [
        `GET ${path} HTTP/1.1`,
        "Host: x",
        "Connection: Upgrade",
        "Upgrade: WebSocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "",
        ""
      ].join("\r\n")
    for (const path of ["/v1/responses", "/v1/responses/", "/v1/responses?model=x"]) {
      const answer = await raw(handshake(path))
      expect(answer).toMatch(/^HTTP\/1\.1 426 [^]*"code":"upgrade_required"/)
      expect(answer).toMatch(/\r\nupgrade: HTTP\/1\.1\r\n/i)
      expect(answer).toMatch(/\r\nconnection: upgrade, close\r\n/i)
    }
    const plain = await raw("GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    expect(plain).toMatch(/^HTTP\/1\.1 405 /)
  })

  it("are not made of a missing Host, nor of an expectation", async () => {
    expect(await raw("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatch(/^HTTP\/1.1 200 /)
    expect(await raw("GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\nConnection: close\r\n\r\n")).toMatch(
      /^HTTP\/1.1 200 /
    )
  })
})

describe("the body of a call", () => {
  const body = JSON.stringify({ model: "sandbox-large", messages: [{ role: "user", content: "Hi" }], max_tokens: 5 })
  const head = (...lines: ReadonlyArray<string>) =>
    [
      "POST /v1/chat/completions HTTP/1.1",
      "Host: x",
      `Authorization: Bearer ${key}`,
      "Content-Type: application/json",
      "Connection: close",
      ...lines,
      "",
      ""
    ].join("\r\n")
  const declared = () => head(`Content-Length: ${body.length}`)

  /** Sends the pieces one after the other; `over` ends the connection behind them. */
  const sent = (pieces: ReadonlyArray<string>, over = false): Promise<string> =>
    new Promise((resolve, reject) => {
      let text = ""
      const socket = connect(service.port, "127.0.0.1", async () => {
        for (const piece of pieces) {
          socket.write(piece)
          await new Promise((done) => setTimeout(done, 30))
        }
        if (over) socket.destroy()
      })
      socket.setEncoding("utf8").on("data", (piece) => (text += piece))
      socket.on("close", () => resolve(text)).on("error", reject)
    })
  const spent = async () =>
    (await service.call(`/v1/tenants/${ada.tenant_id}/billing/credits`, ada)).body.result.balance

  it("may come in any pieces, long or short, declared or not", async () => {
    const chunk = (piece: string) => `${piece.length.toString(16)}\r\n${piece}\r\n`
    const long = JSON.stringify({ ...JSON.parse(body), user: "u".repeat(100_000) })
    for (const pieces of [
      [declared() + body],
      [declared(), body.slice(0, 10), body.slice(10, 11), body.slice(11)],
      [head("Transfer-Encoding: chunked"), chunk(body.slice(0, 9)), chunk(body.slice(9)), "0\r\n\r\n"],
      [head(`Content-Length: ${long.length}`), long.slice(0, 70_000), long.slice(70_000)]
    ]) {
      expect(await sent(pieces)).toMatch(/^HTTP\/1.1 200 /)
    }
  })

  it("is a call only when all of it has come", async () => {
    const before = await spent()
    expect(await sent([declared() + body.slice(0, 20)], true)).toBe("")
    expect(await sent([declared()], true)).toBe("")
    expect(await spent()).toBe(before)
    expect(await sent([declared() + body])).toMatch(/^HTTP\/1.1 200 /)
    expect(await spent()).toBeLessThan(before)
    expect(service.stderr.join("")).toBe("")
  })
})

describe("cross-origin access", () => {
  it("answers a preflight", async () => {
    const answer = await service.call("/v1/chat/completions", {
      method: "OPTIONS",
      headers: { origin: "https://example.com", "access-control-request-method": "POST" }
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get("access-control-allow-origin")).toBe("*")
    for (const name of ["Authorization", "Content-Type", "Idempotency-Key", "X-Title", "HTTP-Referer"]) {
      expect(answer.headers.get("access-control-allow-headers")).toContain(name)
    }
  })

  it("is open on answers and refusals alike", async () => {
    for (const path of ["/v1/prices", "/v1/nowhere", "/v1/me"]) {
      expect((await service.call(path)).headers.get("access-control-allow-origin")).toBe("*")
    }
  })

  it("takes a bodyless request with a JSON content type", async () => {
    const answer = await service.call("/v1/me", { token: ada.token, headers: { "content-type": "application/json" } })
    expect(answer.status).toBe(200)
  })
})

describe("authentication", () => {
  const strange = "0".repeat(64)
  const bothKinds = "/v1/models"
  const usersOnly = "/v1/me"

  it.each([
    ["no credential", undefined, "missing Authorization header", "missing Authorization header"],
    ["not a bearer", "Basic YTpi", "invalid API key format", "invalid or expired token"],
    ["nothing behind Bearer", "Bearer ", "invalid API key format", "invalid or expired token"],
    ["one word", "Bearer nonsense", "invalid API key format", "invalid or expired token"],
    ["two segments", "Bearer svc-prod", "invalid API key format", "invalid or expired token"],
    ["four segments", `Bearer svc-prod-${strange}-x`, "invalid API key format", "invalid or expired token"],
    ["another prefix", `Bearer abc-prod-${strange}`, "API key is not a Tollgate key", "invalid or expired token"],
    ["an unknown key", `Bearer svc-prod-${strange}`, "invalid API key", "invalid or expired token"],
    ["an unknown key that is not 64 hex", "Bearer svc-prod-x", "invalid API key", "invalid or expired token"],
    ["a token that is none", "Bearer a.b.c", "invalid API key format", "invalid or expired token"]
  ])("%s", async (_, authorization, either, user) => {
    const headers = authorization === undefined ? {} : { authorization }
    const onBoth = await service.call(bothKinds, { headers })
    expect([onBoth.status, onBoth.body]).toEqual([401, { error: either }])
    const onFast = await service.call("/v1/chat/completions", { headers, json: {} })
    expect([onFast.status, onFast.body]).toEqual([401, { error: either }])
    const onUsers = await service.call(usersOnly, { headers })
    expect([onUsers.status, onUsers.body]).toEqual([401, { error: user }])
  })

  it("takes both kinds where both are taken, and a user token where only that is", async () => {
    expect((await service.call(bothKinds, { token: key })).status).toBe(200)
    expect((await service.call(bothKinds, { token: ada.token })).status).toBe(200)
    expect((await service.call(bothKinds, { headers: { authorization: `bearer ${key}` } })).status).toBe(200)
    const answer = await service.call(usersOnly, { token: key })
    expect([answer.status, answer.body]).toEqual([401, { error: "invalid or expired token" }])
  })

  it("comes before everything else: 401 precedes 400, 403 and 404", async () => {
    expect((await service.call("/v1/tenants/ten_other/usage/rollup?rollup=x")).status).toBe(401)
    expect((await service.call("/v1/chat/completions", { raw: "{" })).status).toBe(401)
  })

  it("never puts a credential into the log", async () => {
    const log = service.stderr.join("")
    expect(log).not.toContain(key)
    expect(log).not.toContain(ada.token)
  })
})

describe("documents", () => {
  it("shows the contract to machines and to people", async () => {
    const document = await service.call("/openapi.json")
    expect(Object.keys(document.body.paths)).toContain("/v1/chat/completions")
    const docs = await fetch(`${service.url}/docs`)
    expect(docs.status).toBe(200)
    expect(await docs.text()).toContain("swagger")
  })

  it("shows figures to Prometheus", async () => {
    await service.call("/v1/chat/completions", {
      token: key,
      json: { model: "auto", messages: [{ role: "user", content: "hi" }] }
    })
    const metrics = await service.call("/metrics")
    expect(metrics.body).toMatch(/tollgate_requests_total\{route="POST \/v1\/chat\/completions",status="200"\} \d/)
  })

  it("has keys by which anyone can verify an access token", async () => {
    const { createRemoteJWKSet, jwtVerify } = await import("jose")
    const { payload } = await jwtVerify(ada.token, createRemoteJWKSet(new URL(`${service.url}/.well-known/jwks.json`)))
    expect(payload).toMatchObject({ sub: ada.account_id, tenant_id: ada.tenant_id, aud: "sandbox-client" })
  })
})
