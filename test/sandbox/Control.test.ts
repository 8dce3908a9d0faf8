/** The levers of clock and tenants, malformed requests, and the configuration. */
import { Clock, Effect } from "effect"
import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { decodeFile } from "../../src/app/Config.ts"
import type { LeversContract } from "../../src/sandbox/Levers.ts"
import { eventually, freshFolder, open } from "./Scene.ts"
import type { Scene } from "./Scene.ts"

let scene: Scene

beforeAll(async () => {
  scene = await open()
})

afterAll(() => scene.close())

/** Sends raw bytes and reads until the connection closes. */
const raw = (bytes: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(Number(new URL(scene.url).port), "127.0.0.1")
    let text = ""
    socket.on("data", (chunk) => (text += chunk)).on("error", () => {})
    socket.once("close", () => resolve(text))
    socket.write(bytes)
  })

describe("the clock", () => {
  it("moves, answers its time, and keeps it over a restart", async () => {
    const data_dir = freshFolder()
    const first = await open({ data_dir })
    const { body } = await first.call("/control/clock", { advance_ms: 30 * 86_400_000 })
    expect(body.now).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    await first.close()
    const second = await open({ data_dir })
    expect(second.clock.unsafeCurrentTimeMillis()).toBeGreaterThanOrEqual(Date.parse(body.now))
    await second.close()
  })

  it("moves only forward, and not beyond the year 9999", async () => {
    for (const advance_ms of [-1, 1.5, "1", null, 1e15]) {
      const answer = await scene.call("/control/clock", { advance_ms })
      expect([answer.status, answer.body.details.field]).toEqual([400, "advance_ms"])
    }
  })
})

describe("the levers of the service", () => {
  it("answer 503 until the service is up", async () => {
    const own = await open()
    expect((await own.call("/control/credit", { tenant_id: "t", amount: 1, source: "admin" })).status).toBe(503)
    expect((await own.call("/control/tenants/t", { billing_status: "active" })).status).toBe(503)
    await own.close()
  })

  it("book exact amounts at the steered time", async () => {
    const own = await open()
    const pulled: Array<ReadonlyArray<unknown>> = []
    const known = (tenant_id: string) => tenant_id === "ten a"
    const levers: LeversContract = {
      credit: (...args) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          pulled.push(["credit", ...args])
          expect(now).toBeGreaterThan(Date.now() + 1000)
          return known(args[0])
        }),
      setBillingStatus: (...args) => Effect.sync(() => pulled.push(["status", ...args]) > 0 && known(args[0])),
      setPlan: (...args) => Effect.sync(() => pulled.push(["plan", ...args]) > 0),
      vendorId: () => Effect.succeed(undefined)
    }
    own.connect(levers)
    await own.call("/control/clock", { advance_ms: 100_000 })
    const credit = (body: object) =>
      own.call("/control/credit", { tenant_id: "ten a", amount: 1, source: "purchase", ...body })
    expect((await credit({ amount: 0.1 })).status).toBe(200)
    expect((await credit({ amount: 42e-9, source: "transfer_return" })).status).toBe(200)
    expect((await credit({ tenant_id: "ten b" })).status).toBe(404)
    for (const [wrong, field] of [
      [{ source: "heaven" }, "source"],
      [{ amount: 0 }, "amount"],
      [{ amount: -1 }, "amount"],
      [{ amount: 1e-10 }, "amount"],
      [{ amount: 1e10 }, "amount"],
      [{ amount: "1" }, "amount"],
      [{ tenant_id: "" }, "tenant_id"]
    ] as const) {
      const answer = await credit(wrong)
      expect([answer.status, answer.body.details.field]).toEqual([400, field])
    }
    const tenant = (id: string, body: object) => own.call(`/control/tenants/${id}`, body)
    expect((await tenant("ten%20a", { billing_status: "suspended" })).status).toBe(200)
    expect((await tenant("b", { billing_status: "closed" })).status).toBe(404)
    expect((await tenant("ten%20a", {})).status).toBe(400)
    expect((await tenant("ten%20a", { billing_status: "happy" })).body.details.field).toBe("billing_status")
    expect((await tenant("ten%20a", { plan: "gold" })).body.details.field).toBe("plan")
    expect((await tenant("ten%20a", { plan: "team", plan_status: "past_due" })).status).toBe(200)
    expect(pulled).toEqual([
      ["credit", "ten a", 100_000_000n, "purchase"],
      ["credit", "ten a", 42n, "transfer_return"],
      ["credit", "ten b", 1_000_000_000n, "purchase"],
      ["status", "ten a", "suspended"],
      ["status", "b", "closed"],
      ["plan", "ten a", { plan: "team", status: "past_due" }]
    ])
    own.connect({ ...levers, credit: () => Effect.die(new Error("broken")) })
    expect((await credit({})).status).toBe(500)
    await own.close()
  })
})

describe("the port", () => {
  it("answers malformed requests in JSON", async () => {
    for (const path of ["/", "/nowhere", "/controls", "/control/tenants/%ff", "//", "/chat-a/v1/chat/completions/"]) {
      const answer = await scene.call(path, {})
      expect([path, answer.status]).toEqual([path, 404])
      expect(answer.body.error).toBeTypeOf("string")
    }
    const wrongMethod = await scene.call("/control/clock", undefined, { method: "DELETE" })
    expect(wrongMethod.status).toBe(405)
    expect(wrongMethod.headers.get("allow")).toBe("POST")
  })

  it("refuses a body that is too large, and keeps running", async () => {
    const answer = await scene.call("/control/clock", undefined, {
      method: "POST",
      body: Buffer.alloc(33 * 1024 * 1024, " ")
    })
    expect([answer.status, typeof answer.body.error]).toEqual([413, "string"])
    expect((await scene.call("/issuer/jwks")).status).toBe(200)
  })

  it("survives any bytes", async () => {
    for (const bytes of [
      "\0\x01\x02\r\n\r\n",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"
    ]) {
      expect(await raw(bytes)).toMatch(/^HTTP\/1\.1 400 [\s\S]*\{"error":/)
    }
    expect(await raw("GET http://elsewhere/nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).toMatch(
      /404[\s\S]*\{"error":/
    )
    expect(await raw("GET /nowhere HTTP/1.1\r\nHost: x\r\nExpect: x\r\nConnection: close\r\n\r\n")).toMatch(
      /404[\s\S]*\{"error":/
    )
    for (const body of ["", "null", "[]", "[".repeat(100_000), `{"a":`.repeat(50_000), "\ud800", "1e999", "\0"]) {
      for (const path of [
        "/control/faults",
        "/control/clock",
        "/control/credit",
        "/issuer/token",
        "/chat-a/v1/chat/completions"
      ]) {
        const answer = await scene.call(path, undefined, { method: "POST", body })
        expect([path, body.slice(0, 9), answer.status]).toEqual([path, body.slice(0, 9), 400])
        expect(answer.body).toHaveProperty("error")
      }
    }
    const deep = `{"model":"m","messages":[{"role":"user","content":"x"}],"x":${"[".repeat(50_000)}${"]".repeat(50_000)}}`
    expect((await scene.call("/chat-a/v1/chat/completions", undefined, { method: "POST", body: deep })).status).toBe(
      200
    )
    expect((await scene.call("/control/calls?limit=1")).status).toBe(200)
  })

  it("can be chosen, and fails clearly if it is taken", async () => {
    const port = Number(new URL(scene.url).port)
    await expect(open({ port })).rejects.toThrow(/cannot listen on 127\.0\.0\.1/)
  })

  it("closes: open requests finish within a second or are cut", async () => {
    const own = await open()
    await own.call("/control/faults", { service: "identity", delay_ms: 100 })
    await own.call("/control/faults", { service: "identity", delay_ms: 60_000 })
    const finishing = own.call("/issuer/jwks")
    await eventually(async () => ((await own.call("/control/calls")).body.length === 1 ? true : undefined))
    const cut = own.call("/issuer/jwks").then(
      () => "answered",
      () => "cut"
    )
    await eventually(async () => ((await own.call("/control/calls")).body.length === 2 ? true : undefined))
    await own.close()
    expect((await finishing).status).toBe(200)
    expect(await cut).toBe("cut")
    await expect(own.call("/issuer/jwks")).rejects.toThrow()
  })
})

it("a deployment accepts the configuration, which points here", () => {
  const decoded = decodeFile(JSON.parse(JSON.stringify(scene.configuration)), "the sandbox's")
  expect(decoded._tag).toBe("Right")
  expect(scene.configuration).toMatchObject({
    service_name: "Tollgate",
    clients: [{ client_id: scene.client_id }],
    identity: {
      google: { issuer: scene.issuer, audiences: ["sandbox-google"] },
      microsoft: { issuer: scene.issuer, audiences: ["sandbox-google"] }
    },
    upstreams: {
      "sandbox-a": { base_url: `${scene.url}/chat-a/v1`, api_key: "sandbox" },
      "sandbox-b": { base_url: `${scene.url}/chat-b/v1`, api_key: "sandbox" }
    },
    auto: "sandbox-small",
    prices: { default_new_credits: 5, default_registration_credits: 1 }
  })
  expect(
    (
      scene.configuration["models"] as ReadonlyArray<{ id: string; price: object; upstreams: ReadonlyArray<object> }>
    ).map(({ id, price, upstreams }) => [id, ...Object.values(price), upstreams.length])
  ).toEqual([
    ["sandbox-small", "0.15", "0.60", 1],
    ["sandbox-large", "3", "15", 1],
    ["sandbox-fraction", "0.0375", "0.15", 1],
    ["sandbox-failover", "0.15", "0.60", 2],
    ["sandbox-google", "3", "15", "0.3", 1],
    ["sandbox-bedrock", "3", "15", "0.3", "3.75", 1]
  ])
})
