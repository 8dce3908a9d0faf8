/** The scope that each route demands, and the scope that an application gets. */
import { HttpApi, HttpApiMiddleware } from "@effect/platform"
import { describe, expect, it } from "vitest"
import { Api } from "../../../src/app/Api.ts"
import { described, fromRow, grantOf, scopes, scopeText, toRow } from "../../../src/people/credentials/Scope.ts"
import { demands } from "../../support/demands.ts"

/** Every route that takes a user token, and the scope that it demands. */
const demanded = (): Record<string, unknown> => {
  const found: Record<string, unknown> = {}
  HttpApi.reflect(Api as unknown as HttpApi.HttpApi.AnyWithProps, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, middleware }) => {
      for (const way of middleware) {
        if (!HttpApiMiddleware.isSecurity(way)) continue
        const takesTokens = Object.keys(way.security).some((name) => name.startsWith("user_token"))
        if (takesTokens) {
          found[`${endpoint.method} ${endpoint.path}`] = (way as unknown as { readonly demand?: string }).demand
        }
      }
    }
  })
  return found
}

describe("a route that takes user tokens", () => {
  it("demands the scope of its contract", () => {
    const found = demanded()
    expect(Object.keys(found).length).toBeGreaterThan(60)
    for (const [route, demand] of Object.entries(found)) expect([route, demand]).toEqual([route, expect.any(String)])
    // Metered routes, and routes that take API keys too, demand `calls`.
    const others = Object.fromEntries(Object.entries(found).filter(([, demand]) => demand !== "calls"))
    expect(others).toEqual(demands)
  })
})

describe("an application", () => {
  it.each([
    ["", "openid profile email calls"],
    ["profile", "profile email calls"],
    ["openid", "openid profile email calls"],
    ["  keys   calls ", "profile email calls keys"],
    ["offline_access", "openid profile email calls"],
    ["organization billing transfers keys", "profile email calls keys transfers billing organization"]
  ])("that asks for %j gets %j", (asked, text) => {
    const granted = grantOf(asked, false)
    expect("grant" in granted && scopeText(granted.grant)).toBe(text)
    expect("grant" in granted && fromRow(toRow(granted.grant))).toEqual(text.split(" "))
  })

  it.each(["everything", "Keys", "calls,keys", "calls\nkeys", "all", "__proto__"])("is refused for %j", (asked) => {
    expect([grantOf(asked, false), grantOf(asked, true)]).toEqual([{ unknown: asked }, { unknown: asked }])
  })

  it("of the operator gets every scope, and the consent page says so", () => {
    expect(grantOf("profile", true)).toEqual({ grant: "all" })
    expect(scopeText("all").split(" ")).toEqual(scopes)
    expect(fromRow(toRow("all"))).toBe("all")
    expect(described("all")).toEqual(described(scopes))
  })

  it("is described with every scope that it gets", () => {
    const fewest = described(["profile", "email", "calls"])
    for (const scope of ["keys", "transfers", "billing", "organization"] as const) {
      expect(described(["profile", "email", "calls", scope]).length).toBe(fewest.length + 1)
    }
  })
})
