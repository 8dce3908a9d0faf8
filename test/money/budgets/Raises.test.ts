/** Budgets as time passes and calls are made: refusals, raises that end, and people who are told once. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lettersTo } from "../../support/mail.ts"
import { command, start } from "../../support/Service.ts"
import type { Answer, Person, Service } from "../../support/Service.ts"

let service: Service
let operator: string
beforeAll(async () => {
  service = await start()
  const env = { DATA_DIR: service.folder, PORT: String(service.port) }
  operator = (await command(["operator", "--token"], env)).stdout.trim()
})
afterAll(() => service.discard())

let people = 0
const person = (name: string) => service.signIn(`${name}${++people}@example.com`, { name })

const ask = (who: Person, path = "", call: object = {}): Promise<Answer> =>
  service.call(`/v1/tenants/${who.tenant_id}/budgets${path}`, { token: who.token, ...call })
const asOperator = (path = "", call: object = {}) =>
  service.call(`/v1/operator/budgets${path}`, { token: operator, ...call })

// oxlint-disable-next-line typescript/no-explicit-any -- a test looks into what came
const made = async (who: Person, budget: object): Promise<any> => {
  const { body, status } = await ask(who, "", { json: { name: "Team", period: "total", ...budget } })
  expect([status, body.error]).toEqual([201, undefined])
  return body.result
}
// oxlint-disable-next-line typescript/no-explicit-any -- as above
const found = async (who: Person, id: string): Promise<any> => (await ask(who, `/${id}`)).body.result

const chat = (token: string, model = "sandbox-small"): Promise<Answer> =>
  service.call("/v1/chat/completions", {
    token,
    json: { model, max_tokens: 100, messages: [{ role: "user", content: "one two" }] }
  })

const refusal = ({ body, status }: Answer) => [status, body.code]
const fieldOf = ({ body, status }: Answer) => [status, body.code, body.details?.field]
const nowOf = async (): Promise<number> => Date.parse((await advance(0)).now)
const after = async (ms: number): Promise<string> => new Date((await nowOf()) + ms).toISOString()
const advance = (advance_ms: number) => service.control("/clock", { advance_ms })
const minute = 60_000

describe("a call", () => {
  it("beyond a budget of USD is 402, with the budget, what is left and when it renews", async () => {
    const ada = await person("ada")
    const { id, renews_at } = await made(ada, { limit: { usd: 0 }, period: "day" })
    const { body, headers, status } = await chat(ada.token)
    expect([status, body.code, body.details]).toEqual([
      402,
      "budget_exceeded",
      { budget_id: id, budget_name: "Team", unit: "usd", limit: "0", left: "0", renews_at }
    ])
    expect(headers.get("retry-after")).toBeNull()
    expect(await service.usage(ada)).toEqual([])
  })

  it("beyond the requests of an hour is 429 with Retry-After, and admitted in the next hour", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { requests: 1 }, period: "minute" })
    // Both calls lie in one minute.
    await advance(minute - ((await nowOf()) % minute))
    expect((await chat(ada.token)).status).toBe(200)
    const { body, headers, status } = await chat(ada.token)
    const details = { budget_id: id, budget_name: "Team", unit: "requests", limit: "1", left: "0" }
    expect([status, body.code, body.details]).toMatchObject([429, "rate_limited", details])
    const wait = Number(headers.get("retry-after"))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(60)
    await advance(wait * 1_000)
    expect((await chat(ada.token)).status).toBe(200)
    expect((await found(ada, id)).spent.requests).toBe(1)
  })

  it("beyond the open calls is 429 until one ends", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { concurrent: 1 } })
    await service.control("/faults", { service: "chat", times: 1, delay_ms: 600_000 })
    const open = chat(ada.token)
    await expect.poll(async () => (await found(ada, id)).open_calls, { timeout: 20_000 }).toBe(1)
    expect((await found(ada, id)).reserved.usd).toBeGreaterThanOrEqual(0)
    const { body, headers, status } = await chat(ada.token)
    expect([status, body.details]).toMatchObject([429, { budget_id: id, unit: "concurrent", limit: "1", left: "0" }])
    expect(headers.get("retry-after")).toBe("1")
    // Answers what the delay holds.
    await service.control("/faults", undefined, "DELETE")
    await open
    expect((await found(ada, id)).open_calls).toBe(0)
    expect((await chat(ada.token)).status).toBe(200)
  })

  it("beyond a budget that only notifies is admitted", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { usd: 0, requests: 0, concurrent: 0 }, mode: "notify" })
    expect((await chat(ada.token)).status).toBe(200)
    expect((await found(ada, id)).spent.requests).toBe(1)
  })

  it("of another model, provider, member or end user is not counted", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { requests: 0 }, applies_to: { model: "sandbox-large" } })
    expect((await chat(ada.token)).status).toBe(200)
    expect(refusal(await chat(ada.token, "sandbox-large"))).toEqual([402, "budget_exceeded"])
    await ask(ada, `/${id}`, { method: "DELETE" })
    await made(ada, { limit: { requests: 0 }, applies_to: { end_user: "nobody" } })
    expect((await chat(ada.token)).status).toBe(200)
    await made(ada, { limit: { requests: 0 }, applies_to: { member: ada.account_id } })
    expect(refusal(await chat(ada.token))).toEqual([402, "budget_exceeded"])
  })
})

describe("a raise", () => {
  it("adds to the limit until it ends, and says who made it", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { usd: 0.0000001 } })
    expect(refusal(await chat(ada.token))).toEqual([402, "budget_exceeded"])
    const until = await after(10 * minute)
    const raised = await ask(ada, `/${id}/raise`, { json: { usd: 1, until } })
    expect([raised.status, raised.body.result]).toMatchObject([
      200,
      {
        limit: { usd: 0.0000001 },
        raises: [{ usd: 1, until, created_by: ada.account_id, created_at: expect.any(String) }]
      }
    ])
    expect((await chat(ada.token)).status).toBe(200)
    await advance(10 * minute)
    expect((await found(ada, id)).raises).toEqual([])
    expect(refusal(await chat(ada.token))).toEqual([402, "budget_exceeded"])
  })

  it("is refused by field", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { usd: 1 } })
    const requests = await made(ada, { limit: { requests: 1 } })
    const until = await after(minute)
    const past = await after(-minute)
    const raise = (json: object, of = id) => ask(ada, `/${of}/raise`, { json })
    expect(fieldOf(await raise({ usd: 0, until }))).toEqual([400, "invalid_request", "usd"])
    expect(fieldOf(await raise({ usd: -1, until }))).toEqual([400, "invalid_request", "usd"])
    expect(fieldOf(await raise({ usd: 1 }))).toEqual([400, "invalid_request", "until"])
    expect(fieldOf(await raise({ usd: 1, until: "soon" }))).toEqual([400, "invalid_request", "until"])
    expect(fieldOf(await raise({ usd: 1, until: past }))).toEqual([400, "invalid_request", "until"])
    expect(fieldOf(await raise({ usd: 1, until, why: "x" }))).toEqual([400, "invalid_request", "why"])
    expect(fieldOf(await raise({ usd: 1_000_000_000, until }))).toEqual([400, "invalid_request", "usd"])
    expect(fieldOf(await raise({ usd: 1, until }, requests.id))).toEqual([400, "invalid_request", "usd"])
    expect((await found(ada, id)).raises).toEqual([])
  })

  it("is one of at most 20 that have not ended", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { usd: 1 } })
    const raise = async (ms: number) => ask(ada, `/${id}/raise`, { json: { usd: 1, until: await after(ms) } })
    const answers = await Promise.all(Array.from({ length: 21 }, () => raise(5 * minute)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20)
    const refused = answers.find(({ status }) => status !== 200)!
    expect([...refusal(refused), refused.body.details]).toEqual([409, "too_many_raises", { limit: 20 }])
    await advance(5 * minute)
    expect((await raise(minute)).body.result.raises).toHaveLength(1)
  })
})

describe("the operator", () => {
  it("limits all tenants together by model", async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const json = {
      name: "Vendor",
      scope: "everyone",
      limit: { requests: 1 },
      period: "total",
      applies_to: { model: "sandbox-large" }
    }
    const { body, status } = await asOperator("", { json })
    expect([status, body.result]).toMatchObject([201, { scope: "everyone", spent: { requests: 0 } }])
    const { id } = body.result
    expect((await chat(ada.token, "sandbox-large")).status).toBe(200)
    const refused = await chat(bob.token, "sandbox-large")
    expect(refusal(refused)).toEqual([402, "budget_exceeded"])
    // Neither the limit nor its rest: they would tell bob what ada uses.
    expect((refused.body as { details?: object }).details).toEqual({ budget_id: id, unit: "requests" })
    expect((await chat(bob.token)).status).toBe(200)
    expect((await ask(ada)).body.result.budgets).toEqual([])
    expect((await asOperator(`/${id}`)).body.result).toMatchObject({ spent: { requests: 1 }, open_calls: 0 })
    expect((await asOperator()).body.result.budgets).toMatchObject([{ id, scope: "everyone" }])
    const raised = await asOperator(`/${id}/raise`, { json: { usd: 1, until: await after(minute) } })
    expect(fieldOf(raised)).toEqual([400, "invalid_request", "usd"])
    expect((await asOperator(`/${id}`, { method: "DELETE" })).status).toBe(200)
    expect((await chat(bob.token, "sandbox-large")).status).toBe(200)
    expect(refusal(await asOperator(`/${id}`))).toEqual([404, "budget_not_found"])
  })

  it.each([
    ["scope", { scope: "nobody" }],
    ["scope", { scope: undefined }],
    ["scope.plan", { scope: { plan: "gold" } }],
    ["applies_to.key", { scope: "each_new_tenant", applies_to: { key: "app_1" } }],
    ["applies_to.member", { applies_to: { member: "acc_1" } }],
    ["applies_to.key", { applies_to: { key: "app_1" } }],
    ["applies_to.model", { applies_to: { model: "gpt-none" } }],
    ["limit.usd", { limit: { usd: -1 } }]
  ])("is refused by field: %s", async (field, wrong) => {
    const json = { name: "x", scope: "everyone", limit: { usd: 1 }, period: "day", ...wrong }
    expect(fieldOf(await asOperator("", { json }))).toEqual([400, "invalid_request", field])
  })

  it("finds no unknown tenant, and no budget of a tenant's people", async () => {
    const ada = await person("ada")
    const json = { name: "x", scope: { tenant: "ten_none" }, limit: { usd: 1 }, period: "day" }
    expect(refusal(await asOperator("", { json }))).toEqual([404, "tenant_not_found"])
    const { id } = await made(ada, { limit: { usd: 1 } })
    expect(refusal(await asOperator(`/${id}`))).toEqual([404, "budget_not_found"])
    expect(refusal(await asOperator(`/${id}`, { method: "DELETE" }))).toEqual([404, "budget_not_found"])
  })

  it("gives each new tenant a budget, which ends with its template", async () => {
    const json = { name: "Trial", scope: "each_new_tenant", limit: { requests: 1 }, period: "total" }
    const { body, status } = await asOperator("", { json })
    expect([status, body.result]).toMatchObject([201, { scope: "each_new_tenant", tenants: 0 }])
    const { id } = body.result
    const ada = await person("ada")
    const [own] = (await ask(ada)).body.result.budgets
    expect(own).toMatchObject({ name: "Trial", by_operator: true })
    expect((await chat(ada.token)).status).toBe(200)
    expect(refusal(await chat(ada.token))).toEqual([402, "budget_exceeded"])
    expect((await asOperator(`/${id}`)).body.result).toMatchObject({ tenants: 1, spent: { requests: 1 } })
    expect(fieldOf(await asOperator(`/${own.id}`, { method: "DELETE" }))).toEqual([400, "invalid_request", "budget_id"])
    expect((await asOperator(`/${id}`, { method: "PATCH", json: { limit: { requests: 2 } } })).status).toBe(200)
    await expect.poll(async () => (await found(ada, own.id)).limit.requests, { timeout: 30_000 }).toBe(2)
    expect((await chat(ada.token)).status).toBe(200)
    expect((await asOperator(`/${id}`, { method: "DELETE" })).status).toBe(200)
    await expect.poll(async () => (await ask(ada)).body.result.budgets, { timeout: 30_000 }).toEqual([])
    expect((await chat(ada.token)).status).toBe(200)
    const { records } = (await service.call("/v1/operator/audit", { token: operator })).body.result
    const acts = records.filter(({ subject }: { subject: string }) => subject === id)
    expect(acts.map(({ action }: { action: string }) => action)).toEqual([
      "budget.delete",
      "budget.change",
      "budget.create"
    ])
  })

  it("needs a management key of grants", async () => {
    const keyWith = async (scope: string): Promise<string> => {
      const json = { name: scope, scopes: [scope], expires_at: await after(60 * minute) }
      const made = await service.call("/v1/operator/management-keys", { token: operator, json })
      return made.body.result.management_key
    }
    const json = { name: "x", scope: "everyone", limit: { usd: 1000 }, period: "day" }
    const call = (token: string, more: object = {}) => service.call("/v1/operator/budgets", { token, ...more })
    expect(refusal(await call(await keyWith("read"), { json }))).toEqual([403, "insufficient_scope"])
    expect((await call(await keyWith("read"))).status).toBe(200)
    const { body, status } = await call(await keyWith("grants"), { json })
    expect(status).toBe(201)
    expect((await asOperator(`/${body.result.id}`, { method: "DELETE" })).status).toBe(200)
  })

  it("raises a tenant's budget, which the audit log says", async () => {
    const ada = await person("ada")
    const json = { name: "x", scope: { tenant: ada.tenant_id }, limit: { usd: 0.0000001 }, period: "day" }
    const { id } = (await asOperator("", { json })).body.result
    expect(refusal(await chat(ada.token))).toEqual([402, "budget_exceeded"])
    const until = await after(10 * minute)
    const raised = await asOperator(`/${id}/raise`, { json: { usd: 1, until } })
    expect(raised.body.result.raises).toMatchObject([{ usd: 1, until, created_by: "operator" }])
    expect((await chat(ada.token)).status).toBe(200)
    const { records } = (await service.call("/v1/operator/audit", { token: operator })).body.result
    expect(records[0]).toMatchObject({
      action: "budget.raise",
      subject: id,
      tenant_id: ada.tenant_id,
      details: { amount_usd: "1", until }
    })
  })
})

describe("people are told", () => {
  interface Told {
    readonly kind: string
    readonly title: string
    readonly text: string
    readonly data: Readonly<Record<string, string>>
  }
  const toldTo = async (who: Person): Promise<ReadonlyArray<Told>> =>
    (await service.call("/v1/notifications", { token: who.token })).body.result.records
  const titlesOf = async (who: Person) => (await toldTo(who)).map(({ title }) => title)
  const lettersOf = async (who: Person) => (await lettersTo(service, who.email)).map(({ subject }) => subject)

  it("at each threshold, once in a period, inside and by mail", async () => {
    const ada = await person("ada")
    const limit = { requests: 4 }
    const { id } = await made(ada, { limit, period: "day", notify_at: [0.5, 1] })
    for (let i = 0; i < 2; i++) expect((await chat(ada.token)).status).toBe(200)
    const half = 'The budget "Team" has reached 50%'
    await expect.poll(() => titlesOf(ada), { timeout: 30_000 }).toEqual([half])
    const [told] = await toldTo(ada)
    expect(told).toMatchObject({ kind: "budget_reached", data: { budget_id: id, tenant_id: ada.tenant_id } })
    expect(told!.text).toContain("2 of 4 requests in the day from ")
    for (let i = 0; i < 2; i++) expect((await chat(ada.token)).status).toBe(200)
    const full = 'The budget "Team" has reached 100%'
    await expect.poll(() => titlesOf(ada), { timeout: 30_000 }).toEqual([full, half])
    expect((await toldTo(ada))[0]!.text).toContain("It refuses further calls until ")
    await expect
      .poll(async () => (await lettersOf(ada)).map((subject) => subject.split(":")[0]).toSorted(), { timeout: 30_000 })
      .toEqual([full, half])
    // Another budget is told after them, so the loop has turned again.
    await made(ada, { name: "Later", limit: { requests: 1 }, period: "day" })
    await ask(ada, `/${id}`, { method: "PATCH", json: { limit: { requests: 5 } } })
    expect((await chat(ada.token)).status).toBe(200)
    const later = 'The budget "Later" has reached 100%'
    await expect.poll(() => titlesOf(ada), { timeout: 30_000 }).toEqual([later, full, half])
  })

  it("of thresholds passed at once as one, and of a minute only inside", async () => {
    const ada = await person("ada")
    await made(ada, { limit: { requests: 1 }, period: "minute" })
    expect((await chat(ada.token)).status).toBe(200)
    const full = 'The budget "Team" has reached 100%'
    await expect.poll(() => titlesOf(ada), { timeout: 30_000 }).toEqual([full])
    const { id } = await made(ada, { name: "Day", limit: { requests: 1 }, period: "day" })
    await advance(minute)
    expect((await chat(ada.token)).status).toBe(200)
    const titles = ['The budget "Day" has reached 100%', full, full]
    await expect.poll(async () => (await titlesOf(ada)).toSorted(), { timeout: 30_000 }).toEqual(titles)
    await expect.poll(async () => (await lettersOf(ada)).length, { timeout: 30_000 }).toBe(1)
    expect((await ask(ada, `/${id}`, { method: "DELETE" })).status).toBe(200)
  })

  it("not at all with an empty list", async () => {
    const ada = await person("ada")
    await made(ada, { name: "Silent", limit: { requests: 1 }, notify_at: [] })
    await made(ada, { name: "Told", limit: { requests: 1 } })
    expect((await chat(ada.token)).status).toBe(200)
    await expect.poll(() => titlesOf(ada), { timeout: 30_000 }).toEqual(['The budget "Told" has reached 100%'])
  })
})
