/** Tokens of a vendor's token endpoint: asked for and used over real sockets, looked at by the other side. */
import { Effect, Layer, Redacted, TestClock, TestContext } from "effect"
import { jwtVerify } from "jose"
import { generateKeyPairSync } from "node:crypto"
import { createServer } from "node:http"
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Admission } from "../../src/books/gate/Gate.ts"
import type { EntraClient, GoogleAccount } from "../../src/upstream/models/AccessTokens.ts"
import { Upstreams } from "../../src/upstream/models/Upstreams.ts"

/** The endpoint: what it is asked, and what it answers. It gives `token-1`, `token-2`, and so on. */
let endpoint: Server
let forms: Array<URLSearchParams>
let paths: Array<string>
let answerOf: (n: number) => readonly [status: number, body: string]
/** The upstream: the tokens that came, and the one that it refuses. */
let vendor: Server
let came: Array<string | undefined>
let refuses: string | undefined

const originOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const listen = (server: Server) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const given = (n: number) => [200, JSON.stringify({ access_token: `token-${n}`, expires_in: 3_600 })] as const

beforeAll(async () => {
  endpoint = createServer((request, response) => {
    let text = ""
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece))
    request.on("end", () => {
      forms.push(new URLSearchParams(text))
      paths.push(request.url!)
      const [status, body] = answerOf(forms.length)
      response.writeHead(status, { "content-type": "application/json" }).end(body)
    })
  })
  vendor = createServer((request, response) => {
    came.push(request.headers.authorization)
    request.resume()
    request.on("end", () => response.writeHead(request.headers.authorization === refuses ? 401 : 200).end("{}"))
  })
  await Promise.all([listen(endpoint), listen(vendor)])
})
afterAll(() => {
  for (const server of [endpoint, vendor]) {
    server.closeAllConnections()
    server.close()
  }
})
beforeEach(() => {
  forms = []
  paths = []
  came = []
  refuses = undefined
  answerOf = given
})

const pair = generateKeyPairSync("rsa", { modulusLength: 2_048 })
const account = (): GoogleAccount => ({
  kind: "google_cloud",
  client_email: "gate@project.iam.example.com",
  private_key_id: "key-7",
  private_key: Redacted.make(pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString()),
  token_uri: `${originOf(endpoint)}/token`
})
const client = (): EntraClient => ({
  kind: "entra",
  authority: originOf(endpoint),
  tenant_id: "tenant-1",
  client_id: "client-1",
  client_secret: Redacted.make("s3cret&"),
  scope: "https://cognitiveservices.azure.com/.default"
})

const at = Date.parse("2026-11-22T12:00:00Z")

/** Runs with an upstream that gets its tokens so; `ask` sends it a request. */
const withUpstream = <A>(
  token_for: GoogleAccount | EntraClient,
  use: (ask: Effect.Effect<number, { readonly reason: string }>) => Effect.Effect<A, unknown>
): Promise<A> => {
  const layer = Upstreams.layer({
    one: { base_url: originOf(vendor), api_key: Redacted.make(""), silence_ms_max: 5_000, token_for }
  })
  return Effect.gen(function* () {
    yield* TestClock.setTime(at)
    const upstream = (yield* Upstreams).get("one")!
    const headers = upstream.headersFor("google")
    const request = { method: "POST", path: "/x", headers, body: "{}" } as const
    const ask = upstream.wire({} as Admission).exchange(request, { limit: 100 })
    return yield* use(Effect.map(ask, ({ status }) => status))
  }).pipe(Effect.provide(Layer.merge(layer, TestContext.TestContext)), Effect.runPromise)
}

describe("a token of the vendor's endpoint", () => {
  it("is given for an assertion that a service account's key has signed", async () => {
    await withUpstream(account(), (ask) => ask)
    expect(came).toEqual(["Bearer token-1"])
    expect(paths).toEqual(["/token"])
    expect(forms[0]!.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer")
    const { payload, protectedHeader } = await jwtVerify(forms[0]!.get("assertion")!, pair.publicKey, {
      currentDate: new Date(at)
    })
    expect(protectedHeader).toEqual({ alg: "RS256", typ: "JWT", kid: "key-7" })
    expect(payload).toEqual({
      iss: "gate@project.iam.example.com",
      scope: "https://www.googleapis.com/auth/cloud-platform",
      aud: `${originOf(endpoint)}/token`,
      iat: at / 1_000,
      exp: at / 1_000 + 3_600
    })
  })

  it("is given for the secret of an application of Entra", async () => {
    await withUpstream(client(), (ask) => ask)
    expect(came).toEqual(["Bearer token-1"])
    expect(paths).toEqual(["/tenant-1/oauth2/v2.0/token"])
    expect(Object.fromEntries(forms[0]!)).toEqual({
      grant_type: "client_credentials",
      client_id: "client-1",
      client_secret: "s3cret&",
      scope: "https://cognitiveservices.azure.com/.default"
    })
  })

  it("is asked for once for all who wait, and used until shortly before its end", async () => {
    await withUpstream(client(), (ask) =>
      Effect.gen(function* () {
        yield* Effect.all([ask, ask, ask, ask], { concurrency: 4 })
        yield* TestClock.adjust("54 minutes")
        yield* ask
        expect([forms.length, came]).toEqual([1, Array(5).fill("Bearer token-1")])
        // The request that finds it old goes on with it.
        yield* TestClock.adjust("2 minutes")
        yield* ask
        expect(came.at(-1)).toBe("Bearer token-1")
        yield* Effect.promise(async () => {
          while (forms.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
        })
        yield* TestClock.adjust("5 minutes")
        yield* ask
        expect([forms.length, came.at(-1)]).toEqual([2, "Bearer token-2"])
      })
    )
  })

  it("that the vendor refuses is not used again; one that was just given is, so that its endpoint is not asked for each call", async () => {
    refuses = "Bearer token-1"
    await withUpstream(client(), (ask) =>
      Effect.gen(function* () {
        expect([yield* ask, yield* ask, forms.length]).toEqual([401, 401, 1])
        yield* TestClock.adjust("1 minute")
        expect([yield* ask, yield* ask, yield* ask, forms.length]).toEqual([401, 200, 200, 2])
        expect(came.at(-1)).toBe("Bearer token-2")
      })
    )
  })

  it.each([
    ["an error", [400, '{"error":"invalid_client","error_description":"s3cret& is wrong"}']],
    ["no JSON", [200, "<html>"]],
    ["null", [200, "null"]],
    ["no lifetime", [200, '{"access_token":"a"}']],
    ["a token that no header holds", [200, '{"access_token":"a\\nb","expires_in":3600}']]
  ] as const)("does not come with %s: nothing is sent, and it is not asked for again at once", async (_, answer) => {
    answerOf = (n) => (n === 1 ? answer : given(n))
    await withUpstream(client(), (ask) =>
      Effect.gen(function* () {
        const [first, second] = [yield* Effect.flip(ask), yield* Effect.flip(ask)]
        expect(first.reason).toMatch(/^no token from 127\.0\.0\.1:\d+: the response with status \d+ contains no token$/)
        expect(second.reason).toMatch(/: the last request failed less than a second ago$/)
        expect([forms.length, came]).toEqual([1, []])
        yield* TestClock.adjust("1 second")
        expect(yield* ask).toBe(200)
        expect(came).toEqual(["Bearer token-2"])
      })
    )
  })

  it("does not come from an endpoint that is not there", async () => {
    const gone = { ...client(), authority: "http://127.0.0.1:1" }
    const { reason } = await withUpstream(gone, (ask) => Effect.flip(ask) as Effect.Effect<{ readonly reason: string }>)
    expect(reason).toMatch(/^no token from 127\.0\.0\.1:1: /)
    expect(came).toEqual([])
  })
})
