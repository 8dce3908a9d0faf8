/** A share of `npm run fuzz -- --webhooks`: the processor's events, forged, spoiled, doubled and out of order, from a fresh seed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { run } from "../../scripts/fuzz/webhooks/Run.ts"
import { make } from "../../scripts/fuzz/webhooks/World.ts"
import type { World } from "../../scripts/fuzz/webhooks/World.ts"
import { isPostgres } from "../support/database.ts"

let world: World
beforeAll(async () => {
  world = await make()
})
afterAll(() => world.end())

/** So many events, but no longer than this many milliseconds. */
const events = 400
const millis = 3_000

describe.skipIf(isPostgres)("events of payments", () => {
  it("move nothing unless they are signed, and what they say once", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const { found } = await run(world, { seed, events, until: Date.now() + millis })
    expect(found, `npm run fuzz -- --webhooks --seed ${seed}`).toEqual([])
    expect((await world.rest()).wrong).toEqual([])
  })
})
