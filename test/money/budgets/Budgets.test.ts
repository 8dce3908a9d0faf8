/** Budgets over HTTP: who may set them, what is refused, what they admit, how they are raised, and whom they tell. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linkTo } from "../../support/mail.ts"
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

const ask = (who: Person, path = "", call: object = {}, tenant = who.tenant_id): Promise<Answer> =>
  service.call(`/v1/tenants/${tenant}/budgets${path}`, { token: who.token, ...call })
const asOperator = (path = "", call: object = {}) =>
  service.call(`/v1/operator/budgets${path}`, { token: operator, ...call })

const daily = { name: "daily", limit: { usd: 5 }, period: "day" }

// oxlint-disable-next-line typescript/no-explicit-any -- a test looks into what came
const made = async (who: Person, budget: object): Promise<any> => {
  const { body, status } = await ask(who, "", { json: { ...daily, ...budget } })
  expect([status, body.error]).toEqual([201, undefined])
  return body.result
}
// oxlint-disable-next-line typescript/no-explicit-any -- as above
const found = async (who: Person, id: string): Promise<any> => (await ask(who, `/${id}`)).body.result

const keyOf = async (who: Person, name = "key"): Promise<{ readonly id: string; readonly api_key: string }> => {
  const made = await service.call(`/v1/tenants/${who.tenant_id}/applications`, { token: who.token, json: { name } })
  expect(made.status).toBe(201)
  return made.body.result
}

const chat = (token: string, words = "one two", model = "sandbox-small"): Promise<Answer> =>
  service.call("/v1/chat/completions", {
    token,
    json: { model, max_tokens: 100, messages: [{ role: "user", content: words }] }
  })

const ofTenant = async (who: Person, tenant_id: string): Promise<Person> => {
  const { client_id } = await service.sandbox()
  const answer = await service.call("/v1/auth/token", {
    json: { client_id, grant_type: "refresh_token", refresh_token: who.refresh_token, tenant_id }
  })
  expect(answer.status).toBe(200)
  const { access_token: token, refresh_token } = answer.body.result
  return { ...who, token, refresh_token, tenant_id }
}

/** A team with an owner, an admin and a member, who call for it. */
const team = async () => {
  const [ada, bob, cleo] = [await person("ada"), await person("bob"), await person("cleo")]
  const json = { name: "Acme" }
  const tenant_id = (await service.call("/v1/tenants", { token: ada.token, json })).body.result.id
  for (const [who, role] of [
    [bob, "admin"],
    [cleo, "member"]
  ] as const) {
    await service.call(`/v1/tenants/${tenant_id}/invites`, { token: ada.token, json: { email: who.email, role } })
    const token = await linkTo(service, who.email)
    const joined = await service.call(`/v1/tenant-invites/${token}/accept`, { token: who.token, method: "POST" })
    expect(joined.status).toBe(200)
  }
  await service.control("/credit", { tenant_id, amount: 100, source: "purchase" })
  await service.control(`/tenants/${tenant_id}`, { plan: "team" })
  return {
    tenant_id: tenant_id as string,
    owner: await ofTenant(ada, tenant_id),
    admin: await ofTenant(bob, tenant_id),
    member: await ofTenant(cleo, tenant_id)
  }
}

const refusal = ({ body, status }: Answer) => [status, body.code]
const fieldOf = ({ body, status }: Answer) => [status, body.code, body.details?.field]

describe("a budget", () => {
  it("shows its limit, what is spent and reserved, and when it renews", async () => {
    const ada = await person("ada")
    const budget = await made(ada, { name: "  Team  " })
    expect(budget).toEqual({
      id: expect.stringMatching(/^bud_/),
      name: "Team",
      limit: { usd: 5 },
      period: "day",
      applies_to: {},
      notify_at: [0.8, 1],
      mode: "refuse",
      spent: { usd: 0, tokens: 0, requests: 0 },
      reserved: { usd: 0, tokens: 0 },
      open_calls: 0,
      renews_at: expect.stringMatching(/T00:00:00\.000Z$/),
      raises: [],
      by_operator: false,
      created_by: ada.account_id,
      created_at: expect.any(String)
    })
    expect((await chat(ada.token)).status).toBe(200)
    const [record] = await service.usage(ada)
    expect(await found(ada, budget.id)).toMatchObject({
      spent: { usd: record.cost, requests: 1 },
      reserved: { usd: 0, tokens: 0 },
      open_calls: 0
    })
    expect((await ask(ada)).body.result.budgets).toMatchObject([{ id: budget.id, spent: { requests: 1 } }])
  })

  it("of all time has no renewal, and any mix of limits", async () => {
    const ada = await person("ada")
    const limit = { usd: 1.5, tokens: 1_000, requests: 10, concurrent: 2 }
    const json = {
      limit,
      period: "total",
      mode: "notify",
      notify_at: [1, 0.5, 0.5],
      applies_to: { model: "sandbox-small" }
    }
    const budget = await made(ada, json)
    expect(budget).toMatchObject({ ...json, notify_at: [0.5, 1], renews_at: null })
  })

  it("of a key says so, and counts only that key", async () => {
    const ada = await person("ada")
    const [one, other] = [await keyOf(ada), await keyOf(ada)]
    const budget = await made(ada, { applies_to: { key: one.id }, limit: { requests: 1 } })
    expect(budget.applies_to).toEqual({ key: one.id })
    expect((await chat(one.api_key)).status).toBe(200)
    expect(refusal(await chat(one.api_key))).toEqual([402, "budget_exceeded"])
    expect((await chat(other.api_key)).status).toBe(200)
    expect((await found(ada, budget.id)).spent.requests).toBe(1)
  })
})

describe("bad input", () => {
  it.each([
    ["limit", { limit: {} }],
    ["limit.usd", { limit: { usd: -1 } }],
    ["limit.usd", { limit: { usd: "5" } }],
    ["limit.usd", { limit: { usd: null } }],
    ["limit.usd", { limit: { usd: 1e10 } }],
    ["limit.tokens", { limit: { tokens: 1.5 } }],
    ["limit.requests", { limit: { requests: -1 } }],
    ["limit.concurrent", { limit: { concurrent: "one" } }],
    ["limit.calls", { limit: { usd: 1, calls: 1 } }],
    ["period", { period: "year" }],
    ["period", { period: undefined }],
    ["name", { name: " " }],
    ["name", { name: "x".repeat(101) }],
    ["mode", { mode: "warn" }],
    ["notify_at.0", { notify_at: [0] }],
    ["notify_at.1", { notify_at: [0.5, 1.1] }],
    ["notify_at", { notify_at: Array.from({ length: 11 }, () => 1) }],
    ["color", { color: "red" }],
    ["applies_to.team", { applies_to: { team: "x" } }],
    ["applies_to.tag", { applies_to: { tag: "=x" } }],
    ["applies_to.tag", { applies_to: { tag: "x".repeat(65) } }],
    ["applies_to.tag", { applies_to: { tag: `x=${"y".repeat(129)}` } }],
    ["applies_to.tag", { applies_to: { tag: "project : atlas" } }],
    ["applies_to.tag", { applies_to: { tag: "__proto__=x" } }],
    ["applies_to.end_user", { applies_to: { end_user: "u".repeat(129) } }],
    ["applies_to.end_user", { applies_to: { end_user: "a\nb" } }],
    ["applies_to.model", { applies_to: { model: "gpt-none" } }],
    ["applies_to.provider", { applies_to: { provider: "nobody" } }],
    ["applies_to.capability", { applies_to: { capability: "dance" } }]
  ])("is refused by field: %s", async (field, wrong) => {
    const ada = await person("ada")
    expect(fieldOf(await ask(ada, "", { json: { ...daily, ...wrong } }))).toEqual([400, "invalid_request", field])
    expect((await ask(ada)).body.result.budgets).toEqual([])
  })

  it("NaN is no JSON", async () => {
    const ada = await person("ada")
    const raw = '{"name":"x","limit":{"usd":NaN},"period":"day"}'
    const answer = await ask(ada, "", { method: "POST", raw, headers: { "content-type": "application/json" } })
    expect(answer.status).toBe(400)
  })

  it("a member or key of another tenant is not found", async () => {
    const [ada, eve] = [await person("ada"), await person("eve")]
    const key = await keyOf(eve)
    const ofKey = await ask(ada, "", { json: { ...daily, applies_to: { key: key.id } } })
    expect(refusal(ofKey)).toEqual([404, "application_not_found"])
    const ofMember = await ask(ada, "", { json: { ...daily, applies_to: { member: eve.account_id } } })
    expect(refusal(ofMember)).toEqual([404, "member_not_found"])
  })

  it("a budget of another tenant is not found", async () => {
    const [ada, eve] = [await person("ada"), await person("eve")]
    const { id } = await made(ada, {})
    for (const call of [{}, { method: "PATCH", json: { name: "x" } }, { method: "DELETE" }])
      expect(refusal(await ask(eve, `/${id}`, call))).toEqual([404, "budget_not_found"])
    expect((await ask(eve, "", {}, ada.tenant_id)).status).toBe(403)
  })

  it("a tenant has at most 100 budgets", async () => {
    const ada = await person("ada")
    const answers = await Promise.all(Array.from({ length: 101 }, () => ask(ada, "", { json: daily })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(100)
    const refused = answers.find(({ status }) => status !== 201)!
    expect([...refusal(refused), refused.body.details]).toEqual([409, "too_many_budgets", { limit: 100 }])
    const [{ id }] = (await ask(ada)).body.result.budgets
    await ask(ada, `/${id}`, { method: "DELETE" })
    await made(ada, {})
  })
})

describe("a change", () => {
  it("keeps what was counted, and removes a unit with null", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { usd: 5, requests: 1 } })
    expect((await chat(ada.token)).status).toBe(200)
    expect(refusal(await chat(ada.token))).toEqual([402, "budget_exceeded"])
    const json = { name: "new", limit: { requests: null, tokens: 10_000 }, mode: "notify", notify_at: [] }
    const changed = await ask(ada, `/${id}`, { method: "PATCH", json })
    expect([changed.status, changed.body.result]).toMatchObject([
      200,
      { name: "new", limit: { usd: 5, tokens: 10_000 }, mode: "notify", notify_at: [], spent: { requests: 1 } }
    ])
    expect(changed.body.result.limit).not.toHaveProperty("requests")
    expect((await chat(ada.token)).status).toBe(200)
  })

  it.each([
    ["period", { period: "month" }],
    ["applies_to", { applies_to: {} }],
    ["limit", { limit: { usd: null } }],
    ["limit.usd", { limit: { usd: -1 } }],
    ["color", { color: "red" }]
  ])("is refused by field: %s", async (field, json) => {
    const ada = await person("ada")
    const { id } = await made(ada, {})
    const refused = await ask(ada, `/${id}`, { method: "PATCH", json })
    expect(fieldOf(refused)).toEqual([400, "invalid_request", field])
    if (field === "period" || field === "applies_to") expect(refused.body.error).toContain("create another budget")
    expect(await found(ada, id)).toMatchObject({ limit: { usd: 5 }, period: "day" })
  })

  it("of two at once loses neither", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, {})
    const changes = [
      { limit: { requests: 7 } },
      { limit: { tokens: 8 } },
      { limit: { concurrent: 9 } },
      { name: "both" }
    ]
    await Promise.all(changes.map((json) => ask(ada, `/${id}`, { method: "PATCH", json })))
    const limit = { usd: 5, requests: 7, tokens: 8, concurrent: 9 }
    expect(await found(ada, id)).toMatchObject({ name: "both", limit })
  })

  it("deletes a budget, which then refuses nothing", async () => {
    const ada = await person("ada")
    const { id } = await made(ada, { limit: { usd: 0 } })
    expect(refusal(await chat(ada.token))).toEqual([402, "budget_exceeded"])
    const deleted = await ask(ada, `/${id}`, { method: "DELETE" })
    expect([deleted.status, deleted.body.result.id]).toEqual([200, id])
    expect((await chat(ada.token)).status).toBe(200)
    expect(refusal(await ask(ada, `/${id}`))).toEqual([404, "budget_not_found"])
  })
})

describe("who may", () => {
  it("owners and admins change any budget of the tenant", async () => {
    const { admin, member, owner } = await team()
    const key = await keyOf(member)
    const { id } = await made(owner, { applies_to: { member: member.account_id } })
    expect((await ask(admin, `/${id}`, { method: "PATCH", json: { name: "hers" } })).status).toBe(200)
    const ofKey = await made(admin, { applies_to: { key: key.id } })
    expect((await ask(owner, `/${ofKey.id}`, { method: "DELETE" })).status).toBe(200)
  })

  it("a member makes budgets on their own keys, and changes only those", async () => {
    const { member, owner } = await team()
    const [own, foreign] = [await keyOf(member), await keyOf(owner)]
    for (const applies_to of [undefined, { member: member.account_id }, { key: foreign.id }]) {
      const refused = await ask(member, "", { json: { ...daily, applies_to } })
      expect(refusal(refused)).toEqual([403, "insufficient_role"])
    }
    const mine = await made(member, { applies_to: { key: own.id } })
    expect((await ask(member, `/${mine.id}`, { method: "PATCH", json: { limit: { usd: 1 } } })).status).toBe(200)
    const bound = await made(owner, { applies_to: { key: own.id }, limit: { requests: 1 } })
    const raise = { json: { usd: 1, until: "2099-01-01T00:00:00Z" } }
    for (const [path, call] of [
      [`/${bound.id}`, { method: "PATCH", json: { limit: { requests: 9 } } }],
      [`/${bound.id}`, { method: "DELETE" }],
      [`/${bound.id}/raise`, raise]
    ] as const)
      expect(refusal(await ask(member, path, call))).toEqual([403, "insufficient_role"])
    expect((await chat(own.api_key)).status).toBe(200)
    expect(refusal(await chat(own.api_key))).toEqual([402, "budget_exceeded"])
    expect((await ask(member, `/${mine.id}`, { method: "DELETE" })).status).toBe(200)
  })

  it("a member sees the budgets that may count their calls", async () => {
    const { admin, member, owner } = await team()
    const [own, foreign] = [await keyOf(member), await keyOf(owner)]
    const seen = [
      await made(owner, {}),
      await made(owner, { applies_to: { key: own.id } }),
      await made(owner, { applies_to: { member: member.account_id } })
    ]
    const unseen = [
      await made(owner, { applies_to: { key: foreign.id } }),
      await made(owner, { applies_to: { member: admin.account_id } })
    ]
    const idsOf = ({ body }: Answer) => body.result.budgets.map(({ id }: { id: string }) => id)
    expect(idsOf(await ask(member))).toEqual(seen.map(({ id }) => id))
    expect(idsOf(await ask(admin))).toEqual([...seen, ...unseen].map(({ id }) => id))
    for (const { id } of seen) expect((await ask(member, `/${id}`)).status).toBe(200)
    for (const { id } of unseen) expect(refusal(await ask(member, `/${id}`))).toEqual([403, "insufficient_role"])
  })

  it("a member makes at most 20 of the tenant's budgets", async () => {
    const { member, owner } = await team()
    const { id } = await keyOf(member)
    for (let i = 0; i < 20; i++) await made(member, { applies_to: { key: id } })
    const refused = await ask(member, "", { json: { ...daily, applies_to: { key: id } } })
    expect([...refusal(refused), refused.body.details]).toEqual([409, "too_many_budgets", { limit: 20 }])
    await made(owner, {})
  })

  it("only the operator changes the operator's", async () => {
    const ada = await person("ada")
    const json = { ...daily, limit: { requests: 1 }, scope: { tenant: ada.tenant_id } }
    const { body, status } = await asOperator("", { json })
    expect([status, body.result]).toMatchObject([
      201,
      { scope: { tenant: ada.tenant_id }, by_operator: true, created_by: "operator" }
    ])
    const { id } = body.result
    expect(await found(ada, id)).toMatchObject({ id, by_operator: true, created_by: "operator" })
    for (const [path, call] of [
      [`/${id}`, { method: "PATCH", json: { name: "x" } }],
      [`/${id}`, { method: "DELETE" }],
      [`/${id}/raise`, { json: { usd: 1, until: "2099-01-01T00:00:00Z" } }]
    ] as const)
      expect(refusal(await ask(ada, path, call))).toEqual([403, "budget_of_operator"])
    expect((await chat(ada.token)).status).toBe(200)
    expect(refusal(await chat(ada.token))).toEqual([402, "budget_exceeded"])
    const changed = await asOperator(`/${id}`, { method: "PATCH", json: { limit: { requests: 2 } } })
    expect(changed.status).toBe(200)
    expect((await chat(ada.token)).status).toBe(200)
    expect((await asOperator(`/${id}`, { method: "DELETE" })).status).toBe(200)
    expect((await chat(ada.token)).status).toBe(200)
    const { records } = (await service.call("/v1/operator/audit", { token: operator })).body.result
    const acts = records.filter(({ subject }: { subject: string }) => subject === id)
    expect(acts).toMatchObject([
      { action: "budget.delete", tenant_id: ada.tenant_id, result: "done" },
      { action: "budget.change", details: { limit_requests: 2 } },
      { action: "budget.create", details: { name: "daily", period: "day", limit_requests: 1 } }
    ])
  })
})
