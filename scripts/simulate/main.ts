/**
 * The simulation's command line: `npm run simulate -- ...`
 *
 * --seed S --steps N   runs the seed's story twice and prints its trace, which must be the same both times
 * --replay FILE        runs a saved story twice and prints its trace
 * --minutes M          runs new seeds for this long, shortens the stories that fail, and counts faults by kind of step
 * --mistakes           plants each mistake and counts the steps until it is found; --only NAME,NAME selects mistakes;
 *                      --kept uses each mistake's stored short story (`mistakes.json`) instead of new stories
 * --plant NAME         runs the story of --seed or --replay with that mistake; --shorter shortens a story that fails
 */
import { randomBytes } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { mistakes } from "./Mistakes.ts"
import type { Outcome } from "./Run.ts"
import { kindOf, prepare, shrink } from "./Stories.ts"
import type { Builds } from "./Stories.ts"
import { make, tell } from "./Story.ts"
import type { Story } from "./Story.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    steps: { type: "string", default: "60" },
    replay: { type: "string" },
    minutes: { type: "string" },
    mistakes: { type: "boolean", default: false },
    only: { type: "string" },
    plant: { type: "string" },
    most: { type: "string", default: "60" },
    coarse: { type: "boolean", default: false },
    shorter: { type: "boolean", default: false },
    kept: { type: "boolean", default: false },
    quiet: { type: "boolean", default: false },
    workers: { type: "string", default: "2" }
  }
})

const print = (text: string) => process.stdout.write(`${text}\n`)
const steps = Number(values.steps)
const workers = Number(values.workers)

const twice = async (story: Story): Promise<boolean> => {
  const { remove, run } = await prepare(mistakes.find(({ name }) => name === values.plant)?.changes)
  const first = await run(story)
  if (!values.quiet) print(first.trace.join("\n"))
  const second = await run(story)
  print(
    `${first.trace.length} lines, ${first.turns} turns, ${first.choices} of them chosen by the seed, ${first.commits} commits, ${first.lives} lives`
  )
  print(
    first.digest === second.digest
      ? `the same trace twice: ${first.digest}`
      : `TWO TRACES: ${first.digest}, ${second.digest}`
  )
  for (const finding of first.findings) print(`WRONG: ${finding}`)
  if (values.shorter && first.findings.length > 0) await explain(story, first, run)
  remove()
  return first.findings.length === 0 && first.digest === second.digest
}

/** Shortens a failing story, then saves and prints it. */
const explain = async (story: Story, { findings }: Outcome, run: Builds["run"]): Promise<void> => {
  print(`\nSeed ${story.seed} fails:`)
  for (const finding of findings.slice(0, 10)) print(`  ${finding}`)
  const short = await shrink(story, new Set(findings.map(kindOf)), run)
  const { findings: found } = await run(short)
  const file = `simulation-${story.seed}.json`
  writeFileSync(file, `${JSON.stringify(short, undefined, 2)}\n`)
  print(`${tell(short)}\n  Then: ${found.join("\n        ")}\n  (stored as ${file})\n`)
}

const forMinutes = async (minutes: number): Promise<boolean> => {
  const { remove, run } = await prepare()
  const end = performance.now() + minutes * 60_000
  const began = performance.now()
  const met = new Map<string, number>()
  let stories = 0
  let turns = 0
  let simulated = 0
  let failed = 0
  let told = began
  const work = async () => {
    while (performance.now() < end) {
      const story = make(randomBytes(4).toString("hex"), steps)
      const outcome = await run(story)
      stories++
      turns += outcome.turns
      simulated += outcome.simulated
      for (const [both, count] of Object.entries(outcome.met)) met.set(both, (met.get(both) ?? 0) + count)
      if (outcome.findings.length > 0) {
        failed++
        await explain(story, outcome, run)
      }
      const now = performance.now()
      if (now - told < 10_000) continue
      told = now
      const seconds = (now - began) / 1_000
      print(
        `${Math.round(seconds)} s: ${stories} stories, ${failed} of them failed, ${((stories * steps) / seconds).toFixed(0)} steps and ` +
          `${(turns / seconds).toFixed(0)} turns per second, ${(simulated / 3_600_000).toFixed(0)} hours simulated`
      )
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
  remove()
  print(`\nFaults by kind of step, in ${stories} stories of ${steps} steps:`)
  for (const [both, count] of [...met].sort(([, one], [, other]) => other - one))
    print(`  ${String(count).padStart(6)} ${both}`)
  return failed === 0
}

/** The short story that detects each planted mistake. */
const kept = JSON.parse(readFileSync(join(import.meta.dirname, "mistakes.json"), "utf8")) as Readonly<
  Record<string, Story>
>

const storiesMax = Number(values.most)

/** Returns after how many of its steps a failing story fails, by binary search. */
const firstFailing = async (story: Story, findings: ReadonlyArray<string>, run: Builds["run"]): Promise<number> => {
  const kinds = new Set(findings.map(kindOf))
  let [least, most] = [1, story.steps.length]
  while (least < most) {
    const middle = (least + most) >> 1
    const outcome = await run({ ...story, steps: story.steps.slice(0, middle) })
    if (outcome.findings.some((finding) => kinds.has(kindOf(finding)))) most = middle
    else least = middle + 1
  }
  return most
}

interface Tried {
  /** The number of steps until the mistake was found; `undefined` if it was not found. */
  readonly steps: number | undefined
  readonly what: string
}

const sentenceOf = ([first]: ReadonlyArray<string>): string => first!.split("\n")[0]!.slice(0, 120)

/** Tries the mistake's saved story. Without the mistake, that story must have no findings. */
const byKept = async (name: string, run: Builds["run"], runWithout: Builds["run"]): Promise<Tried> => {
  const story = kept[name]!
  const [{ findings }, without] = [await run(story), await runWithout(story)]
  if (without.findings.length > 0)
    return { steps: undefined, what: `fails without the mistake: ${sentenceOf(without.findings)}` }
  return findings.length > 0
    ? { steps: story.steps.length, what: `${sentenceOf(findings)} (stored story)` }
    : { steps: undefined, what: "not found (stored story)" }
}

const byFresh = async (run: Builds["run"]): Promise<Tried> => {
  for (let count = 1; count <= storiesMax; count++) {
    const story = make(`mistake ${count}`, steps)
    const { findings } = await run(story)
    if (findings.length === 0) continue
    const last = values.coarse ? steps : await firstFailing(story, findings, run)
    return { steps: (count - 1) * steps + last, what: `${sentenceOf(findings)} (${story.seed})` }
  }
  return { steps: undefined, what: `not found in ${storiesMax * steps} steps` }
}

const findMistakes = async (): Promise<boolean> => {
  const waiting = mistakes.filter(({ name }) => values.only === undefined || values.only.split(",").includes(name))
  const count = waiting.length
  const clean = await prepare()
  let found = 0
  const work = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      const { remove, run } = await prepare(one.changes)
      const { steps, what } = values.kept ? await byKept(one.name, run, clean.run) : await byFresh(run)
      if (steps !== undefined) found++
      print(`| ${one.name} | ${one.guard} | ${steps ?? ""} | ${what} |`)
      remove()
    }
  }
  print("| mistake | the guard that is switched off | steps | first finding |\n| --- | --- | ---: | --- |")
  await Promise.all(Array.from({ length: workers }, work))
  clean.remove()
  print(`\n${found} of ${count} were found`)
  return found === count
}

const isWell = await (values.mistakes
  ? findMistakes()
  : values.minutes !== undefined
    ? forMinutes(Number(values.minutes))
    : twice(
        values.replay === undefined
          ? make(values.seed ?? "1", steps)
          : (JSON.parse(readFileSync(values.replay, "utf8")) as Story)
      ))
process.exitCode = isWell ? 0 : 1
