/** How an upstream is told who asks: over a real socket, looked at by the other side. */
import { Effect, Layer, Redacted, TestClock, TestContext } from "effect"
import { createHash, createHmac } from "node:crypto"
import { createServer } from "node:http"
import type { IncomingHttpHeaders, Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Admission } from "../../src/books/gate/Gate.ts"
import type { ProtocolName } from "../../src/upstream/models/Protocol.ts"
import { Upstreams } from "../../src/upstream/models/Upstreams.ts"
import type { UpstreamSettings } from "../../src/upstream/models/Upstreams.ts"
import type { WireRequest } from "../../src/upstream/wire/Wire.ts"

interface Received {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

let server: Server
let received: Received
const base_url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const { headers, method, url } = request
      received = { method: method!, url: url!, headers, body: Buffer.concat(chunks).toString("utf8") }
      response.end("{}")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

const at = Date.parse("2026-11-22T12:34:56.789Z")
const body = '{"text":"größer"}'

/** Sends a request in a protocol to an upstream of these settings, and answers what came. */
const sent = async (
  settings: Partial<UpstreamSettings>,
  path = "/chat/completions",
  protocol: ProtocolName = "chat",
  more: Pick<WireRequest, "body" | "sha256"> = { body }
): Promise<Received> => {
  const layer = Upstreams.layer({
    one: { base_url: base_url(), api_key: Redacted.make("sk-1"), silence_ms_max: 5_000, ...settings }
  })
  await Effect.gen(function* () {
    yield* TestClock.setTime(at)
    const upstream = (yield* Upstreams).get("one")!
    const wire = upstream.wire({} as Admission)
    yield* wire.exchange({ method: "POST", path, headers: upstream.headersFor(protocol), ...more }, { limit: 100 })
  }).pipe(Effect.provide(Layer.merge(layer, TestContext.TestContext)), Effect.runPromise)
  return received
}

const keyIn = ({ headers }: Received) => ({
  authorization: headers.authorization,
  "x-api-key": headers["x-api-key"],
  "api-key": headers["api-key"],
  "x-goog-api-key": headers["x-goog-api-key"]
})

describe("a key", () => {
  const all = ["chat", "messages", "responses", "google", "bedrock"] as const
  it.each([
    ["chat", {}, { authorization: "Bearer sk-1" }],
    ["responses", { speaks: all }, { authorization: "Bearer sk-1" }],
    ["messages", { speaks: all }, { "x-api-key": "sk-1" }],
    ["google", { speaks: all }, { "x-goog-api-key": "sk-1" }],
    ["bedrock", { speaks: all }, { authorization: "Bearer sk-1" }],
    ["embeddings", {}, { authorization: "Bearer sk-1" }],
    ["chat", { credential: "api-key" }, { "api-key": "sk-1" }],
    ["messages", { credential: "bearer" }, { authorization: "Bearer sk-1" }]
  ] as const)("in a request of %s to an upstream with %j", async (protocol, settings, expected) => {
    expect(keyIn(await sent(settings, "/x", protocol))).toEqual({
      authorization: undefined,
      "x-api-key": undefined,
      "api-key": undefined,
      "x-goog-api-key": undefined,
      ...expected
    })
  })

  it("is not sent if it is empty, and leaves a configured header", async () => {
    const none = { authorization: undefined, "x-api-key": undefined, "api-key": undefined, "x-goog-api-key": undefined }
    const empty = { api_key: Redacted.make(""), speaks: all }
    for (const protocol of all) expect(keyIn(await sent(empty, "/x", protocol))).toEqual(none)
    expect(keyIn(await sent({ ...empty, headers: { authorization: "Basic eA==" } }))).toEqual({
      ...none,
      authorization: "Basic eA=="
    })
  })

  it("goes with the headers and the query of the configuration", async () => {
    const query = { "api-version": "2026-01-01", x: "a b&c" }
    const plain = await sent({ query, headers: { "x-org": "7" } })
    expect([plain.url, plain.headers["x-org"]]).toEqual([
      "/base/chat/completions?api-version=2026-01-01&x=a+b%26c",
      "7"
    ])
    expect((await sent({ query: { v: "1" } }, "/m?alt=sse")).url).toBe("/base/m?alt=sse&v=1")
  })
})

describe("an AWS access key", () => {
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text, "utf8").digest()
  const hash = (text: string) => createHash("sha256").update(text, "utf8").digest("hex")

  /** The signature as the documentation of Signature Version 4 says it is computed, of what came. */
  const signatureOf = ({ body, headers, method, url }: Received, secret: string): string => {
    const [, scope = "", names = ""] =
      /Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+),/.exec(headers.authorization ?? "") ?? []
    const [path = "", query = ""] = url.split("?")
    // Every service but S3 has each part of the path encoded twice.
    const twice = path.split("/").map(encodeURIComponent).join("/")
    const canonicalHeaders = names.split(";").map((name) => `${name}:${String(headers[name]).trim()}\n`)
    const canonical = [method, twice, query, canonicalHeaders.join(""), names, hash(body)].join("\n")
    const [date = "", region = "", service = ""] = scope.split("/")
    const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, date), region), service), "aws4_request")
    const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hash(canonical)].join("\n")
    return hmac(key, text).toString("hex")
  }

  const aws = {
    region: "eu-west-1",
    access_key_id: Redacted.make("AKIDEXAMPLE"),
    secret_access_key: Redacted.make("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
  }

  it.each([
    [aws, "/model/meta.llama3-70b/converse"],
    [aws, "/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse-stream"],
    [{ ...aws, session_token: Redacted.make("token//of=session") }, "/model/a/converse"]
  ])("signs what is sent, at the time of the service's clock %#", async (aws, path) => {
    const request = await sent({ speaks: ["bedrock"], aws }, path)
    const { authorization = "" } = request.headers
    expect(authorization).toContain("Credential=AKIDEXAMPLE/20261122/eu-west-1/bedrock/aws4_request")
    expect(request.headers["x-amz-date"]).toBe("20261122T123456Z")
    expect(request.headers["x-amz-security-token"]).toBe("session_token" in aws ? "token//of=session" : undefined)
    for (const name of ["host", "x-amz-date", "content-type"]) expect(authorization).toContain(name)
    expect([request.url, request.body]).toEqual([`/base${path}`, body])
    const secret = Redacted.value(aws.secret_access_key)
    expect(authorization.split("Signature=")[1]).toBe(signatureOf(request, secret))
    expect(authorization.split("Signature=")[1]).not.toBe(signatureOf({ ...request, body: "{}" }, secret))
  })

  it("signs a body in pieces, by a hash that is known or not", async () => {
    const pieces = [Buffer.from('{"text":"'), Buffer.alloc(700_000, "a"), Buffer.from('"}')]
    const settings = { speaks: ["bedrock"], aws } as const
    const secret = Redacted.value(aws.secret_access_key)
    const whole = Buffer.concat(pieces).toString()
    for (const more of [{ body: pieces }, { body: pieces, sha256: hash(whole) }, { body: Buffer.concat(pieces) }]) {
      const request = await sent(settings, "/model/a/converse", "bedrock", more)
      expect([request.body === whole, request.headers["content-length"]]).toEqual([true, String(whole.length)])
      expect(request.headers["x-amz-content-sha256"]).toBe(hash(whole))
      expect(request.headers.authorization!.split("Signature=")[1]).toBe(signatureOf(request, secret))
    }
  })
})
