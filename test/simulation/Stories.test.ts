/**
 * The simulation (`scripts/simulate`): a few stories of fresh seeds, all that ever failed, and the same seed twice. A seed that fails is
 * made shorter and told by `npm run simulate -- --seed S --steps 60`; add it to `scripts/simulate/failed.json` with the correction.
 */
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { prepare } from "../../scripts/simulate/Stories.ts"
import type { Builds } from "../../scripts/simulate/Stories.ts"
import { make, tell } from "../../scripts/simulate/Story.ts"
import { root } from "../support/Service.ts"

/** Stories that once failed: their seed, how many steps they had, and what was wrong. */
const failed = JSON.parse(readFileSync(join(root, "scripts", "simulate", "failed.json"), "utf8")) as ReadonlyArray<{
  readonly seed: string
  readonly steps: number
  readonly was: string
}>

const steps = 40

let builds: Builds
beforeAll(async () => {
  builds = await prepare()
})
afterAll(() => builds.remove())

const holds = async (seed: string, count: number) => {
  const story = make(seed, count)
  const { findings } = await builds.run(story)
  expect(findings, `npm run simulate -- --seed ${seed} --steps ${count}\n${tell(story)}`).toEqual([])
}

describe("a story", () => {
  it("is the same twice, to the byte", async () => {
    const story = make("twice", steps)
    const [one, other] = [await builds.run(story), await builds.run(story)]
    expect(one.trace.length).toBeGreaterThan(steps)
    expect(other).toEqual(one)
  })

  it.each(Array.from({ length: 4 }, () => randomBytes(4).toString("hex")))("of the fresh seed %s holds", (seed) =>
    holds(seed, steps)
  )

  it.each(failed)("of $seed that once failed ($was) holds", ({ seed, steps }) => holds(seed, steps))
})
