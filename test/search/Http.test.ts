/** Search answers that hold nothing, and those that hold nothing usable. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

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

it("the depths are named", async () => {
  expect((await search("search_depth=deep")).body.details.rule).toBe("one of basic, advanced")
})
