/** Traces are off unless configured. Then a caller's trace continues to the upstream and is sent to the collector. */
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { decodeFile } from "../../../src/app/Config.ts"
import type { Admission } from "../../../src/books/gate/Gate.ts"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { traced } from "../../../src/kernel/Tracing.ts"
import * as Telemetry from "../../../src/operations/ops/Telemetry.ts"
import { Upstreams } from "../../../src/upstream/models/Upstreams.ts"
import * as Sandbox from "../../../src/sandbox/Sandbox.ts"
import { freshFolder, start } from "../../support/Service.ts"

const received: Array<{ readonly path: string; readonly traceparent: string | undefined; readonly body: string }> = []
const outside = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request
    .on("data", (chunk: Buffer) => chunks.push(chunk))
    .on("end", () => {
      const { traceparent } = request.headers
      received.push({
        path: request.url ?? "",
        traceparent: typeof traceparent === "string" ? traceparent : undefined,
        body: Buffer.concat(chunks).toString()
      })
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
})
let address: string
beforeAll(async () => {
  await new Promise<void>((resolve) => {
    outside.listen(0, "127.0.0.1", resolve)
  })
  address = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`
})
afterAll(() => {
  outside.closeAllConnections()
  outside.close()
})

const info = ServiceInfo.layer({ service_name: "Traced", key_prefix: "svc", public_url: "http://127.0.0.1" })

const trace = "0af7651916cd43dd8448eb211c80319c"

/** Calls the upstream within a caller's trace. */
const call = (telemetry: object | undefined) =>
  Effect.gen(function* () {
    const upstream = (yield* Upstreams).get("outside")!
    const request = { method: "POST", path: "/chat", headers: {}, body: "{}" } as const
    const exchange = upstream.wire({} as Admission).exchange(request, { limit: 1_000 })
    yield* traced("POST /v1/chat/completions", `00-${trace}-b7ad6b7169203331-01`, exchange)
  }).pipe(
    Effect.provide(
      Upstreams.layer({ outside: { base_url: address, api_key: Redacted.make("k"), silence_ms_max: 1_000 } }).pipe(
        Layer.provideMerge(
          Layer.unwrapEffect(
            Effect.map(decodeFile({ ...(telemetry !== undefined && { telemetry }) }, "test"), (file) =>
              Telemetry.layer(file).pipe(Layer.provide(info))
            )
          )
        )
      )
    ),
    Effect.scoped,
    Effect.runPromise
  )

describe("traces", () => {
  it("cross to the upstream and reach the collector", async () => {
    received.length = 0
    await call({ endpoint: address })
    const upstream = received.find(({ path }) => path === "/chat")
    expect(upstream?.traceparent).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`))
    const exported = received.filter(({ path }) => path === "/v1/traces").map(({ body }) => body)
    expect(exported.join("")).toContain(trace)
    expect(exported.join("")).toContain("POST /v1/chat/completions")
    expect(exported.join("")).toContain("POST outside")
    expect(exported.join("")).toContain("Traced")
  })

  it("are not made without a collector", async () => {
    received.length = 0
    await call(undefined)
    expect(received).toMatchObject([{ path: "/chat", traceparent: undefined }])
  })
})

interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly status: { readonly code: number }
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: Readonly<Record<string, unknown>> }>
}

/** All spans that have reached the collector. */
const spans = (): ReadonlyArray<Span> =>
  received
    .filter(({ path }) => path === "/v1/traces")
    .flatMap(({ body }) => JSON.parse(body).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap((scope) => scope.spans)

const attributesOf = ({ attributes }: Span): Readonly<Record<string, unknown>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

describe("the span of a call", () => {
  it("says model, provider, tokens and cost, also of a stream and of a failure, and never content", async () => {
    received.length = 0
    const scope = Effect.runSync(Scope.make())
    const sandbox = await Effect.runPromise(Scope.extend(Sandbox.make({}), scope))
    const folder = freshFolder()
    const file = join(folder, "tollgate.json")
    writeFileSync(file, JSON.stringify({ ...sandbox.configuration, telemetry: { endpoint: address } }))
    const service = await start({ args: ["--config", file] })
    try {
      const ada = await service.signIn("traced@example.com", {}, sandbox)
      const token = await service.key(ada)
      const messages = [{ role: "user", content: "nobody-may-read-this" }]
      const chat = (more: object) =>
        service.call("/v1/chat/completions", {
          token,
          json: { model: "sandbox-small", messages, ...more },
          headers: { traceparent: `00-${trace}-b7ad6b7169203331-01` }
        })
      expect((await chat({})).status).toBe(200)
      expect((await chat({ stream: true })).status).toBe(200)
      await service.call(`${sandbox.control}/faults`, { json: { service: "chat", times: 1, status: 500 } })
      expect((await chat({})).body.code).toBe("upstream_error")
      const records = (await service.usage(ada)).toReversed()
      expect(records).toHaveLength(3)
      // The end of the process sends the spans that it still has.
      expect(await service.end()).toBe(0)

      const calls = spans().filter(({ name }) => name === "chat/completions sandbox-small")
      expect(calls.map(attributesOf)).toMatchObject(
        records.map((record, index) => ({
          "gen_ai.request.model": "sandbox-small",
          "gen_ai.provider.name": record.provider,
          "gen_ai.usage.input_tokens": record.prompt_tokens,
          "gen_ai.usage.output_tokens": record.completion_tokens,
          "tollgate.cost_usd": record.cost,
          ...(index === 2 && { "error.type": "upstream_error" })
        }))
      )
      expect(calls.filter((call) => "error.type" in attributesOf(call))).toHaveLength(1)
      expect(records[0].cost).toBeGreaterThan(0)
      expect(records[1].cost).toBeGreaterThan(0)
      expect(calls.map(({ status }) => status.code)).toEqual([1, 1, 2])
      for (const { parentSpanId, spanId, traceId } of calls) {
        expect(traceId).toBe(trace)
        expect(spans().find((one) => one.spanId === parentSpanId)?.name).toBe("POST /v1/chat/completions")
        expect(spans().find((one) => one.parentSpanId === spanId)?.name).toBe("POST sandbox-a")
      }
      expect(JSON.stringify(received.filter(({ path }) => path === "/v1/traces"))).not.toContain("nobody-may-read-this")
    } finally {
      await service.discard()
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe("metrics", () => {
  it("count requests by route, exchanges by upstream and outcome, and show credit reserved, in escrow and unsettled", async () => {
    const service = await start()
    try {
      const who = await service.signIn("figures@example.com")
      await service.call("/v1/search?query=x", { token: who.token })
      await service.control("/faults", { service: "search", drop: true, times: 1 })
      await service.call("/v1/search?query=x", { token: who.token })
      await service.call("/v1/tools/media/generate", {
        token: who.token,
        json: { model: "sandbox-video", prompt: "x" }
      })
      await service.control("/credit", { tenant_id: who.tenant_id, amount: 3, source: "purchase" })
      await service.call(`/v1/tenants/${who.tenant_id}/billing/transfers`, {
        token: who.token,
        headers: { "idempotency-key": "figures-0123456789" },
        json: { amount: 2, recipient_email: "x@example.com", kind: "transfer" }
      })
      const { body } = await service.call("/metrics")
      expect(body).toContain('tollgate_requests_total{route="GET /v1/search",status="200"} 1')
      expect(body).toContain('tollgate_upstream_requests_total{upstream="sandbox-tavily",outcome="2xx"} 1')
      expect(body).toContain('tollgate_upstream_requests_total{upstream="sandbox-tavily",outcome="unreachable"} 1')
      expect(body).toContain("tollgate_reserved_usd 0.25")
      expect(body).toContain("tollgate_escrowed_usd 2")
      expect(body).toContain("tollgate_open_calls 1")
      expect(body).toMatch(/tollgate_oldest_unsettled_seconds \d/)
    } finally {
      await service.discard()
    }
  })
})
