/** Signing in with an issuer of one's own and GitHub, by the code flow, in a deployment that admits only those whom its configuration names. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { client, CodeIssuer } from "../../support/CodeIssuer.ts"
import { Browser } from "../../support/OAuth.ts"
import { freePort, freshFolder, start } from "../../support/Service.ts"
import type { Service } from "../../support/Service.ts"

const ada = { sub: "ada", email: "ada@corp.example", email_verified: true, name: "Ada" }
let issuer: CodeIssuer
let service: Service
let team: string

const adminSeat = (tenant_id: string) => ({ provider: "keycloak", group: "ml-leads", team: tenant_id, role: "admin" })

beforeAll(async () => {
  issuer = await CodeIssuer.make(await CodeIssuer.freePort())
  const folder = freshFolder()
  const file = join(folder, "config.json")
  const port = await freePort()
  const configuration = (groups: ReadonlyArray<object>) => ({
    public_url: `http://127.0.0.1:${port}`,
    clients: [{ client_id: "app", name: "App" }],
    identity: {
      keycloak: { issuer: issuer.url, client_id: client.id, client_secret_env: "KEYCLOAK_SECRET", name: "Example Ltd" },
      other: { issuer: `${issuer.url}/other`, client_id: "other" },
      github: {
        kind: "github",
        issuer: issuer.url,
        api_url: issuer.url,
        client_id: client.id,
        client_secret_env: "KEYCLOAK_SECRET"
      }
    },
    registration: { domains: ["Corp.example"], groups: [{ provider: "keycloak", group: "guests" }, ...groups] },
    rate_limits: { sign_in: 1000, authorize: 1000, token: 1000 },
    upstreams: { local: { base_url: `${issuer.url}/v1` } },
    models: [
      {
        id: "small",
        context_length: 1000,
        max_output_tokens: 100,
        price: { prompt_usd_per_million: "1", completion_usd_per_million: "1" },
        upstreams: [{ upstream: "local" }]
      }
    ]
  })
  const env = { KEYCLOAK_SECRET: client.secret, LOG_LEVEL: "info" }
  const options = { folder, port, args: ["--config", file], env }
  writeFileSync(file, JSON.stringify(configuration([])))
  // The issuer is down at the start.
  service = await start(options)
  await vi.waitFor(async () => {
    const { body, status } = await service.call("/readyz")
    expect([status, body.status, body.unreachable_identity_providers]).toEqual([200, "degraded", ["keycloak", "other"]])
  }, 20_000)
  expect(`${service.stdout.join("")}${service.stderr.join("")}`).toContain(
    `http://127.0.0.1:${port}/oauth/signed-in/keycloak`
  )
  await issuer.listen()
  await vi.waitFor(
    async () => expect((await service.call("/readyz")).body.unreachable_identity_providers).toEqual(["other"]),
    { timeout: 10_000 }
  )
  // The owner makes the team that groups lead to.
  issuer.claims = { sub: "owner", email: "owner@corp.example", email_verified: true, name: "Owner" }
  const owner = await signedIn()
  const made = await service.call("/v1/tenants", { token: owner.access_token, json: { name: "ML" } })
  team = made.body.result.id ?? made.body.result.tenant_id
  await service.end()
  writeFileSync(file, JSON.stringify(configuration([{ provider: "keycloak", group: "ml", team }, adminSeat(team)])))
  service = await start(options)
}, 60_000)

afterAll(async () => {
  await service?.discard()
  await issuer?.close()
})

beforeEach(() => {
  issuer.claims = ada
  issuer.more = {}
  issuer.spoiled = {}
})

/** The URL with which the provider's page returns the browser. */
const returnUrl = async (browser: Browser, provider = "keycloak"): Promise<string> => {
  const left = await browser.open(`${service.url}/console/sign-in/${provider}?to=usage`)
  expect(left.status).toBe(303)
  return (await browser.open(left.location!)).location!
}

/** Signs in by the code flow, and answers the page that this ends at. */
const signIn = async (browser = new Browser(service), provider = "keycloak") =>
  (await browser.open(await returnUrl(browser, provider))).location

const session = async (browser: Browser) => {
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ")
  const answer = await service.call("/console/session", { json: {}, headers: { cookie, origin: service.url } })
  return answer.body.result as { access_token: string; account_id: string; tenant_id: string } | undefined
}

const signedIn = async () => {
  const browser = new Browser(service)
  expect(await signIn(browser)).toBe(`${service.url}/console/usage`)
  return (await session(browser))!
}

const refusedWith = (reason: string) => `${service.url}/console/sign-in?error=${reason}&to=usage`

describe("the code flow with an issuer of any name", () => {
  it("signs in, with a button of its name", async () => {
    const { body } = await service.call("/console/providers")
    expect(body.result.providers).toContainEqual({ id: "keycloak", name: "Example Ltd" })
    const { access_token } = await signedIn()
    const { account, identity } = (await service.call("/v1/me", { token: access_token })).body.result
    expect(account.email).toBe("ada@corp.example")
    expect(identity).toMatchObject({ provider: "keycloak", provider_id: "ada" })
  })

  it("reads the address from the userinfo endpoint if the token has none", async () => {
    issuer.claims = { sub: "grace", name: "Grace" }
    issuer.more = { email: "grace@corp.example", email_verified: true }
    const { access_token } = await signedIn()
    const { account } = (await service.call("/v1/me", { token: access_token })).body.result
    expect(account.email).toBe("grace@corp.example")
  })

  it("refuses a return in another browser, and a second one with the same state", async () => {
    const browser = new Browser(service)
    const url = await returnUrl(browser)
    expect((await new Browser(service).open(url)).location).toBe(refusedWith("other_browser"))
    const cookies = new Map(browser.cookies)
    expect((await browser.open(url)).location).toBe(`${service.url}/console/usage`)
    const thief = new Browser(service)
    for (const [name, value] of cookies) thief.cookies.set(name, value)
    expect((await thief.open(url)).location).toBe(refusedWith("rejected"))
    expect(await session(thief)).toBeUndefined()
  })

  it("refuses a code that was redeemed before, a made-up state, and a state of another provider", async () => {
    const [first, second] = [new Browser(service), new Browser(service)]
    const spent = new URL(await returnUrl(first))
    expect((await first.open(spent.href)).location).toBe(`${service.url}/console/usage`)
    const url = new URL(await returnUrl(second))
    url.searchParams.set("code", spent.searchParams.get("code")!)
    expect((await second.open(url.href)).location).toBe(refusedWith("rejected"))
    const third = new Browser(service)
    const mixed = (await returnUrl(third)).replace("/signed-in/keycloak", "/signed-in/github")
    expect((await third.open(mixed)).location).toBe(refusedWith("expired"))
    expect((await third.open(`${service.url}/oauth/signed-in/keycloak?code=x&state=y`)).status).toBe(400)
  })

  it.each([
    ["another issuer's token", { iss: "http://127.0.0.1:1" }],
    ["a token for another audience", { aud: "someone-else" }],
    ["a token that another client requested", { azp: "someone-else" }],
    ["a token with another nonce", { nonce: "another" }],
    ["a token that has expired", { exp: 1 }]
  ])("refuses %s", async (_, spoiled) => {
    issuer.spoiled = spoiled
    const browser = new Browser(service)
    expect(await signIn(browser)).toBe(refusedWith("rejected"))
    expect(await session(browser)).toBeUndefined()
  })

  it("refuses an answer in the name of another issuer (RFC 9207)", async () => {
    const browser = new Browser(service)
    const url = `${await returnUrl(browser)}&iss=${encodeURIComponent("http://evil.example")}`
    expect((await browser.open(url)).location).toBe(refusedWith("rejected"))
  })

  it("takes a token at /v1/auth/{name}, and knows no other name", async () => {
    const call = async (name: string, claims: object = {}) =>
      service.call(`/v1/auth/${name}`, {
        json: { client_id: "app", id_token: await issuer.sign({ ...ada, ...claims }) }
      })
    const answer = await call("keycloak")
    expect(answer.status).toBe(200)
    const { refresh_token } = answer.body.result.token_response
    const json = { client_id: "app", grant_type: "refresh_token", refresh_token }
    expect((await service.call("/v1/auth/keycloak/refresh", { json })).status).toBe(200)
    expect((await call("keycloak", { aud: "someone-else" })).body.code).toBe("invalid_identity_token")
    expect((await call("other")).body.code).toBe("identity_provider_unavailable")
    expect((await call("github")).body.code).toBe("invalid_identity_token")
    expect((await call("constructor")).status).toBe(404)
    expect((await call("google")).body.code).toBe("identity_provider_unconfigured")
  })
})

describe("GitHub", () => {
  it("signs in with the primary address that it has verified", async () => {
    issuer.emails = [
      { email: "first@corp.example", primary: false, verified: true },
      { email: "Octo@corp.example", primary: true, verified: true }
    ]
    const browser = new Browser(service)
    expect(await signIn(browser, "github")).toBe(`${service.url}/console/usage`)
    const { access_token } = (await session(browser))!
    const { account, identity } = (await service.call("/v1/me", { token: access_token })).body.result
    expect([account.email, account.name, identity.provider_id]).toEqual(["octo@corp.example", "octocat", "42"])
  })

  it("proves nothing by an address that it has not verified", async () => {
    issuer.emails = [{ email: "ada@corp.example", primary: true, verified: false }]
    const browser = new Browser(service)
    expect(await signIn(browser, "github")).toBe(`${service.url}/console/usage`)
    // The account of the identity that signed in before, not that of the address.
    const { access_token } = (await session(browser))!
    expect((await service.call("/v1/me", { token: access_token })).body.result.account.email).toBe("octo@corp.example")
  })
})

describe("registration", () => {
  it("refuses strangers, and addresses that are not verified", async () => {
    issuer.claims = { sub: "eve", email: "eve@elsewhere.example", email_verified: true, name: "Eve" }
    expect(await signIn()).toBe(refusedWith("not_invited"))
    issuer.claims = { sub: "mallory", email: "mallory@corp.example", email_verified: false, name: "Mallory" }
    expect(await signIn()).toBe(refusedWith("not_invited"))
    issuer.claims = { sub: "sub", email: "eve@sub.corp.example", email_verified: true, name: "Eve" }
    expect(await signIn()).toBe(refusedWith("not_invited"))
    const id_token = await issuer.sign({ sub: "eve", email: "eve@elsewhere.example", email_verified: true })
    const answer = await service.call("/v1/auth/keycloak", { json: { client_id: "app", id_token } })
    expect([answer.status, answer.body.code]).toEqual([403, "not_invited"])
  })

  it("admits a group, and an address with an invitation to a team", async () => {
    issuer.claims = { sub: "guest", email: "guest@elsewhere.example", email_verified: true, groups: ["guests"] }
    expect(await signIn()).toBe(`${service.url}/console/usage`)
    issuer.claims = { sub: "owner", email: "owner@corp.example", email_verified: true }
    const browser = new Browser(service)
    await signIn(browser)
    const { access_token } = (await session(browser))!
    const json = { email: "invited@elsewhere.example", role: "member" }
    const invited = await service.call(`/v1/tenants/${team}/invites`, { token: access_token, json })
    expect(invited.status).toBeLessThan(300)
    issuer.claims = { sub: "invited", email: "invited@elsewhere.example", email_verified: true }
    expect(await signIn()).toBe(`${service.url}/console/usage`)
  })

  it("puts a person into the team of a group with its role, and takes them out when the group is gone", async () => {
    const roleIn = async (groups: ReadonlyArray<string> | undefined) => {
      issuer.claims = { ...ada, ...(groups !== undefined && { groups }) }
      const { access_token } = await signedIn()
      const { memberships } = (await service.call("/v1/me/memberships", { token: access_token })).body.result
      return memberships.find(({ tenant_id }: { tenant_id: string }) => tenant_id === team)?.role
    }
    expect(await roleIn(undefined)).toBeUndefined()
    expect(await roleIn(["ml"])).toBe("member")
    expect(await roleIn(["ml", "ml-leads"])).toBe("admin")
    expect(await roleIn(["ml"])).toBe("member")
    expect(await roleIn([])).toBeUndefined()
    expect(await roleIn(["ml"])).toBe("member")
    expect(await roleIn(undefined)).toBeUndefined()
  })

  it("takes nothing from an owner, whom no group has made one", async () => {
    for (const groups of [["ml"], []]) {
      issuer.claims = { sub: "owner", email: "owner@corp.example", email_verified: true, groups }
      const { access_token } = await signedIn()
      const { memberships } = (await service.call("/v1/me/memberships", { token: access_token })).body.result
      const found = memberships.find(({ tenant_id }: { tenant_id: string }) => tenant_id === team)
      expect([found.role, found.status]).toEqual(["owner", "active"])
    }
  })
})
