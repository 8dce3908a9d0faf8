/** Settings shared by the bundles of `npm run build` and `npm run binary`. */
import type { BuildOptions, Plugin, PluginBuild } from "esbuild"
import { readFile } from "node:fs/promises"
import { join } from "node:path"

export const root = join(import.meta.dirname, "..")

type Replacement = readonly [path: RegExp, importer: RegExp, contents: string]

/** Replacements for package parts that the service does not use: the import, its importer and the replacement. */
const packageReplacements: ReadonlyArray<Replacement> = [
  // Keep only the pool. Evaluating the other parts of the package (fetch, caches, mocks) takes as long as evaluating the rest of the service.
  [/^undici$/, /\/src\/upstream\//, `export { default as Pool } from "undici/lib/dispatcher/pool.js"`],
  // Drop Node's HTTP/2. A pool uses it only with `allowH2`.
  [
    /^\.\/client-h2\.js$/,
    /node_modules\/undici\//,
    `module.exports = () => { throw new Error("HTTP/2 is not in the bundle") }`
  ],
  // The service has no WebSockets, serves its files itself, and attaches no traces to its metrics.
  [
    /^ws$/,
    /@effect\/platform-node\/.*\/httpServer\.js$/,
    `export class WebSocketServer { constructor() { throw new Error("WebSocket is not in the bundle") } }`
  ],
  [/^mime$/, /@effect\/platform-node\/.*\/httpPlatform\.js$/, "export default { getType: () => null }"],
  [/^@opentelemetry\/api$/, /node_modules\/prom-client\//, "module.exports = {}"],
  // `Schema` uses fast-check only for generating test values.
  [/^fast-check$/, /node_modules\/effect\//, ""]
]

const replace = (
  replaced: ReadonlyArray<Replacement>,
  namespace: string,
  { onLoad, onResolve }: Pick<PluginBuild, "onLoad" | "onResolve">
): void => {
  for (const [i, [filter, importer]] of replaced.entries())
    onResolve({ filter }, (asked) =>
      importer.test(asked.importer) ? { path: String(i), namespace, sideEffects: false } : undefined
    )
  onLoad({ filter: /./, namespace }, ({ path }) => ({ contents: replaced[Number(path)]![2], resolveDir: root }))
}

const unused: Plugin = {
  name: "parts of packages that are not used",
  setup: ({ onLoad, onResolve }) => {
    replace(packageReplacements, "partly", { onLoad, onResolve })
    // esbuild bundles all exports of this file with its first user. Without this export, the documents' page stays in a separate file.
    onLoad({ filter: /@effect\/platform\/dist\/esm\/index\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replace(/^export \* as HttpApiSwagger .*$/m, "")
    }))
  }
}

const loop = "for (let i = 0; i < fibersCount; i++) {\n      next();\n    }"

/**
 * Fixes concurrent `Effect.forEach` (effect 3.22). If the combined effect is interrupted before its own fiber starts, it waits for that
 * fiber forever. Effect builds layers with `forEach`. Without this fix, the service would neither start nor exit if one of several
 * concurrently built layers fails.
 */
const packageFixes: Plugin = {
  name: "corrections of packages",
  setup: ({ onLoad }) =>
    onLoad({ filter: /node_modules\/effect\/dist\/esm\/internal\/fiberRuntime\.js$/ }, async ({ path }) => {
      const parts = (await readFile(path, "utf8")).split(loop)
      if (parts.length !== 2) throw new Error("effect's forEach has changed: check whether it still waits forever")
      return { contents: parts.join(`${loop}\n    if (target === 0) resume(core.succeed(core.exitVoid));`) }
    })
}

/**
 * Rewrites `import { Schema } from "effect"` to `import * as Schema from "effect/Schema"`. For names from a package's index, esbuild keeps entire
 * modules and reads each name from an object. For direct imports, it keeps only used code.
 */
export const direct: Plugin = {
  name: "modules of packages imported directly",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => ({
      contents: directly(await readFile(path, "utf8")),
      loader: "ts"
    }))
}

/** Rewrites the imports in a file's text, as `direct` does. */
export const directly = (text: string): string =>
  text.replace(/^import \{([^}]*)\} from "(effect|@effect\/(?:platform|cli))"$/gm, (_, names: string, from: string) =>
    names
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "" && !name.startsWith("type "))
      .map((name) =>
        functions.has(name)
          ? `import { ${name} } from "${from}/Function"`
          : `import * as ${name.split(" as ").at(-1)} from "${from}/${name.split(" as ")[0]}"`
      )
      .join("; ")
  )

/** The exports of `effect` that are functions, not modules. */
const functions = new Set(["absurd", "flow", "hole", "identity", "pipe", "unsafeCoerce"])

/**
 * Removes schemas from the writer thread. The thread needs only a few constants from `kernel/`, but their files also define schemas, which would make
 * up half of the thread's code and memory. Using a schema in the thread throws.
 */
export const withoutSchemas: Plugin = {
  name: "no schemas in the thread",
  setup: (build) =>
    replace(
      [
        [
          /^effect$/,
          /\/src\/kernel\//,
          `let loading = true
          queueMicrotask(() => { loading = false })
          const use = () => { if (loading) return nothing; throw new Error("there are no schemas in the writer's thread") }
          const nothing = new Proxy(function () {}, { get: use, apply: use })
          export { nothing as Clock, nothing as Effect, nothing as ParseResult, nothing as Schema }`
        ]
      ],
      "nothing",
      build
    )
}

/** Removes the connection pool from the long-body thread, which calls no upstreams. */
export const withoutPool: Plugin = {
  name: "no pool of connections in the thread",
  setup: (build) => replace([[/^undici$/, /\/src\//, "export const Pool = undefined"]], "poolless", build)
}

export const common = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  sourcesContent: false,
  logLevel: "warning",
  // Turn off the `ws` package's optional accelerators, because they are not installed.
  define: { "process.env.WS_NO_BUFFER_UTIL": '"1"', "process.env.WS_NO_UTF_8_VALIDATE": '"1"' },
  plugins: [unused, packageFixes]
} as const satisfies BuildOptions
