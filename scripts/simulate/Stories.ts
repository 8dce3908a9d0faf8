/** Runs stories, each in a separate process, and shortens failing stories. */
import { build } from "esbuild"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { common, root } from "../bundle.ts"
import { bundle } from "./Bundle.ts"
import type { Change } from "./Bundle.ts"
import type { Outcome } from "./Run.ts"
import type { Story } from "./Story.ts"

/** The story timeout, in milliseconds of real time. Most stories take only seconds. */
const patience = 240_000

export interface Builds {
  readonly run: (story: Story) => Promise<Outcome>
  readonly remove: () => void
}

const buildChild = async (): Promise<string> => {
  const here = join(root, "scripts", "simulate")
  const { outputFiles } = await build({
    ...common,
    plugins: [],
    define: {
      "import.meta.url": JSON.stringify(pathToFileURL(join(here, "Child.ts")).href),
      "import.meta.dirname": JSON.stringify(join(root, "scripts"))
    },
    entryPoints: [join(here, "Child.ts")],
    external: ["better-sqlite3", "esbuild"],
    format: "cjs",
    write: false
  })
  return outputFiles[0]!.text
}

let childOnce: Promise<string> | undefined
/** V8's compiled code, by source text. */
const compiled = new Map<string, Buffer>()

/** Builds the code under simulation with these mistakes planted. */
export const prepare = async (mistakes: ReadonlyArray<Change> = []): Promise<Builds> => {
  const [scripts, child] = await Promise.all([bundle(mistakes), (childOnce ??= buildChild())])
  const folder = mkdtempSync(join(tmpdir(), "tollgate-simulation-build-"))
  writeFileSync(join(folder, "child.cjs"), child)
  const cacheOf = (name: string) => join(folder, `${name}.cache`)
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(folder, `${name}.js`), text)
    const known = compiled.get(text)
    if (known !== undefined) writeFileSync(cacheOf(name), known)
  }
  const remove = () => {
    // Cache only the first build's code, because a build with mistakes is used only once.
    for (const [name, text] of Object.entries(scripts))
      if (compiled.size < 3 && existsSync(cacheOf(name))) compiled.set(text, readFileSync(cacheOf(name)))
    rmSync(folder, { recursive: true, force: true })
  }
  return { run: (story) => runIn(folder, story), remove }
}

const nothing: Omit<Outcome, "seed" | "findings"> = {
  digest: "",
  trace: [],
  turns: 0,
  choices: 0,
  lives: 0,
  commits: 0,
  simulated: 0,
  met: {}
}

const runIn = (folder: string, story: Story): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, ["--max-semi-space-size=64", join(folder, "child.cjs"), folder], {
      env: { ...process.env, NODE_PATH: join(root, "node_modules") },
      stdio: ["pipe", "pipe", "pipe"]
    })
    const limit = setTimeout(() => child.kill("SIGKILL"), patience)
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    child.once("close", (_, signal) => {
      clearTimeout(limit)
      const ended = (why: string): Outcome => ({ seed: story.seed, findings: [why], ...nothing })
      if (stdout === "") return resolve(ended(`the process ended without output (${signal ?? stderr.slice(0, 2_000)})`))
      const outcome = JSON.parse(stdout) as Outcome | { readonly broken: string }
      resolve("broken" in outcome ? ended(`the process broke: ${outcome.broken}`) : outcome)
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(story))
  })

/** Replaces the ids, names and numbers in a finding, so that findings of the same kind are equal. */
export const kindOf = (finding: string): string =>
  finding
    .replace(/\b[a-z]+_[0-9a-z]{10,}\b/g, "#")
    .replace(/\b(Ada|Bob|Eve|Kim|Lea|Max|Guest\d+|the team)\b/g, "who")
    .replace(/[\d.]+/g, "#")
    .slice(0, 60)

/**
 * Finds a shorter story with a finding of the same kind. It removes parts of the steps, larger parts first, as long as the story still fails. Before
 * each attempt, it calls `tried` with the number of steps.
 */
export const shrink = async (
  story: Story,
  kinds: ReadonlySet<string>,
  run: Builds["run"],
  tried: (steps: number) => void = () => {}
): Promise<Story> => {
  const fails = async (steps: Story["steps"]): Promise<boolean> => {
    tried(steps.length)
    const { findings } = await run({ ...story, steps })
    return findings.some((finding) => kinds.has(kindOf(finding)))
  }
  let { steps } = story
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    let changed = true
    while (changed) {
      changed = false
      for (let from = 0; from < steps.length; from += size) {
        const fewer = [...steps.slice(0, from), ...steps.slice(from + size)]
        if (fewer.length === steps.length || !(await fails(fewer))) continue
        steps = fewer
        changed = true
        from -= size
      }
      if (size > 1) break
    }
  }
  return { ...story, steps }
}
