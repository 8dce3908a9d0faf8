/**
 * The simulation (`scripts/simulate`): a few stories with new seeds, all stories that ever failed, and one seed twice. Run `npm run simulate --
 * --seed S --steps 40 --shorter` to shorten and print a failing seed. It goes into `scripts/simulate/failed.json` with its correction.
 */
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { prepare } from "../../scripts/simulate/Stories.ts"
import type { Builds } from "../../scripts/simulate/Stories.ts"
import { make, tell } from "../../scripts/simulate/Story.ts"
import type { Story } from "../../scripts/simulate/Story.ts"
import { root } from "../support/Service.ts"

/** Stories that once failed, shortened, with their findings. */
const failed = JSON.parse(readFileSync(join(root, "scripts", "simulate", "failed.json"), "utf8")) as ReadonlyArray<{
  readonly was: string
  readonly story: Story
}>

const steps = 40

let builds: Builds
beforeAll(async () => {
  builds = await prepare()
})
afterAll(() => builds.remove())

const holds = async (story: Story) => {
  const { findings } = await builds.run(story)
  expect(findings, `npm run simulate -- --seed "${story.seed}" --steps ${story.steps.length}\n${tell(story)}`).toEqual(
    []
  )
}

describe("a story", () => {
  it("is the same twice, to the byte", async () => {
    const story = make("twice", steps)
    const [one, other] = [await builds.run(story), await builds.run(story)]
    expect(one.trace.length).toBeGreaterThan(steps)
    expect(other).toEqual(one)
  })

  it.each(Array.from({ length: 3 }, () => randomBytes(4).toString("hex")))("of the fresh seed %s holds", (seed) =>
    holds(make(seed, steps))
  )

  it.each(failed)("that once failed holds: $was", ({ story }) => holds(story))
})
