/**
 * Stories: random steps, done to the thing under test and to a model of it. A step reads as a sentence, so that the story to which a
 * failure is shrunk reads as one too.
 */
import fc from "fast-check"

/** A step of a story. It is skipped where it cannot happen. */
export interface Step<Notebook, World> {
  /** What happens, in words; of the moment before it happens, where that depends on the notebook. */
  readonly sentence: string | ((notebook: Readonly<Notebook>) => string)
  readonly possible?: (notebook: Readonly<Notebook>) => boolean
  /** Does it in the world, writes it into the notebook, and compares. */
  readonly happen: (notebook: Notebook, world: World) => Promise<void>
  /** Steps that do less than this one. A story that fails with one of them instead is told with that one. */
  readonly simpler?: ReadonlyArray<Step<Notebook, World>>
}

export interface Telling<Notebook, World> {
  readonly steps: ReadonlyArray<fc.Arbitrary<Step<Notebook, World>>>
  /** Begins each story anew. */
  readonly begin: () => Promise<{ readonly notebook: Notebook; readonly world: World }>
  /** What must hold when a story is over. */
  readonly end?: (notebook: Notebook, world: World) => Promise<void>
  /** Releases the world, however its story went. */
  readonly close?: (world: World) => Promise<void>
  readonly stories: number
  /** The most steps of a story. */
  readonly length: number
  /** Tells the same stories again. */
  readonly seed?: number | undefined
  /** How long a failing story is shrunk, in milliseconds; twenty seconds, unless given. After that it is told as it stands. */
  readonly shrink_limit?: number | undefined
}

const shrinkLimit = 20_000

/** One telling of a story: what it works on, and the steps that have happened so far. */
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

/** Tells that many stories; rejects with the shortest one that fails, a sentence a line. */
export const tell = async <Notebook extends object, World extends object>(
  telling: Telling<Notebook, World>
): Promise<void> => {
  const { length, seed, shrink_limit = shrinkLimit, steps, stories } = telling
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
  if (failure !== undefined) throw new StoryFailed(await shorten(telling, failure, deadline), checked)
  // The stories themselves could not be made.
  if (checked.failed) throw checked.errorInstance
}

/** Tells one story from a fresh beginning; answers how it fails, if it does. */
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
 * The same failure in fewer and simpler steps: each step is left out, and each is replaced by what does less, for as long as the
 * story still fails. The library's own shrinking removes steps only from the beginning of a story or in blocks.
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

/** The story that fails, a step a line, and what is wrong at its end. */
class StoryFailed extends Error {
  readonly steps: ReadonlyArray<string>
  readonly actual: unknown
  readonly expected: unknown

  constructor(
    { error, sentences }: { readonly error: unknown; readonly sentences: ReadonlyArray<string> },
    { numRuns, seed }: { readonly numRuns: number; readonly seed: number }
  ) {
    const wrong = error instanceof Error ? error : new Error(String(error))
    super(
      `story ${numRuns} goes wrong (in its shortest form; seed ${seed} tells it again):\n` +
        `${sentences.map((sentence, i) => `  ${i + 1}. ${sentence}`).join("\n")}\n${wrong.message}`,
      { cause: wrong }
    )
    this.name = "StoryFailed"
    this.steps = sentences
    // By these the reporter shows what differs.
    if ("actual" in wrong) this.actual = wrong.actual
    if ("expected" in wrong) this.expected = wrong.expected
  }
}
