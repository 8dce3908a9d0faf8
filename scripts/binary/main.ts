/**
 * The executable's entry. The assets have the bundle's files and V8's compiled code of each, recorded from a started service. If V8 rejects the
 * compiled code (because of other flags in `NODE_OPTIONS`), it compiles the text.
 */
import { Script } from "node:vm"
import * as Traces from "./Traces.ts"
import { cacheOf, textOf } from "./Assets.ts"

type Module = { readonly exports: object }

const modules = new Map<string, Module>()

/** The executable's own `require` resolves only Node's modules. */
const load = (name: string): object => (name.startsWith("./") ? file(name.slice(2)) : require(name))

const file = (name: string): object => {
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const module: Module = { exports: {} }
  modules.set(name, module)
  const script = new Script(textOf(name), { filename: name, cachedData: cacheOf(name) })
  const run = script.runInThisContext() as (module: Module, exports: object, require: typeof load) => void
  run(module, module.exports, load)
  // Installed late, because loading the service produces a stack trace and would read a source map.
  if (name.startsWith("Main-")) Traces.install()
  return module.exports
}

load("./main.js")
