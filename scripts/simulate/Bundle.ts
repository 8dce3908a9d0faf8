/**
 * Builds the code under simulation: the service, the outside world and the writer thread, each as a script. Each start reevaluates its script, so
 * only the disk survives a crash. Stateless modules are evaluated once. Only this module inserts planted mistakes (`Mistakes`).
 */
import { build } from "esbuild"
import type { BuildOptions, Plugin, ResolveResult } from "esbuild"
import { readFile } from "node:fs/promises"
import { join, relative } from "node:path"
import { common, directly, root } from "../bundle.ts"

export interface Change {
  readonly file: string
  readonly text: string
  readonly instead: string
}

export interface Scripts {
  /** Stateless modules that all lives share. The service's script imports them. */
  readonly library: string
  readonly service: string
  readonly thread: string
}

/** V8's compiled code for these scripts, created after they have run. */
export type Compiled = { readonly [Name in keyof Scripts]: Buffer }

/** The changes that always apply: the machine schedules pooled fibers, and the outside world follows the story (`Hooks`). */
const always: ReadonlyArray<Change> = [
  {
    file: "src/kernel/hot/PoolScheduler.ts",
    text: "export const poolScheduler: Scheduler.Scheduler = new PoolScheduler()",
    instead: "export const poolScheduler: Scheduler.Scheduler = simulatedScheduler"
  },
  // A simulation does not need to collect the startup garbage.
  {
    file: "src/app/V8.ts",
    text: "const atRestAfter = [5_000, 12_000]",
    instead: "const atRestAfter: ReadonlyArray<number> = []"
  },
  // Polling for new rows every two seconds would take up nine of ten turns in a story.
  {
    file: "src/books/ledger/totals/BackgroundIndexer.ts",
    text: 'const pauseIdle = "2 seconds"',
    instead: 'const pauseIdle = "20 seconds"'
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
  // The real parser reads on other threads.
  {
    file: "src/sandbox/Mail.ts",
    text: "await PostalMime.parse(raw)",
    instead: "await simulatedHooks.native(PostalMime.parse(raw))"
  },
  {
    file: "src/sandbox/PaymentWorld.ts",
    text: "world.events.push(event)",
    instead: "simulatedHooks.event(event)"
  }
]

/** Applies a change. Throws unless the text occurs exactly once. Otherwise, a mistake that was never planted would count as undetected. */
export const apply = (source: string, { file, instead, text }: Change): string => {
  const parts = source.split(text)
  if (parts.length !== 2)
    throw new Error(`${file} has ${parts.length - 1} places instead of one with the text: ${text}`)
  return parts.join(instead)
}

const changed = (changes: ReadonlyArray<Change>): Plugin => ({
  name: "changes for the simulation",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const file = relative(root, path)
      const mine = changes.filter((change) => change.file === file)
      return { contents: directly(mine.reduce(apply, await readFile(path, "utf8"))), loader: "ts" }
    })
})

const optionsOf = (changes: ReadonlyArray<Change>) =>
  ({
    ...common,
    define: { ...common.define, "import.meta.url": "simulatedUrl" },
    external: ["better-sqlite3"],
    format: "cjs",
    minifySyntax: true,
    minifyWhitespace: true,
    target: "node20",
    write: false,
    plugins: [...common.plugins, changed([...always, ...changes])]
  }) as const satisfies BuildOptions

// ---- shared modules -------------------------------------------------------------------------------------------------------

/** Packages without per-user state in their modules. */
const packages = /^node_modules\/(effect|@effect\/(platform|sql|experimental|rpc)|jose)\//

/** Modules that are shared despite their state, which is only random bytes and a formatted time. */
const exempt = new Set(["src/kernel/IdText.ts"])

/** Matches state in a module: a variable, or a collection that is initially empty. */
const state =
  /^(?:export )?(?:let |const \w+(?:: [^=\n]*)? = new (?:Weak)?(?:Map|Set)(?:<.*>)?\(\)|const \w+: (?:Array|Record)\b)/m

const remembers = async (file: string): Promise<boolean> =>
  !exempt.has(file) &&
  (always.some((change) => change.file === file) ||
    /^src\/(sandbox|app\/commands)\//.test(file) ||
    state.test(await readFile(join(root, file), "utf8")))

const service = "scripts/simulate/Service.ts"

/**
 * Finds the modules that all lives can share, because they and their imports are stateless. Reevaluating them would take most of the startup time.
 */
const findShared = async (): Promise<ReadonlySet<string>> => {
  const { metafile } = await build({ ...optionsOf([]), entryPoints: [join(root, service)], metafile: true })
  const { inputs } = metafile
  const found = new Set<string>()
  for (const file of Object.keys(inputs))
    if (packages.test(file) || (file.startsWith("src/") && file.endsWith(".ts") && !(await remembers(file))))
      found.add(file)
  const isPure = (file: string) =>
    inputs[file]!.imports.every(({ external, kind, path }) =>
      external === true
        ? !/sqlite|worker_threads/.test(path)
        : kind === "dynamic-import" || found.has(path) || path.startsWith("partly:")
    )
  for (let before = -1; before !== found.size;) {
    before = found.size
    for (const file of found) if (!isPure(file)) found.delete(file)
  }
  return found
}

let sharedOnce: Promise<ReadonlySet<string>> | undefined

/** Each importer's resolved imports, which are the same in every build. */
const resolved = new Map<string, Promise<ResolveResult>>()

/** Makes a script import the shared modules from its host. `used` collects their paths. */
const borrowed = (shared: ReadonlySet<string>, used: Map<string, string>): Plugin => ({
  name: "what lives have in common",
  setup: (build) =>
    build.onResolve({ filter: /./ }, async ({ importer, kind, path, pluginData, resolveDir }) => {
      if (pluginData === borrowed || kind === "entry-point") return undefined
      const asked = `${importer}\n${kind}\n${path}`
      let found = resolved.get(asked)
      if (found === undefined) {
        found = build.resolve(path, { importer, kind, resolveDir, pluginData: borrowed })
        resolved.set(asked, found)
      }
      const result = await found
      if (result.errors.length > 0) return undefined
      const file = relative(root, result.path)
      if (result.namespace !== "file" || !shared.has(file)) return result
      used.set(file, result.path)
      return { path: `shared:${file}`, external: true }
    })
})

/** Makes the script use the shared module itself instead of a copy for each importer. */
const asItIs = (script: string): string => {
  const parts = script.split("var __toESM=")
  if (parts.length !== 2) throw new Error("esbuild has changed how it imports modules")
  return parts.join(
    "var __toESM=(module,...rest)=>module&&module.__esModule?module:__copyESM(module,...rest),__copyESM="
  )
}

interface Built {
  readonly text: string
  readonly files: ReadonlySet<string>
}

const builtOf = async (options: BuildOptions): Promise<Built> => {
  const { metafile, outputFiles } = await build({ ...options, metafile: true, write: false })
  return { text: outputFiles[0]!.text, files: new Set(Object.keys(metafile.inputs)) }
}

const buildThread = (changes: ReadonlyArray<Change>): Promise<Built> =>
  builtOf({ ...optionsOf(changes), entryPoints: [join(root, "src/books/ledger/write/WriterThread.ts")] })

/** The service's script, and the paths of the shared modules that it imports. */
interface BuiltService extends Built {
  readonly used: ReadonlyMap<string, string>
}

const buildService = async (changes: ReadonlyArray<Change>): Promise<BuiltService> => {
  const used = new Map<string, string>()
  const options = optionsOf(changes)
  const { files, text } = await builtOf({
    ...options,
    entryPoints: [join(root, service)],
    plugins: [...common.plugins, borrowed(await (sharedOnce ??= findShared()), used), changed([...always, ...changes])]
  })
  return { text: asItIs(text), files, used }
}

const buildLibrary = async (used: BuiltService["used"], changes: ReadonlyArray<Change>): Promise<Built> => {
  const all = [...used]
  const contents = all.map(([, path], place) => `export * as m${place} from ${JSON.stringify(path)}`).join("\n")
  const { files, text } = await builtOf({ ...optionsOf(changes), stdin: { contents, resolveDir: root } })
  const names = all.map(([file], place) => `${JSON.stringify(`shared:${file}`)}:module.exports.m${place}`)
  const keep = `for (const [name, found] of Object.entries({${names.join(",")}})) simulatedShared[name] = { __esModule: true, ...found }`
  return { text: `${text}\n${keep}`, files }
}

const buildAll = async () => {
  const [service, thread] = await Promise.all([buildService([]), buildThread([])])
  return { service, thread, library: await buildLibrary(service.used, []) }
}

let allOnce: ReturnType<typeof buildAll> | undefined

/** Builds the scripts with these changes. Scripts that the changes do not affect are built only once. */
export const bundle = async (changes: ReadonlyArray<Change> = []): Promise<Scripts> => {
  const { library, service, thread } = await (allOnce ??= buildAll())
  const touches = ({ files }: Built) => changes.some(({ file }) => files.has(file))
  const built = await Promise.all([
    touches(library) ? buildLibrary(service.used, changes) : library,
    touches(service) ? buildService(changes) : service,
    touches(thread) ? buildThread(changes) : thread
  ])
  const [{ text: ofLibrary }, { text: ofService }, { text: ofThread }] = built
  return { library: ofLibrary, service: ofService, thread: ofThread }
}
