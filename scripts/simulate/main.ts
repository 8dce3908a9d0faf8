/**
 * The simulation's command line: `npm run simulate -- ...`
 *
 *   --seed S --steps N   runs the story of that seed twice and prints its trace, which is the same both times
 *   --replay FILE        the same for a story that was kept
 *   --minutes M          tries fresh seeds for so long, makes what fails shorter, and says which fault met what
 *   --mistakes [NAME]    plants each mistake and says how many steps it took to find it
 */
import { randomBytes } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
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
    most: { type: "string", default: "60" },
    coarse: { type: "boolean", default: false },
    shorter: { type: "boolean", default: false },
    quiet: { type: "boolean", default: false },
    workers: { type: "string", default: "2" }
  }
})

const print = (text: string) => process.stdout.write(`${text}\n`)
const steps = Number(values.steps)
const workers = Number(values.workers)

const twice = async (story: Story): Promise<boolean> => {
  const { remove, run } = await prepare()
  const first = await run(story)
  if (!values.quiet) print(first.trace.join("\n"))
  const second = await run(story)
  print(
    `${first.trace.length} lines, ${first.turns} turns, ${first.choices} of them chosen, ${first.commits} commits, ${first.lives} lives`
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

/** Makes a failing story shorter, keeps it, and tells it. */
const explain = async (story: Story, { findings }: Outcome, run: Builds["run"]): Promise<void> => {
  print(`\nSeed ${story.seed} fails:`)
  for (const finding of findings.slice(0, 10)) print(`  ${finding}`)
  const short = await shrink(story, new Set(findings.map(kindOf)), run)
  const { findings: found } = await run(short)
  const file = `simulation-${story.seed}.json`
  writeFileSync(file, `${JSON.stringify(short, undefined, 2)}\n`)
  print(`${tell(short)}\n  Then: ${found.join("\n        ")}\n  (kept as ${file})\n`)
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
          `${(turns / seconds).toFixed(0)} turns a second, ${(simulated / 3_600_000).toFixed(0)} hours simulated`
      )
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
  remove()
  print(`\nWhat met what, in ${stories} stories of ${steps} steps:`)
  for (const [both, count] of [...met].sort(([, one], [, other]) => other - one))
    print(`  ${String(count).padStart(6)} ${both}`)
  return failed === 0
}

/** How many stories a planted mistake may take. */
const storiesMax = Number(values.most)

/** After how many of its steps a failing story fails. */
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

const findMistakes = async (): Promise<boolean> => {
  const rows: Array<string> = []
  let missed = 0
  const waiting = mistakes.filter(({ name }) => values.only === undefined || values.only.split(",").includes(name))
  const work = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      const { remove, run } = await prepare(one.changes)
      let found: Outcome | undefined
      let story!: Story
      let count = 0
      while (found === undefined && count < storiesMax) {
        story = make(`mistake ${++count}`, steps)
        const outcome = await run(story)
        if (outcome.findings.length > 0) found = outcome
      }
      let row: string
      if (found === undefined) {
        missed++
        row = `| ${one.name} | ${one.guard} | not found in ${count * steps} | | |`
      } else {
        const finding = found.findings[0]!.split("\n")[0]!.slice(0, 120)
        const taken = (count - 1) * steps + (values.coarse ? steps : await firstFailing(story, found.findings, run))
        row = `| ${one.name} | ${one.guard} | ${taken} | ${story.seed} | ${finding} |`
      }
      remove()
      rows.push(row)
      print(row)
    }
  }
  print(
    "| mistake | the guard that is switched off | steps | seed | what was found first |\n| --- | --- | ---: | --- | --- |"
  )
  await Promise.all(Array.from({ length: workers }, work))
  print(`\n${rows.length - missed} of ${rows.length} were found`)
  return missed === 0
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
