/** Signing in, staying signed in, keys and accounts, as the specification and its contract have them. */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

let service: Service

beforeAll(async () => {
  service = await start()
})

afterAll(() => service.discard())

const hour = 3_600_000
const advance = (advance_ms: number) => service.control("/clock", { advance_ms })

const refresh = (person: Pick<Person, "refresh_token">, more: object = {}) =>
  service.call("/v1/auth/token", {
    json: { client_id: "sandbox-client", grant_type: "refresh_token", refresh_token: person.refresh_token, ...more }
  })

describe("signing in", () => {
  it("makes an account, its tenant and its credit, once, however many sign in at once", async () => {
    const people = await Promise.all(Array.from({ length: 20 }, () => service.signIn("twenty@example.com")))
    expect(new Set(people.map(({ account_id }) => account_id)).size).toBe(1)
    expect(await service.balance(people[0]!)).toBe(6)
    const ledger = await service.ledger(people[0]!)
    expect(ledger.map(({ source, amount }) => [source, amount])).toEqual([
      ["registration_bonus", 1],
      ["signup_grant", 5]
    ])
  })

  it("says whether the account is new", async () => {
    const { client_id, issuer } = await service.sandbox()
    const { id_token } = (await service.call(`${issuer}/token`, { json: { email: "new@example.com" } })).body
    const first = await service.call("/v1/auth/google", { json: { id_token, client_id } })
    const second = await service.call("/v1/auth/microsoft", { json: { id_token, client_id } })
    expect([first.body.result.account_created, second.body.result.account_created]).toEqual([true, false])
    expect(first.body.result.token_response).toMatchObject({ token_type: "Bearer", expires_in: 3600 })
  })

  it("grants nothing for an address that is not verified, and what waited when it is", async () => {
    const unverified = await service.signIn("later@example.com", { email_verified: false })
    expect(await service.balance(unverified)).toBe(0)
    const me = await service.call("/v1/me", { token: unverified.token })
    expect(me.body.result.verification).toEqual({ email_verified: false, signup_grant: "pending", grant_amount: 6 })

    const verified = await service.signIn("later@example.com")
    expect(verified.account_id).toBe(unverified.account_id)
    expect(await service.balance(verified)).toBe(6)
    await service.signIn("later@example.com")
    expect(await service.balance(verified)).toBe(6)
  })

  it.each([
    ["no client id", {}, 400, "Tollgate client ID is required"],
    ["an unknown client id", { client_id: "nobody" }, 404, "Client ID not found"],
    ["no token", { client_id: "sandbox-client" }, 400, "id_token: required"],
    [
      "a forged token",
      { client_id: "sandbox-client", id_token: "a.b.c" },
      401,
      "the identity provider's token is not valid"
    ]
  ])("refuses %s", async (_, body, status, error) => {
    const answer = await service.call("/v1/auth/google", { json: body })
    expect([answer.status, answer.body.error]).toEqual([status, error])
  })

  it("says so when the provider cannot be reached", async () => {
    const other = await start()
    try {
      const { client_id, issuer } = await other.sandbox()
      const { id_token } = (await other.call(`${issuer}/token`, { json: { email: "a@example.com" } })).body
      await other.control("/faults", { service: "identity", drop: true, times: 2 })
      const answer = await other.call("/v1/auth/microsoft", { json: { id_token, client_id } })
      // The greeting has fetched the keys of the other provider only.
      expect([answer.status, answer.body.code]).toEqual([503, "identity_provider_unavailable"])
    } finally {
      await other.discard()
    }
  })
})

describe("refresh tokens", () => {
  it("work once; one that comes back ends everything that followed from its sign-in", async () => {
    const ada = await service.signIn("ada@example.com")
    const second = await refresh(ada)
    expect(second.status).toBe(200)
    const pair = second.body.result
    expect((await service.call("/v1/me", { token: pair.access_token })).status).toBe(200)

    const stolen = await refresh(ada)
    expect([stolen.status, stolen.body]).toEqual([401, { error: "invalid or expired token", code: "invalid_grant" }])
    expect((await refresh(pair)).status).toBe(401)
  })

  it("give one pair to one of two that come at once", async () => {
    const ada = await service.signIn("ada@example.com")
    const answers = await Promise.all([refresh(ada), refresh(ada)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
  })

  it("can be revoked, known or not", async () => {
    const ada = await service.signIn("ada@example.com")
    const revoked = await service.call("/v1/auth/revoke", {
      json: { token: ada.refresh_token, token_type: "refresh_token" }
    })
    expect([revoked.status, revoked.body.result]).toEqual([200, { success: true }])
    expect((await refresh(ada)).status).toBe(401)
    expect((await service.call("/v1/auth/revoke", { json: { token: "rt_unknown" } })).body.result).toEqual({
      success: true
    })
  })

  it.each([
    ["another grant", { grant_type: "password" }, 400, "Unsupported grant_type: password"],
    ["another client", { client_id: "nobody" }, 404, "Client ID not found"],
    ["a tenant that is not one's own", { tenant_id: "ten_other" }, 403, "you are not an active member of this tenant"]
  ])("refuse %s", async (_, more, status, error) => {
    const ada = await service.signIn("ada@example.com")
    const answer = await refresh(ada, more)
    expect([answer.status, answer.body.error]).toEqual([status, error])
  })

  it("live 7 days, and 90 in all when rotated; access tokens an hour", async () => {
    const { call } = service
    expect(call).toBeDefined()
    let pair: { access_token: string; refresh_token: string } = {
      access_token: "",
      refresh_token: (await service.signIn("old@example.com")).refresh_token
    }
    const idle = await service.signIn("idle@example.com")
    await advance(hour + 1_000)
    const expired = await service.call("/v1/me", { token: idle.token })
    expect([expired.status, expired.body]).toEqual([401, { error: "invalid or expired token" }])
    const onBoth = await service.call("/v1/models", { token: idle.token })
    expect([onBoth.status, onBoth.body]).toEqual([401, { error: "invalid API key format" }])

    await advance(7 * 24 * hour)
    expect((await refresh(idle)).status).toBe(401)
    // Every six days, until the ninetieth.
    pair = (await refresh(await service.signIn("old@example.com"))).body.result
    for (let day = 6; day <= 84; day += 6) {
      await advance(6 * 24 * hour)
      const next = await refresh(pair)
      expect(next.status).toBe(200)
      pair = next.body.result
    }
    await advance(6 * 24 * hour + 1_000)
    expect((await refresh(pair)).status).toBe(401)
  })
})

describe("applications", () => {
  it("are made, listed, read, renamed and deleted, and show their key once", async () => {
    const ada = await service.signIn("ada@example.com")
    const path = `/v1/tenants/${ada.tenant_id}/applications`
    const made = await service.call(path, { token: ada.token, json: { name: "ci", description: "builds" } })
    expect(made.status).toBe(201)
    const { api_key, ...record } = made.body.result
    expect(api_key).toMatch(/^svc-prod-[0-9a-f]{64}$/)
    expect(record).toMatchObject({ name: "ci", description: "builds", account_id: ada.account_id, last_used_at: null })

    const list = await service.call(path, { token: ada.token })
    expect(list.body.result).toMatchObject({ page: 1, per_page: 50, total_pages: 1, total_records: 1 })
    expect(list.body.result.records).toEqual([record])
    expect(JSON.stringify(list.body)).not.toContain(api_key)

    const renamed = await service.call(`${path}/${record.id}`, {
      method: "PATCH",
      token: ada.token,
      json: { name: "cd" }
    })
    expect(renamed.body.result).toMatchObject({ id: record.id, name: "cd", description: "builds" })

    expect((await service.call("/v1/models", { token: api_key })).status).toBe(200)
    const deleted = await service.call(`${path}/${record.id}`, { method: "DELETE", token: ada.token })
    expect([deleted.status, deleted.body.result.id]).toEqual([200, record.id])
    const after = await service.call("/v1/models", { token: api_key })
    expect([after.status, after.body]).toEqual([401, { error: "invalid API key" }])
    expect((await service.call(`${path}/${record.id}`, { token: ada.token })).status).toBe(404)
  })

  it("belong to the token's tenant, and are managed with a user token only", async () => {
    const ada = await service.signIn("ada@example.com")
    const bob = await service.signIn("bob@example.com")
    const theirs = await service.call(`/v1/tenants/${bob.tenant_id}/applications`, { token: ada.token })
    expect([theirs.status, theirs.body.error]).toEqual([403, "tenant ID in path does not match authenticated tenant"])
    const byKey = await service.call(`/v1/tenants/${ada.tenant_id}/applications`, { token: await service.key(ada) })
    expect([byKey.status, byKey.body.error]).toEqual([401, "invalid or expired token"])
  })

  it.each([{}, { name: "" }, { name: " " }, { name: 5 }, { name: "x".repeat(101) }, { name: "x", description: 7 }])(
    "refuse %j",
    async (body) => {
      const ada = await service.signIn("ada@example.com")
      const answer = await service.call(`/v1/tenants/${ada.tenant_id}/applications`, { token: ada.token, json: body })
      expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"])
    }
  )
})

describe("accounts", () => {
  it("show themselves, and nobody to strangers", async () => {
    const ada = await service.signIn("ada@example.com", { name: "Ada" })
    const bob = await service.signIn("bob@example.com")
    const me = await service.call("/v1/me", { token: ada.token })
    expect(me.body.result.account).toMatchObject({
      id: ada.account_id,
      tenant_id: ada.tenant_id,
      email: "ada@example.com",
      role: "owner",
      status: "active"
    })
    expect(me.body.result.identity).toMatchObject({ email: "ada@example.com", provider: "google" })
    const memberships = await service.call("/v1/me/memberships", { token: ada.token })
    expect(memberships.body.result.memberships).toMatchObject([
      { tenant_id: ada.tenant_id, role: "owner", status: "active", is_home: true, plan: { status: "none", seats: 0 } }
    ])
    expect((await service.call(`/v1/accounts/${ada.account_id}`, { token: ada.token })).status).toBe(200)
    expect((await service.call(`/v1/accounts/${bob.account_id}`, { token: ada.token })).status).toBe(404)
  })
})

describe("secrets", () => {
  it("are in no column of the database, nor in the log", async () => {
    const eve = await service.signIn("eve@example.com")
    const key = await service.key(eve)
    await service.call("/v1/models", { token: key })
    await refresh(eve)
    const everything = await Tables.everything(service.folder)
    for (const secret of [key, eve.token, eve.refresh_token, readFileSync(`${service.folder}/secret`, "utf8")]) {
      expect(everything).not.toContain(secret)
      expect(service.stderr.join("")).not.toContain(secret)
    }
    expect(everything).not.toContain('\\"d\\":')
  })
})
