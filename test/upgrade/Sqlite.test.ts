/**
 * A file of each earlier version is brought up to date, verified and served: by the keys and tokens of then everybody is shown what they
 * were shown then. And an upgrade that is killed at any of its writes is done by the next start.
 */
import { afterEach, describe, expect, it } from "vitest"
import { newest } from "../../src/storage/sqlite/Sql.ts"
import { commandHere } from "../support/CommandLine.ts"
import { isPostgres } from "../support/database.ts"
import type { Service } from "../support/Service.ts"
import { fixturesOf, folderWith, secret, serve, shownOf } from "./Fixtures.ts"

const fixtures = fixturesOf("sqlite")
const services: Array<Service> = []
afterEach(async () => {
  for (const service of services.splice(0).toReversed()) await service.discard()
})

const verified = (folder: string) => commandHere(["verify"], { DATA_DIR: folder, TOLLGATE_SECRET: secret })

describe.skipIf(isPostgres)("a file of an earlier version", () => {
  it("stands here for each", () => {
    expect(fixtures.map(({ figures }) => figures.migration)).toEqual([
      11, 12, 14, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30, 31, 32, 33, 34, 35, 38, 41
    ])
    expect(newest).toBe(52)
  })

  it.each(fixtures.map((fixture) => [fixture.name, fixture] as const))("%s", async (_, fixture) => {
    const service = await serve(folderWith(fixture))
    services.push(service)
    const { answers, people } = await shownOf(service, fixture)
    expect(answers).toMatchObject(fixture.figures.answers)
    const { ada } = people
    const before = await service.balance(ada!)
    const json = { model: "sandbox-small", messages: [{ role: "user", content: "one two" }] }
    const answer = await service.call("/v1/chat/completions", { token: ada!.key, json })
    expect([answer.status, answer.headers.get("x-charge-usd")]).toEqual([200, "0.0000015"])
    expect(await service.balance(ada!)).toBeCloseTo(before - 0.0000015, 9)
    expect(await service.end()).toBe(0)
    expect((await verified(service.folder)).stdout).toContain("every invariant of the books holds")
  })
})
