/** Metrics of settled calls: they agree with usage records, and the number of series is bounded. */
import { Registry } from "prom-client"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { failure } from "../../../src/books/gate/Gate.ts"
import type { CallOutcome } from "../../../src/books/ledger/rules/Transaction.ts"
import { callMetrics, pairsMax } from "../../../src/operations/ops/CallMetrics.ts"
import { start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

/** Values of a metric by its labels, as its text says. */
const valuesIn = (text: string, name: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`))
      .map((line) => [line.slice(name.length, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))])
  )

describe("/metrics", () => {
  let service: Service
  let ada: Person
  beforeAll(async () => {
    service = await start()
    ada = await service.signIn("metrics@example.com")
  })
  afterAll(() => service.discard())

  const chat = (model: string, more: object = {}) =>
    service.call("/v1/chat/completions", {
      token: ada.token,
      json: { model, messages: [{ role: "user", content: "one two three" }], ...more }
    })

  it("says what usage records say, by model and provider", async () => {
    await chat("sandbox-small")
    await chat("sandbox-large")
    await chat("sandbox-small", { stream: true })
    await service.control("/faults", { service: "chat", times: 1, status: 429 })
    await chat("sandbox-failover")
    await service.control("/faults", { service: "chat", times: 1, status: 500 })
    expect((await chat("sandbox-small")).body.code).toBe("upstream_error")
    // A call that is held open, and resumed by what polls it.
    const json = { model: "sandbox-video", prompt: "a fish" }
    const { request_id } = (await service.call("/v1/tools/media/generate", { token: ada.token, json })).body
    await service.control("/media", { request_id, status: "COMPLETED" })
    const film = await service.call(`/v1/tools/media/status?request_id=${request_id}`, { token: ada.token })
    expect(film.body).toMatchObject({ settled: true, cost_usd: 0.25 })

    const records = await service.usage(ada)
    expect(records).toHaveLength(6)
    const { body } = await service.call("/metrics")
    const calls: Record<string, number> = {}
    const prompts: Record<string, number> = {}
    const completions: Record<string, number> = {}
    const costs: Record<string, number> = {}
    const times: Record<string, number> = {}
    const add = (sums: Record<string, number>, key: string, value: number) => (sums[key] = (sums[key] ?? 0) + value)
    for (const { completion_tokens, cost, model, prompt_tokens, provider, success } of records) {
      const pair = `model="${model}",provider="${provider}"`
      add(calls, `{${pair},outcome="${success ? "success" : "error"}"}`, 1)
      add(prompts, `{${pair}}`, prompt_tokens)
      add(completions, `{${pair}}`, completion_tokens)
      add(costs, `{${pair}}`, Math.round(cost * 1e9))
      add(times, `{provider="${provider}"}`, 1)
    }
    const nanos = Object.entries(valuesIn(body, "tollgate_cost_usd_total")).map(([key, cost]) => [key, cost * 1e9])
    expect(valuesIn(body, "tollgate_calls_total")).toEqual(calls)
    expect(valuesIn(body, "tollgate_prompt_tokens_total")).toEqual(prompts)
    expect(valuesIn(body, "tollgate_completion_tokens_total")).toEqual(completions)
    expect(Object.fromEntries(nanos.map(([key, cost]) => [key, Math.round(Number(cost))]))).toEqual(costs)
    expect(valuesIn(body, "tollgate_call_duration_seconds_count")).toEqual(times)
    expect(Object.keys(calls).filter((key) => key.includes('outcome="error"'))).toHaveLength(1)
    expect(body).toContain("# TYPE tollgate_call_duration_seconds histogram")
    expect(body).toContain("# TYPE tollgate_cost_usd_total counter")
  })
})

describe("the metrics of calls", () => {
  const outcome = (more: Partial<CallOutcome>): CallOutcome => ({ ...failure("x"), latency_ms: 0, ...more })

  it("are of a bounded number of series: what comes later counts as other", async () => {
    const registry = new Registry()
    const observe = callMetrics(registry)
    for (let index = 0; index < pairsMax + 50; index++)
      observe({ model: `model-${index}`, provider: "p" }, outcome({ success: true }), 1n)
    observe({ model: "model-0", provider: "p" }, outcome({ success: true }), 1n)
    const text = await registry.metrics()
    const calls = valuesIn(text, "tollgate_calls_total")
    expect(Object.keys(calls)).toHaveLength(pairsMax + 1)
    expect(calls['{model="other",provider="other",outcome="success"}']).toBe(50)
    expect(calls['{model="model-0",provider="p",outcome="success"}']).toBe(2)
  })

  it("sum costs exactly, and count a call for the model and provider that served it", async () => {
    const registry = new Registry()
    const observe = callMetrics(registry)
    const served = outcome({ success: true, provider: "b", served: { model: "spare", price: "1" } })
    for (let index = 0; index < 10; index++) observe({ model: "first", provider: "a" }, served, 100_000_001n)
    observe({ model: "first", provider: "a" }, outcome({ error_type: "client_disconnected" }), 0n)
    const text = await registry.metrics()
    expect(text).toContain('tollgate_cost_usd_total{model="spare",provider="b"} 1.00000001')
    expect(valuesIn(text, "tollgate_calls_total")).toEqual({
      '{model="spare",provider="b",outcome="success"}': 10,
      '{model="first",provider="a",outcome="client_disconnected"}': 1
    })
  })

  it("put each time into the first bucket that it does not exceed", async () => {
    const registry = new Registry()
    const observe = callMetrics(registry)
    for (const latency_ms of [100, 101, 400_000]) observe({ model: "m", provider: "p" }, outcome({ latency_ms }), 0n)
    const text = await registry.metrics()
    const buckets = valuesIn(text, "tollgate_call_duration_seconds_bucket")
    expect(buckets['{le="0.1",provider="p"}']).toBe(1)
    expect(buckets['{le="0.5",provider="p"}']).toBe(2)
    expect(buckets['{le="300",provider="p"}']).toBe(2)
    expect(buckets['{le="+Inf",provider="p"}']).toBe(3)
    expect(valuesIn(text, "tollgate_call_duration_seconds_sum")['{provider="p"}']).toBeCloseTo(400.201)
  })
})
