/** The page of the security rules: every route by every credential, secrets nowhere, knocking limited, the contact form. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lettersTo } from "../support/mail.ts"
import { tokensFor } from "../support/OAuth.ts"
import { commandHere } from "../support/CommandLine.ts"
import { command, start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

let service: Service
let who: Person
let key: string
let clientToken: string
let operatorToken: string
beforeAll(async () => {
  service = await start({ env: { LOG_LEVEL: "debug" } })
  who = await service.signIn("secure@example.com")
  key = await service.key(who)
  clientToken = (await service.call("/v1/web/client-token", { json: { service_client_id: "sandbox-web" } })).body.token
  operatorToken = (await commandHere(["operator", "--token"], { DATA_DIR: service.folder })).stdout.trim()
})
afterAll(() => service.discard())

interface Operation {
  readonly method: string
  readonly path: string
  readonly security: "user" | "either" | "key" | "operator" | "scim" | "none"
}

/** Every route of the OpenAPI document, by what it says that it wants. */
const operations = async (): Promise<ReadonlyArray<Operation>> => {
  const { paths } = (await service.call("/openapi.json")).body
  return Object.entries(paths as Record<string, Record<string, { security?: ReadonlyArray<object> }>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, { security = [] }]) => {
        const names = new Set(security.flatMap((one) => Object.keys(one)))
        const wants = names.has("user_token")
          ? "user"
          : names.has("user_token_or_api_key")
            ? "either"
            : names.has("api_key")
              ? "key"
              : names.has("operator_token")
                ? "operator"
                : names.has("scim_token")
                  ? "scim"
                  : "none"
        return { method: method.toUpperCase(), path: path.replaceAll(/\{(\w+)\}/g, "x"), security: wants }
      })
  )
}

const ask = async ({ method, path }: Operation, authorization: string | undefined): Promise<[number, string]> => {
  const { body, status } = await service.call(path, {
    method,
    headers: { "content-type": "application/json", ...(authorization !== undefined && { authorization }) },
    ...(method !== "GET" && { raw: "{}" })
  })
  return [status, typeof body === "object" ? textOf(body.error ?? body.detail) : ""]
}

/** Some protocols have their refusals in an object. */
const textOf = (error: string | { readonly message: string } | undefined): string =>
  typeof error === "object" ? error.message : (error ?? "")

describe("authentication", () => {
  it("every route wants what the specification says, and nothing else gets in", async () => {
    const all = await operations()
    expect(all.length).toBeGreaterThan(70)
    for (const operation of all) {
      const told = `${operation.method} ${operation.path}`
      const of = async (authorization: string | undefined) => [told, ...(await ask(operation, authorization))]
      switch (operation.security) {
        case "none": {
          // A contact message wants a client token, which has a text of its own.
          if (operation.path === "/v1/web/contact") continue
          expect((await of(undefined))[1]).not.toBe(401)
          continue
        }
        case "user": {
          expect(await of(undefined)).toEqual([told, 401, "missing Authorization header"])
          for (const wrong of [key, clientToken, operatorToken, "x.y.z", "nonsense"]) {
            expect(await of(`Bearer ${wrong}`)).toEqual([told, 401, "invalid or expired token"])
          }
          continue
        }
        case "scim": {
          expect(await of(undefined)).toEqual([told, 401, "missing Authorization header"])
          // A sandbox has no directory, so no bearer is right.
          for (const wrong of [key, clientToken, who.token, operatorToken, "x.y.z", "nonsense"]) {
            expect(await of(`Bearer ${wrong}`)).toEqual([told, 401, "invalid or expired token"])
          }
          continue
        }
        case "operator": {
          expect(await of(undefined)).toEqual([told, 401, "missing Authorization header"])
          for (const wrong of [key, clientToken, who.token, "x.y.z", "tgop.x.y.z", "nonsense"]) {
            expect(await of(`Bearer ${wrong}`)).toEqual([told, 401, "invalid or expired token"])
          }
          continue
        }
        default: {
          expect(await of(undefined)).toEqual([told, 401, "missing Authorization header"])
          expect(await of("Bearer x.y.z")).toEqual([told, 401, "invalid API key format"])
          expect(await of(`Bearer ${operatorToken}`)).toEqual([told, 401, "invalid API key format"])
          expect(await of(`Bearer ${clientToken}`)).toEqual([told, 401, "invalid API key format"])
          expect(await of("Bearer svc-prod-unknown")).toEqual([told, 401, "invalid API key"])
          expect(await of("Bearer abc-prod-unknown")).toEqual([told, 401, "API key is not a Tollgate key"])
          if (operation.security === "key") {
            expect(await of(`Bearer ${who.token}`)).toEqual([told, 401, "invalid API key format"])
          } else expect((await of(`Bearer ${who.token}`))[1]).not.toBe(401)
          expect((await of(`Bearer ${key}`))[1]).not.toBe(401)
        }
      }
    }
  })

  it("comes before whatever is wrong with the body", async () => {
    const bodies: ReadonlyArray<readonly [string, RequestInit]> = [
      ["unreadable", { body: "{" }],
      ["of a wrong type", { body: "[1]" }],
      ["empty", { body: "" }],
      ["too large", { body: "x".repeat(2 * 1024 * 1024) }],
      ["in an unknown encoding", { body: "{}", headers: { "content-encoding": "nonsense" } }],
      ["no JSON by its type", { body: new URLSearchParams({ a: "1" }) }]
    ]
    const asked = (await operations()).filter(
      ({ method, path, security }) =>
        ["POST", "PUT", "PATCH"].includes(method) && (security !== "none" || path === "/v1/web/contact")
    )
    expect(asked.length).toBeGreaterThan(30)
    for (const { method, path } of asked) {
      for (const [what, { body, headers }] of bodies) {
        const response = await fetch(service.url + path, {
          method,
          body: body!,
          headers: { "content-type": "application/json", ...(headers as Record<string, string>) }
        })
        const { detail, error = detail } = (await response.json()) as {
          readonly error?: string | { readonly message: string }
          readonly detail?: string
        }
        expect([method, path, what, response.status, textOf(error)]).toEqual([
          method,
          path,
          what,
          401,
          "missing Authorization header"
        ])
      }
    }
  })

  it("the table of the specification holds", async () => {
    const all = await operations()
    const wants = (method: string, path: string) =>
      all.find((one) => one.method === method && one.path === path)?.security
    expect([
      wants("POST", "/v1/chat/completions"),
      wants("GET", "/v1/models"),
      wants("GET", "/v1/usage"),
      wants("POST", "/v1/decisions"),
      wants("POST", "/v1/tools/media/generate"),
      wants("GET", "/v1/tenants/x/usage"),
      wants("PUT", "/v1/tenants/x/billing/auto-reload"),
      wants("GET", "/v1/me"),
      wants("GET", "/v1/me/billing-sources"),
      wants("POST", "/v1/email/self/send"),
      wants("GET", "/v1/prices"),
      wants("GET", "/v1/tools/media/models"),
      wants("POST", "/v1/auth/oauth/token"),
      wants("POST", "/v1/web/client-token")
    ]).toEqual([
      "either",
      "either",
      "either",
      "either",
      "either",
      "user",
      "user",
      "user",
      "user",
      "key",
      "none",
      "none",
      "none",
      "none"
    ])
  })
})

describe("the contact form", () => {
  const message = {
    name: "Ada",
    email: "ada@example.com",
    inquiryType: "sales",
    message: "How much?",
    subscribe: true
  }
  const token = async () =>
    (await service.call("/v1/web/client-token", { json: { service_client_id: "sandbox-web" } })).body
  const write = (bearer: string | undefined, json: object = message) =>
    service.call("/v1/web/contact", { json, ...(bearer !== undefined && { token: bearer }) })

  it("takes a message for each client token, and brings it to the operator", async () => {
    const given = await token()
    expect(given).toEqual({ token: expect.any(String), expires_in: 1800 })
    expect((await write(given.token)).status).toBe(200)
    expect((await write(given.token)).body.error).toBe("invalid or expired token")
    for (let i = 0; i < 100 && (await lettersTo(service, "operator@tollgate.localhost")).length === 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect((await lettersTo(service, "operator@tollgate.localhost"))[0]!.text).toContain("How much?")
  })

  it("refuses other tokens, unknown websites, and what is missing", async () => {
    const missing = await service.call("/v1/web/client-token", { json: {} })
    expect([missing.status, missing.body.error]).toEqual([400, "Tollgate client ID is required"])
    const unknown = await service.call("/v1/web/client-token", { json: { service_client_id: "nobody" } })
    expect([unknown.status, unknown.body.error]).toEqual([404, "Client ID not found"])
    expect((await write(undefined)).body.error).toBe("missing Authorization header")
    for (const wrong of [key, who.token, "ct_none"]) expect((await write(wrong)).status).toBe(401)
    const { token: bearer } = await token()
    for (const field of ["name", "email", "inquiryType", "message"]) {
      const bad = await write(bearer, { ...message, [field]: undefined })
      expect([bad.status, bad.body.details.field]).toEqual([400, field])
    }
    await service.control("/clock", { advance_ms: 30 * 60_000 })
    expect((await write(bearer)).status).toBe(401)
  })

  it("is limited: who knocks too often is told when to come back", async () => {
    await service.control("/clock", { advance_ms: 60_000 })
    const answers = await Promise.all(
      Array.from({ length: 130 }, () => service.call("/v1/web/client-token", { json: { service_client_id: "x" } }))
    )
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    expect(refused[0]!.body.code).toBe("rate_limited")
    expect(Number(refused[0]!.headers.get("retry-after"))).toBeGreaterThan(0)
  })
})

describe("secrets", () => {
  it("stand in no log line, no error and no column", async () => {
    const fresh = await service.signIn("secret@example.com")
    const secret = await service.key(fresh)
    await service.call("/v1/chat/completions", { token: secret, json: { model: "none" } })
    await service.call(`/v1/transfers/${secret}`, { token: fresh.token })
    await service.call("/v1/chat/completions", {
      token: secret,
      json: { model: "auto", messages: [{ role: "user", content: "x" }] }
    })
    const logged = service.stdout.join("") + service.stderr.join("")
    const stored = await Tables.everything(service.folder)
    const secrets = [secret.slice(20), fresh.token, fresh.refresh_token, clientToken]
    // The banner shows the demo's own; nobody else's stands there.
    for (const one of secrets) {
      expect(logged.includes(one)).toBe(false)
      expect(stored.includes(one)).toBe(false)
    }
  })
})

describe("the operator's commands", () => {
  const env = () => ({ DATA_DIR: service.folder })

  it("register, list and revoke applications while the service runs", async () => {
    const made = await command(
      ["client", "create", "--kind", "oauth", "--name", "Desk", "--redirect-uri", "https://desk.example/cb"],
      env()
    )
    const client_id = made.stdout.trim()
    expect([made.code, client_id]).toEqual([0, expect.stringMatching(/^oauth-[0-9a-f]{24}$/)])
    const request = {
      client_id,
      redirect_uri: "https://desk.example/cb",
      response_type: "code",
      code_challenge: "x".repeat(43),
      code_challenge_method: "S256"
    }
    const check = () => service.call("/v1/auth/oauth/request", { json: request })
    expect((await check()).body.result.client_name).toBe("Desk")
    expect((await commandHere(["client", "list"], env())).stdout).toContain("https://desk.example/cb")
    const other = await commandHere(
      ["client", "create", "--kind", "oauth", "--name", "Local", "--redirect-uri", "http://127.0.0.1/callback"],
      env()
    )
    const local = other.stdout.trim()
    const person = await service.signIn("desk@example.com")
    const { access_token: token } = (await tokensFor(service, person, "", { client_id: local })).body
    expect((await service.call("/v1/me", { token })).status).toBe(200)
    expect((await command(["client", "revoke", "--id", local], env())).code).toBe(0)
    await service.control("/clock", { advance_ms: 60_000 })
    expect((await service.call("/v1/me", { token })).status).toBe(401)
    expect((await service.call("/v1/me", { token: person.token })).status).toBe(200)
    expect((await commandHere(["client", "revoke", "--id", client_id], env())).code).toBe(0)
    expect((await check()).status).toBe(404)
    const twice = await commandHere(["client", "revoke", "--id", client_id], env())
    expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining("no such client")])
    const without = await commandHere(["client", "create", "--kind", "oauth", "--name", "Desk"], env())
    expect([without.code, without.stderr]).toEqual([1, expect.stringContaining("--redirect-uri")])
  })

  it("list and revoke keys, and book purchases once", async () => {
    const fresh = await service.signIn("operated@example.com")
    await service.key(fresh)
    const listed = await commandHere(["key", "list", "--tenant", fresh.tenant_id], env())
    const [id = ""] = /\bapp_\w+/.exec(listed.stdout) ?? []
    expect(id).not.toBe("")
    expect((await command(["key", "revoke", "--tenant", fresh.tenant_id, "--id", id], env())).code).toBe(0)
    expect((await commandHere(["key", "list", "--tenant", fresh.tenant_id], env())).stdout).toContain("has no API keys")
    const buy = () =>
      command(["purchase", "--tenant", fresh.tenant_id, "--amount", "12.5", "--reference", "INV-7"], env())
    expect((await buy()).code).toBe(0)
    expect((await buy()).stderr).toContain("is already recorded")
    expect(await service.balance(fresh)).toBe(18.5)
    expect((await command(["rotate-keys"], env())).stdout).toContain("created the signing key")
    expect((await service.call("/v1/me", { token: fresh.token })).status).toBe(200)
  })
})
