/** What anybody may cause who has no credential: so many requests of each kind, and hardly an outgoing one. */
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { redirect_uri, request, verifierOf } from "../support/OAuth.ts"
import { freshFolder, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"

let service: Service
let issuer: Server
const asked: Array<string> = []

const limit = 55

beforeAll(async () => {
  issuer = createServer(({ url = "" }, response) => {
    asked.push(url)
    const at = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`
    response.end(
      JSON.stringify({ issuer: at, jwks_uri: `${at}/keys`, authorization_endpoint: `${at}/authorize`, keys: [] })
    )
  })
  await new Promise<void>((resolve) => issuer.listen(0, "127.0.0.1", resolve))
  const provider = { issuer: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`, audiences: ["x"] }
  const folder = freshFolder()
  const file = join(folder, "config.json")
  const document = {
    identity: { google: provider, microsoft: { ...provider, issuer: `${provider.issuer}/other` } },
    clients: [{ client_id: "app", name: "App" }],
    oauth_clients: [{ client_id: "desk", name: "Desk", redirect_uris: [redirect_uri] }],
    web_clients: [{ client_id: "web", name: "Web" }],
    rate_limits: { authorize: limit, sign_in: 5, token: 5, invite_preview: 5, client_token: 5, contact: 5, log: 5 }
  }
  writeFileSync(file, JSON.stringify(document))
  service = await start({ folder, args: ["--config", file] })
})
afterAll(async () => {
  await service.discard()
  issuer.closeAllConnections()
  issuer.close()
})

describe("who has no credential", () => {
  it("makes no outgoing request by asking for the sign-in page again and again", async () => {
    const page = `${service.url}/oauth/authorize?${new URLSearchParams(request(verifierOf(), { client_id: "desk" }))}`
    const answers = await Promise.all(Array.from({ length: 50 }, () => fetch(page, { redirect: "manual" })))
    const pages = await Promise.all(answers.map((answer) => answer.text()))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(pages.every((html) => html.includes("Continue with Google") && html.includes("with Microsoft"))).toBe(true)
    // One for each issuer.
    expect(asked.toSorted()).toEqual(["/.well-known/openid-configuration", "/other/.well-known/openid-configuration"])
  })

  // The limits count in whole minutes of the clock; twice as many are too many in whichever two they fall.
  it.each([
    ["POST /v1/auth/google", 5, { client_id: "app", id_token: "x" }],
    ["POST /v1/auth/token", 5, { client_id: "app", refresh_token: "x" }],
    ["POST /v1/auth/google/refresh", 5, { client_id: "app", refresh_token: "x" }],
    ["POST /v1/auth/revoke", 5, { token: "x" }],
    ["POST /v1/auth/oauth/token", 5, { grant_type: "refresh_token", client_id: "desk", refresh_token: "x" }],
    ["POST /v1/auth/oauth/request", limit, request("x", { client_id: "desk" })],
    ["POST /v1/web/client-token", 5, { service_client_id: "web" }],
    ["POST /v1/web/contact", 5, {}],
    [`GET /v1/transfer-invites/${randomBytes(32).toString("hex")}`, 5, undefined],
    ["GET /checkpoint", 5, undefined],
    ["GET /oauth/authorize", limit, undefined],
    ["GET /oauth/continue", limit, undefined]
  ])("is told to wait: %s", async (route, most, json) => {
    const [method = "", path = ""] = route.split(" ")
    const answers = await Promise.all(
      Array.from({ length: 2 * most + 1 }, () => service.call(path, { method, ...(json !== undefined && { json }) }))
    )
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    for (const { headers } of refused) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0)
    if (path.startsWith("/oauth/")) expect(refused[0]!.body).toContain("Too many requests")
    else expect(refused[0]!.body.code).toBe("rate_limited")
  })
})
