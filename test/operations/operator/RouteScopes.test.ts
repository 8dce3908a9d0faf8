/** Each of the operator's routes in the document, by management keys with one scope each: which opens it, and what the others are told. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { root, command, start } from "../../support/Service.ts"
import type { Service } from "../../support/Service.ts"

const scopes = ["read", "people", "tenants", "keys", "grants", "operate"] as const
type Scope = (typeof scopes)[number]

let service: Service
const keys = new Map<Scope, string>()
let routes: ReadonlyArray<readonly [method: string, path: string]>

beforeAll(async () => {
  service = await start()
  const session = (await command(["operator", "--token"], { DATA_DIR: service.folder })).stdout.trim()
  const expires_at = new Date(Date.now() + 3_600_000).toISOString()
  for (const scope of scopes) {
    const json = { name: `only ${scope}`, scopes: [scope], expires_at }
    const made = await service.call("/v1/operator/management-keys", { token: session, json })
    keys.set(scope, made.body.result.management_key)
  }
  const { paths } = (await service.call("/openapi.json")).body
  routes = Object.entries(paths as Record<string, object>).flatMap(([path, methods]) =>
    path.startsWith("/v1/operator/") ? Object.keys(methods).map((method) => [method.toUpperCase(), path] as const) : []
  )
})
afterAll(() => service.discard())

/** Routes that only an operator's own session opens: making credentials for operators and programs. */
const isOwn = (path: string): boolean => /^\/v1\/operator\/(management-keys|sessions)(\/|$)/.test(path)

/** The scopes that open a route, and the scope that each refusal names. */
const asked = async (method: string, path: string) => {
  const opens: Array<Scope> = []
  const named = new Set<string | undefined>()
  for (const [scope, token] of keys) {
    const headers = { "content-type": "application/json" }
    const answer = await service.call(path.replace(/\{\w+\}/g, "none"), { method, token, headers })
    if (answer.status === 403) {
      named.add(/scope="(\w+)"/.exec(answer.headers.get("www-authenticate") ?? "")?.[1])
      expect([method, path, answer.body.code]).toEqual([method, path, "insufficient_scope"])
    } else {
      expect([method, path, answer.status === 401]).toEqual([method, path, false])
      opens.push(scope)
    }
  }
  return { opens, named: [...named] }
}

it("a key without the scope is refused by the name of the scope that opens the route", async () => {
  expect(routes.length).toBeGreaterThan(40)
  for (const [method, path] of routes) {
    const { named, opens } = await asked(method, path)
    const seen = [method, path, opens, named]
    if (isOwn(path)) expect(seen).toEqual([method, path, [], [undefined]])
    else {
      expect(opens.length, seen.join(" ")).toBeGreaterThan(0)
      expect([method, path, named]).toEqual([method, path, [expect.toBeOneOf(opens)]])
      expect([method, path, opens.includes("read")]).toEqual([method, path, method === "GET"])
    }
  }
})

it("each route of the operator's console stands in the document", () => {
  const folder = join(root, "src", "console", "web", "operator")
  const source = readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("\n")
  const used = [...source.matchAll(/operatorApi\s*\.(GET|POST|PUT|DELETE)\(\s*"([^"]+)"/g)]
  expect(used.length).toBeGreaterThan(20)
  const known = new Set(routes.map(([method, path]) => `${method} ${path}`))
  expect(used.map(([, method, path]) => `${method} ${path}`).filter((route) => !known.has(route))).toEqual([])
})
