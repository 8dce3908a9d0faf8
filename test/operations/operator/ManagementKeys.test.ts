/** Management keys: made by an operator, with scopes and an end, and refused by name for anything else. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Api } from "../../../src/app/Api.ts"
import { scopesOf } from "../../../src/operations/operator/ManagementKey.ts"
import { command, start } from "../../support/Service.ts"
import type { Answer, Service } from "../../support/Service.ts"

let service: Service
let session: string

const env = () => ({ DATA_DIR: service.folder })

beforeAll(async () => {
  service = await start()
  session = (await command(["operator", "--token", "--name", "grace"], env())).stdout.trim()
})
afterAll(() => service.discard())

const operator = (path: string, call: Parameters<Service["call"]>[1] = {}): Promise<Answer> =>
  service.call(`/v1/operator${path}`, { token: session, ...call })
const later = (): string => new Date(Date.now() + 3_600_000).toISOString()
const made = async (...scopes: ReadonlyArray<string>) => {
  const json = { name: "terraform", scopes, expires_at: later() }
  return (await operator("/management-keys", { json })).body.result
}

describe("a management key", () => {
  it("opens what its scopes name, and is shown once", async () => {
    const key = await made("read")
    expect(key.management_key).toMatch(/^svc-admin-[0-9a-f]{64}$/)
    const token = key.management_key
    const me = (await operator("/me", { token })).body.result
    expect([me.name, me.session_id]).toEqual([`terraform (${key.key_prefix})`, key.id])
    expect((await operator("/tenants", { token })).status).toBe(200)
    const { body } = await operator("/management-keys")
    const listed = body.result.keys.find(({ id }: { id: string }) => id === key.id)
    expect(listed).toEqual({ ...listed, scopes: ["read"], created_by: "grace", last_used_at: expect.any(String) })
    expect(JSON.stringify(body)).not.toContain(token)
  })

  it("is refused by name without the scope", async () => {
    const { management_key: token } = await made("read", "people")
    const ada = await service.signIn("ada@example.com")
    const json = { amount: 5, reference: "one" }
    const grant = await operator(`/tenants/${ada.tenant_id}/grants`, { token, json })
    expect([grant.status, grant.body.code, grant.body.error]).toEqual([
      403,
      "insufficient_scope",
      "this management key needs the scope grants"
    ])
    expect(grant.headers.get("www-authenticate")).toContain('scope="grants"')
    const suspend = await operator(`/people/${ada.account_id}/suspend`, { token, json: {} })
    expect(suspend.status).toBe(200)
    const { body } = await operator(`/audit?account_id=${ada.account_id}`)
    expect(body.result.records[0]).toMatchObject({ action: "person.suspend", via: "token" })
    expect(body.result.records[0].operator).toMatch(/^terraform \(svc-admin-[0-9a-f]{4}\)$/)
  })

  it("puts no person into a tenant with the scope people alone", async () => {
    const owner = await service.signIn("owner@example.com")
    const invite = { email: "eve@example.com", tenant_id: owner.tenant_id, role: "owner" }
    const member = { email: "eve@example.com", team_external_id: "team" }
    const statuses = async (...scopes: ReadonlyArray<string>) => {
      const { management_key: token } = await made(...scopes)
      const put = { token, method: "PUT", json: member }
      const answers = [
        await operator("/invites", { token, json: invite }),
        await operator("/people", { token, json: member }),
        await operator("/people/by-external-id/eve", put)
      ]
      return new Set(answers.map(({ body, status }) => `${status} ${body.code ?? "ok"}`))
    }
    const team = { name: "Team", owner_email: "owner@example.com" }
    await operator("/tenants/by-external-id/team", { method: "PUT", json: team })
    expect(await statuses("people")).toEqual(new Set(["403 insufficient_scope"]))
    expect(await statuses("people", "tenants")).toEqual(new Set(["200 ok"]))
  })

  it("makes no further keys and opens no sessions", async () => {
    const { management_key: token } = await made("read", "people", "tenants", "keys", "grants", "operate")
    const json = { name: "more", scopes: ["read"], expires_at: later() }
    for (const answer of [
      await operator("/management-keys", { token, json }),
      await operator("/management-keys", { token }),
      await operator("/sessions", { token })
    ])
      expect([answer.status, answer.body.code]).toEqual([403, "insufficient_scope"])
  })

  it("ends, and is then an unknown one", async () => {
    const { id, management_key: token } = await made("read")
    expect((await operator(`/management-keys/${id}`, { method: "DELETE" })).body.result).toEqual({ ended: true })
    expect((await operator("/me", { token })).status).toBe(401)
    expect((await operator("/me", { token: `svc-admin-${"0".repeat(64)}` })).status).toBe(401)
    expect((await operator(`/management-keys/${id}`, { method: "DELETE" })).body.result).toEqual({ ended: false })
  })

  it("opens no route for people, and no person's key opens the operator's", async () => {
    const { management_key: token } = await made("read", "operate")
    expect((await service.call("/v1/me", { token })).status).toBe(401)
    expect((await service.call("/v1/models", { token })).status).toBe(401)
  })

  it.each([
    [{ scopes: [] }, "scopes"],
    [{ scopes: ["everything"] }, "scopes"],
    [{ scopes: ["read", "read"] }, "scopes"],
    [{ expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
    [{ expires_at: "2099-01-01T00:00:00Z" }, "expires_at"]
  ])("is not made with %o", async (wrong, field) => {
    const json = { name: "x", scopes: ["read"], expires_at: later(), ...wrong }
    const answer = await operator("/management-keys", { json })
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([400, expect.stringContaining(field)])
  })

  it("is made, listed and ended by commands", async () => {
    const done = await command(["operator", "keys", "create", "--scopes", "read,keys", "--name", "ci", "--json"], env())
    const { id, management_key: token, scopes } = JSON.parse(done.stdout)
    expect(scopes).toEqual(["read", "keys"])
    expect((await operator("/me", { token })).status).toBe(200)
    expect((await command(["operator", "keys", "list"], env())).stdout).toContain(id)
    const wrong = await command(["operator", "keys", "create", "--scopes", "reed"], env())
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("reed is not one of read, people")])
    expect((await command(["operator", "keys", "end", "--id", id], env())).code).toBe(0)
    expect((await operator("/me", { token })).status).toBe(401)
  })
})

it("each of the operator's routes has a scope, except those of sessions and keys", () => {
  const routes = Object.values(Api.groups).flatMap((group) =>
    Object.values(group.endpoints).flatMap(({ method, path }) =>
      path.startsWith("/v1/operator/") ? [`${method} ${path}: ${scopesOf(method, path)?.join(" or ")}`] : []
    )
  )
  expect(routes.filter((route) => route.endsWith("undefined")).map((route) => route.split("/")[3])).toEqual(
    expect.arrayContaining(["sessions: undefined"])
  )
  expect(routes).toContain("POST /v1/operator/tenants/:tenant_id/grants: grants")
  expect(routes).toContain("PUT /v1/operator/tenants/:tenant_id/allowance: grants")
  expect(routes).toContain("POST /v1/operator/vouchers: grants")
  expect(routes).toContain("POST /v1/operator/verify: operate")
  expect(routes).toContain("DELETE /v1/operator/keys/:application_id: keys")
  expect(routes).toContain("GET /v1/operator/people/:account_id: read or people")
})
