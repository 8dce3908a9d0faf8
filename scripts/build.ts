/**
 * Writes `dist/`: each source file as the JavaScript that Node runs, one to one, with source maps. Types are checked by
 * `npm run check`; here only speed counts, since `npm start` builds first.
 */
import { transform } from "esbuild"
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"

const root = join(import.meta.dirname, "..")
const source = join(root, "src")
const target = join(root, "dist")

await rm(target, { recursive: true, force: true })
const files = (await readdir(source, { recursive: true })).filter((file) => file.endsWith(".ts"))

await Promise.all(
  files.map(async (file) => {
    const { code, map } = await transform(await readFile(join(source, file), "utf8"), {
      loader: "ts",
      format: "esm",
      target: "node20",
      sourcemap: "external",
      sourcefile: join("..", "src", file)
    })
    const written = join(target, file.replace(/\.ts$/, ".js"))
    await mkdir(dirname(written), { recursive: true })
    // Relative imports name the `.ts` file in the source and the `.js` file beside it here.
    const relinked = code.replace(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, "$1$2.js$1")
    await writeFile(written, `${relinked}//# sourceMappingURL=${file.split("/").at(-1)!.replace(/\.ts$/, ".js.map")}\n`)
    await writeFile(`${written}.map`, map)
  })
)
