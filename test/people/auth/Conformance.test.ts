/**
 * The OpenID Foundation's test plans "Basic OP" and PKCE, restated for this server: public clients, the code flow, PKCE with S256. Each test has
 * the name of its module. Modules for features that the metadata does not offer (client secrets, request objects, claims requests,
 * `address`, `phone`) check their refusal.
 */
import { createLocalJWKSet, jwtVerify } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  Browser,
  challengeOf,
  fieldsOf,
  redirect_uri,
  request,
  toTheQuestion,
  verifierOf
} from "../../support/OAuth.ts"
import { start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

let service: Service
let who: Person
beforeAll(async () => {
  service = await start()
  who = await service.signIn("conformance@example.com")
})
afterAll(() => service.discard())

const client_id = "sandbox-oauth"

const pageOf = (verifier: string, more: Record<string, string | undefined> = {}): string => {
  const asked = Object.entries(request(verifier, { scope: "openid", ...more }))
  return `${service.url}/oauth/authorize?${new URLSearchParams(asked.filter(([, value]) => value !== undefined))}`
}

/** The answer at the redirect address after the person has signed in and allowed the request. */
const answerTo = async (page: string, browser = new Browser(service)): Promise<URLSearchParams> => {
  const question = await toTheQuestion(browser, page, who.email)
  const decided = await browser.open(`${service.url}/oauth/authorize`, {
    ...fieldsOf(question.html),
    decision: "allow"
  })
  expect(decided.location?.startsWith(redirect_uri)).toBe(true)
  return new URL(decided.location!).searchParams
}

/** The answer at the redirect address without any page in between. */
const errorOf = async (page: string, browser = new Browser(service)): Promise<string | null> => {
  const { location } = await browser.open(page)
  expect(location?.startsWith(redirect_uri)).toBe(true)
  const answer = new URL(location!).searchParams
  expect([answer.get("state"), answer.get("iss"), answer.has("code")]).toEqual(["s-1", service.url, false])
  return answer.get("error")
}

const exchange = (form: Record<string, string>) =>
  service.call("/v1/auth/oauth/token", { json: { client_id, redirect_uri, grant_type: "authorization_code", ...form } })

const tokensFor = async (more: Record<string, string | undefined> = {}) => {
  const verifier = verifierOf()
  const answer = await answerTo(pageOf(verifier, more))
  const { body, status } = await exchange({ code: answer.get("code")!, code_verifier: verifier })
  expect(status).toBe(200)
  return body
}

const claimsOf = async (id_token: string) => {
  const keys = createLocalJWKSet((await service.call("/.well-known/jwks.json")).body)
  const { payload, protectedHeader } = await jwtVerify(id_token, keys, { issuer: service.url, audience: client_id })
  expect(protectedHeader).toMatchObject({ alg: "ES256", kid: expect.any(String) })
  return payload
}

const metadata = async () => (await service.call("/.well-known/openid-configuration")).body

describe("Basic OP", () => {
  it("oidcc-server: code flow with a signed ID token", async () => {
    const tokens = await tokensFor({ nonce: "n-1" })
    expect(tokens).toMatchObject({ token_type: "Bearer", expires_in: 3600, access_token: expect.any(String) })
    const claims = await claimsOf(tokens.id_token)
    expect(claims).toMatchObject({ sub: who.account_id, nonce: "n-1" })
    expect(claims.exp! > claims.iat!).toBe(true)
  })

  it("oidcc-response-type-missing", async () => {
    expect(["invalid_request", "unsupported_response_type"]).toContain(
      await errorOf(pageOf(verifierOf(), { response_type: undefined }))
    )
  })

  it("oidcc-userinfo-get, oidcc-userinfo-post-header", async () => {
    const { access_token: token } = await tokensFor()
    for (const method of ["GET", "POST"]) {
      const { body, status } = await service.call("/v1/auth/oauth/userinfo", { token, method })
      expect([status, body.sub]).toEqual([200, who.account_id])
    }
  })

  it("oidcc-ensure-request-without-nonce-succeeds-for-code-flow", async () => {
    expect((await claimsOf((await tokensFor()).id_token)).nonce).toBeUndefined()
  })

  it("oidcc-scope-profile, oidcc-scope-email, oidcc-ensure-other-scope-order-succeeds", async () => {
    for (const scope of ["openid profile", "openid email", "email openid profile"]) {
      const { access_token: token, id_token } = await tokensFor({ scope })
      const claims = { email: who.email, email_verified: true, name: expect.any(String) }
      expect(await claimsOf(id_token)).toMatchObject(claims)
      expect((await service.call("/v1/auth/oauth/userinfo", { token })).body).toMatchObject(claims)
    }
  })

  it("oidcc-scope-address, oidcc-scope-phone: not offered, and refused", async () => {
    const { scopes_supported } = await metadata()
    for (const scope of ["address", "phone"]) {
      expect(scopes_supported).not.toContain(scope)
      expect(await errorOf(pageOf(verifierOf(), { scope: `openid ${scope}` }))).toBe("invalid_scope")
    }
  })

  it.each([
    ["oidcc-display-page", { display: "page" }],
    ["oidcc-display-popup", { display: "popup" }],
    ["oidcc-ensure-request-with-unknown-parameter-succeeds", { extra: "foobar" }],
    ["oidcc-login-hint", { login_hint: "conformance@example.com" }],
    ["oidcc-ui-locales", { ui_locales: "se" }],
    ["oidcc-claims-locales", { claims_locales: "se" }],
    ["oidcc-ensure-request-with-acr-values-succeeds", { acr_values: "1 2" }]
  ])("%s", async (_, more) => {
    expect((await tokensFor(more as Record<string, string>)).id_token).toEqual(expect.any(String))
  })

  it("oidcc-prompt-none-not-logged-in", async () => {
    expect(await errorOf(pageOf(verifierOf(), { prompt: "none" }))).toBe("login_required")
  })

  it("oidcc-prompt-none-logged-in: each request needs consent", async () => {
    const browser = new Browser(service)
    await toTheQuestion(browser, pageOf(verifierOf()), who.email)
    expect(await errorOf(pageOf(verifierOf(), { prompt: "none" }), browser)).toBe("consent_required")
  })

  it("prompt=none with another value is invalid", async () => {
    expect(await errorOf(pageOf(verifierOf(), { prompt: "none login" }))).toBe("invalid_request")
  })

  it("oidcc-prompt-login", async () => {
    const browser = new Browser(service)
    await toTheQuestion(browser, pageOf(verifierOf()), who.email)
    expect((await browser.open(pageOf(verifierOf()))).html).toContain("asks for access")
    const page = pageOf(verifierOf(), { prompt: "login" })
    expect((await browser.open(page)).html).toContain("Continue with Google")
    expect((await answerTo(page, browser)).get("code")).toEqual(expect.any(String))
  })

  it("oidcc-max-age-1, oidcc-max-age-10000", async () => {
    const browser = new Browser(service)
    const authTime = async (max_age: string) => {
      const verifier = verifierOf()
      const code = (await answerTo(pageOf(verifier, { max_age }), browser)).get("code")!
      return (await claimsOf((await exchange({ code, code_verifier: verifier })).body.id_token)).auth_time as number
    }
    const first = await authTime("10000")
    expect((await browser.open(pageOf(verifierOf(), { max_age: "10000" }))).html).toContain("asks for access")
    await service.control("/clock", { advance_ms: 2_000 })
    expect((await browser.open(pageOf(verifierOf(), { max_age: "1" }))).html).toContain("Continue with Google")
    expect(await authTime("1")).toBeGreaterThan(first)
    expect(await errorOf(pageOf(verifierOf(), { max_age: "soon" }))).toBe("invalid_request")
  })

  it("oidcc-codereuse, oidcc-codereuse-30seconds", async () => {
    const verifier = verifierOf()
    const code = (await answerTo(pageOf(verifier))).get("code")!
    const { access_token: token } = (await exchange({ code, code_verifier: verifier })).body
    const again = await exchange({ code, code_verifier: verifier })
    expect([again.status, again.body.error]).toEqual([400, "invalid_grant"])
    expect((await service.call("/v1/auth/oauth/userinfo", { token })).status).toBe(401)
  })

  it("oidcc-ensure-registered-redirect-uri", async () => {
    const page = await new Browser(service).open(pageOf(verifierOf(), { redirect_uri: `${redirect_uri}/other` }))
    expect([page.status, page.location]).toEqual([400, undefined])
  })

  it("oidcc-ensure-post-request-succeeds", async () => {
    const verifier = verifierOf()
    const browser = new Browser(service)
    const asked = Object.fromEntries(new URL(pageOf(verifier)).searchParams)
    const { location } = await browser.open(`${service.url}/oauth/authorize`, asked)
    expect((await answerTo(location!, browser)).get("state")).toBe("s-1")
  })

  it("oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported", async () => {
    expect(await metadata()).toMatchObject({
      request_parameter_supported: false,
      request_uri_parameter_supported: false,
      claims_parameter_supported: false
    })
    expect(await errorOf(pageOf(verifierOf(), { request: "eyJhbGciOiJub25lIn0.e30." }))).toBe("request_not_supported")
    expect(await errorOf(pageOf(verifierOf(), { request_uri: "https://app.example/request" }))).toBe(
      "request_uri_not_supported"
    )
  })

  it("oidcc-refresh-token", async () => {
    const { refresh_token } = await tokensFor()
    const form = { grant_type: "refresh_token", refresh_token }
    const { body, status } = await exchange(form)
    expect([status, body.access_token !== undefined]).toEqual([200, true])
    expect((await service.call("/v1/auth/oauth/userinfo", { token: body.access_token })).body.sub).toBe(who.account_id)
  })
})

describe("PKCE", () => {
  it("ensure-request-with-valid-pkce-succeeds", async () => {
    expect((await metadata()).code_challenge_methods_supported).toEqual(["S256"])
    expect((await tokensFor()).access_token).toEqual(expect.any(String))
  })

  it("ensure-request-without-pkce-fails", async () => {
    const more = { code_challenge: undefined, code_challenge_method: undefined }
    expect(await errorOf(pageOf(verifierOf(), more))).toBe("invalid_request")
  })

  it("ensure-plain-code-challenge-method-fails, and so does a missing method", async () => {
    const verifier = verifierOf()
    for (const code_challenge_method of ["plain", undefined])
      expect(await errorOf(pageOf(verifier, { code_challenge: verifier, code_challenge_method }))).toBe(
        "invalid_request"
      )
  })

  it.each([
    ["missing", undefined, "invalid_request"],
    ["of another request", verifierOf(), "invalid_grant"],
    ["too short", "a".repeat(42), "invalid_grant"],
    ["with invalid characters", `${"a".repeat(42)}=`, "invalid_grant"]
  ])("a code verifier that is %s fails", async (_, wrong, error) => {
    const verifier = verifierOf()
    const code = (await answerTo(pageOf(verifier))).get("code")!
    const answer = await exchange({ code, ...(wrong !== undefined && { code_verifier: wrong }) })
    expect([answer.status, answer.body.error]).toEqual([400, error])
  })

  it("the challenge itself is no verifier", async () => {
    const verifier = verifierOf()
    const code = (await answerTo(pageOf(verifier))).get("code")!
    expect((await exchange({ code, code_verifier: challengeOf(verifier) })).body.error).toBe("invalid_grant")
  })
})
