/** What an application's token may do, over HTTP: what its consent page said, and not longer than its sign-in lasts. */
import * as oidc from "openid-client"
import { decodeProtectedHeader } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { demands } from "../support/demands.ts"
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
import { commandHere } from "../support/CommandLine.ts"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person
beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
})
afterAll(() => service.discard())

const me = async (token: string) => (await service.call("/v1/me", { token })).status

const ask = (route: string, token: string) => {
  const [method = "", path = ""] = route.split(" ")
  return service.call(path.replace(":tenant_id", ada.tenant_id).replaceAll(/:\w+/g, "x"), {
    method,
    token,
    ...(method !== "GET" && { raw: "{}", headers: { "content-type": "application/json" } })
  })
}

/** Every route of the contract that a user token reaches, with the scope that it demands. */
const routes = async (): Promise<ReadonlyArray<readonly [string, string]>> => {
  const { paths } = (await service.call("/openapi.json")).body
  return Object.entries(paths as Record<string, Record<string, { security?: ReadonlyArray<object> }>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods).flatMap(([method, { security = [] }]) => {
        const names = security.flatMap((one) => Object.keys(one))
        const route = `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`
        return names.some((name) => name.startsWith("user_token")) ? [[route, demands[route] ?? "calls"] as const] : []
      })
  )
}

describe("the token of an application", () => {
  it.each(["", "keys", "transfers", "billing", "organization"])(
    "that was allowed %j does that, calls and reading, and nothing else",
    async (scope) => {
      const { access_token } = (await tokensFor(service, ada, scope)).body
      const allowed = new Set(["profile", "calls", scope])
      for (const [route, demand] of await routes()) {
        const { body, headers, status } = await ask(route, access_token)
        if (allowed.has(demand)) {
          expect([route, body.code]).not.toEqual([route, "insufficient_scope"])
          expect([route, status]).not.toEqual([route, 401])
          continue
        }
        const named = demand === "sign_in" ? "" : `, scope="${demand}"`
        expect([route, status, body.code, headers.get("www-authenticate")]).toEqual([
          route,
          403,
          "insufficient_scope",
          `Bearer error="insufficient_scope"${named}`
        ])
      }
    }
  )

  it("of the operator's own does all that a sign-in does, but consent", async () => {
    const { access_token, scope } = (await tokensFor(service, ada, "profile", { client_id: "sandbox-desktop" })).body
    expect(scope).toBe("openid profile email calls keys transfers billing organization")
    for (const [route, demand] of await routes()) {
      const { body } = await ask(route, access_token)
      expect([route, body.code === "insufficient_scope"]).toEqual([route, demand === "sign_in"])
    }
  })

  it("that may change limits of keys was allowed so in words", async () => {
    const { access_token: token } = (await tokensFor(service, ada, "keys")).body
    const keys = `/v1/tenants/${ada.tenant_id}/applications`
    const limited = { name: "limited", description: "", spending_limit_usd: 1 }
    const { id } = (await service.call(keys, { token: ada.token, json: limited })).body.result
    const lifted = { method: "PATCH", token, json: { spending_limit_usd: null } }
    expect((await service.call(`${keys}/${id}`, lifted)).body.result).not.toHaveProperty("spending_limit_usd")
    const asked = await service.call("/v1/auth/oauth/request", { json: request(verifierOf(), { scope: "keys" }) })
    expect(asked.body.result.allows.join("\n")).toMatch(/change .*API keys and their limits/)
  })

  it("mints no second sign-in, by no client", async () => {
    for (const client_id of ["sandbox-oauth", "sandbox-desktop"]) {
      const { access_token: token } = (await tokensFor(service, ada, "", { client_id })).body
      const asked = request(verifierOf(), { client_id })
      const { body, status } = await service.call("/v1/auth/oauth/code", { token, json: asked })
      expect([status, body.code]).toEqual([403, "insufficient_scope"])
    }
  })

  it("keeps its scope through refresh, whichever route that takes", async () => {
    const first = (await tokensFor(service, ada, "openid keys")).body
    expect(first.scope).toBe("openid profile email calls keys")
    const client_id = "sandbox-oauth"
    const second = (
      await service.call("/v1/auth/oauth/token", {
        json: { grant_type: "refresh_token", refresh_token: first.refresh_token, client_id }
      })
    ).body
    expect(second.scope).toBe(first.scope)
    const third = (
      await service.call("/v1/auth/token", {
        json: { grant_type: "refresh_token", refresh_token: second.refresh_token, client_id }
      })
    ).body.result
    expect(third.scope).toBe(first.scope)
    const own = await service.signIn("ada@example.com")
    const { result } = (
      await service.call("/v1/auth/token", {
        json: { grant_type: "refresh_token", refresh_token: own.refresh_token, client_id: "sandbox-client" }
      })
    ).body
    expect(result.scope).toBeUndefined()
    const keys = `/v1/tenants/${ada.tenant_id}/applications`
    expect((await service.call(keys, { token: third.access_token })).status).toBe(200)
    const plan = `/v1/tenants/${ada.tenant_id}/plan`
    expect((await service.call(plan, { token: third.access_token })).status).toBe(403)
    expect((await service.call(plan, { token: result.access_token })).status).toBe(200)
  })
})

describe("what has ended", () => {
  it("takes its access tokens with it: revoked, refreshed twice, signed out", async () => {
    const revoked = (await tokensFor(service, ada, "")).body
    const reused = (await tokensFor(service, ada, "")).body
    const own = await service.signIn("ada@example.com")
    const other = await service.signIn("ada@example.com")
    for (const token of [revoked.access_token, reused.access_token, own.token]) expect(await me(token)).toBe(200)

    await service.call("/v1/auth/revoke", { json: { token: revoked.refresh_token } })
    await service.call("/v1/auth/revoke", { json: { token: own.refresh_token } })
    const refresh = () =>
      service.call("/v1/auth/oauth/token", {
        json: { grant_type: "refresh_token", refresh_token: reused.refresh_token, client_id: "sandbox-oauth" }
      })
    const fresh = (await refresh()).body
    expect((await refresh()).body.error).toBe("invalid_grant")
    for (const token of [revoked.access_token, reused.access_token, fresh.access_token, own.token]) {
      expect(await me(token)).toBe(401)
      // In the fast lane too.
      const chat = await service.call("/v1/chat/completions", { token, json: {} })
      expect([chat.status, chat.body.error]).toEqual([401, "invalid API key format"])
    }
    expect(await me(other.token)).toBe(200)
  })
})

describe("a key that an application made", () => {
  const keys = () => `/v1/tenants/${ada.tenant_id}/applications`
  const make = async () => {
    const tokens = (await tokensFor(service, ada, "keys")).body
    const made = await service.call(keys(), { token: tokens.access_token, json: { name: "theirs" } })
    expect([made.status, made.body.result.created_by]).toEqual([
      201,
      { client_id: "sandbox-oauth", name: "Sandbox Application" }
    ])
    const { api_key, ...application } = made.body.result
    expect(await works(api_key)).toBe(true)
    return { tokens, api_key, application }
  }
  const works = async (key: string) => (await service.call("/v1/models", { token: key })).status === 200
  const listed = async () =>
    (await service.call(keys(), { token: ada.token })).body.result.records.map(({ id }: { id: string }) => id)
  const refresh = (refresh_token: string) =>
    service.call("/v1/auth/oauth/token", {
      json: { grant_type: "refresh_token", refresh_token, client_id: "sandbox-oauth" }
    })

  it("says who made it, to the person too, and ends with the application's sign-in", async () => {
    const own = await service.call(keys(), { token: ada.token, json: { name: "mine" } })
    expect(own.body.result.created_by).toBeUndefined()
    const [revoked, copied, stays] = [await make(), await make(), await make()]
    const shown = await service.call(`${keys()}/${revoked.application.id}`, { token: ada.token })
    expect(shown.body.result.created_by).toEqual(revoked.application.created_by)

    await service.call("/v1/auth/oauth/revoke", {
      json: { token: revoked.tokens.refresh_token, client_id: "sandbox-oauth" }
    })
    // A refresh token that is used twice ends the sign-in as well.
    const fresh = (await refresh(copied.tokens.refresh_token)).body
    expect(await works(copied.api_key)).toBe(true)
    await refresh(copied.tokens.refresh_token)
    expect(fresh.access_token).toBeDefined()
    for (const { api_key, application } of [revoked, copied]) {
      expect(await works(api_key)).toBe(false)
      expect((await service.call(`${keys()}/${application.id}`, { token: ada.token })).status).toBe(404)
    }
    expect(await listed()).toEqual(expect.arrayContaining([stays.application.id, own.body.result.id]))
    expect(await listed()).not.toContain(revoked.application.id)
    expect([await works(stays.api_key), await works(own.body.result.api_key)]).toEqual([true, true])
  })

  it("ends where the code that its sign-in came from is presented twice", async () => {
    const code_verifier = verifierOf()
    const json = request(code_verifier, { scope: "keys" })
    const { code } = (await service.call("/v1/auth/oauth/code", { token: ada.token, json })).body.result
    const redeem = { grant_type: "authorization_code", code, redirect_uri, code_verifier, client_id: "sandbox-oauth" }
    const { access_token } = (await service.call("/v1/auth/oauth/token", { json: redeem })).body
    const made = await service.call(keys(), { token: access_token, json: { name: "theirs" } })
    expect(await works(made.body.result.api_key)).toBe(true)
    await service.call("/v1/auth/oauth/token", { json: redeem })
    expect(await works(made.body.result.api_key)).toBe(false)
  })
})

describe("a scope that nobody knows", () => {
  it("is refused, in JSON and at the application's own address", async () => {
    const asked = request(verifierOf(), { scope: "profile everything" })
    for (const answer of [
      await service.call("/v1/auth/oauth/request", { json: asked }),
      await service.call("/v1/auth/oauth/code", { json: asked, token: ada.token })
    ]) {
      expect([answer.status, answer.body.code]).toEqual([400, "invalid_scope"])
      expect(answer.body.error).toContain("everything")
    }
    const page = await new Browser(service).open(`${service.url}/oauth/authorize?${new URLSearchParams(asked)}`)
    const answer = new URL(page.location!)
    expect([answer.origin, answer.searchParams.get("error"), answer.searchParams.get("state")]).toEqual([
      new URL(redirect_uri).origin,
      "invalid_scope",
      "s-1"
    ])
  })
})

describe("the consent page", () => {
  const question = async (more: object) => {
    const page = `${service.url}/oauth/authorize?${new URLSearchParams(request(verifierOf(), more))}`
    return text((await toTheQuestion(new Browser(service), page, "ada@example.com")).html)
  }

  it("lists what the application gets, and nothing that it does not", async () => {
    const plain = await question({ scope: "" })
    expect(plain).toContain("it can only:")
    expect(plain).toContain("make calls that are charged to your teams and to you")
    expect(plain).not.toContain("API keys")
    const more = await question({ scope: "keys transfers" })
    expect(more).toContain("API keys")
    expect(more).toContain("send your credit to other users")
    expect(more).not.toContain("auto-reload")
  })

  it("says of the operator's own that it may do everything", async () => {
    const page = await question({ client_id: "sandbox-desktop", scope: "profile" })
    expect(page).toContain("do everything that you can do when you sign in to Tollgate yourself")
    expect(page).toContain("API keys")
  })

  it("answers a form that is no form of its own with 400, whatever is in it", async () => {
    const browser = new Browser(service)
    const page = `${service.url}/oauth/authorize?${new URLSearchParams(request(verifierOf()))}`
    const { html } = await toTheQuestion(browser, page, "ada@example.com")
    for (const proof of ["é".repeat(64), "", "x".repeat(64)]) {
      const answer = await browser.open(`${service.url}/oauth/authorize`, {
        ...fieldsOf(html),
        proof,
        decision: "allow"
      })
      expect([answer.status, answer.html.includes("Nothing was allowed")]).toEqual([400, true])
    }
    for (const cookie of ["%", "%E0%A4%A", "a.b.c.d.e", "{", "", `"`, "x; tollgate_consent=y"]) {
      browser.cookies.set("tollgate_consent", cookie)
      expect((await browser.open(`${service.url}/oauth/authorize`, fieldsOf(html))).status).toBe(400)
      expect((await browser.open(page)).status).toBe(200)
      expect((await browser.open(`${service.url}/oauth/continue?arriving=x`)).status).toBe(400)
      expect((await browser.open(`${service.url}/oauth/signed-in`, { state: "x" })).status).toBe(400)
      browser.cookies.clear()
    }
  })
})

describe("openid", () => {
  it("tells an off-the-shelf client who has signed in", async () => {
    const config = await oidc.discovery(new URL(service.url), "sandbox-oauth", undefined, oidc.None(), {
      execute: [oidc.allowInsecureRequests]
    })
    expect(config.serverMetadata()).toMatchObject({
      scopes_supported: ["openid", "profile", "email", "calls", "keys", "transfers", "billing", "organization"],
      claims_supported: expect.arrayContaining(["sub", "email", "email_verified", "name", "nonce"])
    })
    // The library goes by the clock on the wall.
    const own = await start()
    try {
      const mine = await oidc.discovery(new URL(own.url), "sandbox-oauth", undefined, oidc.None(), {
        execute: [oidc.allowInsecureRequests]
      })
      const [verifier, state, nonce] = [oidc.randomPKCECodeVerifier(), oidc.randomState(), oidc.randomNonce()]
      const page = oidc.buildAuthorizationUrl(mine, {
        redirect_uri,
        scope: "openid email",
        state,
        nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256"
      })
      const browser = new Browser(own)
      const { html } = await toTheQuestion(browser, page.href, "grace@example.com")
      const decided = await browser.open(`${own.url}/oauth/authorize`, { ...fieldsOf(html), decision: "allow" })
      const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
      const tokens = await oidc.authorizationCodeGrant(mine, new URL(decided.location!), checks)
      const account = (await own.call("/v1/me", { token: tokens.access_token })).body.result.account
      expect(tokens.claims()).toEqual({
        iss: own.url,
        sub: account.id,
        aud: "sandbox-oauth",
        nonce,
        email: "grace@example.com",
        email_verified: true,
        name: "grace",
        iat: expect.any(Number),
        exp: expect.any(Number),
        auth_time: expect.any(Number),
        jti: expect.any(String)
      })
      expect(tokens.scope).toBe("openid profile email calls")
      // It says who somebody is; it opens nothing.
      expect((await own.call("/v1/me", { token: tokens.id_token! })).status).toBe(401)
      expect([decodeProtectedHeader(tokens.id_token!).typ, decodeProtectedHeader(tokens.access_token).typ]).toEqual([
        "JWT",
        "at+jwt"
      ])
      const without = await tokensFor(own, await own.signIn("grace@example.com"), "profile")
      expect(without.body.id_token).toBeUndefined()
    } finally {
      await own.discard()
    }
  })
})

describe("the operator", () => {
  it("registers an application as trusted, or not", async () => {
    const DATA_DIR = service.folder
    const create = (...more: ReadonlyArray<string>) =>
      commandHere(["client", "create", "--name", "Desk", ...more], { DATA_DIR })
    const redirect = ["--redirect-uri", redirect_uri]
    const trusted = (await create("--kind", "oauth", ...redirect, "--trusted")).stdout.trim()
    const other = (
      await commandHere(["client", "create", "--name", "Another", "--kind", "oauth", ...redirect], { DATA_DIR })
    ).stdout.trim()
    const asked = async (client_id: string) =>
      (await service.call("/v1/auth/oauth/request", { json: request(verifierOf(), { client_id }) })).body.result
    expect((await asked(trusted)).trusted).toBe(true)
    expect((await asked(other)).trusted).toBe(false)
    expect((await commandHere(["client", "list"], { DATA_DIR })).stdout).toContain("oauth, trusted")
    expect(await create("--kind", "web", "--trusted")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("--trusted")
    })
    for (const uri of [
      "javascript:alert(1)",
      "data:text/html,x",
      "https://desk.example/cb#x",
      "https://desk.example/#"
    ]) {
      expect((await create("--kind", "oauth", "--redirect-uri", uri)).stderr).toContain("--redirect-uri")
    }
  })
})
