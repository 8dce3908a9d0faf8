/** A share of `npm run fuzz -- --vendors`: vendors that answer wrongly in every protocol and tool, from a fresh seed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { run } from "../../scripts/fuzz/vendors/Run.ts"
import { make } from "../../scripts/fuzz/vendors/World.ts"
import type { World } from "../../scripts/fuzz/vendors/World.ts"
import { isPostgres } from "../support/database.ts"

let world: World
beforeAll(async () => {
  world = await make()
})
afterAll(() => world.end())

/** So many calls, but no longer than this many milliseconds. */
const calls = 300
const millis = 5_000

describe.skipIf(isPostgres)("hostile vendors", () => {
  it("are told of in the client's protocol, and leave the books right", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const { counts, found } = await run(world, { seed, calls, until: Date.now() + millis, workers: 8, patient: false })
    const told = found.map(({ kind, plan, what }) => `${kind}: ${what}\n${JSON.stringify(plan)}`)
    expect(told, `npm run fuzz -- --vendors --seed ${seed}`).toEqual([])
    expect(counts.calls).toBeGreaterThan(5)
    expect((await world.rest()).wrong).toEqual([])
  })
})
