/**
 * The executable's way in. The service is in the assets as the bundle's files, each with what V8 had compiled of it when a service had
 * started: nothing of that is compiled again. Where V8 does not take it (other flags, by `NODE_OPTIONS`), it compiles the text.
 */
import { Script } from "node:vm"
import * as Traces from "./Traces.ts"
import { cacheOf, textOf } from "./Assets.ts"

type Module = { readonly exports: object }

const modules = new Map<string, Module>()

/** The executable's own `require` knows node's modules only. */
const load = (name: string): object => (name.startsWith("./") ? file(name.slice(2)) : require(name))

const file = (name: string): object => {
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const module: Module = { exports: {} }
  modules.set(name, module)
  const script = new Script(textOf(name), { filename: name, cachedData: cacheOf(name) })
  const run = script.runInThisContext() as (module: Module, exports: object, require: typeof load) => void
  run(module, module.exports, load)
  return module.exports
}

load("./main.js")
// After the service: what loads before this is spared the reading of the maps.
setImmediate(Traces.install)
