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
  // When the service is loaded, and not before: it looks at a trace while it is, and would wait for the reading of a map.
  if (name.startsWith("Main-")) Traces.install()
  return module.exports
}

load("./main.js")
