/**
 * Runs stories. A story applies random steps to the implementation under test and to its model. Each step has a sentence that describes it in a
 * failure.
 */
import fc from "fast-check"

/** A step of a story. A step that is not possible in the current state is skipped. */
export interface Step<Notebook, World> {
  /** The description of the step. If it is a function, it receives the notebook before the step. */
  readonly sentence: string | ((notebook: Readonly<Notebook>) => string)
  readonly possible?: (notebook: Readonly<Notebook>) => boolean
  /** Applies the step to the world and the notebook, and compares them. */
  readonly happen: (notebook: Notebook, world: World) => Promise<void>
  /** Simpler steps. Shrinking replaces this step with one of them if the story still fails. */
  readonly simpler?: ReadonlyArray<Step<Notebook, World>>
}

export interface Telling<Notebook, World> {
  readonly steps: ReadonlyArray<fc.Arbitrary<Step<Notebook, World>>>
  /** Creates the initial state of a story. */
  readonly begin: () => Promise<{ readonly notebook: Notebook; readonly world: World }>
  readonly end?: (notebook: Notebook, world: World) => Promise<void>
  /** Releases the world, even after a failure. */
  readonly close?: (world: World) => Promise<void>
  readonly stories: number
  /** The maximum number of steps in a story. */
  readonly length: number
  /** The seed of an earlier run, to repeat its stories. */
  readonly seed?: number | undefined
  /** Receives a sentence with the number of stories. */
  readonly say?: ((sentence: string) => void) | undefined
  /** How long to shrink a failure, in milliseconds; twenty seconds by default. */
  readonly shrink_limit?: number | undefined
}

const shrinkLimit = 20_000

/** One run of a story, with its state and the steps taken so far. */
interface Run<Notebook, World> {
  readonly notebook: Notebook
  readonly world: World
  readonly steps: Array<Step<Notebook, World>>
  readonly sentences: Array<string>
}

interface Failure<Notebook, World> extends Pick<Run<Notebook, World>, "steps" | "sentences"> {
  readonly error: unknown
}

class Command<Notebook, World> implements fc.AsyncCommand<Run<Notebook, World>, object> {
  readonly step: Step<Notebook, World>

  constructor(step: Step<Notebook, World>) {
    this.step = step
  }

  check({ notebook }: Run<Notebook, World>): boolean {
    return this.step.possible?.(notebook) ?? true
  }

  run({ notebook, sentences, steps, world }: Run<Notebook, World>): Promise<void> {
    const { sentence } = this.step
    steps.push(this.step)
    sentences.push(typeof sentence === "string" ? sentence : sentence(notebook))
    return this.step.happen(notebook, world)
  }
}

/** Runs the stories and reports their number. Rejects with the shortest story that fails, one sentence per line. */
export const tell = async <Notebook extends object, World extends object>(
  telling: Telling<Notebook, World>
): Promise<void> => {
  const { length, say = () => {}, seed, shrink_limit = shrinkLimit, steps, stories } = telling
  let deadline = Number.POSITIVE_INFINITY
  let failure: Failure<Notebook, World> | undefined
  const property = fc.asyncProperty(
    fc.commands(
      steps.map((step) => step.map((one) => new Command(one))),
      { maxCommands: length, size: "max" }
    ),
    async (story) => {
      if (performance.now() > deadline) return
      const failed = await tellOnce(telling, story)
      if (failed === undefined) return
      failure = failed
      deadline = Math.min(deadline, performance.now() + shrink_limit)
      throw failed.error
    }
  )
  const checked = await fc.check(property, { numRuns: stories, ...(seed !== undefined && { seed }) })
  if (failure !== undefined) throw new StoryFailed(await shorten(telling, failure, deadline), checked, stories)
  // Generating the stories failed.
  if (checked.failed) throw checked.errorInstance
  say(`${checked.numRuns} stories passed (repeat them with seed ${checked.seed})`)
}

/** Runs one story from a new state. Returns its failure, if any. */
const tellOnce = async <Notebook extends object, World extends object>(
  { begin, close, end }: Telling<Notebook, World>,
  story: Iterable<fc.AsyncCommand<Run<Notebook, World>, object>>
): Promise<Failure<Notebook, World> | undefined> => {
  const { notebook, world } = await begin()
  const run: Run<Notebook, World> = { notebook, world, steps: [], sentences: [] }
  try {
    await fc.asyncModelRun(() => ({ model: run, real: world }), story)
    await end?.(notebook, world)
    return undefined
  } catch (error) {
    return { steps: run.steps, sentences: run.sentences, error }
  } finally {
    await close?.(world)
  }
}

/**
 * Shrinks a failure by trying to remove each step and to replace each step with a simpler one. The library's own shrinking removes steps only from
 * the beginning or in blocks.
 */
const shorten = async <Notebook extends object, World extends object>(
  telling: Telling<Notebook, World>,
  found: Failure<Notebook, World>,
  deadline: number
): Promise<Failure<Notebook, World>> => {
  for (const steps of shorterThan(found.steps)) {
    if (performance.now() > deadline) return found
    const failed = await tellOnce(
      telling,
      steps.map((step) => new Command(step))
    )
    if (failed !== undefined) return shorten(telling, failed, deadline)
  }
  return found
}

function* shorterThan<Notebook, World>(
  steps: ReadonlyArray<Step<Notebook, World>>
): Generator<ReadonlyArray<Step<Notebook, World>>> {
  for (const i of steps.keys()) yield steps.toSpliced(i, 1)
  for (const [i, { simpler }] of steps.entries()) for (const step of simpler ?? []) yield steps.toSpliced(i, 1, step)
}

/** A story that fails, one step per line, followed by the error. */
class StoryFailed extends Error {
  readonly steps: ReadonlyArray<string>
  readonly actual: unknown
  readonly expected: unknown

  constructor(
    { error, sentences }: { readonly error: unknown; readonly sentences: ReadonlyArray<string> },
    { numRuns, seed }: { readonly numRuns: number; readonly seed: number },
    stories: number
  ) {
    const wrong = error instanceof Error ? error : new Error(String(error))
    super(
      `story ${numRuns} of ${stories} fails (in its shortest form; repeat it with seed ${seed}):\n` +
        `${sentences.map((sentence, i) => `  ${i + 1}. ${sentence}`).join("\n")}\n${wrong.message}`,
      { cause: wrong }
    )
    this.name = "StoryFailed"
    this.steps = sentences
    // The test reporter shows the difference of these fields.
    if ("actual" in wrong) this.actual = wrong.actual
    if ("expected" in wrong) this.expected = wrong.expected
  }
}
