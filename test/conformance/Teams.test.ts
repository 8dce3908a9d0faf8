/** Organisations and pooling, from outside: roles, invitations by mail, plans, billing sources, who pays, team usage. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linkTo } from "../support/mail.ts"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = (name: string) => service.signIn(`${name}${++people}@example.com`)

const organisation = async (owner: Person, name = "Acme"): Promise<string> => {
  const made = await service.call("/v1/tenants", { token: owner.token, json: { name } })
  expect(made.status).toBe(201)
  return made.body.result.id
}

const invite = (by: Person, tenant: string, email: string, role = "member") =>
  service.call(`/v1/tenants/${tenant}/invites`, { token: by.token, json: { email, role } })

const accept = (who: Person, token: string) =>
  service.call(`/v1/tenant-invites/${token}/accept`, { token: who.token, method: "POST" })

const joins = async (who: Person, by: Person, tenant: string, role = "member") => {
  expect((await invite(by, tenant, who.email, role)).status).toBe(201)
  const joined = await accept(who, await linkTo(service, who.email))
  expect([joined.status, joined.body.result]).toMatchObject([200, { tenant_id: tenant, role, status: "active" }])
}

const member = (by: Person, tenant: string, who: Person, change?: object) =>
  service.call(`/v1/tenants/${tenant}/members/${who.account_id}`, {
    token: by.token,
    ...(change === undefined ? { method: "DELETE" } : { method: "PATCH", json: change })
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

const team = (tenant: string, more: object = {}) => service.control(`/tenants/${tenant}`, { plan: "team", ...more })

const fund = (tenant_id: string, amount: number) =>
  service.control("/credit", { tenant_id, amount, source: "purchase" })

const chat = (token: string, words = "hello there") =>
  service.call("/v1/chat/completions", {
    token,
    json: { model: "sandbox-small", max_tokens: 100, messages: [{ role: "user", content: words }] }
  })

describe("a tenant to share", () => {
  it("starts without credit, and its maker owns it", async () => {
    const ada = await person("ada")
    const tenant = await organisation(ada, "  Acme  ")
    const { body } = await service.call("/v1/me/memberships", { token: ada.token })
    expect(body.result.memberships).toMatchObject([
      { tenant_id: ada.tenant_id, is_home: true },
      { tenant_id: tenant, tenant_name: "Acme", role: "owner", status: "active", plan: { status: "none", seats: 0 } }
    ])
    const there = await ofTenant(ada, tenant)
    expect(await service.balance(there)).toBe(0)
  })

  it("wants a name", async () => {
    const ada = await person("ada")
    const refused = await service.call("/v1/tenants", { token: ada.token, json: { name: " " } })
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"])
  })

  it("is closed to strangers, whatever they ask", async () => {
    const [ada, eve] = [await person("ada"), await person("eve")]
    const tenant = await organisation(ada)
    for (const path of ["members", "invites", "plan", "usage/team", "usage/team/series"]) {
      const answer = await service.call(`/v1/tenants/${tenant}/${path}`, { token: eve.token })
      expect([path, answer.status, answer.body.code]).toEqual([path, 403, "not_a_member"])
    }
  })
})

describe("invitations", () => {
  it("reach an address by mail, and let in whoever proves it", async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const tenant = await organisation(ada)
    await joins(bob, ada, tenant, "admin")
    const { body } = await service.call(`/v1/tenants/${tenant}/members`, { token: bob.token })
    expect(body.result.members).toMatchObject([
      { account_id: ada.account_id, role: "owner", status: "active", is_home: false },
      { account_id: bob.account_id, role: "admin", email: bob.email }
    ])
    const notices = await service.call("/v1/notifications", { token: bob.token })
    expect(notices.body.result.records).toMatchObject([{ kind: "tenant_invite", data: { tenant_id: tenant } }])
    expect(JSON.stringify(notices.body)).not.toMatch(/[0-9a-f]{64}/)
  })

  it("let in nobody else, and only once", async () => {
    const [ada, bob, eve] = [await person("ada"), await person("bob"), await person("eve")]
    const tenant = await organisation(ada)
    await invite(ada, tenant, bob.email.toUpperCase())
    const token = await linkTo(service, bob.email)
    expect((await accept(eve, token)).body.code).toBe("email_mismatch")
    expect((await accept(bob, token)).status).toBe(200)
    expect((await accept(bob, token)).status).toBe(200)
    await member(ada, tenant, bob)
    expect((await accept(bob, token)).body.code).toBe("invite_not_found")
    expect((await invite(ada, tenant, bob.email)).status).toBe(201)
    expect((await invite(ada, tenant, ada.email)).body.code).toBe("already_member")
  })

  it("are replaced by the next to that address, taken back, and run out", async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const tenant = await organisation(ada)
    await invite(ada, tenant, bob.email)
    const first = await linkTo(service, bob.email)
    await service.control("/mail", undefined, "DELETE")
    const second = (await invite(ada, tenant, bob.email)).body.result
    const replaced = await linkTo(service, bob.email)
    expect(replaced).not.toBe(first)
    expect((await accept(bob, first)).body.code).toBe("invite_not_found")
    const back = await service.call(`/v1/tenants/${tenant}/invites/${second.id}`, {
      token: ada.token,
      method: "DELETE"
    })
    expect(back.body.result.status).toBe("revoked")
    expect((await accept(bob, replaced)).status).toBe(404)
    const { body } = await service.call(`/v1/tenants/${tenant}/invites`, { token: ada.token })
    expect(body.result.invites.map((one: { status: string }) => one.status)).toEqual(["revoked", "revoked"])
  })

  it("are refused while the team is full", async () => {
    const [ada, bob, cyd] = [await person("ada"), await person("bob"), await person("cyd")]
    const tenant = await organisation(ada)
    const plan = await service.call(`/v1/tenants/${tenant}/plan`, {
      token: ada.token,
      method: "PUT",
      json: { plan: "team", seats: 2 }
    })
    expect(plan.body.result).toEqual({ plan: "team", status: "active", seats: 2, seats_taken: 1 })
    await joins(bob, ada, tenant)
    await invite(ada, tenant, cyd.email)
    const token = await linkTo(service, cyd.email)
    const full = await accept(cyd, token)
    expect([full.status, full.body.code]).toEqual([409, "team_full"])
    await service.call(`/v1/tenants/${tenant}/plan`, {
      token: ada.token,
      method: "PUT",
      json: { plan: "team", seats: 3 }
    })
    expect((await accept(cyd, token)).status).toBe(200)
  })

  it("fill the last seat once, whoever races for it", async () => {
    const ada = await person("ada")
    const tenant = await organisation(ada)
    await service.call(`/v1/tenants/${tenant}/plan`, {
      token: ada.token,
      method: "PUT",
      json: { plan: "team", seats: 2 }
    })
    const many = await Promise.all(Array.from({ length: 6 }, () => person("racer")))
    const tokens: Array<string> = []
    for (const one of many) {
      await invite(ada, tenant, one.email)
      tokens.push(await linkTo(service, one.email))
    }
    const answers = await Promise.all(many.map((one, i) => accept(one, tokens[i]!)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409, 409])
  })
})

describe("roles", () => {
  it("admins manage members, not owners; members manage nothing and may leave", async () => {
    const [ada, bob, cyd] = [await person("ada"), await person("bob"), await person("cyd")]
    const tenant = await organisation(ada)
    await joins(bob, ada, tenant, "admin")
    await joins(cyd, ada, tenant)
    expect((await member(bob, tenant, ada, { role: "member" })).body.code).toBe("insufficient_role")
    expect((await member(bob, tenant, bob, { role: "owner" })).body.code).toBe("insufficient_role")
    expect((await invite(bob, tenant, "x@example.com", "owner")).body.code).toBe("insufficient_role")
    expect((await member(cyd, tenant, bob, { status: "suspended" })).body.code).toBe("insufficient_role")
    expect((await invite(cyd, tenant, "x@example.com")).body.code).toBe("insufficient_role")
    expect((await member(bob, tenant, cyd, { role: "admin" })).body.result.role).toBe("admin")
    expect((await member(bob, tenant, cyd, { role: "member", status: "suspended" })).body.result).toMatchObject({
      role: "member",
      status: "suspended"
    })
    // Who is suspended is no active member any more.
    expect((await member(cyd, tenant, cyd)).body.code).toBe("not_a_member")
    expect((await member(ada, tenant, cyd, { status: "active" })).body.result.status).toBe("active")
    expect((await member(cyd, tenant, cyd)).body.result.status).toBe("removed")
    expect((await member(ada, tenant, cyd)).body.code).toBe("member_not_found")
    expect((await member(ada, tenant, ada, {})).status).toBe(400)
  })

  it("the last owner stays, whatever races", async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const tenant = await organisation(ada)
    for (const change of [undefined, { role: "member" }, { status: "suspended" }]) {
      expect((await member(ada, tenant, ada, change)).body.code).toBe("last_owner")
    }
    await joins(bob, ada, tenant, "owner")
    const both = await Promise.all([member(ada, tenant, ada), member(bob, tenant, bob)])
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409])
  })

  it("nobody loses the tenant that they come home to", async () => {
    const ada = await person("ada")
    const bob = await person("bob")
    await joins(bob, ada, ada.tenant_id, "owner")
    expect((await member(bob, ada.tenant_id, ada)).body.code).toBe("home_tenant")
  })

  it("only owners and admins change the billing account", async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const tenant = await organisation(ada)
    await joins(bob, ada, tenant)
    const path = `/v1/tenants/${tenant}/billing`
    const [owner, other] = [await ofTenant(ada, tenant), await ofTenant(bob, tenant)]
    const patch = (token: string, json: object) => service.call(path, { token, method: "PATCH", json })
    const changed = await patch(owner.token, { billing_emails: ["Money@Example.com"], member_spend_enabled: false })
    expect(changed.body.result).toMatchObject({
      billing_emails: ["money@example.com"],
      member_spend_enabled: false,
      member_spend_effective: false,
      member_spend_source: "explicit"
    })
    expect((await patch(owner.token, { billing_emails: [] })).body.result).toMatchObject({
      billing_emails: [],
      member_spend_source: "explicit"
    })
    expect((await patch(other.token, { billing_emails: [] })).body.code).toBe("insufficient_role")
    // The token must be of that tenant.
    expect((await patch(ada.token, { billing_emails: [] })).body.error).toBe(
      "tenant ID in path does not match authenticated tenant"
    )
    const eleven = Array.from({ length: 11 }, (_, i) => `a${i}@example.com`)
    for (const json of [{ billing_emails: eleven }, { billing_emails: ["nobody"] }, { member_spend_enabled: "yes" }]) {
      expect([(await patch(owner.token, json)).status, (await patch(owner.token, json)).body.code]).toEqual([
        400,
        "invalid_request"
      ])
    }
  })

  it("a token of the tenant ends with the membership", async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const tenant = await organisation(ada)
    await joins(bob, ada, tenant, "admin")
    const there = await ofTenant(bob, tenant)
    const key = await service.key(there)
    await fund(tenant, 1)
    expect((await chat(key)).status).toBe(200)
    await member(ada, tenant, bob, { status: "suspended" })
    expect((await service.call("/v1/me", { token: there.token })).body.error).toBe("invalid or expired token")
    expect((await chat(key)).body.error).toBe("invalid API key")
  })
})

describe("a plan that ended", () => {
  const plan = (who: Person, tenant: string, json?: object) =>
    service.call(`/v1/tenants/${tenant}/plan`, {
      token: who.token,
      ...(json !== undefined && { method: "PUT", json })
    })
  const seatsOf = async (who: Person, tenant: string) =>
    (await service.call("/v1/me/memberships", { token: who.token })).body.result.memberships.find(
      (one: { tenant_id: string }) => one.tenant_id === tenant
    ).plan

  it("has no seats, limits nobody, and leaves nothing to the next one", async () => {
    const [ada, bob, cyd] = [await person("ada"), await person("bob"), await person("cyd")]
    const tenant = await organisation(ada)
    await plan(ada, tenant, { plan: "team", seats: 2 })
    await joins(bob, ada, tenant)
    await invite(ada, tenant, cyd.email)
    const token = await linkTo(service, cyd.email)
    expect((await accept(cyd, token)).body.code).toBe("team_full")
    const none = { plan: "none", status: "none", seats: 0, seats_taken: 2 }
    expect((await plan(ada, tenant, { plan: "none", seats: 7 })).body.result).toEqual(none)
    expect((await plan(ada, tenant)).body.result).toEqual(none)
    expect(await seatsOf(ada, tenant)).toEqual({ status: "none", seats: 0 })
    expect((await accept(cyd, token)).status).toBe(200)
    expect((await plan(ada, tenant, { plan: "team" })).body.result).toEqual({
      plan: "team",
      status: "active",
      seats: 25,
      seats_taken: 3
    })
  })

  it("fewer seats than members throw nobody out, and keep others from coming", async () => {
    const [ada, bob, cyd] = [await person("ada"), await person("bob"), await person("cyd")]
    const tenant = await organisation(ada)
    await plan(ada, tenant, { plan: "team" })
    await joins(bob, ada, tenant)
    expect((await plan(ada, tenant, { plan: "team", seats: 1 })).body.result).toMatchObject({
      seats: 1,
      seats_taken: 2
    })
    await invite(ada, tenant, cyd.email)
    expect((await accept(cyd, await linkTo(service, cyd.email))).body.code).toBe("team_full")
    expect(await seatsOf(bob, tenant)).toEqual({ status: "active", seats: 1 })
  })
})

describe("many tenants", () => {
  it("an account owns twenty at the most, its home included, however it comes to own one", async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const create = (who: Person) => service.call("/v1/tenants", { token: who.token, json: { name: "more" } })
    const made = await Promise.all(Array.from({ length: 24 }, () => create(ada)))
    expect(made.filter(({ status }) => status === 201)).toHaveLength(19)
    for (const { body, status } of made.filter(({ status }) => status !== 201)) {
      expect([status, body.code]).toEqual([409, "too_many_tenants"])
    }
    // As an owner of somebody else's, by an invitation or by promotion.
    const tenant = await organisation(bob)
    await invite(bob, tenant, ada.email, "owner")
    const refused = await accept(ada, await linkTo(service, ada.email))
    expect([refused.status, refused.body.code]).toEqual([409, "too_many_tenants"])
    await service.control("/mail", undefined, "DELETE")
    await joins(ada, bob, tenant)
    const promoted = await member(bob, tenant, ada, { role: "owner" })
    expect([promoted.status, promoted.body.code]).toEqual([409, "too_many_tenants"])
    expect((await member(bob, tenant, ada, { role: "admin" })).status).toBe(200)
    // One given away makes room for another.
    const given = made.find(({ status }) => status === 201)!.body.result.id
    await service.control("/mail", undefined, "DELETE")
    await joins(bob, ada, given, "owner")
    expect((await member(ada, given, ada)).status).toBe(200)
    expect((await create(ada)).status).toBe(201)
    expect((await create(ada)).body.code).toBe("too_many_tenants")
  })
})

describe("who pays", () => {
  /** Bob, whose own tenant has 6, in Ada's team, whose pool has 10. */
  const pooled = async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const tenant = await organisation(ada, "Pool")
    await team(tenant)
    await fund(tenant, 10)
    await joins(bob, ada, tenant)
    return { ada, bob, tenant }
  }

  const lastPayer = async (who: Person) => {
    const [record] = await service.usage(who)
    return [record.billing_source_kind, record.billing_source_tenant_id]
  }

  it("own first, then the team; the team first where it is pinned", async () => {
    const { bob, tenant } = await pooled()
    const key = await service.key(bob)
    for (const credential of [bob.token, key]) {
      expect((await chat(credential)).status).toBe(200)
      expect(await lastPayer(bob)).toEqual(["own", bob.tenant_id])
    }
    const { sources } = (await service.call("/v1/me/billing-sources", { token: bob.token })).body.result
    expect(sources).toMatchObject([
      { kind: "own", tenant_id: bob.tenant_id, available: true, is_home: true, role: "owner" },
      {
        kind: "team",
        tenant_id: tenant,
        tenant_name: "Pool",
        available: true,
        role: "member",
        credits: { balance: 10 }
      }
    ])
    const pin = await service.call("/v1/me/billing-source", {
      token: bob.token,
      method: "PUT",
      json: { mode: "pinned", billing_account_id: sources[1].billing_account_id }
    })
    expect(pin.body.result.selection).toEqual({ mode: "pinned", billing_account_id: sources[1].billing_account_id })
    expect((await chat(key)).status).toBe(200)
    expect(await lastPayer(bob)).toEqual(["team", tenant])
    const automatic = await service.call("/v1/me/billing-source", {
      token: bob.token,
      method: "PUT",
      json: { mode: "automatic" }
    })
    expect(automatic.body.result.selection).toEqual({ mode: "automatic" })
    expect((await chat(key)).status).toBe(200)
    expect(await lastPayer(bob)).toEqual(["own", bob.tenant_id])
  })

  it("falls through to the team only when the own credit does not suffice", async () => {
    const { bob, tenant } = await pooled()
    // More than the 6 of the signup, less than the pool has.
    const dear = { model: "sandbox-large", n: 128, max_tokens: 4_096, messages: [{ role: "user", content: "hi" }] }
    const answer = await service.call("/v1/chat/completions", { token: bob.token, json: dear })
    expect(answer.status).toBe(200)
    expect(await lastPayer(bob)).toEqual(["team", tenant])
    await service.control(`/tenants/${bob.tenant_id}`, { billing_status: "suspended" })
    const refused = await chat(bob.token)
    expect([refused.status, refused.body.error]).toEqual([402, "insufficient credits"])
  })

  it("is the first that affords 1,024 tokens of an answer without a limit; where none does, the first that affords 16", async () => {
    const { bob, tenant } = await pooled()
    // Bob's second tenant affords some 140 tokens of sandbox-small, its token's own account; the pool is the team.
    const own = await organisation(bob, "Nearly empty")
    await fund(own, 0.0001)
    const there = await ofTenant(bob, own)
    const asked = async (limit: object) => {
      const json = { model: "sandbox-small", messages: [{ role: "user", content: "hello" }], ...limit }
      expect((await service.call("/v1/chat/completions", { token: there.token, json })).status).toBe(200)
      const [call] = await service.control("/calls?service=chat&limit=1")
      return [...(await lastPayer(there)), call.body.max_tokens ?? call.body.max_completion_tokens]
    }
    expect(await asked({})).toEqual(["team", tenant, 4096])
    // With a limit of the client's the first that affords it pays, as ever.
    expect(await asked({ max_tokens: 20 })).toEqual(["own", own, 20])
    await service.control(`/tenants/${tenant}`, { billing_status: "suspended" })
    const [kind, payer, limit] = await asked({})
    expect([kind, payer]).toEqual(["own", own])
    expect(limit).toBeGreaterThanOrEqual(16)
    expect(limit).toBeLessThan(1_024)
  })

  it("is no team whose plan lapsed, that keeps its credit for itself, or that one has left", async () => {
    const { ada, bob, tenant } = await pooled()
    const dear = { model: "sandbox-large", n: 128, max_tokens: 4_096, messages: [{ role: "user", content: "hi" }] }
    const tries = async () => (await service.call("/v1/chat/completions", { token: bob.token, json: dear })).status
    expect(await tries()).toBe(200)
    await team(tenant, { plan_status: "past_due" })
    expect(await tries()).toBe(402)
    const owner = await ofTenant(ada, tenant)
    // Nor does it become one by giving its plan up and taking it again.
    for (const plan of ["none", "team"]) {
      const json = plan === "team" ? { plan, seats: 5 } : { plan }
      const set = await service.call(`/v1/tenants/${tenant}/plan`, { token: owner.token, method: "PUT", json })
      expect([set.status, set.body.result.status]).toEqual([200, plan === "team" ? "past_due" : "none"])
    }
    expect(await tries()).toBe(402)
    await team(tenant, { plan_status: "active" })
    const spend = (member_spend_enabled: boolean) =>
      service.call(`/v1/tenants/${tenant}/billing`, {
        token: owner.token,
        method: "PATCH",
        json: { member_spend_enabled }
      })
    await spend(false)
    expect(await tries()).toBe(402)
    await spend(true)
    expect(await tries()).toBe(200)
    const capacity = async () =>
      (await service.call("/v1/me/billing-sources/capacity", { token: bob.token })).body.result.sources.length
    expect(await capacity()).toBe(2)
    await service.control(`/tenants/${tenant}`, { billing_status: "suspended" })
    expect(await tries()).toBe(402)
    expect(await capacity()).toBe(1)
    await service.control(`/tenants/${tenant}`, { billing_status: "active" })
    expect(await tries()).toBe(200)
    await member(bob, tenant, bob)
    expect(await tries()).toBe(402)
  })

  it("a tenant that does not let its members spend pays for none of them, whatever they hold", async () => {
    const [ada, bob] = [await person("ada"), await person("bob")]
    const tenant = await organisation(ada)
    await fund(tenant, 10)
    await joins(bob, ada, tenant)
    const [owner, there] = [await ofTenant(ada, tenant), await ofTenant(bob, tenant)]
    const [key, owners] = [await service.key(there), await service.key(owner)]
    const statuses = async () => Promise.all([there.token, key].map(async (one) => (await chat(one)).status))
    const own = async () => {
      const { sources } = (await service.call("/v1/me/billing-sources", { token: there.token })).body.result
      const { body } = await service.call("/v1/me/billing-sources/capacity", { token: there.token })
      const ids = body.result.sources.map(({ tenant_id }: { tenant_id: string }) => tenant_id)
      return [sources[0].tenant_id === tenant, sources[0].available, ids.includes(tenant)]
    }
    // Off by default without a plan.
    expect(await statuses()).toEqual([402, 402])
    const refused = await chat(key)
    expect(refused.body).toMatchObject({
      code: "insufficient_credits",
      details: { reason: "this tenant does not let its members spend" }
    })
    expect(await own()).toEqual([true, false, false])
    expect((await chat(owner.token)).status).toBe(200)
    expect((await chat(owners)).status).toBe(200)
    const pin = await service.call("/v1/me/billing-source", {
      token: there.token,
      method: "PUT",
      json: { mode: "pinned", billing_account_id: tenant.replace("ten_", "bil_") }
    })
    expect([pin.status, pin.body.code]).toEqual([400, "invalid_billing_source"])
    // Each change holds at once: the plan, the setting, the role.
    await team(tenant)
    expect(await statuses()).toEqual([200, 200])
    expect(await own()).toEqual([true, true, true])
    await service.call(`/v1/tenants/${tenant}/billing`, {
      token: owner.token,
      method: "PATCH",
      json: { member_spend_enabled: false }
    })
    expect(await statuses()).toEqual([402, 402])
    await member(ada, tenant, bob, { role: "admin" })
    expect(await statuses()).toEqual([200, 200])
    await member(ada, tenant, bob, { role: "member" })
    expect(await statuses()).toEqual([402, 402])
    // Another team of theirs pays instead.
    const other = await organisation(ada)
    await team(other)
    await fund(other, 10)
    await service.control("/mail", undefined, "DELETE")
    await joins(bob, ada, other)
    expect(await statuses()).toEqual([200, 200])
    expect((await service.usage(there)).slice(0, 2)).toMatchObject([
      { billing_source_kind: "team", billing_source_tenant_id: other },
      { billing_source_kind: "team", billing_source_tenant_id: other }
    ])
    // Still nothing is charged where the own account is not active.
    await service.control(`/tenants/${tenant}`, { billing_status: "suspended" })
    expect(await statuses()).toEqual([402, 402])
  })

  it("cannot be pinned if it cannot pay", async () => {
    const { ada, bob, tenant } = await pooled()
    const pin = (billing_account_id: unknown) =>
      service.call("/v1/me/billing-source", {
        token: bob.token,
        method: "PUT",
        json: { mode: "pinned", billing_account_id }
      })
    for (const stranger of [ada.tenant_id.replace("ten_", "bil_"), "bil_nothing"]) {
      expect([(await pin(stranger)).status, (await pin(stranger)).body.code]).toEqual([400, "invalid_billing_source"])
    }
    await team(tenant, { plan_status: "canceled" })
    expect((await pin(tenant.replace("ten_", "bil_"))).body.code).toBe("invalid_billing_source")
    expect((await pin(undefined)).status).toBe(400)
  })

  it("never overspends a pool, however many members call at once", async () => {
    const { bob, tenant } = await pooled()
    await service.call("/v1/me/billing-source", {
      token: bob.token,
      method: "PUT",
      json: { mode: "pinned", billing_account_id: tenant.replace("ten_", "bil_") }
    })
    // Each may cost 3 at the most: three fit into the pool's 10, and two more into the own 6.
    // The vendor answers once the others are refused.
    await service.control("/faults", { service: "chat", delay_ms: 600_000, times: 12 })
    const dear = { model: "sandbox-large", n: 48, max_tokens: 4_096, messages: [{ role: "user", content: "hi" }] }
    let refused = 0
    const ask = async () => {
      const answer = await service.call("/v1/chat/completions", { token: bob.token, json: dear })
      if (answer.status !== 200) refused++
      return answer
    }
    const asked = Promise.all(Array.from({ length: 12 }, ask))
    await expect.poll(() => refused, { timeout: 60_000 }).toBe(7)
    await service.control("/faults", undefined, "DELETE")
    const answers = await asked
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(7)
    const usage = (await service.call("/v1/me/billing-sources/usage", { token: bob.token })).body.result
    expect(usage.sources).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ kind: "team", tenant_id: tenant, total_requests: 3 }),
        expect.objectContaining({ kind: "own", total_requests: 2 })
      ])
    )
    const capacity = (await service.call("/v1/me/billing-sources/capacity", { token: bob.token })).body.result
    expect(capacity.sources).toHaveLength(2)
    expect(capacity.total_held).toBe(0)
  })

  it("team usage shows what the pool paid, whoever called, and who has left since", async () => {
    const { ada, bob, tenant } = await pooled()
    await service.call("/v1/me/billing-source", {
      token: bob.token,
      method: "PUT",
      json: { mode: "pinned", billing_account_id: tenant.replace("ten_", "bil_") }
    })
    await chat(bob.token)
    await member(bob, tenant, bob)
    await chat(bob.token)
    const seen = (await service.call(`/v1/tenants/${tenant}/usage/team`, { token: ada.token })).body.result
    expect(seen).toMatchObject({
      tenant_id: tenant,
      rollup: "daily",
      viewer: { account_id: ada.account_id, role: "owner" },
      totals: { total_requests: 1 }
    })
    expect(seen.members).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ account_id: ada.account_id, in_roster: true, is_viewer: true }),
        expect.objectContaining({ account_id: bob.account_id, in_roster: false, is_viewer: false })
      ])
    )
    expect(seen.series.team).toMatchObject([{ total_requests: 1 }])
    expect(seen.series.viewer).toEqual([])
    const { body } = await service.call(
      `/v1/tenants/${tenant}/usage/team/series?start_time=2020-01-01T00:00:00Z&end_time=2020-01-02&by=tag:project`,
      { token: ada.token }
    )
    expect(body.result).toMatchObject({ by: "tag:project", total: { requests: 0 } })
    const many = Array.from({ length: 6 }, (_, i) => `acc_${i}`).join(",")
    expect((await service.call(`/v1/tenants/${tenant}/usage/team?members=${many}`, { token: ada.token })).status).toBe(
      400
    )
    await team(tenant, { plan_status: "canceled" })
    const lapsed = await service.call(`/v1/tenants/${tenant}/usage/team`, { token: ada.token })
    expect([lapsed.status, lapsed.body.code]).toEqual([403, "team_plan_required"])
  })
})
