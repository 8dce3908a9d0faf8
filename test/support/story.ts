/** The stories of these tests. `FC_RUNS` multiplies their number, and `FC_SEED` repeats a run. */
import * as Story from "../../src/testing/Story.ts"

export type { Step } from "../../src/testing/Story.ts"

export const tell = <Notebook extends object, World extends object>(
  telling: Story.Telling<Notebook, World>
): Promise<void> =>
  Story.tell({
    ...telling,
    stories: Math.ceil(telling.stories * Number(process.env.FC_RUNS ?? 1)),
    seed: process.env.FC_SEED === undefined ? undefined : Number(process.env.FC_SEED)
  })
