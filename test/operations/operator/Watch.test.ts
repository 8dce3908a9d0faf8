/** The operator's views of upstreams, costs, invoices, money in flight, loops and verifications. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { gzipSync } from "node:zlib"
import { command, start } from "../../support/Service.ts"
import type { Answer, Person, Service } from "../../support/Service.ts"

let service: Service
let ada: Person
let key: string
let token: string

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
  key = await service.key(ada)
  await service.control("/credit", { tenant_id: ada.tenant_id, amount: 50, source: "purchase" })
  token = (await command(["operator", "--token"], { DATA_DIR: service.folder })).stdout.trim()
})
afterAll(() => service.discard())

const operator = (path: string, call: Parameters<Service["call"]>[1] = {}): Promise<Answer> =>
  service.call(`/v1/operator${path}`, { token, ...call })

const result = async (path: string) => {
  const { body, status } = await operator(path)
  expect([path, status]).toEqual([path, 200])
  return body.result
}

const nameOf = async (tenant: string): Promise<string> => (await result(`/tenants/${tenant}`)).name

const chat = (json: object = {}) =>
  service.call("/v1/chat/completions", {
    token: key,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], ...json }
  })

/** For what happens in the background: a verification of the whole books takes long on a busy machine. */
const patiently = { timeout: 300_000, interval: 50 }

const csv = (text: string | Uint8Array, query = "", headers: Record<string, string> = {}) =>
  operator(`/drift${query}`, { method: "POST", raw: text, headers: { "content-type": "text/csv", ...headers } })

describe("upstreams", () => {
  it("show their health, and which of them serves a model", async () => {
    await chat()
    await chat()
    const { models, upstreams } = await result("/upstreams")
    const used = upstreams.filter(({ state }: { state: string }) => state === "ok")
    expect(used).toHaveLength(1)
    expect(used[0]).toMatchObject({
      requests: { "2xx": 2, "4xx": 0, "5xx": 0, unreachable: 0 },
      failures_in_a_row: 0,
      latency_ms: { p50: expect.any(Number), p95: expect.any(Number) },
      last_success_at: expect.any(String),
      last_failure_at: null
    })
    expect(used[0].minutes).toHaveLength(15)
    expect(models.find(({ model }: { model: string }) => model === "sandbox-small")).toMatchObject({
      serving: used[0].name
    })
    await service.control("/faults", { service: "chat", status: 503, times: 5 })
    for (let i = 0; i < 4; i++) await chat()
    await service.control("/faults", undefined, "DELETE")
    const after = (await result("/upstreams")).upstreams.find(({ name }: { name: string }) => name === used[0].name)
    expect(after).toMatchObject({ state: "failing", last_failure: "5xx" })
    expect(after.failures_in_a_row).toBeGreaterThanOrEqual(3)
    await chat()
    const again = (await result("/upstreams")).upstreams.find(({ name }: { name: string }) => name === used[0].name)
    expect(again).toMatchObject({ state: "ok", failures_in_a_row: 0 })
  })

  it("show charges by day, provider and model, to the last digit", async () => {
    await service.call("/v1/search?query=tides", { token: key })
    const records = await service.usage(ada)
    const { rows } = await result("/costs")
    const nano = (usd: number) => Math.round(usd * 1e9)
    const sum = (of: ReadonlyArray<Record<string, number>>, name: string) =>
      of.reduce((total, one) => total + nano(one[name]!), 0)
    expect(sum(rows, "charged")).toBe(sum(records as never, "cost"))
    expect(rows.reduce((total: number, one: { requests: number }) => total + one.requests, 0)).toBe(records.length)
    expect((await operator("/costs?from=2026-01-01&to=2026-12-31")).body.details.field).toBe("from")
    expect((await operator("/costs?from=2026-01-02&to=2026-01-01")).body.details.field).toBe("to")
    expect((await operator("/costs?from=yesterday")).status).toBe(400)
  })

  it("are compared with a vendor's invoice", async () => {
    const { rows } = await result("/costs")
    const row = rows.find(({ model }: { model: string }) => model === "sandbox-small")
    const invoice = await csv(
      `Date,Model,Cost\n${row.day},sandbox-small,${row.charged}\n${row.day},something-else,0.5\nnever,x,1\n`,
      `?provider=${row.provider}`
    )
    expect(invoice.status).toBe(200)
    const { bad_lines, rows: compared, totals } = invoice.body.result
    expect(compared.find(({ model }: { model: string }) => model.includes("small"))).toMatchObject({
      day: row.day,
      theirs: row.charged,
      ours: row.charged,
      difference: 0,
      requests: row.requests
    })
    expect(compared.find(({ model }: { model: string }) => model === "something-else")).toMatchObject({
      theirs: 0.5,
      ours: 0,
      difference: 0.5,
      requests: 0
    })
    expect(totals.difference).toBe(0.5)
    expect(bad_lines).toEqual([{ line: 4, why: expect.any(String) }])
  })

  it("show the vendor's cost if the configuration has one", async () => {
    await chat({ model: "sandbox-large" })
    const { rows } = await result("/costs")
    const large = rows.find(({ model }: { model: string }) => model === "sandbox-large")
    expect(large.vendor_cost).toBeCloseTo((large.prompt_tokens * 2.4 + large.completion_tokens * 12) / 1e6, 9)
    expect(large.vendor_cost).toBeLessThan(large.charged)
    expect(rows.find(({ model }: { model: string }) => model === "sandbox-small").vendor_cost).toBeNull()
  })

  it("refuse a file that is not an invoice, too long or a decompression bomb", async () => {
    expect((await csv("date,model\n")).body.code).toBe("invalid_request")
    expect((await csv("")).status).toBe(400)
    expect((await csv("date,model,cost\nx,y,z\n")).body.error).toContain("line 2")
    expect((await csv("date,model,cost\n2020-01-01,m,1\n2026-01-01,m,1\n")).status).toBe(400)
    expect((await csv("{}", "", { "content-type": "application/json" })).status).toBe(415)
    expect((await csv(`date,model,cost\n${"x".repeat(5 * 1024 * 1024)}`)).status).toBe(413)
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, "1,"))
    expect((await csv(bomb, "", { "content-encoding": "gzip" })).status).toBe(413)
  })
})

describe("money in flight", () => {
  it("is shown by age, with reservations and debts", async () => {
    const job = await service.call("/v1/tools/media/generate", {
      token: key,
      json: { model: "sandbox-video", prompt: "waves" }
    })
    const sent = await service.call(`/v1/tenants/${ada.tenant_id}/billing/transfers`, {
      token: ada.token,
      headers: { "idempotency-key": "flight-0123456789-abcdef" },
      json: { amount: 1.25, recipient_email: "later@example.com", kind: "gift" }
    })
    expect(sent.status).toBeLessThan(300)
    const flight = await result("/flight")
    expect(flight).toMatchObject({ open_calls: 1, unsettled: 0, escrowed: 1.25, pending_transfers: 1, owed: 0 })
    const sum = (ages: ReadonlyArray<{ amount: number }>) => ages.reduce((total, { amount }) => total + amount, 0)
    expect(sum(flight.ages)).toBe(flight.reserved)
    expect(sum(flight.escrow_ages)).toBe(1.25)
    expect(flight.escrow_ages[0]).toMatchObject({ from_days: 0, to_days: 1, transfers: 1 })
    const { next, records } = await result("/reservations")
    expect(next).toBe(null)
    expect(records).toEqual([
      expect.objectContaining({
        tenant_id: ada.tenant_id,
        tenant_name: await nameOf(ada.tenant_id),
        payer_tenant_name: await nameOf(ada.tenant_id),
        model: "sandbox-video",
        amount: flight.reserved,
        node_alive: true
      })
    ])
    const found = await result(`/search?q=${records[0].id}`)
    expect(found.calls).toEqual([
      expect.objectContaining({ id: records[0].id, state: "open", reserved_usd: flight.reserved })
    ])
    expect((await result(`/tenants/${ada.tenant_id}`)).open_calls).toBe(1)
    expect((await result(`/reservations?after=${records[0].at}`)).records).toHaveLength(1)
    const { jobs, loops, outbox } = await result("/loops")
    expect(jobs).toEqual([expect.objectContaining({ kind: "media", count: 1 })])
    expect(loops.map(({ loop }: { loop: string }) => loop)).toContain("outbox")
    expect(outbox).toEqual({
      waiting: expect.any(Number),
      oldest_at: expect.toSatisfy((at) => at === null || !Number.isNaN(Date.parse(at)))
    })
    expect(await result("/owed")).toEqual({ owed: [], waiting: [] })
    await service.control("/media", { request_id: job.body.request_id, status: "FAILED" })
    await service.call(`/v1/tools/media/status?request_id=${job.body.request_id}`, { token: key })
    await expect.poll(async () => (await result("/flight")).open_calls).toBe(0)
  })

  it("shows the part of a refund that the balance could not give back", async () => {
    const events = async () =>
      (await service.control("/webhooks")) as ReadonlyArray<{
        event: { data: { object: { payment_intent?: string } } }
      }>
    const poor = await service.signIn("poor@example.com")
    const checkout = await service.call(`/v1/tenants/${poor.tenant_id}/billing/checkout`, {
      token: poor.token,
      json: { amount_credits: 5 }
    })
    await fetch(checkout.body.result.checkout_url)
    await expect.poll(() => service.balance(poor)).toBe(11)
    const payment = (await events()).map(({ event }) => event.data.object.payment_intent).find((id) => id != null)!
    expect((await result(`/search?q=${payment}`)).payments).toEqual([
      expect.objectContaining({ id: payment, tenant_id: poor.tenant_id, amount: 5, source: "checkout" })
    ])
    await service.call(`/v1/tenants/${poor.tenant_id}/billing/transfers`, {
      token: poor.token,
      headers: { "idempotency-key": "poorer-0123456789-abcdef" },
      json: { amount: 5, recipient_email: "rich@example.com", kind: "gift" }
    })
    // The rest is reserved by jobs, so the refund finds too little.
    const other = await service.key(poor)
    for (let i = 0; i < 30; i++)
      await service.call("/v1/tools/media/generate", {
        token: other,
        json: { model: "sandbox-video", prompt: "waves" }
      })
    await service.control(`/payments/${payment}/refund`, {})
    await expect.poll(async () => (await result("/owed")).owed.length).toBe(1)
    const { owed } = await result("/owed")
    const { tenant_id } = poor
    expect(owed).toEqual([
      { payment_id: payment, tenant_id, tenant_name: await nameOf(tenant_id), owed: expect.any(Number) }
    ])
    expect((await result("/flight")).owed).toBe(owed[0].owed)
  })
})

describe("live figures", () => {
  /** Reads up to `count` events of a stream. */
  const listen = async (
    bearer: string,
    count: number
  ): Promise<ReadonlyArray<{ event: string; data: Record<string, unknown> }>> => {
    const leaving = new AbortController()
    const response = await fetch(`${service.url}/v1/operator/events`, {
      headers: { authorization: `Bearer ${bearer}` },
      signal: leaving.signal
    })
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"])
    let text = ""
    const found = () =>
      text
        .split("\n\n")
        .slice(0, -1)
        .flatMap((one) => {
          const match = /^event: (\w+)\ndata: (.*)$/.exec(one)
          return match === null ? [] : [{ event: match[1]!, data: JSON.parse(match[2]!) as Record<string, unknown> }]
        })
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      if (found().length >= count) break
    }
    leaving.abort()
    return found()
  }

  it("come once a second, until the session ends", async () => {
    const events = await listen(token, 3)
    expect(events.map(({ event }) => event)).toEqual(["figures", "figures", "figures"])
    const { loops } = await result("/loops")
    expect(events.at(-1)!.data).toMatchObject({
      calls_per_second: expect.any(Number),
      reserved: expect.any(Number),
      unsettled: 0,
      listeners: expect.any(Number)
    })
    expect(events.at(-1)!.data["loops"]).toHaveLength(loops.length)
    const other = (await command(["operator", "--token"], { DATA_DIR: service.folder })).stdout.trim()
    const { session_id } = (await operator("/me", { token: other })).body.result
    const [heard] = await Promise.all([listen(other, 100), operator(`/sessions/${session_id}`, { method: "DELETE" })])
    expect(heard.at(-1)).toEqual({ event: "end", data: { reason: "credential" } })
    expect((await operator("/events", { token: ada.token })).status).toBe(401)
  })

  it("have a maximum of listeners, and accept new ones when others leave", async () => {
    const leaving = new AbortController()
    const open = () =>
      fetch(`${service.url}/v1/operator/events`, {
        headers: { authorization: `Bearer ${token}` },
        signal: leaving.signal
      })
    const answers = await Promise.all(Array.from({ length: 20 }, open))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(16)
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(4)
    leaving.abort()
    await expect.poll(async () => (await listen(token, 1))[0]?.data["listeners"]).toBe(1)
  })
})

describe("the books", () => {
  it("have their invariants checked on request, one check at a time", async () => {
    const looks = await Promise.all(Array.from({ length: 5 }, () => operator("/invariants", { method: "POST" })))
    const done = looks.filter(({ status }) => status === 200)
    expect(done.length).toBeGreaterThan(0)
    for (const { body, status } of looks)
      if (status !== 200) expect([status, body.code]).toEqual([409, "already_running"])
    const { checks } = done[0]!.body.result
    expect(checks.length).toBeGreaterThan(5)
    expect(
      checks.every(
        ({ findings, holds }: { findings: ReadonlyArray<string>; holds: boolean }) => holds && findings.length === 0
      )
    ).toBe(true)
  })

  it("are verified on request, with progress and the last verification that held", async () => {
    const before = await result("/verify")
    const started = await operator("/verify", { json: { whole: true } })
    expect([started.status, started.body.result.running === null || started.body.result.running.whole]).toEqual([
      202,
      true
    ])
    await expect.poll(async () => (await result("/verify")).running, patiently).toBe(null)
    const after = await result("/verify")
    expect(after.last).toMatchObject({ whole: true, findings: 0 })
    expect(after.last_held).toEqual(after.last)
    expect(after.recent.length).toBe(before.recent.length + 1)
    expect(after.behind).toEqual({ entries: 0, records: 0 })
    expect(after.found).toEqual([])
    await chat()
    await expect.poll(async () => (await result("/verify")).behind.records, patiently).toBe(1)
    expect((await operator("/verify", { json: {} })).status).toBe(202)
    await expect.poll(async () => (await result("/verify")).last?.whole, patiently).toBe(false)
    const actions = (await result("/audit?limit=3")).records.map(({ action }: { action: string }) => action)
    expect(actions.slice(0, 2)).toEqual(["verify", "verify"])
  })
})
