/** A share of `npm run fuzz`: hostile requests to each route by each credential, from a fresh seed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { run } from "../../scripts/fuzz/Run.ts"
import { make } from "../../scripts/fuzz/World.ts"
import type { World } from "../../scripts/fuzz/World.ts"
import { isPostgres } from "../support/database.ts"

let world: World
beforeAll(async () => {
  world = await make()
})
afterAll(() => world.end())

/** So many of each route, but no longer than this many milliseconds. */
const requests = 1_500
const millis = 8_000

describe.skipIf(isPostgres)("hostile requests", () => {
  it("are answered as the document says, and leave nothing behind", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const { counts, found } = await run(world, {
      seed,
      requests,
      until: Date.now() + millis,
      workers: 8,
      patient: false
    })
    const told = found.map(({ plan, wrong }) => `${wrong.kind}: ${wrong.what}\n${JSON.stringify(plan)}`)
    expect(told, `npm run fuzz -- --seed ${seed}`).toEqual([])
    expect(counts.requests).toBeGreaterThan(50)
    expect((await world.rest()).wrong).toEqual([])
  })
})
