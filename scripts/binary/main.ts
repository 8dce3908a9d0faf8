/**
 * The executable's entry point. Its assets contain the bundle's files and, unless the build was reproducible, V8's compiled code for each file,
 * recorded from a running service. If V8 rejects that code (for example because of flags in `NODE_OPTIONS`), it compiles the source.
 */
import { Script } from "node:vm"
import * as Traces from "./Traces.ts"
import { cacheOf, textOf } from "./Assets.ts"

type Module = { readonly exports: object }

const modules = new Map<string, Module>()

/** Resolves the bundle's own files. All other names are passed to the executable's `require`, which resolves only Node's built-in modules. */
const load = (name: string): object => (name.startsWith("./") ? file(name.slice(2)) : require(name))

const file = (name: string): object => {
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const module: Module = { exports: {} }
  modules.set(name, module)
  const script = new Script(textOf(name), { filename: name, cachedData: cacheOf(name) })
  const run = script.runInThisContext() as (module: Module, exports: object, require: typeof load) => void
  run(module, module.exports, load)
  // Install the traces only now, because loading the service produces a stack trace that would read a source map.
  if (name.startsWith("Main-")) Traces.install()
  return module.exports
}

load("./main.js")
