/**
 * The code under simulation: the service, the outside world and the writer's thread, each as a script that is run anew for every start,
 * so that nothing but the disk outlives a crash. Planted mistakes (`Mistakes`) are put in here and nowhere else.
 */
import { build } from "esbuild"
import type { Plugin } from "esbuild"
import { readFile } from "node:fs/promises"
import { join, relative } from "node:path"
import { common, root } from "../bundle.ts"

/** A text of a source file, and what stands in its place. */
export interface Change {
  readonly file: string
  readonly text: string
  readonly instead: string
}

export interface Scripts {
  readonly service: string
  readonly thread: string
}

/** The same as V8 has them once they have run. */
export type Compiled = { readonly [Name in keyof Scripts]: Buffer }

/** What is always changed: the scheduler of pooled fibers is the machine's, and the outside world does what a story says (`Hooks`). */
const always: ReadonlyArray<Change> = [
  {
    file: "src/kernel/PoolScheduler.ts",
    text: "export const poolScheduler: Scheduler.Scheduler = new PoolScheduler()",
    instead: "export const poolScheduler: Scheduler.Scheduler = simulatedScheduler"
  },
  // Collecting what a start has left behind is nothing that a simulation looks at.
  {
    file: "src/V8.ts",
    text: "const atRestAfter = [5_000, 12_000]",
    instead: "const atRestAfter: ReadonlyArray<number> = []"
  },
  {
    file: "src/sandbox/Switchboard.ts",
    text: "const fault = faults.next(service)",
    instead: "const fault = simulatedHooks.called(service, received, call)"
  },
  {
    file: "src/sandbox/Mail.ts",
    text: 'const fault = faults.next("mail")',
    instead: 'const fault = simulatedHooks.called("mail", undefined, call)'
  },
  {
    file: "src/sandbox/Mail.ts",
    text: "caught.push({ to: address, subject, text: text.trimEnd() })",
    instead: "simulatedHooks.letter(address, subject, text)"
  },
  // It reads by other threads.
  {
    file: "src/sandbox/Mail.ts",
    text: "await PostalMime.parse(raw)",
    instead: "await simulatedHooks.native(PostalMime.parse(raw))"
  },
  {
    file: "src/sandbox/Payments.ts",
    text: "world.events.push(event)",
    instead: "simulatedHooks.event(event)"
  }
]

/** A change must fit its file exactly once: a mistake that is not planted would seem to be found by nothing. */
export const apply = (source: string, { file, instead, text }: Change): string => {
  const parts = source.split(text)
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places, not one, that read: ${text}`)
  return parts.join(instead)
}

const changed = (changes: ReadonlyArray<Change>): Plugin => ({
  name: "changes for the simulation",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const file = relative(root, path)
      const mine = changes.filter((change) => change.file === file)
      if (mine.length === 0) return undefined
      return { contents: mine.reduce(apply, await readFile(path, "utf8")), loader: "ts" }
    })
})

export const bundle = async (changes: ReadonlyArray<Change> = []): Promise<Scripts> => {
  const script = async (entry: string): Promise<string> => {
    const { outputFiles } = await build({
      ...common,
      define: { ...common.define, "import.meta.url": "simulatedUrl" },
      entryPoints: [join(root, entry)],
      external: ["better-sqlite3"],
      format: "cjs",
      minifySyntax: true,
      minifyWhitespace: true,
      target: "node20",
      write: false,
      plugins: [changed([...always, ...changes]), ...common.plugins]
    })
    return outputFiles[0]!.text
  }
  const [service, thread] = await Promise.all([
    script("scripts/simulate/Service.ts"),
    script("src/ledger/WriterThread.ts")
  ])
  return { service: service!, thread: thread! }
}
