/** The operator over HTTP: sign-in, search, acts, and the audit log. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { commandHere } from "../../support/CommandLine.ts"
import { ownPage } from "../../support/Console.ts"
import { lettersTo } from "../../support/mail.ts"
import { command, start } from "../../support/Service.ts"
import type { Answer, Person, Service } from "../../support/Service.ts"
import * as Tables from "../../support/tables.ts"

let service: Service
let ada: Person
let token: string

const env = () => ({ DATA_DIR: service.folder, PORT: String(service.port) })

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com", { name: "Ada Lovelace" })
  token = (await command(["operator", "--token", "--name", "grace"], env())).stdout.trim()
})
afterAll(() => service.discard())

const operator = (path: string, call: Parameters<Service["call"]>[1] = {}): Promise<Answer> =>
  service.call(`/v1/operator${path}`, { token, ...call })

const link = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { stdout } = await commandHere(["operator", "--json", ...args], env())
  const { link } = JSON.parse(stdout) as { link: string }
  expect(link).toMatch(new RegExp(`^${service.url}/console/operator#code=[0-9a-f]{64}$`))
  return link.slice(link.indexOf("=") + 1)
}

const own = () => ({ origin: service.url, "content-type": "application/json" })

const open = (json: object, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("/console/operator/session", {
    method: "POST",
    raw: JSON.stringify(json),
    headers: { ...own(), ...headers }
  })

const cookieOf = ({ headers }: Answer): string => (headers.get("set-cookie") ?? "").split(";", 1)[0]!

const audit = async (query = ""): Promise<ReadonlyArray<Record<string, unknown>>> =>
  (await operator(`/audit?limit=200${query}`)).body.result.records

describe("a session of the operator", () => {
  it("begins with a one-time link, continues with a cookie, and ends", async () => {
    const code = await link("--name", "ada from the desk")
    const entered = await open({ code })
    expect([entered.status, entered.body]).toEqual([
      200,
      { access_token: expect.stringMatching(/^tgop\.ops_/), expires_in: 600, name: "ada from the desk" }
    ])
    expect(entered.headers.get("set-cookie")).toMatch(
      /^tollgate_operator=[0-9a-f]{64}; Path=\/console; HttpOnly; SameSite=Strict; Max-Age=43200$/
    )
    expect(entered.headers.get("cache-control")).toBe("no-store")
    const again = await open({ code })
    expect([again.status, again.body, again.headers.get("set-cookie")]).toEqual([
      401,
      { error: "invalid or expired token" },
      null
    ])
    const cookie = cookieOf(entered)
    const resumed = await open({}, { cookie })
    expect([resumed.status, resumed.body.name]).toEqual([200, "ada from the desk"])
    const me = await service.call("/v1/operator/me", { token: resumed.body.access_token })
    expect(me.body.result).toMatchObject({ name: "ada from the desk", session_id: expect.stringMatching(/^ops_/) })
    const listed = await service.call("/v1/operator/sessions", { token: resumed.body.access_token })
    expect(listed.body.result.sessions.find(({ current }: { current: boolean }) => current)).toMatchObject({
      id: me.body.result.session_id,
      kind: "browser",
      name: "ada from the desk"
    })
    const closed = await service.call("/console/operator/session", { method: "DELETE", headers: { ...own(), cookie } })
    expect([closed.status, closed.headers.get("set-cookie")]).toEqual([204, expect.stringContaining("Max-Age=0")])
    for (const { body } of [entered, resumed]) {
      expect((await service.call("/v1/operator/me", { token: body.access_token })).status).toBe(401)
    }
    expect((await open({}, { cookie })).status).toBe(401)
  })

  it("accepts only pages of this service", async () => {
    const code = await link()
    const foreign: ReadonlyArray<Record<string, string>> = [
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" }
    ]
    for (const headers of foreign) {
      const answer = await open({ code }, headers)
      expect([headers, answer.status, answer.body.code]).toEqual([headers, 403, "cross_origin"])
      const closing = await service.call("/console/operator/session", {
        method: "DELETE",
        headers: { ...own(), ...headers }
      })
      expect([headers, closing.status]).toEqual([headers, 403])
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
      const answer = await open({ code }, { "content-type": type })
      expect([type, answer.status]).toEqual([type, 415])
    }
    // The code is still unused.
    expect((await open({ code })).status).toBe(200)
  })

  it("refuses credentials that are invented, too long or of another kind", async () => {
    const entered = await open({ code: await link() })
    const cookie = cookieOf(entered)
    const tampered = `${cookie.slice(0, -1)}${cookie.endsWith("0") ? "1" : "0"}`
    for (const wrong of [tampered, "tollgate_operator=x", `tollgate_operator=${"0".repeat(64)}`]) {
      expect([wrong, (await open({}, { cookie: wrong })).status]).toEqual([wrong, 401])
    }
    for (const none of ["tollgate_operator=", "a=b"]) {
      expect([none, (await open({}, { cookie: none })).status]).toEqual([none, 204])
    }
    expect((await open({ code: "0".repeat(64) })).status).toBe(401)
    expect((await open({ code: "0".repeat(5_000) })).status).toBe(400)
    expect((await open({ code: 7 })).status).toBe(400)
    const good: string = entered.body.access_token
    const [prefix, session, until, mac] = good.split(".") as [string, string, string, string]
    const forged = [
      `${prefix}.${session}.${Number(until) + 60_000}.${mac}`,
      `${prefix}.${session}.${until}.${"0".repeat(64)}`,
      `${prefix}.${session}.${until}`,
      `${prefix}.ops_0000000000000000000000.${until}.${mac}`,
      `${good}x`
    ]
    for (const one of forged) expect([one, (await operator("/me", { token: one })).status]).toEqual([one, 401])
    expect((await operator("/me", { token: good })).status).toBe(200)
  })

  it("is not a user account: each token is refused in place of the other", async () => {
    const key = await service.key(ada)
    for (const wrong of [ada.token, key, ada.refresh_token]) {
      const answer = await operator("/me", { token: wrong })
      expect([answer.status, answer.body]).toEqual([401, { error: "invalid or expired token" }])
    }
    const without = await service.call("/v1/operator/me")
    expect([without.status, without.body]).toEqual([401, { error: "missing Authorization header" }])
    const asUser = await service.call("/v1/me", { token })
    expect([asUser.status, asUser.body]).toEqual([401, { error: "invalid or expired token" }])
    const call = await service.call("/v1/models", { token })
    expect([call.status, call.body.error.message ?? call.body.error]).toEqual([401, "invalid API key format"])
    // Its cookie is not a user's either.
    const cookie = cookieOf(await open({ code: await link() }))
    const console = await service.call("/console/session", { method: "POST", raw: "{}", headers: { ...own(), cookie } })
    expect([console.status, console.headers.get("set-cookie")]).toEqual([204, null])
  })

  it("is listed and ended by the command line; a session for scripts is short", async () => {
    const made = await commandHere(["operator", "--token", "--name", "cron", "--json"], env())
    const cron = JSON.parse(made.stdout) as { access_token: string; expires_in: number; name: string }
    expect([cron.expires_in, cron.name]).toEqual([3_600, "cron"])
    const { session_id } = (await operator("/me", { token: cron.access_token })).body.result
    expect((await commandHere(["operator", "--list"], env())).stdout).toContain(session_id)
    expect((await commandHere(["operator", "--end", session_id], env())).code).toBe(0)
    expect((await operator("/me", { token: cron.access_token })).status).toBe(401)
    expect((await commandHere(["operator", "--end", session_id], env())).stderr).toContain("no such link or session")
    const other = (await commandHere(["operator", "--token"], env())).stdout.trim()
    const { session_id: its } = (await operator("/me", { token: other })).body.result
    expect((await operator(`/sessions/${its}`, { method: "DELETE" })).body.result).toEqual({ ended: true })
    expect((await operator("/me", { token: other })).status).toBe(401)
    expect((await operator(`/sessions/${its}`, { method: "DELETE" })).body.result).toEqual({ ended: false })
    expect((await commandHere(["operator", "--name", " "], env())).code).toBe(1)
  })

  it("leaves no secret in the database, and none in the log", async () => {
    const code = await link()
    const entered = await open({ code })
    const stored = await Tables.everything(service.folder)
    const logged = service.stderr.join("") + service.stdout.join("")
    for (const secret of [code, cookieOf(entered).split("=")[1]!, entered.body.access_token as string, token]) {
      expect([stored.includes(secret), logged.includes(secret)]).toEqual([false, false])
    }
  })
})

describe("search", () => {
  it("finds by id, by reference, or by the beginning of an address, a name or a key", async () => {
    const key = await service.key(ada)
    await service.control("/credit", { tenant_id: ada.tenant_id, amount: 10, source: "purchase" })
    await service.call("/v1/chat/completions", {
      token: key,
      json: { model: "sandbox-small", messages: [{ role: "user", content: "hello" }] }
    })
    const [call] = await service.usage(ada)
    const bob = await service.signIn("bob.found@example.com", { name: "Bob" })
    const sent = await service.call(`/v1/tenants/${ada.tenant_id}/billing/transfers`, {
      token: ada.token,
      headers: { "idempotency-key": "found-0123456789-abcdef" },
      json: { amount: 1, recipient_email: bob.email, kind: "gift" }
    })
    const transfer = sent.body.result.id
    const booked = await operator(`/tenants/${bob.tenant_id}/purchases`, {
      json: { amount: 2, reference: "INV-found" }
    })
    expect(booked.status).toBe(200)
    const find = async (q: string) => (await operator(`/search?q=${encodeURIComponent(q)}`)).body.result
    const ids = (lines: ReadonlyArray<{ id: string }>) => lines.map(({ id }) => id)
    expect(ids((await find(ada.tenant_id)).tenants)).toEqual([ada.tenant_id])
    expect(ids((await find(ada.account_id)).people)).toEqual([ada.account_id])
    const byMail = await find("ADA@exam")
    expect([ids(byMail.people), ids(byMail.tenants)]).toEqual([[ada.account_id], [ada.tenant_id]])
    expect(ids((await find("ada lov")).people)).toEqual([ada.account_id])
    const [found] = (await find(key.slice(0, 13))).keys
    expect(found).toMatchObject({ tenant_id: ada.tenant_id, account_id: ada.account_id, key_prefix: key.slice(0, 13) })
    expect(ids((await find(key)).keys)).toEqual([found.id])
    expect(ids((await find(found.id)).keys)).toEqual([found.id])
    expect((await find(call.id)).calls).toEqual([
      { ...call, state: "ended", vendor_request: expect.stringMatching(/^req-/) }
    ])
    expect(ids((await find(call.id.replace("use_", "call_"))).calls)).toEqual([call.id])
    expect((await find(transfer)).transfers).toEqual([
      expect.objectContaining({ id: transfer, status: "pending", amount: 1, sender_tenant_id: ada.tenant_id })
    ])
    expect(ids((await find(bob.email)).transfers)).toEqual([transfer])
    expect((await find("INV-found")).payments).toEqual([
      expect.objectContaining({ id: "INV-found", tenant_id: bob.tenant_id, amount: 2, source: "offline" })
    ])
    for (const nobody of ["ten_0000000000000000000000", "%", "_", "zzz", "call_x", "' OR 1=1 --", "\u{1f600}"]) {
      const nothing = await find(nobody)
      const { tenant_names, ...lines } = nothing
      expect([nobody, Object.values(lines).flat(), tenant_names]).toEqual([nobody, [], {}])
    }
    // Each line that names a tenant by its id comes with the tenant's name.
    const named = async (q: string) => (await find(q)).tenant_names
    const names = await Promise.all([key, call.id, transfer, "INV-found"].map(named))
    const nameOf = async ({ tenant_id }: Person) => (await operator(`/tenants/${tenant_id}`)).body.result.name
    const [hers, his] = [{ [ada.tenant_id]: await nameOf(ada) }, { [bob.tenant_id]: await nameOf(bob) }]
    expect(names).toEqual([hers, hers, hers, his])
    expect((await operator("/search?q=")).status).toBe(400)
    expect((await operator(`/search?q=${"x".repeat(201)}`)).status).toBe(400)
    expect((await operator("/search?q=a&limit=0")).status).toBe(400)
  })

  it("shows a tenant and a person in full", async () => {
    const tenant = (await operator(`/tenants/${ada.tenant_id}`)).body.result
    expect(tenant).toMatchObject({
      id: ada.tenant_id,
      status: "active",
      plan: { plan: "none" },
      open_calls: 0,
      members: [expect.objectContaining({ account_id: ada.account_id, role: "owner" })]
    })
    expect(tenant.money.balance).toBe(await service.balance(ada))
    expect(tenant.total_keys).toBe(tenant.keys.length)
    const ledger = await operator(`/tenants/${ada.tenant_id}/ledger?per_page=200`)
    expect(ledger.body.result.records).toEqual(await service.ledger(ada))
    const usage = await operator(`/tenants/${ada.tenant_id}/usage?per_page=200`)
    expect(usage.body.result.records).toEqual(await service.usage(ada))
    const person = (await operator(`/people/${ada.account_id}`)).body.result
    expect(person).toMatchObject({
      email: ada.email,
      status: "active",
      suspended_at: null,
      identities: [expect.objectContaining({ provider: "google", email: ada.email })],
      memberships: [expect.objectContaining({ tenant_id: ada.tenant_id, is_home: true })]
    })
    expect(person.sign_ins.length).toBeGreaterThan(0)
    expect((await operator("/tenants/ten_none")).body.code).toBe("tenant_not_found")
    expect((await operator("/tenants/ten_none/ledger")).body.code).toBe("tenant_not_found")
    expect((await operator("/people/acc_none")).body.code).toBe("account_not_found")
  })

  it("lists tenants page by page while others are added", async () => {
    for (let i = 0; i < 4; i++) await service.signIn(`paged${i}@example.com`)
    const first = (await operator("/tenants?limit=2")).body.result
    await service.signIn("meanwhile@example.com")
    const rest: Array<string> = []
    for (let next: string | null = first.next; next !== null;) {
      const page: { records: ReadonlyArray<{ id: string }>; next: string | null } = (
        await operator(`/tenants?limit=2&before=${next}`)
      ).body.result
      rest.push(...page.records.map(({ id }) => id))
      next = page.next
    }
    const all = [...first.records.map(({ id }: { id: string }) => id), ...rest]
    expect(new Set(all).size).toBe(all.length)
    expect(all).toEqual(all.toSorted().toReversed())
    expect(all).toContain(ada.tenant_id)
  })
})

describe("an operator", () => {
  it("takes a mistaken grant back once per reference: granted credit only, and what is there", async () => {
    const who = await service.signIn("mistaken@example.com")
    const before = await service.balance(who)
    const at = (path: string, json: object) => operator(`/tenants/${who.tenant_id}/${path}`, { json })
    await at("grants", { amount: 30, reference: "ticket 7" })
    await at("purchases", { amount: 2, reference: "paid 7" })
    // The reference of the grant may be used again for taking it back.
    const body = { amount: 20, reference: "ticket 7", reason: "meant another tenant" }
    const answers = await Promise.all([at("take-backs", body), at("take-backs", body), at("take-backs", body)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    for (const { body } of answers) expect(body.result).toMatchObject({ amount: 20, taken: 20, balance: before + 12 })
    expect(answers.filter((one) => one.body.result.done)).toHaveLength(1)
    expect((await service.ledger(who))[0]).toMatchObject({
      type: "debit",
      amount: 20,
      source: "admin",
      balance: before + 12
    })
    // More than was granted: purchased credit stays.
    const rest = (await at("take-backs", { amount: 1_000, reference: "ticket 8" })).body.result
    expect(rest).toMatchObject({ amount: 1_000, taken: before + 10, balance: 2, done: true })
    const none = { amount: 5, reference: "ticket 9" }
    expect((await at("take-backs", none)).body.result).toMatchObject({ taken: 0, balance: 2, done: true })
    expect((await at("take-backs", none)).body.result).toMatchObject({ taken: 0, balance: 2, done: false })
    expect((await operator(`/tenants/${who.tenant_id}`)).body.result.money).toMatchObject({ giftable: 2 })
    const other = await at("take-backs", { ...body, amount: 1 })
    expect([other.status, other.body.code]).toEqual([409, "reference_used"])
    expect((await operator("/tenants/ten_none/take-backs", { json: none })).status).toBe(404)
    const log = await audit(`&tenant_id=${who.tenant_id}`)
    expect(log.filter((one) => one.action === "grant.take_back")).toHaveLength(4)
    await at("grants", { amount: 3, reference: "ticket 10" })
    const take = (...more: ReadonlyArray<string>) =>
      command(["take-back", "--tenant", who.tenant_id, "--amount", "4", "--reference", "R 1", ...more], env())
    expect((await take()).stdout).toBe(
      `took 3 of 4 credits back from ${who.tenant_id}; its balance is 2. The other 1 credits were spent, reserved by open calls or never granted\n`
    )
    const again = await take("--json")
    expect([again.code, again.stderr]).toEqual([0, ""])
    expect(JSON.parse(again.stdout)).toMatchObject({ done: false, taken: "3", balance: "2" })
    const unknown = await command(["take-back", "--tenant", "ten_none", "--amount", "4"], env())
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("there is no such tenant")])
  })

  it("grants credit and books purchases once per reference, exactly, also concurrently", async () => {
    const who = await service.signIn("granted@example.com")
    const before = await service.balance(who)
    const grant = (json: object) => operator(`/tenants/${who.tenant_id}/grants`, { json })
    const body = { amount: 0.000000001, reference: "case 1", description: "sorry", reason: "an outage" }
    const answers = await Promise.all([grant(body), grant(body), grant(body)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(answers.filter((one) => one.body.result.done)).toHaveLength(1)
    expect(await service.balance(who)).toBe(before + 0.000000001)
    const [entry] = await service.ledger(who)
    expect(entry).toMatchObject({ amount: 0.000000001, source: "admin", description: "sorry" })
    const other = await grant({ ...body, amount: 2 })
    expect([other.status, other.body.code]).toEqual([409, "reference_used"])
    const elsewhere = await operator(`/tenants/${ada.tenant_id}/grants`, { json: body })
    expect([elsewhere.status, elsewhere.body.code]).toEqual([409, "reference_used"])
    const buy = (json: object) => operator(`/tenants/${who.tenant_id}/purchases`, { json })
    const bought = await Promise.all([buy({ amount: 12.5, reference: "R" }), buy({ amount: 12.5, reference: "R" })])
    expect(bought.map((one) => one.body.result.done).toSorted()).toEqual([false, true])
    expect((await buy({ amount: 1, reference: "R" })).body.code).toBe("reference_used")
    // The command line uses the same references.
    const again = await command(["purchase", "--tenant", who.tenant_id, "--amount", "12.5", "--reference", "R"], env())
    expect(again.code).toBe(1)
    expect((await operator(`/tenants/${who.tenant_id}`)).body.result.money).toMatchObject({ giftable: 12.5 })
    for (const wrong of [
      { amount: 0, reference: "x" },
      { amount: -1, reference: "x" },
      { amount: 0.0000000001, reference: "x" },
      { amount: 1_000_000_001, reference: "x" },
      { amount: "1", reference: "x" },
      { amount: 1 },
      { amount: 1, reference: " " },
      { amount: 1, reference: "a\nb" },
      { amount: 1, reference: "x".repeat(201) }
    ]) {
      expect([wrong, (await grant(wrong)).status]).toEqual([wrong, 400])
    }
    expect((await operator("/tenants/ten_none/grants", { json: { amount: 1, reference: "none" } })).status).toBe(404)
    expect((await operator("/tenants/ten_none/purchases", { json: { amount: 1, reference: "none" } })).status).toBe(404)
    const much = await grant({ amount: 1_000_000_000, reference: "too much" })
    expect([much.status, much.body.code]).toEqual([422, "balance_too_large"])
    const log = await audit(`&tenant_id=${who.tenant_id}`)
    expect(log.map(({ action, operator, result, subject, via }) => [action, operator, result, subject, via])).toEqual([
      ["grant", "grace", "refused", "too much", "token"],
      ["purchase", "grace", "refused", "R", "token"],
      ["purchase", "grace", "done", "R", "token"],
      ["grant", "grace", "refused", "case 1", "token"],
      ["grant", "grace", "done", "case 1", "token"]
    ])
    expect(log.at(-1)!.details).toEqual({ amount_usd: "0.000000001", description: "sorry", reason: "an outage" })
  })

  it("suspends a tenant: it pays for nothing until it is activated", async () => {
    const who = await service.signIn("suspended-tenant@example.com")
    const key = await service.key(who)
    const call = async () => (await service.call("/v1/search?query=tides", { token: key })).status
    expect(await call()).toBe(200)
    const suspend = () => operator(`/tenants/${who.tenant_id}/suspend`, { json: { reason: "a stolen card" } })
    expect((await suspend()).body.result).toEqual({ tenant_id: who.tenant_id, status: "suspended", changed: true })
    expect((await suspend()).body.result.changed).toBe(false)
    expect(await call()).toBe(402)
    const activate = await operator(`/tenants/${who.tenant_id}/activate`, { json: {} })
    expect(activate.body.result).toEqual({ tenant_id: who.tenant_id, status: "active", changed: true })
    expect(await call()).toBe(200)
    const actions = (await audit(`&tenant_id=${who.tenant_id}`)).map(({ action }) => action)
    expect(actions).toEqual(["tenant.activate", "tenant.suspend"])
    expect((await operator("/tenants/ten_none/suspend", { json: {} })).status).toBe(404)
  })

  it("suspends a person: sign-ins end, keys and new sign-ins are refused until they are activated", async () => {
    const who = await service.signIn("suspended@example.com")
    const key = await service.key(who)
    const suspended = await operator(`/people/${who.account_id}/suspend`, { json: {} })
    expect(suspended.body.result).toEqual({ account_id: who.account_id, status: "suspended", changed: true })
    expect((await service.call("/v1/me", { token: who.token })).status).toBe(401)
    expect((await service.call("/v1/models", { token: key })).status).toBe(401)
    await expect(service.signIn("suspended@example.com")).rejects.toThrow("account_suspended")
    const refreshed = await service.call("/v1/auth/token", {
      json: { client_id: "sandbox-app", refresh_token: who.refresh_token }
    })
    expect(refreshed.status).toBeGreaterThanOrEqual(400)
    expect((await operator(`/people/${who.account_id}`)).body.result).toMatchObject({
      status: "suspended",
      sign_ins: []
    })
    expect((await operator(`/people/${who.account_id}/activate`, { json: {} })).body.result.changed).toBe(true)
    expect((await service.call("/v1/models", { token: key })).status).toBe(200)
    const back = await service.signIn("suspended@example.com")
    expect(back.account_id).toBe(who.account_id)
    // Ended sign-ins stay ended.
    expect((await service.call("/v1/me", { token: who.token })).status).toBe(401)
    expect((await operator("/people/acc_none/suspend", { json: {} })).status).toBe(404)
  })

  it("revokes keys and sign-ins", async () => {
    const who = await service.signIn("revoked@example.com")
    const key = await service.key(who)
    const { id } = (await operator(`/people/${who.account_id}`)).body.result.keys[0]
    const revoked = await operator(`/keys/${id}?reason=leaked`, { method: "DELETE" })
    expect(revoked.body.result).toEqual({ id, revoked: true })
    expect((await service.call("/v1/models", { token: key })).status).toBe(401)
    expect((await operator(`/keys/${id}`, { method: "DELETE" })).body.code).toBe("application_not_found")
    const ended = await operator(`/people/${who.account_id}/sign-ins`, { method: "DELETE" })
    expect(ended.body.result).toEqual({
      account_id: who.account_id,
      ended: 1,
      passkeys_deleted: 0,
      passkeys_left: 0
    })
    expect((await service.call("/v1/me", { token: who.token })).status).toBe(401)
    expect((await audit(`&account_id=${who.account_id}`)).map(({ action, subject }) => [action, subject])).toEqual([
      ["sign_ins.revoke", null],
      ["key.revoke", id]
    ])
  })

  it("ends links into the console with the sign-ins", async () => {
    const who = await service.signIn("invited@example.com")
    const invited = async (letters: number): Promise<string> => {
      await operator("/invites", { json: { email: who.email } })
      return vi.waitFor(async () => {
        const codes = (await lettersTo(service, who.email)).map(({ text }) => /#link=([0-9a-f]{64})/.exec(text)?.[1])
        const found = codes.filter((code) => code !== undefined)
        expect(found).toHaveLength(letters)
        return found.at(-1)!
      }, 20_000)
    }
    const enter = (code: string) => service.call("/console/session", { json: { code }, headers: ownPage })
    const stolen = await invited(1)
    await operator(`/people/${who.account_id}/sign-ins`, { method: "DELETE" })
    expect((await enter(stolen)).status).toBe(401)
    const kept = await invited(2)
    expect((await enter(kept)).status).toBe(200)
  })
})

describe("the audit log", () => {
  it("also has the acts of commands, with the user who ran them", async () => {
    const who = await service.signIn("commanded@example.com")
    await service.key(who)
    const { id } = (await operator(`/people/${who.account_id}`)).body.result.keys[0]
    const run = async (...args: ReadonlyArray<string>) => {
      const { code, stderr } = await commandHere(args, env())
      expect([args, code, stderr]).toEqual([args, 0, ""])
    }
    await run("grant", "--tenant", who.tenant_id, "--amount", "1", "--note", "welcome")
    await run("purchase", "--tenant", who.tenant_id, "--amount", "2", "--reference", "by command")
    await run("key", "revoke", "--tenant", who.tenant_id, "--id", id)
    const mine = await audit(`&tenant_id=${who.tenant_id}`)
    expect(mine.map(({ action, result, via }) => [action, result, via])).toEqual([
      ["key.revoke", "done", "command"],
      ["purchase", "done", "command"],
      ["grant", "done", "command"]
    ])
    await run("client", "create", "--kind", "app", "--name", "Audited")
    await run("rotate-keys")
    const newest = (await audit()).slice(0, 2).map(({ action }) => action)
    expect(newest).toEqual(["rotate_keys", "client.create"])
    // A refusal changes nothing and has no entry as done.
    expect((await commandHere(["grant", "--tenant", "ten_none", "--amount", "1"], env())).code).toBe(1)
    expect((await audit()).slice(0, 1).map(({ action }) => action)).toEqual(["rotate_keys"])
  })

  it("is read page by page, by operator, tenant or person", async () => {
    const first = (await operator("/audit?limit=3")).body.result
    expect(first.records).toHaveLength(3)
    const second = (await operator(`/audit?limit=3&before=${first.next}`)).body.result
    const ids = [...first.records, ...second.records].map(({ id }: { id: number }) => id)
    expect(ids).toEqual(ids.toSorted((a, b) => b - a))
    expect(new Set(ids).size).toBe(6)
    const grace = (await operator("/audit?operator=grace&limit=200")).body.result.records
    expect(new Set(grace.map(({ operator }: { operator: string }) => operator))).toEqual(new Set(["grace"]))
    const tenants = new Map((await audit()).map(({ tenant_id, tenant_name }) => [tenant_id, tenant_name]))
    expect(tenants.size).toBeGreaterThan(2)
    for (const [id, name] of tenants) {
      const shown = id === null ? undefined : (await operator(`/tenants/${String(id)}`)).body.result
      expect([id, name]).toEqual([id, shown?.name ?? null])
    }
    expect((await operator("/audit?operator=nobody")).body.result).toEqual({ records: [], next: null })
    // No route changes it.
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      expect([method, (await operator("/audit", { method })).status]).toEqual([method, 405])
    }
  })
})

describe("time", () => {
  it("ends codes after five minutes, tokens after ten, and sessions after twelve hours", async () => {
    const late = await link()
    const entered = await open({ code: await link() })
    const cookie = cookieOf(entered)
    await service.control("/clock", { advance_ms: 5 * 60_000 })
    expect((await open({ code: late })).status).toBe(401)
    expect((await operator("/me", { token: entered.body.access_token })).status).toBe(200)
    await service.control("/clock", { advance_ms: 5 * 60_000 })
    expect((await operator("/me", { token: entered.body.access_token })).status).toBe(401)
    const resumed = await open({}, { cookie })
    expect((await operator("/me", { token: resumed.body.access_token })).status).toBe(200)
    await service.control("/clock", { advance_ms: 12 * 60 * 60_000 })
    expect((await open({}, { cookie })).status).toBe(401)
    expect((await operator("/me")).status).toBe(401)
  })
})
