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
  /** What must hold when a story is over. */
  readonly end?: (notebook: Notebook, world: World) => Promise<void>
  /** Lets go of the world, however its story went. */
  readonly close?: (world: World) => Promise<void>
  readonly stories: number
  readonly length: number
  /** Tells the same stories again. */
  readonly seed?: number | undefined
}

/** Tells that many stories; fails with the shortest one that goes wrong, a sentence a line. */
export const tell = async <Notebook extends object, World extends object>({
  begin,
  close,
  end,
  length,
  seed,
  steps,
  stories
}: Telling<Notebook, World>): Promise<void> => {
  let shrunkBy = Number.POSITIVE_INFINITY
  const property = fc.asyncProperty(
    fc.commands(
      steps.map((step) => step.map((one) => new Told(one))),
      { maxCommands: length, size: "max" }
    ),
    async (story) => {
      // A failure is told as it stands when shrinking it further would take too long.
      if (performance.now() > shrunkBy) return
      const { notebook, world } = await begin()
      try {
        await fc.asyncModelRun(() => ({ model: notebook, real: world }), story)
        await end?.(notebook, world)
      } catch (wrong) {
        shrunkBy = Math.min(shrunkBy, performance.now() + 20_000)
        throw wrong
      } finally {
        await close?.(world)
      }
    }
  )
  const told = await fc.check(property, {
    numRuns: stories,
    ...(seed !== undefined && { seed })
  })
  if (told.failed) throw new StoryFailed(told)
}

/** The story that goes wrong, a step a line, and what is wrong at its end. */
class StoryFailed extends Error {
  readonly actual: unknown
  readonly expected: unknown

  constructor({
    counterexample,
    errorInstance,
    numRuns,
    numShrinks,
    seed
  }: fc.RunDetails<[Iterable<fc.AsyncCommand<object, object>>]>) {
    const wrong = errorInstance instanceof Error ? errorInstance : new Error(String(errorInstance))
    const steps = [...(counterexample?.[0] ?? [])].filter(happened).map((step, i) => `  ${i + 1}. ${step}`)
    super(
      `story ${numRuns} goes wrong (shrunk ${numShrinks} times; seed ${seed} tells it again):\n` +
        `${steps.join("\n")}\n${wrong.message}`,
      { cause: wrong }
    )
    this.name = "StoryFailed"
    // By these the reporter shows what differs.
    if ("actual" in wrong) this.actual = wrong.actual
    if ("expected" in wrong) this.expected = wrong.expected
  }
}

/** fast-check marks the steps that it came to. */
const happened = (step: object): boolean => !("hasRan" in step) || step.hasRan === true
