/** The service beneath `/ai` of a host's own server of node: the fast lane, the metrics, and the pages for a browser. */
import { sqliteFile } from "../../src/storage/database/Location.ts"
import { HttpApi, HttpApiBuilder, HttpMiddleware, HttpServerRequest } from "@effect/platform"
import { Effect, Exit, Layer, LogLevel, Redacted, Scope } from "effect"
import { once } from "node:events"
import { createServer, get } from "node:http"
import type { IncomingMessage } from "node:http"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import * as Database from "../../src/app/entry/database.ts"
import * as Tollgate from "../../src/app/entry/http.ts"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"
import { CurrentSandbox } from "../../src/kernel/SandboxInfo.ts"
import { Browser, fieldsOf, redirect_uri, request, toTheQuestion, verifierOf } from "../support/OAuth.ts"
import { freePort, Service } from "../support/Service.ts"

/** The requests that the host's own application has seen. */
const passed: Array<string> = []

class Host extends HttpApi.make("host") {}

const host = (port: number) =>
  Effect.gen(function* () {
    const sandbox = yield* Sandbox.make({})
    const facts: Tollgate.EnvironmentFacts = {
      host: "127.0.0.1",
      port,
      data_dir: "",
      database: sqliteFile(""),
      service_name: "Hosted",
      key_prefix: "svc",
      log_level: LogLevel.None,
      sandbox_without: [],
      secret: Redacted.make("a secret of thirty-two characters")
    }
    const { client_id, control, issuer, levers, oauth_client, service_client_id } = sandbox
    const info = { client_id, control, issuer, oauth_client, service_client_id }
    const configuration = { ...sandbox.configuration, public_url: `http://127.0.0.1:${port}/ai` }
    // What the host puts around its application is around the routes of the service too, but not around its fast lane.
    const noted = HttpMiddleware.make((app) =>
      Effect.zipRight(
        Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => passed.push(url)),
        app
      )
    )
    yield* HttpApiBuilder.serve(noted).pipe(
      Layer.provide(Tollgate.mounted("/ai")),
      Layer.provide(HttpApiBuilder.api(Host)),
      Layer.provide(Tollgate.layer(facts, configuration)),
      Layer.provide(Layer.succeed(CurrentSandbox, { info, levers })),
      Layer.provide(Database.layerMemory),
      Layer.provide(Tollgate.layerServer(createServer, { port, host: "127.0.0.1" })),
      Layer.build
    )
  })

/** The service's own address is beneath the path. */
class Mounted extends Service {
  constructor(port: number) {
    super(port, "", undefined as never, [], [])
    Object.assign(this, { url: `${this.url}/ai` })
  }
}

let scope: Scope.CloseableScope
let service: Service
beforeAll(async () => {
  scope = Effect.runSync(Scope.make())
  const port = await freePort()
  await Effect.runPromise(Scope.extend(host(port), scope))
  service = new Mounted(port)
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** A host whose application is built once `built` is done. Its server listens at once. */
const starting = (port: number, built: Promise<void>) =>
  HttpApiBuilder.serve().pipe(
    Layer.provide(HttpApiBuilder.api(Host)),
    Layer.provide(Layer.effectDiscard(Effect.promise(() => built))),
    Layer.provide(Tollgate.layerServer(createServer, { port, host: "127.0.0.1" })),
    Layer.build
  )

const atStart = async (use: (port: number, build: () => void) => Promise<void>) => {
  const port = await freePort()
  let build!: () => void
  const built = new Promise<void>((resolve) => (build = resolve))
  const host = Effect.runSync(Scope.make())
  const running = Effect.runPromise(Scope.extend(starting(port, built), host))
  await vi.waitFor(
    () =>
      new Promise<void>((resolve, reject) => {
        const socket = connect(port, "127.0.0.1", () => resolve(void socket.destroy())).on("error", reject)
      }),
    20_000
  )
  try {
    await use(port, build)
  } finally {
    build()
    await running
    await Effect.runPromise(Scope.close(host, Exit.void))
  }
}

it("answers a request that arrives while the host starts, once it has started", () =>
  atStart(async (port, build) => {
    const answers = ["/one", "/two"].map((path) => fetch(`http://127.0.0.1:${port}${path}`))
    let answered = 0
    for (const answer of answers) void answer.then(() => answered++)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(answered).toBe(0)
    build()
    for (const answer of answers) expect((await answer).status).toBe(404)
    expect((await fetch(`http://127.0.0.1:${port}/later`)).status).toBe(404)
  }))

it("refuses it after ten seconds if the host is still starting", () =>
  atStart(async (port) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      const sent = get({ port, host: "127.0.0.1", path: "/healthz", agent: false })
      const answer = once(sent, "response")
      // The timer of the held request is the only one.
      while (vi.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve))
      vi.advanceTimersByTime(10_000)
      const [response] = (await answer) as [IncomingMessage]
      expect([response.statusCode, JSON.parse(await text(response))]).toEqual([
        503,
        { error: "the service is starting; try again shortly", code: "unavailable" }
      ])
    } finally {
      vi.useRealTimers()
    }
  }))

const search = (path: string, key: string) => service.call(path, { token: key })

it("has its fast endpoints in the fast lane, and all of them in the router", async () => {
  const key = await service.key(await service.signIn("ada@example.com"))
  const fast = await search("/v1/search?query=x", key)
  const routed = await search("/v1/search/?query=x", key)
  expect([fast.status, routed.status]).toEqual([200, 200])
  expect(fast.body).toEqual(routed.body)
  expect((await fetch(`${new URL(service.url).origin}/v1/search?query=x`)).status).toBe(404)
  expect(passed.filter((url) => url.includes("search"))).toEqual(["/ai/v1/search/?query=x", "/v1/search?query=x"])
})

it("refuses a WebSocket of responses where the host's server hears of upgrades by their own event", async () => {
  const head = ["GET /ai/v1/responses HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: websocket", "", ""]
  const { hostname, port } = new URL(service.url)
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(head.join("\r\n")))
    let text = ""
    socket.setEncoding("utf8").on("data", (piece) => (text += piece))
    socket.on("close", () => resolve(text)).on("error", reject)
  })
  expect(answer).toMatch(/^HTTP\/1\.1 426 [^]*\r\nupgrade: HTTP\/1\.1\r\n[^]*"code":"upgrade_required"/)
})

it("counts its requests and those to its upstreams", async () => {
  const key = await service.key(await service.signIn("bob@example.com"))
  await search("/v1/search?query=x", key)
  const { body } = await service.call("/metrics")
  expect(body).toMatch(/tollgate_requests_total\{route="GET \/v1\/search",status="200"\} [1-9]/)
  expect(body).toMatch(/tollgate_requests_total\{route="GET \/v1\/me",status="200"\} [1-9]/)
  expect(body).toMatch(/tollgate_upstream_requests_total\{upstream="sandbox-tavily",outcome="2xx"\} [1-9]/)
})

it("leads a browser through its own pages", async () => {
  const browser = new Browser({ url: new URL(service.url).origin } as Service)
  const page = `${service.url}/oauth/authorize?${new URLSearchParams(request(verifierOf()))}`
  const welcome = await browser.open(page)
  expect(welcome.headers.getSetCookie()[0]).toContain("; Path=/ai/oauth;")
  const question = await toTheQuestion(browser, page, "eve@example.com")
  expect([question.status, question.url.startsWith(`${service.url}/oauth/authorize?`)]).toEqual([200, true])
  const action = /<form method="post" action="([^"]+)"/.exec(question.html)?.[1]
  expect(action).toBe("/ai/oauth/authorize")
  const decided = await browser.open(new URL(action!, service.url).href, {
    ...fieldsOf(question.html),
    decision: "allow"
  })
  expect(decided.location).toContain(`${redirect_uri}?code=`)
})
