/** The console's session over HTTP: sign-in by a provider, access tokens for a browser's cookie, and everybody who has no right to either. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linkTo } from "../support/mail.ts"
import { goOn, ownPage, session, signIn, signOut } from "../support/Console.ts"
import { Browser } from "../support/OAuth.ts"
import { command, freshFolder, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const somebody = () => `console${++people}@example.com`
const minutes = 60_000
const days = 24 * 60 * minutes
const advance = (by: number) => service.control("/clock", { advance_ms: by }).then(() => service)

const me = async (token: string) => (await service.call("/v1/me", { token })).body.result?.account

const pathOf = (location: string | undefined | null) => {
  const { pathname, search } = new URL(location!, service.url)
  return pathname + search
}

describe("a sign-in", () => {
  it("lists the providers, and says that they are a sandbox's", async () => {
    const { body } = await service.call("/console/providers")
    expect(body.result).toEqual({
      service_name: "Tollgate",
      providers: [
        { id: "google", name: "Google" },
        { id: "microsoft", name: "Microsoft" },
        { id: "email", name: "email" }
      ],
      passkeys: false,
      sandbox: true
    })
    expect((await service.call("/console/sign-in/nobody")).status).toBe(404)
  })

  it("ends at the page that was asked for, with a cookie that no script reads, and a token for the page", async () => {
    const email = somebody()
    const { arrived, browser } = await signIn(service, email, "usage?model=a%2Fb")
    expect([arrived.status, pathOf(arrived.location)]).toEqual([303, "/console/usage?model=a%2Fb"])
    const cookie = arrived.headers.getSetCookie().find((one) => one.startsWith("tollgate_console="))!
    expect(cookie).toMatch(/; HttpOnly; SameSite=Strict$/)
    expect(cookie).toContain("Path=/console;")
    expect(cookie).toContain("Max-Age=604800;")

    const { body, headers, status } = await session(service, browser)
    expect(status).toBe(200)
    expect(headers.get("cache-control")).toBe("no-store")
    expect(body.result).toMatchObject({ token_type: "Bearer", expires_in: 600 })
    expect(await me(body.result.access_token)).toMatchObject({ id: body.result.account_id, email })
    expect(body.result.tenant_id).toMatch(/^ten_/)
  })

  it("takes a name for a person of that name, in the sandbox", async () => {
    const name = `Ada Lovelace ${++people}`
    const { browser } = await signIn(service, name)
    const { body } = await session(service, browser)
    expect(await me(body.result.access_token)).toMatchObject({ email: `ada.lovelace.${people}@example.com`, name })
  })

  it.each([
    ["https://evil.example/console/"],
    ["//evil.example/console/"],
    ["/\\evil.example"],
    ["\\\\evil.example"],
    ["javascript:alert(1)"],
    ["/v1/me"],
    ["../v1/me"],
    ["..\\..\\v1"],
    ["sign-in/google?to=sign-in"],
    ["/console/sign-in"],
    [`a?${"x".repeat(3_000)}`]
  ])("leads nowhere but to the console: %s", async (to) => {
    const { arrived } = await signIn(service, somebody(), to)
    expect(pathOf(arrived.location)).toBe("/console/")
    expect(new URL(arrived.location!).origin).toBe(service.url)
  })

  it("is not begun as somebody by the link of another site", async () => {
    for (const headers of [{}, { "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "none" }]) {
      const begun = await service.call("/console/sign-in/google?login_hint=mallory@example.com", {
        headers: headers as Record<string, string>
      })
      expect(begun.headers.get("location")).not.toContain("mallory")
    }
  })

  it("is not ended by a browser that did not begin it", async () => {
    const mallory = await signIn(service, somebody())
    const victim = new Browser(service)
    // The link with which Mallory's sign-in ends, opened by somebody else, with no sign-in of their own and with one.
    const opened = await victim.open(mallory.back)
    expect(pathOf(opened.location)).toBe("/console/sign-in?error=other_browser")
    const ada = await signIn(service, somebody(), "keys", victim)
    expect(pathOf((await victim.open(mallory.back)).location)).toBe("/console/sign-in?error=other_browser")
    expect(pathOf(ada.arrived.location)).toBe("/console/keys")
  })

  it("that was cancelled, or is not believed, or took too long, is said on the console's page", async () => {
    const begin = async () => {
      const browser = new Browser(service)
      const begun = await browser.open(`${service.url}/console/sign-in/google?to=credit`)
      const chosen = await browser.open(begun.location!)
      const html = (await goOn(browser, chosen.html, { email: somebody() })).html
      return { browser, html }
    }
    const cancelled = await begin()
    const denied = await goOn(cancelled.browser, cancelled.html, { error: "access_denied", id_token: "" })
    expect(pathOf(denied.location)).toBe("/console/sign-in?error=cancelled&to=credit")
    const forged = await begin()
    const refused = await goOn(forged.browser, forged.html, { id_token: "e30.e30.e30" })
    expect(pathOf(refused.location)).toBe("/console/sign-in?error=rejected&to=credit")
    const slow = await begin()
    await advance(11 * minutes)
    expect(pathOf((await goOn(slow.browser, slow.html)).location)).toBe("/console/sign-in?error=expired&to=credit")
  })

  it("of another purpose ends where it always did", async () => {
    const browser = new Browser(service)
    const answer = await browser.open(`${service.url}/oauth/signed-in`, { state: "nothing", id_token: "x" })
    expect([answer.status, answer.html]).toEqual([400, expect.stringContaining("took too long")])
  })
})

describe("a session", () => {
  it("gives nothing to another site, to a form, or without a word where it comes from", async () => {
    const { browser } = await signIn(service, somebody())
    for (const headers of [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
      { origin: "https://evil.example" },
      { origin: "null" },
      {}
    ]) {
      const refused = await session(service, browser, {}, headers as Record<string, string>)
      expect([refused.status, refused.body.code]).toEqual([403, "cross_origin"])
      expect((await signOut(service, browser, headers as Record<string, string>)).status).toBe(403)
    }
    const form = await session(service, browser, {}, { ...ownPage, "content-type": "text/plain" })
    expect([form.status, form.body.code]).toEqual([415, "unsupported_media_type"])
    expect((await session(service, browser, {}, { origin: service.url })).status).toBe(200)
  })

  it("is none by a forged cookie, one of another purpose, or none", async () => {
    const empty = await session(service, new Browser(service))
    expect([empty.status, empty.headers.get("set-cookie")]).toEqual([204, null])
    const { browser } = await signIn(service, somebody())
    const real = browser.cookies.get("tollgate_console")!
    for (const cookie of ["x", `${real.slice(0, -8)}AAAAAAAA`, browser.cookies.get("tollgate_consent")!]) {
      const other = new Browser(service)
      other.cookies.set("tollgate_console", cookie)
      expect((await session(service, other)).status).toBe(401)
    }
    // Nor is the console's cookie a consent to anything.
    const consent = new Browser(service)
    consent.cookies.set("tollgate_consent", real)
    expect((await consent.open(`${service.url}/oauth/device?user_code=ABCD-EFGH`)).html).toContain("Sign in to")
  })

  it("has several tabs, each in its tenant, and none in one of somebody else", async () => {
    const { browser } = await signIn(service, somebody())
    const home = (await session(service, browser)).body.result
    const made = await service.call("/v1/tenants", { token: home.access_token, json: { name: "Engines" } })
    const tenant_id: string = made.body.result.id
    const [one, other] = await Promise.all([
      session(service, browser, { tenant_id }),
      session(service, browser, { tenant_id: home.tenant_id })
    ])
    expect([one.body.result.tenant_id, other.body.result.tenant_id]).toEqual([tenant_id, home.tenant_id])
    const credits = (token: string) => service.call(`/v1/tenants/${tenant_id}/billing/credits`, { token })
    expect((await credits(one.body.result.access_token)).status).toBe(200)
    expect((await credits(other.body.result.access_token)).status).toBe(403)
    await session(service, browser, { tenant_id })
    expect((await session(service, browser)).body.result.tenant_id).toBe(tenant_id)

    const stranger = await service.signIn(somebody())
    const refused = await session(service, browser, { tenant_id: stranger.tenant_id })
    expect([refused.status, refused.body.code]).toEqual([403, "not_a_member"])
  })

  it("falls back to what is left where a team has let the person go, whose token ends", async () => {
    const owner = await service.signIn(somebody())
    const made = await service.call("/v1/tenants", { token: owner.token, json: { name: "Team" } })
    const team: string = made.body.result.id
    await service.control(`/tenants/${team}`, { plan: "team" })
    const email = somebody()
    const { browser } = await signIn(service, email)
    const { access_token, account_id, tenant_id } = (await session(service, browser)).body.result
    const members = `/v1/tenants/${team}/members`
    await service.call(`/v1/tenants/${team}/invites`, { token: owner.token, json: { email, role: "member" } })
    const accept = `/v1/tenant-invites/${await linkTo(service, email)}/accept`
    expect((await service.call(accept, { token: access_token, method: "POST" })).status).toBe(200)
    const inTeam = (await session(service, browser, { tenant_id: team })).body.result
    expect((await service.call("/v1/notifications", { token: inTeam.access_token })).status).toBe(200)
    const removed = await service.call(`${members}/${account_id}`, { method: "DELETE", token: owner.token })
    expect(removed.status).toBeLessThan(300)
    expect((await service.call("/v1/notifications", { token: inTeam.access_token })).status).toBe(401)
    expect((await session(service, browser)).body.result.tenant_id).toBe(tenant_id)
    expect((await session(service, browser, { tenant_id: team })).status).toBe(403)
  })

  it("ends in all tabs at once, tokens included", async () => {
    const { browser } = await signIn(service, somebody())
    const { access_token } = (await session(service, browser)).body.result
    expect(await me(access_token)).toBeDefined()
    const stale = new Map(browser.cookies)
    const ended = await signOut(service, browser)
    expect([ended.status, ended.body.result]).toEqual([200, { success: true }])
    expect(ended.headers.get("set-cookie")).toContain("Max-Age=0")
    expect((await service.call("/v1/me", { token: access_token })).status).toBe(401)
    for (const [name, value] of stale) browser.cookies.set(name, value)
    expect((await session(service, browser)).status).toBe(401)
    expect((await signOut(service, browser)).status).toBe(200)
  })

  it("ends with a person whom the operator suspends, who is told so when they sign in, until they are activated", async () => {
    const env = { DATA_DIR: service.folder, PORT: String(service.port) }
    const token = (await command(["operator", "--token", "--name", "grace"], env)).stdout.trim()
    const email = somebody()
    const { browser } = await signIn(service, email)
    const { access_token, account_id } = (await session(service, browser)).body.result
    const operator = (what: string) => service.call(`/v1/operator/people/${account_id}/${what}`, { token, json: {} })
    expect((await operator("suspend")).body.result.changed).toBe(true)
    expect((await service.call("/v1/me", { token: access_token })).status).toBe(401)
    expect((await session(service, browser)).body.code).toBe("session_ended")
    const again = await signIn(service, email, "keys")
    expect([pathOf(again.back), again.browser.cookies.has("tollgate_console")]).toEqual([
      "/console/sign-in?error=suspended&to=keys",
      false
    ])
    expect((await operator("activate")).body.result.changed).toBe(true)
    expect((await session(service, browser)).status).toBe(401)
    expect((await session(service, (await signIn(service, email)).browser)).status).toBe(200)
  })

  it("ends when it is not used for a week, its tokens after ten minutes", async () => {
    const { browser } = await signIn(service, somebody())
    const { access_token } = (await session(service, browser)).body.result
    await advance(11 * minutes)
    expect((await service.call("/v1/me", { token: access_token })).status).toBe(401)
    await advance(6 * days)
    expect((await session(service, browser)).status).toBe(200)
    await advance(6 * days)
    expect((await session(service, browser)).status).toBe(200)
    await advance(8 * days)
    expect((await session(service, browser)).status).toBe(401)
  })
})

describe("where people reach the service by TLS", () => {
  it("the cookie is for TLS alone, and no neighbour can set it; beneath a path it is for that path", async () => {
    const folder = freshFolder()
    for (const [public_url, prefix, path] of [
      ["https://gate.example", "__Host-", "/"],
      ["https://example.com/gate", "", "/gate/console"]
    ] as const) {
      const file = join(folder, "config.json")
      writeFileSync(file, JSON.stringify({ public_url }))
      const other = await start({ args: ["--config", file] })
      const attributes = `Path=${path}; HttpOnly; Secure; SameSite=Strict`
      const ended = await other.call("/console/session", {
        method: "DELETE",
        headers: { origin: new URL(public_url).origin }
      })
      expect(ended.headers.get("set-cookie")).toBe(`${prefix}tollgate_console=; Max-Age=0; ${attributes}`)
      const begun = await other.call("/console/sign-in/google")
      expect([begun.status, pathOf(begun.headers.get("location"))]).toEqual([404, expect.anything()])
      await other.discard()
    }
  })

  it("nothing of it is there where the console is off", async () => {
    const file = join(freshFolder(), "config.json")
    writeFileSync(file, JSON.stringify({ console: { enabled: false } }))
    const other = await start({ args: ["--config", file] })
    expect((await other.call("/console/providers")).status).toBe(404)
    expect((await other.call("/console/session", { json: {}, headers: ownPage })).status).toBe(404)
    await other.discard()
  })
})
