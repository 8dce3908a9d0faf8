/** Search answers that hold nothing, and those that hold nothing usable; depths and their prices. */
import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { UsdPer } from "../../../src/kernel/Price.ts"
import { pricesByDepth, priceOf } from "../../../src/calls/search/Provider.ts"
import type { SearchProvider } from "../../../src/calls/search/Settings.ts"
import { start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

let service: Service
let who: Person
beforeAll(async () => {
  service = await start()
  who = await service.signIn("seeks@example.com")
})
afterAll(() => service.discard())

const search = (query: string) => service.call(`/v1/search?query=x&${query}`, { token: who.token })
const answers = (body: object) => service.control("/faults", { service: "search", status: 200, body, times: 1 })

const results = [{ title: "no address" }, "x", null]
it.each([
  ["tavily", { results }, { results: [] }],
  ["brave", { web: { results } }, { web: { results: [] } }]
])(
  "what %s finds is a failure where none of it is usable, and an answer where there is none",
  async (id, bad, none) => {
    const before = await service.balance(who)
    await answers(bad)
    const failed = await search(`provider=${id}`)
    expect([failed.status, failed.body.code]).toEqual([500, "upstream_error"])
    expect((await service.usage(who))[0]).toMatchObject({ success: false, cost: 0, error_type: "upstream_error" })
    expect(await service.balance(who)).toBe(before)
    await answers(none)
    expect((await search(`provider=${id}`)).body).toEqual({ query: "x", results: [], provider: id })
  }
)

it("a long answer gives the same results as a short one, and a long one without results is a failure", async () => {
  const found = Array.from({ length: 2_000 }, (_, i) => ({
    title: `Title ${i}`,
    url: `http://example.com/${i}`,
    content: "the tide ".repeat(20)
  }))
  await answers({ results: found.map((result, score) => ({ ...result, score })) })
  const { body, status } = await search("provider=tavily&max_results=20")
  const results = found.slice(0, 20)
  expect([status, body]).toEqual([200, { query: "x", results, provider: "tavily" }])
  const before = await service.balance(who)
  await answers({ results: found.map((result) => ({ ...result, url: null })) })
  expect((await search("provider=tavily")).status).toBe(500)
  expect(await service.balance(who)).toBe(before)
})

it.each([
  ["no `web`", { type: "search", query: { original: "x" }, mixed: { type: "mixed", main: [] } }],
  ["`web` of null", { type: "search", web: null }],
  ["`web` without results", { type: "search", web: { type: "search" } }],
  ["nothing at all", {}]
])("an answer of brave with %s is an answer without results, and is charged", async (_, body) => {
  const before = await service.balance(who)
  await answers(body)
  const found = await search("provider=brave")
  expect([found.status, found.body]).toEqual([200, { query: "x", results: [], provider: "brave" }])
  expect((await service.usage(who))[0]).toMatchObject({ success: true, cost: 0.005 })
  expect(await service.balance(who)).toBeCloseTo(before - 0.005, 9)
})

it.each([
  ["an error", { type: "ErrorResponse", error: { code: "INTERNAL", detail: "no index" } }],
  ["`web` that is no object", { web: "none" }],
  ["results that are no list", { web: { results: "none" } }]
])("an answer of brave with %s is a failure, and costs nothing", async (_, body) => {
  const before = await service.balance(who)
  await answers(body)
  expect((await search("provider=brave")).status).toBe(500)
  expect(await service.balance(who)).toBe(before)
})

it("the depth is passed on as it is, whatever it is called", async () => {
  for (const [asked, sent] of [
    ["&search_depth=ultra-fast", "ultra-fast"],
    ["&search_depth=advanced", "advanced"],
    ["&search_depth=", "basic"],
    ["", "basic"]
  ]) {
    await service.control("/calls", undefined, "DELETE")
    expect((await search(`provider=tavily${asked}`)).status).toBe(200)
    const [call] = await service.control("/calls?service=search")
    expect(call.body.search_depth).toBe(sent)
  }
})

describe("the price of a query", () => {
  const atto = (price: string) => Schema.decodeSync(UsdPer(1))(price)
  const provider = (price_by_depth: SearchProvider["price_by_depth"]): SearchProvider => ({
    id: "x",
    name: "x",
    description: "",
    upstream: "x",
    vendor: "tavily",
    price: atto("0.008"),
    price_by_depth
  })

  it("is its depth's, where the vendor has such", () => {
    const tavily = provider(pricesByDepth("tavily", atto("0.008")))
    expect(priceOf(tavily, "basic")).toBe(atto("0.008"))
    expect(priceOf(tavily, "advanced")).toBe(atto("0.016"))
    expect(priceOf(provider({ basic: atto("0.001"), fast: atto("0.002") }), "basic")).toBe(atto("0.001"))
    expect(priceOf(provider({ fast: atto("0.002") }), "fast")).toBe(atto("0.002"))
  })

  it("is the dearest that there is, for a depth without a price", () => {
    expect(priceOf(provider({ fast: atto("0.002"), advanced: atto("0.016") }), "deep")).toBe(atto("0.016"))
    expect(priceOf(provider({ fast: atto("0.002") }), "toString")).toBe(atto("0.008"))
    expect(priceOf(provider(pricesByDepth("brave", atto("0.008"))), "advanced")).toBe(atto("0.008"))
  })
})
