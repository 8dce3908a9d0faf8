/** Provisioning by a program: people, tenants and keys by its own ids. The same request twice does nothing twice. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { command, start } from "../../support/Service.ts"
import type { Answer, Service } from "../../support/Service.ts"

let service: Service
let token: string
let session: string

const env = () => ({ DATA_DIR: service.folder })
const keyWith = async (scopes: string): Promise<string> =>
  (await command(["operator", "keys", "create", "--scopes", scopes], env())).stdout.trim()

beforeAll(async () => {
  service = await start()
  session = (await command(["operator", "--token", "--name", "grace"], env())).stdout.trim()
  token = await keyWith("read,people,tenants,keys,grants")
})
afterAll(() => service.discard())

const operator = (path: string, call: Parameters<Service["call"]>[1] = {}): Promise<Answer> =>
  service.call(`/v1/operator${path}`, { token, ...call })
const put = async (kind: "people" | "tenants" | "keys", id: string, json: object): Promise<Answer> =>
  await operator(`/${kind}/by-external-id/${id}`, { method: "PUT", json })
const remove = (kind: "people" | "tenants" | "keys", id: string): Promise<Answer> =>
  operator(`/${kind}/by-external-id/${id}`, { method: "DELETE" })
const entries = async (tenant: string) =>
  (await operator(`/tenants/${tenant}/ledger?source=admin`)).body.result.records.map(
    ({ amount }: { amount: number }) => amount
  )

describe("a person by external id", () => {
  const wanted = { email: "Noether@example.com", name: "Emmy", credit_usd: 5 }

  it("is made once, changed, and gets credit once", async () => {
    const first = await put("people", "p-1", wanted)
    expect(first.body.result).toMatchObject({
      external_id: "p-1",
      created: true,
      email: "noether@example.com",
      name: "Emmy",
      status: "active"
    })
    const { home_tenant_id, id } = first.body.result
    expect((await put("people", "p-1", wanted)).body.result).toEqual({ ...first.body.result, created: false })
    const changed = await put("people", "p-1", { ...wanted, name: "Emmy N.", credit_usd: 50, suspended: true })
    expect(changed.body.result).toMatchObject({ id, name: "Emmy N.", status: "suspended", created: false })
    // A PUT without the field leaves the suspension.
    expect((await put("people", "p-1", wanted)).body.result.status).toBe("suspended")
    await put("people", "p-1", { ...wanted, suspended: false })
    expect(await entries(home_tenant_id)).toEqual([5])
    expect((await put("people", "p-1", { email: "other@example.com" })).body.code).toBe("external_id_used")
    expect((await put("people", "p-2", { email: wanted.email })).body.code).toBe("external_id_used")
  })

  it("is the account of a later sign-in with the same verified address", async () => {
    const made = (await put("people", "p-3", { email: "ada@example.com" })).body.result
    const person = await service.signIn("ada@example.com")
    expect([person.account_id, person.tenant_id]).toEqual([made.id, made.home_tenant_id])
    const list = (await operator("/people?limit=1")).body.result
    expect([list.records.length, typeof list.next]).toEqual([1, "string"])
  })

  it("is removed with their keys, keeps the books, and comes back without further credit", async () => {
    const { home_tenant_id, id } = (await put("people", "p-4", { email: "x@example.com", credit_usd: 3 })).body.result
    const { api_key } = (await put("keys", "k-4", { person_external_id: "p-4", name: "one" })).body.result
    expect((await service.call("/v1/models", { token: api_key })).status).toBe(200)
    expect((await remove("people", "p-4")).body.result).toEqual({ external_id: "p-4", keys_revoked: 1 })
    expect((await service.call("/v1/models", { token: api_key })).status).toBe(401)
    expect((await operator("/people/by-external-id/p-4")).body.code).toBe("external_id_not_found")
    expect((await remove("people", "p-4")).status).toBe(404)
    const again = (await put("people", "p-4", { email: "x@example.com", credit_usd: 3 })).body.result
    expect(again).toMatchObject({ id, home_tenant_id, created: true, status: "active" })
    expect(await entries(home_tenant_id)).toEqual([3])
  })

  it("gets credit only from a key with the scope of grants", async () => {
    const narrow = await keyWith("people")
    const call = { method: "PUT", token: narrow, json: { email: "y@example.com", credit_usd: 1 } }
    const refused = await operator("/people/by-external-id/p-5", call)
    expect([refused.status, refused.body.code]).toEqual([403, "insufficient_scope"])
    expect((await operator("/people/by-external-id/p-5", { token: narrow })).status).toBe(404)
    const json = { email: "y@example.com" }
    expect((await operator("/people/by-external-id/p-5", { ...call, json })).status).toBe(200)
  })
})

describe("a team of provisioned people", () => {
  const members = async (tenant: string): Promise<ReadonlyArray<string>> =>
    (await operator(`/tenants/${tenant}`)).body.result.members.map(
      ({ email, role, status }: Record<string, string>) => `${email} ${role} ${status}`
    )
  const owner = "team-owner@example.com"

  it("is joined once, keeps a suspension, and is refused where there is none or no seat", async () => {
    const made = await operator("/tenants", { json: { name: "Quanta", owner_email: owner } })
    expect(made.body.result).toMatchObject({ created: true, external_id: null, name: "Quanta", owner_email: owner })
    const tenant = (await put("tenants", "team-1", { name: "Team", owner_email: owner })).body.result.id
    const wanted = { email: "member@example.com", team_external_id: "team-1" }
    const first = (await put("people", "m-1", wanted)).body.result
    await put("people", "m-1", wanted)
    expect(await members(tenant)).toEqual([`${owner} owner active`, "member@example.com member active"])
    const { token } = await service.signIn(owner)
    const change = (json: object) =>
      service.call(`/v1/tenants/${tenant}/members/${first.id}`, { method: "PATCH", token, json })
    await change({ status: "suspended" })
    await put("people", "m-1", wanted)
    expect(await members(tenant)).toContain("member@example.com member suspended")

    const unknown = await put("people", "m-2", { email: "m2@example.com", team_external_id: "none" })
    expect([unknown.status, unknown.body.code]).toEqual([404, "external_id_not_found"])
    expect((await operator("/people/by-external-id/m-2")).status).toBe(404)
    await service.call(`/v1/tenants/${tenant}/plan`, { method: "PUT", token, json: { plan: "team", seats: 2 } })
    const full = await put("people", "m-3", { email: "m3@example.com", team_external_id: "team-1" })
    expect([full.status, full.body.code]).toEqual([409, "team_full"])
    expect(await members(tenant)).toHaveLength(2)
    const audit = (await operator("/audit?limit=200")).body.result.records
    expect(audit.filter(({ action }: { action: string }) => action === "team.join")).toHaveLength(1)
  })

  it("is joined by invitation in its owner's name", async () => {
    const tenant = (await put("tenants", "team-2", { name: "Team 2", owner_email: owner })).body.result.id
    const invite = (json: object) => operator("/invites", { json })
    const sent = await invite({ email: "guest@example.com", tenant_id: tenant, role: "admin" })
    expect(sent.body.result).toMatchObject({ email: "guest@example.com", tenant_id: tenant, created: false })
    for (const [json, status, code] of [
      [{ email: owner, tenant_id: tenant }, 409, "already_member"],
      [{ email: "guest@example.com", tenant_id: "ten_none" }, 404, "tenant_not_found"],
      [{ email: "guest@example.com", role: "admin" }, 400, undefined],
      [{ email: "guest" }, 400, undefined]
    ] as const) {
      const answer = await invite(json)
      expect([json, answer.status]).toEqual([json, status])
      if (code !== undefined) expect(answer.body.code).toBe(code)
    }
  })
})

describe("a key by external id", () => {
  it("is shown once, converges to its limits, and names its refusals", async () => {
    await put("people", "h-1", { email: "holder@example.com" })
    const wanted = {
      person_external_id: "h-1",
      name: "notebook",
      spending_limit_usd: 20,
      spending_limit_period: "month"
    }
    const made = (await put("keys", "k-1", wanted)).body.result
    expect(made).toMatchObject({ created: true, spending_limit_usd: 20, spending_limit_period: "month", spent_usd: 0 })
    expect((await service.call("/v1/models", { token: made.api_key })).status).toBe(200)
    const { api_key: _, ...shown } = made
    expect((await put("keys", "k-1", wanted)).body.result).toEqual({ ...shown, created: false })
    const changed = { ...wanted, spending_limit_usd: 30, allowed_models: ["sandbox-small"] }
    expect((await put("keys", "k-1", changed)).body.result).toMatchObject({
      id: made.id,
      spending_limit_usd: 30,
      allowed_models: ["sandbox-small"]
    })
    const unknown = await put("keys", "k-1", { ...wanted, allowed_models: ["sandbox-small", "gpt-9"] })
    expect([unknown.status, unknown.body.details.field]).toEqual([400, "allowed_models"])
    expect(unknown.body.error).toContain('"gpt-9"')
    const lifted = (await put("keys", "k-1", { person_external_id: "h-1", name: "notebook" })).body.result
    expect([lifted.spending_limit_usd, lifted.allowed_models]).toEqual([null, null])
    expect((await put("keys", "k-2", { name: "no one's" })).status).toBe(400)
    expect((await put("keys", "k-2", { name: "x", person_external_id: "unknown" })).body.code).toBe(
      "external_id_not_found"
    )
    expect((await put("keys", "k-2", { name: "x", tenant_id: "ten_unknown" })).body.code).toBe("tenant_not_found")
    // A key that was revoked otherwise is made again.
    await operator(`/keys/${made.id}`, { method: "DELETE" })
    const again = (await put("keys", "k-1", wanted)).body.result
    expect([again.created, again.id === made.id]).toEqual([true, false])
    expect((await remove("keys", "k-1")).body.result.keys_revoked).toBe(1)
    expect((await service.call("/v1/models", { token: again.api_key })).status).toBe(401)
    const audit = JSON.stringify((await operator("/audit?limit=200", { token: session })).body)
    expect(audit).toContain("key.create")
    expect(audit).not.toContain(again.api_key)
  })
})

/** Makes tenants with credit and a key with a limit each; answers what stands afterwards, without the keys themselves. */
const provisioned = async (count: number) => {
  const rows = []
  for (let n = 0; n < count; n++) {
    const tenant = { name: `Tenant ${n}`, owner_email: `owner-${n}@example.com`, credit_usd: 1 }
    const key = { tenant_external_id: `t-${n}`, name: "main", spending_limit_usd: 20, spending_limit_period: "month" }
    const made = await put("tenants", `t-${n}`, tenant)
    const { api_key, created: _, ...shown } = (await put("keys", `t-${n}-main`, key)).body.result
    expect([made.status, made.body.result.balance]).toEqual([200, 1])
    rows.push({ tenant: made.body.result.id, key: shown, secret: api_key })
  }
  return rows
}

describe("tenants by external id", () => {
  const count = process.env["TEST_LONG"] === undefined ? 12 : 500

  it(`${count} are made with keys and limits, twice with the same result, and taken away again`, async () => {
    const first = await provisioned(count)
    const second = await provisioned(count)
    expect(second).toEqual(first.map(({ key, tenant }) => ({ key, tenant, secret: undefined })))
    expect(new Set(first.map(({ tenant }) => tenant)).size).toBe(count)
    expect(first.every(({ secret }) => secret?.startsWith("svc-prod-"))).toBe(true)
    for (let n = 0; n < count; n++) {
      expect((await remove("tenants", `t-${n}`)).body.result.keys_revoked).toBe(1)
      expect((await operator(`/tenants/by-external-id/t-${n}`)).status).toBe(404)
      expect((await operator(`/keys/by-external-id/t-${n}-main`)).status).toBe(404)
    }
    expect((await service.call("/v1/models", { token: first[0]!.secret! })).status).toBe(401)
    expect(await entries(first[0]!.tenant)).toEqual([1])
    const back = (await put("tenants", "t-0", { name: "Back", owner_email: "owner-0@example.com", credit_usd: 1 })).body
    expect(back.result).toMatchObject({
      id: first[0]!.tenant,
      created: true,
      status: "active",
      name: "Back",
      balance: 1
    })
  }, 600_000)
})
