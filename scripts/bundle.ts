/** What the bundles of `npm run build` and `npm run binary` have in common. */
import type { BuildOptions, Plugin, PluginBuild } from "esbuild"
import { readFile } from "node:fs/promises"
import { join } from "node:path"

export const root = join(import.meta.dirname, "..")

type Replacement = readonly [path: RegExp, importer: RegExp, contents: string]

/** Modules that stand in for parts of packages that the service does not use, by what is imported from where. */
const partly: ReadonlyArray<Replacement> = [
  // The pool alone: what else is in the package (fetch, caches, mocks) takes as long to evaluate as all rooms together.
  [/^undici$/, /\/src\/upstream\//, `export { default as Pool } from "undici/lib/dispatcher/pool.js"`],
  // Loads node's HTTP/2, which a pool uses only where it is allowed to.
  [
    /^\.\/client-h2\.js$/,
    /node_modules\/undici\//,
    `module.exports = () => { throw new Error("HTTP/2 is not in the bundle") }`
  ],
  // `Schema` makes arbitrary values with it, in tests.
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
    replace(partly, "partly", { onLoad, onResolve })
    // What this file names is kept with what names anything of it; the page of the documents is loaded by itself.
    onLoad({ filter: /@effect\/platform\/dist\/esm\/index\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replace(/^export \* as HttpApiSwagger .*$/m, "")
    }))
  }
}

const loop = "for (let i = 0; i < fibersCount; i++) {\n      next();\n    }"

/**
 * `Effect.forEach` with concurrency (effect 3.22), by which layers are built: where it is interrupted before its own fiber has begun, that
 * fiber finds nothing to start, and was waited for without end. A start of which one layer failed beside others neither served nor ended.
 */
const corrected: Plugin = {
  name: "corrections of packages",
  setup: ({ onLoad }) =>
    onLoad({ filter: /node_modules\/effect\/dist\/esm\/internal\/fiberRuntime\.js$/ }, async ({ path }) => {
      const parts = (await readFile(path, "utf8")).split(loop)
      if (parts.length !== 2) throw new Error("effect has another forEach: look whether it still waits without end")
      return { contents: parts.join(`${loop}\n    if (target === 0) resume(core.succeed(core.exitVoid));`) }
    })
}

/**
 * `import { Schema } from "effect"` becomes `import * as Schema from "effect/Schema"`. Of what is named through the package's own file
 * esbuild keeps whole modules and reads each name of them from an object; of what is imported directly it keeps what is used.
 */
export const direct: Plugin = {
  name: "modules of packages imported directly",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => ({
      contents: directly(await readFile(path, "utf8")),
      loader: "ts"
    }))
}

/** The text of a file with such imports. */
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

/** What `effect` exports besides modules. */
const functions = new Set(["absurd", "flow", "hole", "identity", "pipe", "unsafeCoerce"])

/**
 * For the writer's thread. What it needs of `kernel/` are a few constants; their files make schemas as well, which it never uses, and
 * which would be half of its code and of its memory. Whoever uses one there after all is told.
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

/** For the thread of long answers, which asks no upstream. */
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
  // Optional speed-ups of the `ws` package that are not installed.
  define: { "process.env.WS_NO_BUFFER_UTIL": '"1"', "process.env.WS_NO_UTF_8_VALIDATE": '"1"' },
  plugins: [unused, corrected]
} as const satisfies BuildOptions
