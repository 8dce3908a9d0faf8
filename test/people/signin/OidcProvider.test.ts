/** Signing in with an issuer of another make (`oidc-provider`), through its own pages, and the attacks on that way. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { Browser } from "../../support/OAuth.ts"
import { client, OidcProvider } from "../../support/OidcProvider.ts"
import { freePort, freshFolder, start } from "../../support/Service.ts"
import type { Service } from "../../support/Service.ts"

let company: OidcProvider
let partner: OidcProvider
let service: Service
let team: string

const entryOf = ({ url }: OidcProvider) => ({
  issuer: url,
  client_id: client.id,
  client_secret_env: "CLIENT_SECRET",
  scope: "openid email profile groups"
})

const configurationOf = (port: number, groups: ReadonlyArray<object>) => ({
  public_url: `http://127.0.0.1:${port}`,
  clients: [{ client_id: "app", name: "App" }],
  identity: { company: entryOf(company), partner: entryOf(partner) },
  registration: { domains: ["corp.example"], groups },
  rate_limits: { sign_in: 1000, authorize: 1000, token: 1000 },
  upstreams: { local: { base_url: "http://127.0.0.1:9/v1" } },
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

const degraded = (unreachable: ReadonlyArray<string> | undefined) =>
  vi.waitFor(
    async () => {
      const { body, status } = await service.call("/readyz")
      expect([status, body.status, body.unreachable_identity_providers]).toEqual([
        200,
        unreachable === undefined ? "ok" : "degraded",
        unreachable
      ])
    },
    { timeout: 20_000 }
  )

beforeAll(async () => {
  const [port, ...ports] = [await freePort(), await freePort(), await freePort()]
  const folder = freshFolder()
  const file = join(folder, "config.json")
  company = new OidcProvider(ports[0]!, `http://127.0.0.1:${port}/oauth/signed-in/company`)
  partner = new OidcProvider(ports[1]!, `http://127.0.0.1:${port}/oauth/signed-in/partner`)
  await partner.listen()
  partner.people.set("ada", { email: "ada@corp.example", name: "Ada" })
  company.people.set("owner", { email: "owner@corp.example", name: "Owner" })
  const options = { folder, port, args: ["--config", file], env: { CLIENT_SECRET: client.secret } }
  writeFileSync(file, JSON.stringify(configurationOf(port, [])))
  service = await start(options)
  // One issuer is down at the start. The other one signs people in meanwhile.
  await degraded(["company"])
  expect(await signIn("ada", new Browser(service), "partner")).toBe(`${service.url}/console/usage`)
  const left = await new Browser(service).open(`${service.url}/console/sign-in/company?to=usage`)
  expect(left.location).toBe(refusedWith("provider_unavailable"))
  await company.listen()
  await degraded(undefined)
  const { access_token } = await signedIn("owner")
  const made = await service.call("/v1/tenants", { token: access_token, json: { name: "ML" } })
  team = made.body.result.id
  await service.end()
  const rule = { provider: "company", group: "ml", team, role: "member" }
  writeFileSync(file, JSON.stringify(configurationOf(port, [rule])))
  service = await start(options)
}, 120_000)

afterAll(async () => {
  await service?.discard()
  await Promise.all([company?.close(), partner?.close()])
})

beforeEach(() => {
  company.people.set("ada", { email: "ada@corp.example", name: "Ada" })
})

const issuerOf = (provider: string) => (provider === "company" ? company : partner)

/** The address with which the issuer returns the browser. */
const returnUrl = async (login: string, browser: Browser, provider = "company"): Promise<string> => {
  const left = await browser.open(`${service.url}/console/sign-in/${provider}?to=usage`)
  return issuerOf(provider).through(browser, left.location!, login)
}

/** Signs in, and answers the page that this ends at. */
const signIn = async (login: string, browser = new Browser(service), provider = "company") =>
  (await browser.open(await returnUrl(login, browser, provider))).location

const session = async (browser: Browser) => {
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ")
  const answer = await service.call("/console/session", { json: {}, headers: { cookie, origin: service.url } })
  return answer.body.result as { access_token: string; account_id: string } | undefined
}

const signedIn = async (login: string) => {
  const browser = new Browser(service)
  expect(await signIn(login, browser)).toBe(`${service.url}/console/usage`)
  return (await session(browser))!
}

const refusedWith = (reason: string) => `${service.url}/console/sign-in?error=${reason}&to=usage`

const cookiesOf = (browser: Browser): Browser => {
  const copy = new Browser(service)
  for (const [name, value] of browser.cookies) copy.cookies.set(name, value)
  return copy
}

describe("an issuer of another make", () => {
  it("signs in through its pages, by PKCE and the client's secret", async () => {
    const { access_token } = await signedIn("ada")
    const { account, identity, verification } = (await service.call("/v1/me", { token: access_token })).body.result
    expect([account.email, account.name, verification.email_verified]).toEqual(["ada@corp.example", "Ada", true])
    expect(identity.provider_id).toBe("ada")
  })

  it("gives one account to a person whom two issuers verify", async () => {
    const browser = new Browser(service)
    await signIn("ada", browser, "partner")
    expect((await session(browser))!.account_id).toBe((await signedIn("ada")).account_id)
  })

  it("is not asked again in a browser that is signed in there", async () => {
    const browser = new Browser(service)
    await signIn("ada", browser)
    const left = await browser.open(`${service.url}/console/sign-in/company?to=usage`)
    const back = await browser.open(left.location!)
    expect(back.location).toContain(`${service.url}/oauth/signed-in/company?code=`)
  })

  it("accepts a return once", async () => {
    const browser = new Browser(service)
    const url = await returnUrl("ada", browser)
    const thief = cookiesOf(browser)
    expect((await browser.open(url)).location).toBe(`${service.url}/console/usage`)
    expect((await browser.open(url)).location).toBe(refusedWith("rejected"))
    expect((await thief.open(url)).location).toBe(refusedWith("rejected"))
    expect(await session(thief)).toBeUndefined()
  })

  it("accepts a code once, under another state too", async () => {
    const [first, second] = [new Browser(service), new Browser(service)]
    const spent = new URL(await returnUrl("ada", first))
    expect((await first.open(spent.href)).location).toBe(`${service.url}/console/usage`)
    const url = new URL(await returnUrl("ada", second))
    url.searchParams.set("code", spent.searchParams.get("code")!)
    expect((await second.open(url.href)).location).toBe(refusedWith("rejected"))
    expect(await session(second)).toBeUndefined()
  })

  it("refuses a code that was issued for another browser's sign-in", async () => {
    const [victim, attacker] = [new Browser(service), new Browser(service)]
    const stolen = new URL(await returnUrl("ada", victim)).searchParams.get("code")!
    const url = new URL(await returnUrl("owner", attacker))
    url.searchParams.set("code", stolen)
    expect((await attacker.open(url.href)).location).toBe(refusedWith("rejected"))
    expect(await session(attacker)).toBeUndefined()
  })

  it("refuses a return in another browser", async () => {
    const url = await returnUrl("ada", new Browser(service))
    const other = new Browser(service)
    expect((await other.open(url)).location).toBe(refusedWith("other_browser"))
    // A browser that began a sign-in of its own has a cookie, and another nonce.
    await returnUrl("owner", other)
    expect((await other.open(url)).location).toBe(refusedWith("other_browser"))
    expect(await session(other)).toBeUndefined()
  })

  it("refuses the answer of one issuer at the address of another", async () => {
    const browser = new Browser(service)
    const left = await browser.open(`${service.url}/console/sign-in/company?to=usage`)
    const state = new URL(left.location!).searchParams.get("state")!
    const fromPartner = new URL(await returnUrl("ada", new Browser(service), "partner"))
    fromPartner.pathname = "/oauth/signed-in/company"
    fromPartner.searchParams.set("state", state)
    expect(fromPartner.searchParams.get("iss")).toBe(partner.url)
    expect((await browser.open(fromPartner.href)).location).toBe(refusedWith("rejected"))
    expect(await session(browser)).toBeUndefined()
  })

  it("refuses tokens that were issued to another application, and tokens of another issuer", async () => {
    const post = async (issuer: OidcProvider) => {
      const id_token = await issuer.tokenForAnother(new Browser(service), "ada")
      return service.call("/v1/auth/company", { json: { client_id: "app", id_token } })
    }
    for (const issuer of [company, partner]) {
      const { body, status } = await post(issuer)
      expect([status, body.code, body.error]).toEqual([
        401,
        "invalid_identity_token",
        "the identity provider's token is not valid"
      ])
    }
  })

  it("tells a person who cancels there that the sign-in was cancelled", async () => {
    const browser = new Browser(service)
    const left = await browser.open(`${service.url}/console/sign-in/company?to=usage`)
    const interaction = await browser.open(left.location!)
    const aborted = await browser.open(`${interaction.location}/abort`)
    const back = await browser.open(aborted.location!)
    expect(back.location).toContain("error=access_denied")
    expect((await browser.open(back.location!)).location).toBe(refusedWith("cancelled"))
  })

  it("refuses a new person whose address the issuer has not verified, and links no account by it", async () => {
    company.people.set("mallory", { email: "mallory@corp.example", name: "Mallory", email_verified: false })
    expect(await signIn("mallory")).toBe(refusedWith("not_invited"))
    const ada = await signedIn("ada")
    company.people.set("impostor", { email: "ada@corp.example", name: "Ada", email_verified: false })
    const browser = new Browser(service)
    expect(await signIn("impostor", browser)).toBe(refusedWith("not_invited"))
    expect(await session(browser)).toBeUndefined()
    expect((await signedIn("ada")).account_id).toBe(ada.account_id)
  })

  it("takes a person out of a team whose group they have left since their last sign-in", async () => {
    const roleIn = async (groups: ReadonlyArray<string>) => {
      company.people.set("grace", { email: "grace@corp.example", name: "Grace", groups })
      const { access_token } = await signedIn("grace")
      const { memberships } = (await service.call("/v1/me/memberships", { token: access_token })).body.result
      return memberships.find(({ tenant_id }: { tenant_id: string }) => tenant_id === team)?.role
    }
    expect(await roleIn(["ml"])).toBe("member")
    expect(await roleIn([])).toBeUndefined()
  })
})
