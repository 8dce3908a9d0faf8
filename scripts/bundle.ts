/** What the bundles of `npm run build` and `npm run binary` have in common. */
import type { BuildOptions, Plugin } from "esbuild"
import { readFile } from "node:fs/promises"
import { join } from "node:path"

export const root = join(import.meta.dirname, "..")

/** Modules that stand in for parts of packages that the service does not use, by what is imported from where. */
const replaced: ReadonlyArray<readonly [path: RegExp, importer: RegExp, contents: string]> = [
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

const unused: Plugin = {
  name: "parts of packages that are not used",
  setup: ({ onLoad, onResolve }) => {
    for (const [i, [filter, importer]] of replaced.entries())
      onResolve({ filter }, (asked) =>
        importer.test(asked.importer) ? { path: String(i), namespace: "replaced", sideEffects: false } : undefined
      )
    // What this file names is kept with what names anything of it; the page of the documents is loaded by itself.
    onLoad({ filter: /@effect\/platform\/dist\/esm\/index\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replace(/^export \* as HttpApiSwagger .*$/m, "")
    }))
    onLoad({ filter: /./, namespace: "replaced" }, ({ path }) => ({
      contents: replaced[Number(path)]![2],
      resolveDir: root
    }))
  }
}

export const common = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  sourcesContent: false,
  logLevel: "warning",
  // Optional speed-ups of the `ws` package that are not installed.
  define: { "process.env.WS_NO_BUFFER_UTIL": '"1"', "process.env.WS_NO_UTF_8_VALIDATE": '"1"' },
  plugins: [unused]
} as const satisfies BuildOptions
