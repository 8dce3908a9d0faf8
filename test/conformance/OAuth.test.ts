/** The code flow with PKCE, by an off-the-shelf client library and by a person in a browser; and every refusal of it. */
import * as oidc from "openid-client"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  Browser,
  fieldsOf,
  redirect_uri,
  request,
  text,
  tokensFor,
  toTheQuestion,
  verifierOf
} from "../support/OAuth.ts"
import { command, start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`oauth${++people}@example.com`)
const client_id = "sandbox-oauth"
const days = 86_400_000

const consent = (who: Person, json: object) => service.call("/v1/auth/oauth/code", { token: who.token, json })
const exchange = (json: object) => service.call("/v1/auth/oauth/token", { json: { client_id, ...json } })

const codeFor = async (who: Person, verifier: string): Promise<string> => {
  const { body, status } = await consent(who, request(verifier))
  expect([status, body.result.state, body.result.redirect_uri]).toEqual([200, "s-1", redirect_uri])
  return body.result.code
}
const redeem = (code: string, code_verifier: string, more: object = {}) =>
  exchange({ grant_type: "authorization_code", code, redirect_uri, code_verifier, ...more })

const discovered = () =>
  oidc.discovery(new URL(service.url), client_id, undefined, oidc.None(), {
    execute: [oidc.allowInsecureRequests],
    algorithm: "oauth2"
  })

const begin = async (json: object = {}) =>
  (await service.call("/v1/auth/oauth/device", { json: { client_id, scope: "openid transfers", ...json } })).body
const poll = (device_code: string) => exchange({ grant_type: deviceGrant, device_code })
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

/** The person's way: the page, the code, the sign-in, the decision. */
const decide = async (browser: Browser, page: string, email: string, decision: string) => {
  const question = await toTheQuestion(browser, page, email)
  return browser.open(`${service.url}/oauth/device`, { ...fieldsOf(question.html), decision })
}

// First of all: the command goes by the machine's clock, which is the service's until that is moved.
it("gives nothing for a code, or to a device, of a person whom the operator has suspended since", async () => {
  const who = await person()
  const { device_code, verification_uri_complete } = await begin()
  await decide(new Browser(service), verification_uri_complete, who.email, "allow")
  const verifier = verifierOf()
  const code = await codeFor(who, verifier)
  const env = { DATA_DIR: service.folder, PORT: String(service.port) }
  const token = (await command(["operator", "--token"], env)).stdout.trim()
  const act = (what: string) =>
    service.call(`/v1/operator/people/${who.account_id}/${what}`, { token, json: { reason: "a test" } })
  expect((await act("suspend")).body.result.changed).toBe(true)
  const byCode = await redeem(code, verifier)
  expect([byCode.status, byCode.body.error]).toEqual([400, "invalid_grant"])
  const byDevice = await poll(device_code)
  expect([byDevice.status, byDevice.body.error]).toEqual([400, "access_denied"])
  // The code is spent; what the person allowed a device holds until its time is over.
  expect((await act("activate")).body.result.changed).toBe(true)
  expect((await redeem(code, verifier)).body.error).toBe("invalid_grant")
})

describe("by a client library", () => {
  it("the whole flow: discovery, consent in a browser without script, tokens, refresh", async () => {
    const who = await person()
    const config = await discovered()
    const verifier = oidc.randomPKCECodeVerifier()
    const state = oidc.randomState()
    const page = oidc.buildAuthorizationUrl(config, {
      redirect_uri,
      scope: "profile",
      state,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256"
    })

    const browser = new Browser(service)
    const welcome = await browser.follow(page.href)
    expect(welcome.html).toContain("Sandbox Application")
    expect(welcome.html).not.toContain("<script")
    expect(welcome.headers.get("content-security-policy")).toContain("frame-ancestors 'none'")
    const [, provider] = /href="([^"]+)">Continue with Google/.exec(welcome.html)!
    const signIn = await browser.open(text(provider!))
    const posted = await browser.open(/action="([^"]+)"/.exec(signIn.html)![1]!, {
      ...fieldsOf(signIn.html),
      email: who.email
    })
    const question = await browser.follow(text(/action="([^"]+)"/.exec(posted.html)![1]!), fieldsOf(posted.html))
    expect(question.html).toContain(who.email)
    expect(question.html).toContain("Allow")
    const decided = await browser.open(`${service.url}/oauth/authorize`, {
      ...fieldsOf(question.html),
      decision: "allow"
    })
    expect(decided.location).toContain(redirect_uri)

    const tokens = await oidc.authorizationCodeGrant(config, new URL(decided.location!), {
      pkceCodeVerifier: verifier,
      expectedState: state
    })
    expect(tokens).toMatchObject({ token_type: "bearer", expires_in: 3600 })
    const me = await service.call("/v1/me", { token: tokens.access_token })
    expect(me.body.result.account.id).toBe(who.account_id)
    const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token!)
    expect((await service.call("/v1/me", { token: refreshed.access_token })).status).toBe(200)
  })

  it("a person who does not allow it is believed", async () => {
    const who = await person()
    const browser = new Browser(service)
    const verifier = verifierOf()
    const page = `${service.url}/oauth/authorize?${new URLSearchParams(request(verifier))}`
    const question = await toTheQuestion(browser, page, who.email)
    // Another site cannot decide for them.
    const { proof: _, ...forged } = fieldsOf(question.html)
    expect((await browser.open(`${service.url}/oauth/authorize`, { ...forged, decision: "allow" })).status).toBe(400)
    const other = new Browser(service)
    expect(
      (await other.open(`${service.url}/oauth/authorize`, { ...fieldsOf(question.html), decision: "allow" })).status
    ).toBe(400)
    const denied = await browser.open(`${service.url}/oauth/authorize`, {
      ...fieldsOf(question.html),
      decision: "deny"
    })
    const answer = new URL(denied.location!)
    expect([answer.searchParams.get("error"), answer.searchParams.get("state")]).toEqual(["access_denied", "s-1"])
  })

  it("nobody is signed in as somebody else by a link", async () => {
    const who = await person()
    const browser = new Browser(service)
    const welcome = await browser.follow(`${service.url}/oauth/authorize?${new URLSearchParams(request(verifierOf()))}`)
    const signIn = await browser.open(text(/href="([^"]+)">Continue with Google/.exec(welcome.html)![1]!))
    const posted = await browser.open(/action="([^"]+)"/.exec(signIn.html)![1]!, {
      ...fieldsOf(signIn.html),
      email: who.email
    })
    const arriving = await browser.open(text(/action="([^"]+)"/.exec(posted.html)![1]!), fieldsOf(posted.html))
    const victim = await new Browser(service).open(arriving.location!)
    expect([victim.status, victim.html.includes("another browser")]).toEqual([400, true])
  })

  it("never leads to an address that was not registered", async () => {
    for (const more of [
      { redirect_uri: "https://evil.example/callback" },
      { client_id: "nobody" },
      { redirect_uri: "" }
    ]) {
      const page = await new Browser(service).open(
        `${service.url}/oauth/authorize?${new URLSearchParams(request(verifierOf(), more))}`
      )
      expect([page.status, page.location]).toEqual([400, undefined])
    }
    const plain = await new Browser(service).open(
      `${service.url}/oauth/authorize?${new URLSearchParams(request(verifierOf(), { code_challenge_method: "plain" }))}`
    )
    expect(new URL(plain.location!).searchParams.get("error")).toBe("invalid_request")
  })
})

describe("a request", () => {
  const check = (json: object) => service.call("/v1/auth/oauth/request", { json })

  it("tells a consent page who asks for what", async () => {
    const { body, status } = await check(request(verifierOf()))
    expect([status, body.result]).toEqual([
      200,
      {
        client_id,
        client_name: "Sandbox Application",
        scope: "profile",
        granted: "profile email calls",
        allows: expect.arrayContaining(["read your usage and your balance"]),
        trusted: false,
        redirect_uri,
        state: "s-1"
      }
    ])
  })

  it.each([
    ["http://127.0.0.1/callback", 200],
    ["http://127.0.0.1:1/callback", 200],
    ["http://localhost:4711/callback", 400],
    ["http://127.0.0.1:4711/other", 400],
    ["http://127.0.0.1:4711/callback?x=1", 400],
    ["http://127.0.0.1:4711/callback#x", 400],
    ["https://127.0.0.1:4711/callback", 400],
    ["http://127.0.0.1.evil.example/callback", 400],
    ["http://user@127.0.0.1/callback", 400],
    ["http:\\\\127.0.0.1/callback", 400],
    ["http://0x7f.1/callback", 400],
    ["http://127.0.0.1:4711/%2e/callback", 400],
    ["http://127.0.0.1:4711/./callback", 400],
    ["http://127.0.0.1:4711/x/../callback", 400],
    ["http://127.0.0.1:4711/call\tback", 400],
    ["http://127.0.0.1:47\t11/callback", 400],
    ["http://127.0.0.1:47\n11/callback", 400],
    ["http://127.0.0.1:4711/callback ", 400],
    [" http://127.0.0.1:4711/callback", 400],
    ["http://127.0.0.1:4711\\callback", 400],
    ["HTTP://127.0.0.1:4711/callback", 400],
    ["http://127.0.0.1:/callback", 400],
    ["http://127.0.0.1:65536/callback", 400],
    ["http://127.0.0.1:65535/callback", 200],
    ["not an address", 400]
  ])("may lead back to %s: %d", async (redirect_uri, status) => {
    expect((await check(request(verifierOf(), { redirect_uri }))).status).toBe(status)
  })

  it.each([
    [{ client_id: undefined }, 400, "Tollgate client ID is required"],
    [{ client_id: "nobody" }, 404, "Client ID not found"],
    [{ client_id: "sandbox-client" }, 404, "Client ID not found"],
    [{ response_type: "token" }, 400, "response_type: code"],
    [{ code_challenge_method: "plain" }, 400, "code_challenge_method: S256"],
    [{ code_challenge: "short" }, 400, "code_challenge: must be the SHA-256 of the verifier in base64url"]
  ])("is refused for %j", async (more, status, error) => {
    const json = request(verifierOf(), more)
    const answers = [await check(json), await consent(await person(), json)]
    for (const answer of answers) expect([answer.status, answer.body.error]).toEqual([status, error])
  })

  it("is consented to by a person only", async () => {
    const who = await person()
    expect((await service.call("/v1/auth/oauth/code", { json: request(verifierOf()) })).status).toBe(401)
    const key = await service.key(who)
    expect((await service.call("/v1/auth/oauth/code", { token: key, json: request(verifierOf()) })).status).toBe(401)
  })
})

describe("a code", () => {
  const invalid = { error: "invalid_grant", error_description: expect.any(String) }

  it("gives tokens that charge the team first, and stay so through refresh", async () => {
    const [ada, who] = [await person(), await person()]
    const team = (await service.call("/v1/tenants", { token: ada.token, json: { name: "Team" } })).body.result.id
    await service.control(`/tenants/${team}`, { plan: "team" })
    await service.control("/credit", { tenant_id: team, amount: 5, source: "purchase" })
    await service.call(`/v1/tenants/${team}/invites`, { token: ada.token, json: { email: who.email } })
    const { linkTo } = await import("../support/mail.ts")
    await service.call(`/v1/tenant-invites/${await linkTo(service, who.email)}/accept`, {
      token: who.token,
      method: "POST"
    })
    const verifier = verifierOf()
    const { body } = await redeem(await codeFor(who, verifier), verifier)
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: "Bearer",
      expires_in: 3600,
      refresh_token: expect.any(String),
      scope: "profile email calls"
    })
    const refreshed = (await exchange({ grant_type: "refresh_token", refresh_token: body.refresh_token })).body
    for (const token of [body.access_token, refreshed.access_token]) {
      expect((await service.call("/v1/search?query=x", { token })).status).toBe(200)
      const [record] = await service.usage(who)
      expect([record.billing_source_kind, record.billing_source_tenant_id]).toEqual(["team", team])
    }
    expect((await service.call("/v1/search?query=x", { token: who.token })).status).toBe(200)
    expect((await service.usage(who))[0].billing_source_kind).toBe("own")
  })

  it("works once; a second use ends what the first gave", async () => {
    const who = await person()
    const verifier = verifierOf()
    const code = await codeFor(who, verifier)
    const first = await redeem(code, verifier)
    expect(first.status).toBe(200)
    const second = await redeem(code, verifier)
    expect([second.status, second.body]).toEqual([400, invalid])
    const refresh = await exchange({ grant_type: "refresh_token", refresh_token: first.body.refresh_token })
    expect([refresh.status, refresh.body]).toEqual([400, invalid])
    expect((await service.call("/v1/me", { token: first.body.access_token })).status).toBe(401)
  })

  it("of many uses at once, one works", async () => {
    const who = await person()
    const verifier = verifierOf()
    const code = await codeFor(who, verifier)
    const answers = await Promise.all(Array.from({ length: 10 }, () => redeem(code, verifier)))
    const [won, ...others] = answers.filter(({ status }) => status === 200)
    expect(others).toEqual([])
    // The others were copies: what the first gave has ended, however close they came.
    const { refresh_token } = won!.body
    expect((await exchange({ grant_type: "refresh_token", refresh_token })).body).toEqual(invalid)
  })

  it("is burnt by a wrong verifier", async () => {
    const who = await person()
    const verifier = verifierOf()
    const code = await codeFor(who, verifier)
    expect((await redeem(code, verifierOf())).body).toEqual(invalid)
    expect((await redeem(code, verifier)).body).toEqual(invalid)
  })

  it("lasts a minute", async () => {
    const who = await person()
    const verifier = verifierOf()
    const code = await codeFor(who, verifier)
    await service.control("/clock", { advance_ms: 61_000 })
    expect((await redeem(code, verifier)).body).toEqual(invalid)
  })

  it("is the application's, for its address", async () => {
    const who = await person()
    const verifier = verifierOf()
    expect(
      (await redeem(await codeFor(who, verifier), verifier, { redirect_uri: "http://127.0.0.1/callback" })).body
    ).toEqual(invalid)
    const other = await redeem(await codeFor(who, verifier), verifier, { client_id: "nobody" })
    expect([other.status, other.body.error]).toEqual([401, "invalid_client"])
    const missing = await redeem(await codeFor(who, verifier), verifier, { code_verifier: undefined })
    expect([missing.status, missing.body.error]).toEqual([400, "invalid_request"])
  })

  it("is taken as a form too", async () => {
    const who = await person()
    const verifier = verifierOf()
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code: await codeFor(who, verifier),
      redirect_uri,
      client_id,
      code_verifier: verifier
    })
    const response = await fetch(`${service.url}/v1/auth/oauth/token`, { method: "POST", body: form })
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"])
  })

  it.each(["password", "client_credentials", ""])("grant type %j is not supported", async (grant_type) => {
    const answer = await exchange({ grant_type })
    expect([answer.status, answer.body.error]).toEqual([400, `Unsupported grant_type: ${grant_type}`])
  })
})

describe("who a person is", () => {
  it("is told to a client library, by the metadata", async () => {
    const who = await person()
    const config = await discovered()
    const { access_token, id_token } = (await tokensFor(service, who, "openid")).body
    expect(id_token).toEqual(expect.any(String))
    const claims = await oidc.fetchUserInfo(config, access_token, who.account_id)
    expect(claims).toEqual({ sub: who.account_id, email: who.email, email_verified: true, name: expect.any(String) })
    const posted = await service.call("/v1/auth/oauth/userinfo", { token: access_token, method: "POST" })
    expect(posted.body).toEqual(claims)
  })

  it("is told by an access token only", async () => {
    const who = await person()
    const { id_token } = (await tokensFor(service, who, "openid")).body
    for (const token of [undefined, id_token, await service.key(who)])
      expect((await service.call("/v1/auth/oauth/userinfo", { ...(token !== undefined && { token }) })).status).toBe(
        401
      )
  })
})

describe("revocation", () => {
  const revoke = (json: object) => service.call("/v1/auth/oauth/revoke", { json: { client_id, ...json } })
  const isLive = async ({ access_token, refresh_token }: Record<string, string>) => [
    (await service.call("/v1/me", { token: access_token! })).status === 200,
    (await exchange({ grant_type: "refresh_token", refresh_token })).status === 200
  ]

  it.each(["access_token", "refresh_token"] as const)(
    "by the %s ends the sign-in, for a client library",
    async (by) => {
      const tokens = (await tokensFor(service, await person(), "profile")).body
      await oidc.tokenRevocation(await discovered(), tokens[by])
      expect(await isLive(tokens)).toEqual([false, false])
      expect((await revoke({ token: tokens[by] })).status).toBe(200)
    }
  )

  it("of what is no token, or another client's, is answered alike and ends nothing", async () => {
    const tokens = (await tokensFor(service, await person(), "profile")).body
    for (const json of [
      { token: "rt_nothing" },
      { token: "x.y.z" },
      { token: tokens.refresh_token, client_id: "sandbox-desktop" },
      { token: tokens.access_token, client_id: "sandbox-desktop" }
    ]) {
      const answer = await revoke(json)
      expect([answer.status, answer.body]).toEqual([200, ""])
    }
    expect(await isLive(tokens)).toEqual([true, true])
  })

  it.each([
    [{}, 400, "invalid_request"],
    [{ token: "x", client_id: "nobody" }, 401, "invalid_client"],
    [{ token: 7 }, 400, "invalid_request"]
  ])("is refused for %j", async (json, status, error) => {
    const answer = await revoke(json)
    expect([answer.status, answer.body.error]).toEqual([status, error])
  })
})

describe("the device flow", () => {
  it("from a command line to its tokens, by a client library", async () => {
    const who = await person()
    const config = await discovered()
    const begun = await oidc.initiateDeviceAuthorization(config, { scope: "openid" })
    expect(begun).toMatchObject({ expires_in: 600, interval: 5, verification_uri: `${service.url}/oauth/device` })
    expect(begun.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)

    // The person types the code, in lower case and without its dash.
    const browser = new Browser(service)
    const asked = await browser.open(begun.verification_uri)
    expect([asked.status, asked.html.includes('name="user_code"')]).toEqual([200, true])
    const typed = `${begun.verification_uri}?user_code=${begun.user_code.replace("-", "").toLowerCase()}`
    const question = await toTheQuestion(browser, typed, who.email)
    for (const words of [begun.user_code, "Sandbox Application", who.email, "read your usage and your balance"])
      expect(question.html).toContain(words)
    expect(question.html).not.toContain("send your credit")
    const decided = await browser.open(`${service.url}/oauth/device`, {
      ...fieldsOf(question.html),
      decision: "allow"
    })
    expect([decided.status, decided.html.includes("Connected")]).toEqual([200, true])

    const tokens = await oidc.pollDeviceAuthorizationGrant(config, { ...begun, interval: 0 })
    expect(tokens.claims()?.sub).toBe(who.account_id)
    expect((await service.call("/v1/me", { token: tokens.access_token })).body.result.account.id).toBe(who.account_id)
  })

  it("waits, slows down who asks too often, and works once", async () => {
    const who = await person()
    const { device_code, verification_uri_complete } = await begin()
    expect((await poll(device_code)).body.error).toBe("authorization_pending")
    expect((await poll(device_code)).body.error).toBe("slow_down")
    await service.control("/clock", { advance_ms: 5_000 })
    expect((await poll(device_code)).body.error).toBe("slow_down")
    await service.control("/clock", { advance_ms: 15_000 })
    expect((await poll(device_code)).body.error).toBe("authorization_pending")
    await decide(new Browser(service), verification_uri_complete, who.email, "allow")

    const answers = await Promise.all([poll(device_code), poll(device_code), poll(device_code)])
    const [won, ...others] = answers.filter(({ status }) => status === 200)
    expect([others, won!.body.scope]).toEqual([[], "openid profile email calls transfers"])
    // A second use is a copy: what the first gave ends.
    expect((await poll(device_code)).body.error).toBe("invalid_grant")
    expect((await service.call("/v1/me", { token: won!.body.access_token })).status).toBe(401)
  })

  it("a person who does not allow it is believed; a decision is made once", async () => {
    const who = await person()
    const { device_code, verification_uri_complete } = await begin()
    const browser = new Browser(service)
    const question = await toTheQuestion(browser, verification_uri_complete, who.email)
    const { proof: _, ...forged } = fieldsOf(question.html)
    expect((await browser.open(`${service.url}/oauth/device`, { ...forged, decision: "allow" })).status).toBe(400)
    const decision = (decision: string) =>
      browser.open(`${service.url}/oauth/device`, { ...fieldsOf(question.html), decision })
    expect((await decision("deny")).html).toContain("Not allowed")
    expect((await decision("allow")).status).toBe(400)
    expect((await poll(device_code)).body.error).toBe("access_denied")
  })

  it("lasts ten minutes", async () => {
    const who = await person()
    const { device_code, verification_uri_complete } = await begin()
    await service.control("/clock", { advance_ms: 601_000 })
    expect((await poll(device_code)).body.error).toBe("expired_token")
    const page = await toTheQuestion(new Browser(service), verification_uri_complete, who.email)
    expect([page.status, page.html.includes("No device is waiting")]).toEqual([400, true])
  })

  it("tells nobody who has not signed in whether a code is one", async () => {
    const { verification_uri_complete } = await begin()
    const real = await new Browser(service).open(verification_uri_complete)
    const guessed = await new Browser(service).open(`${service.url}/oauth/device?user_code=BBBB-BBBB`)
    expect([real.status, guessed.status]).toEqual([200, 200])
    expect(guessed.html).toContain("Continue with Google")
    expect(guessed.html.replaceAll(/state=[^"&]+/g, "").length).toBe(real.html.replaceAll(/state=[^"&]+/g, "").length)
    const markup = await new Browser(service).open(
      `${service.url}/oauth/device?user_code=${encodeURIComponent('"><b>')}`
    )
    expect(markup.html).not.toContain("<b>")
  })

  it.each([
    [{ client_id: "nobody" }, "invalid_client"],
    [{ client_id: "sandbox-desktop" }, "unauthorized_client"],
    [{ scope: "openid everything" }, "invalid_scope"]
  ])("is refused for %j", async (json, error) => {
    expect((await begin(json)).error).toBe(error)
  })

  it.each([[{}, "invalid_request"] as const, [{ device_code: "dc_x" }, "invalid_grant"] as const])(
    "a question with %j is refused",
    async (json, error) => {
      expect((await exchange({ grant_type: deviceGrant, ...json })).body.error).toBe(error)
    }
  )

  it("a code is its client's", async () => {
    const { device_code } = await begin()
    const other = await exchange({ grant_type: deviceGrant, device_code, client_id: "sandbox-desktop" })
    expect(other.body.error).toBe("invalid_grant")
  })
})

describe("time", () => {
  it("a refresh token lasts 7 days, a sign-in 90, and signing keys change without signing anyone out", async () => {
    const mine = await start()
    try {
      const who = await mine.signIn("patient@example.com")
      const { client_id } = await mine.sandbox()
      const refresh = (refresh_token: string) =>
        mine.call("/v1/auth/token", { json: { client_id, grant_type: "refresh_token", refresh_token } })
      const keys = async () =>
        (await mine.call("/.well-known/jwks.json")).body.keys.map(({ kid }: { kid: string }) => kid)
      const before = await keys()
      let token = who.refresh_token
      for (let day = 6; day < 90; day += 6) {
        await mine.control("/clock", { advance_ms: 6 * days })
        const { body, status } = await refresh(token)
        expect([day, status]).toEqual([day, 200])
        token = body.result.refresh_token
        expect((await mine.call("/v1/me", { token: body.result.access_token })).status).toBe(200)
      }
      // Those that signed before have retired with the last of their tokens.
      expect(await keys()).toHaveLength(1)
      expect(await keys()).not.toEqual(before)
      await mine.control("/clock", { advance_ms: 7 * days })
      expect((await refresh(token)).body.code).toBe("invalid_grant")
      const fresh = await mine.signIn("patient@example.com")
      await mine.control("/clock", { advance_ms: 7 * days + 1 })
      expect((await refresh(fresh.refresh_token)).status).toBe(401)
    } finally {
      await mine.discard()
    }
  })
})
