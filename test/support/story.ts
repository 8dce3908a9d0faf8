/**
 * Stories: random steps told to the real thing and to a notebook that a bystander keeps. A step reads as a sentence, so that the
 * story to which a failure is shrunk reads as one too.
 */
import fc from "fast-check"

/** A step of a story. It is skipped where it cannot happen. */
export interface Step<Notebook, World> {
  readonly sentence: string
  readonly possible?: (notebook: Readonly<Notebook>) => boolean
  /** Does it in the world, writes it into the notebook, and compares. */
  readonly happen: (notebook: Notebook, world: World) => Promise<void>
}

class Told<Notebook extends object, World extends object> implements fc.AsyncCommand<Notebook, World> {
  readonly step: Step<Notebook, World>

  constructor(step: Step<Notebook, World>) {
    this.step = step
  }

  check(notebook: Readonly<Notebook>): boolean {
    return this.step.possible?.(notebook) ?? true
  }

  run(notebook: Notebook, world: World): Promise<void> {
    return this.step.happen(notebook, world)
  }

  toString(): string {
    return this.step.sentence
  }
}

export interface Telling<Notebook, World> {
  readonly steps: ReadonlyArray<fc.Arbitrary<Step<Notebook, World>>>
  /** Begins each story anew. */
  readonly begin: () => Promise<{ readonly notebook: Notebook; readonly world: World }>
  /** What must hold when a story is over; ends its world. */
  readonly end: (notebook: Notebook, world: World) => Promise<void>
  readonly stories: number
  readonly length: number
}

/** Tells that many stories; fails with the shortest one that goes wrong. `FC_RUNS` multiplies them, `FC_SEED` repeats one. */
export const tell = <Notebook extends object, World extends object>({
  begin,
  end,
  length,
  steps,
  stories
}: Telling<Notebook, World>): Promise<void> =>
  fc.assert(
    fc.asyncProperty(
      fc.commands(
        steps.map((step) => step.map((one) => new Told(one))),
        { maxCommands: length, size: "max" }
      ),
      async (story) => {
        const { notebook, world } = await begin()
        await fc.asyncModelRun(() => ({ model: notebook, real: world }), story)
        await end(notebook, world)
      }
    ),
    {
      numRuns: stories * Number(process.env.FC_RUNS ?? 1),
      ...(process.env.FC_SEED !== undefined && { seed: Number(process.env.FC_SEED) }),
      endOnFailure: false
    }
  )
