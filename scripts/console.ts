/**
 * Builds the console's page into static files: `index.html`, and `assets/` with content hashes in the names and with `.br` and `.gz` versions. Views
 * and plots are separate files, loaded on demand. The page has no inline scripts or styles, so its policy can forbid them.
 */
import { build } from "esbuild"
import type { BuildOptions, Metafile, Plugin } from "esbuild"
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { basename, join, relative } from "node:path"
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import { root } from "./bundle.ts"

const web = join(root, "src", "console", "web")

/** The maximum compressed size of the first view, in bytes. `test/console/Size.test.ts` checks this. */
export const firstLoadMax = 200_000

export interface Built {
  /** The size of everything that a browser loads before the first view (page, style, font, code), in bytes, compressed with brotli. */
  readonly firstLoad: number
  readonly files: number
}

/** Removes React Aria's strings in every language except the console's. */
const oneLanguage: Plugin = {
  name: "texts in one language",
  setup: ({ onLoad }) =>
    onLoad({ filter: /react-(?:aria|stately)[^/]*\/dist\/private\/intl\/.*\/[a-z]{2}-[A-Z]{2}\.mjs$/ }, ({ path }) =>
      path.endsWith("/en-US.mjs") ? undefined : { contents: "export default {}" }
    )
}

/**
 * Includes all `.css` files below `web`, in layers by folder: `theme.css`, then parts, then all others. Modules do not import their styles.
 */
const allStyles: Plugin = {
  name: "all styles",
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^all-styles$/ }, () => ({ path: "all-styles", namespace: "all-styles" }))
    onLoad({ filter: /./, namespace: "all-styles" }, async () => {
      const files = (await readdir(web, { recursive: true })).filter((file) => file.endsWith(".css")).sort()
      const layerOf = (file: string): string =>
        file === "theme.css" ? "theme" : file.startsWith("parts/") ? "parts" : "views"
      const imports = files.map((file) => `@import "./${file}" layer(${layerOf(file)});`)
      return {
        contents: ["@layer theme, parts, views;", '@import "uplot/dist/uPlot.min.css" layer(theme);', ...imports].join(
          "\n"
        ),
        loader: "css",
        resolveDir: web
      }
    })
  }
}

/** Returns an output and all of its direct and indirect static imports. */
const closure = (outputs: Metafile["outputs"], first: string): ReadonlyArray<string> => {
  const all = new Set([first])
  for (const path of all) {
    for (const { kind, path: next, external } of outputs[path]?.imports ?? []) {
      if (kind === "import-statement" && external !== true) all.add(next)
    }
  }
  return [...all]
}

const outputOf = ({ outputs }: Metafile, entry: string, extension = ".js"): string => {
  const found = Object.entries(outputs).find(
    ([path, { entryPoint }]) => path.endsWith(extension) && entryPoint?.endsWith(entry)
  )
  if (found === undefined) throw new Error(`the build of the console has no ${entry}`)
  return found[0]
}

const compressed = async (path: string): Promise<number> => {
  const bytes = await readFile(path)
  const br = await promisify(brotliCompress)(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  })
  await Promise.all([writeFile(`${path}.br`, br), writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }))])
  return br.length
}

const options = (outdir: string) =>
  ({
    absWorkingDir: web,
    outdir,
    bundle: true,
    target: "es2022",
    minify: true,
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    jsx: "automatic",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    define: { "process.env.NODE_ENV": '"production"' }
  }) as const satisfies BuildOptions

/** Builds the page into `folder`, creating it if necessary. */
export const buildConsole = async (folder: string): Promise<Built> => {
  const assets = join(folder, "assets")
  await mkdir(assets, { recursive: true })
  const { metafile } = await build({
    ...options(assets),
    entryPoints: { main: "main.tsx", style: "all-styles" },
    splitting: true,
    format: "esm",
    loader: { ".woff2": "file" },
    plugins: [oneLanguage, allStyles]
  })
  const early = await build({ ...options(assets), entryPoints: { theme: "app/earlyTheme.ts" }, format: "iife" })
  const outputs = { ...metafile.outputs, ...early.metafile.outputs }
  const names = Object.keys(outputs).map((path) => basename(path))
  const main = outputOf(metafile, "main.tsx")
  const style = outputOf(metafile, "all-styles", ".css")
  const theme = outputOf(early.metafile, "app/earlyTheme.ts")
  const font = names.find((name) => name.endsWith(".woff2"))!
  const code = closure(metafile.outputs, main)

  const tags = [
    `<link rel="preload" href="assets/${font}" as="font" type="font/woff2" crossorigin>`,
    `<link rel="stylesheet" href="assets/${basename(style)}">`,
    `<script src="assets/${basename(theme)}"></script>`,
    ...code.slice(1).map((path) => `<link rel="modulepreload" href="assets/${basename(path)}">`),
    `<script type="module" src="assets/${basename(main)}"></script>`
  ]
  const template = await readFile(join(web, "index.html"), "utf8")
  await writeFile(join(folder, "index.html"), template.replace("<!-- assets -->", tags.join("\n    ")))

  const sizes = new Map<string, number>()
  for (const name of names) {
    // Fonts are already compressed.
    const path = join(assets, name)
    sizes.set(name, name.endsWith(".woff2") ? (await readFile(path)).length : await compressed(path))
  }
  const home = closure(metafile.outputs, outputOf(metafile, "views/home/Home.tsx"))
  const first = new Set([...code, ...home, style, theme].map((path) => basename(path)))
  const firstLoad = [font, ...first].reduce(
    (sum, name) => sum + sizes.get(name)!,
    await compressed(join(folder, "index.html"))
  )
  return { firstLoad, files: names.length }
}

export const described = ({ files, firstLoad }: Built): string =>
  `console: ${files} files, first load ${(firstLoad / 1000).toFixed(1)} kB compressed (at most ${firstLoadMax / 1000} kB)`

// To work on the page, build it into `dist/console` with `node --import tsx scripts/console.ts`.
if (process.argv[1] !== undefined && relative(process.argv[1], import.meta.filename) === "") {
  console.log(described(await buildConsole(join(root, "dist", "console"))))
}
