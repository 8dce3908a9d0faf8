/** Runs one story, including the audit. A process can do this only once, because it replaces time and randomness permanently. */
import { createHash } from "node:crypto"
import { Auditor } from "./Auditor.ts"
import { Computer } from "./Computer.ts"
import { random } from "./machine/Random.ts"
import type { Story } from "./Story.ts"
import { World } from "./World.ts"

export interface Outcome {
  readonly seed: string
  /** One sentence per failed check. */
  readonly findings: ReadonlyArray<string>
  /** A hash of the complete trace. */
  readonly digest: string
  readonly trace: ReadonlyArray<string>
  readonly turns: number
  readonly choices: number
  readonly lives: number
  readonly commits: number
  /** The simulated time in milliseconds. */
  readonly simulated: number
  /** How often each fault occurred during each kind of step. */
  readonly met: Readonly<Record<string, number>>
}

export const run = async (
  story: Story,
  scripts: ConstructorParameters<typeof Computer>[1],
  onEnd: (computer: Computer) => void = () => {}
): Promise<Outcome> => {
  const trace: Array<string> = []
  const computer = new Computer(story.seed, scripts)
  const { machine } = computer
  const note = (line: string) => {
    const text = `${(machine.now / 1_000).toFixed(3).padStart(10)} ${line}`
    trace.push(text)
  }
  computer.log = (level, message) => note(`[${level}] ${message}`)
  await computer.begin()
  const world = new World(computer, note)
  computer.start()
  await machine.run(() => computer.isUp, 60_000)
  const findings = await steps(story, computer, world, note)
  onEnd(computer)
  computer.remove()
  return {
    seed: story.seed,
    findings,
    digest: createHash("sha256").update(trace.join("\n")).digest("hex").slice(0, 16),
    trace,
    turns: machine.turns,
    choices: machine.choices,
    lives: computer.lives,
    commits: computer.storage.commits,
    simulated: Math.round(machine.now),
    met: Object.fromEntries([...world.met].sort())
  }
}

/** Waits before the next step. With a short wait, the step can overlap with previous steps. */
const passed = async ({ machine }: Computer, wait: number): Promise<void> => {
  const turn = machine.turns + machine.random.below(wait < 5 ? 80 : 8)
  if (wait >= 5) await machine.run(() => false, wait)
  await machine.run(() => machine.turns >= turn, 5)
}

const steps = async (
  { people, seed, steps }: Story,
  computer: Computer,
  world: World,
  note: (line: string) => void
): Promise<ReadonlyArray<string>> => {
  const { machine } = computer
  let begun = false
  let failed: unknown
  world.begin({ people, seed, steps }).then(
    () => (begun = true),
    (error: unknown) => (failed = error)
  )
  await machine.run(() => begun || failed !== undefined, 600_000)
  if (!begun) return [`the story cannot begin: ${String(failed)}`]
  note("everyone is signed in")
  for (const step of steps) {
    await passed(computer, step.wait)
    // From here on, random decisions depend only on this step. Removing earlier steps does not change them.
    machine.random = random(`step ${seed} ${step.id}`)
    world.do(step)
  }
  await new Auditor(
    computer,
    world,
    note,
    steps.some(({ deed }) => deed.do === "clock")
  ).audit(seed)
  return world.findings
}
